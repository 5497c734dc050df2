"""How each slice is found after a step: told its language in its own gallery, and as a searcher would meet it.

*Told*: the captions look among the pictures of their domain, read in their language. *Searched*: among the pictures of
all domains, each on its route, read as search reads a text whose language nobody said; a picture with the same caption,
or of the same thing, never counts as ahead of the right one there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.bench.material import Material, Slice
from app.bench.results import SEARCHED, TOLD
from app.bench.sequence import BenchSequence
from app.language.reading import Reader
from app.learning.yardstick import Alike
from ingest.pair import BASE_LANGUAGE, SliceKey
from model_updates.encoder import Encoder
from model_updates.evaluation import View
from model_updates.features import FeatureCache, LoadImage
from model_updates.measurement import HeldOut, Measured, ReadAs, Side, measure_views
from model_updates.references import TRANSLATE_TEST
from model_updates.routes import BASE

DEPTHS = (1, 5, 10)


@dataclass(frozen=True, eq=False)
class Looked:
    """One slice looked up after one step."""

    # by view, R@1, 5 and 10 from text to image, percent; told, also from image to text and their mean
    recalls: Mapping[str, Mapping[str, float]]
    # by view, (n_captions,) bool: whether the right picture came first
    first: Mapping[str, NDArray[np.bool_]]
    ten: Mapping[str, NDArray[np.bool_]]  # by view, (n_captions,) bool: whether it was among the first ten
    # (n_captions,) int64, told: by how many of R@1, 5 and 10, to its picture and back, it was found
    six: NDArray[np.int64]


def look_up(
    load_image: LoadImage,
    encoder: Encoder,
    languages: Sequence[str],
    sequence: BenchSequence,
    material: Material,
    step: int,
    cache: FeatureCache,
    strategy: str,
) -> dict[int, Looked]:
    """Ranks every slice that is known after a step; returns each by its number in the material.

    Step 0 is the base. The reference strategy `translate-test` reads the English caption for the foreign one.
    """
    until = step if sequence.gallery == "growing" else None
    routes = {image_id: encoder.image_route(domain) for image_id, domain in material.domains.items()}
    side = Side(
        encoder,
        _reads(encoder, languages, cache),
        {image_id: route for image_id, route in routes.items() if route != BASE},
    )
    found = {}
    for number, one in enumerate(material.slices):
        if one.since > step and strategy != TRANSLATE_TEST.name:
            continue
        asked = _translated(one) if strategy == TRANSLATE_TEST.name else one
        everything = material.gallery(one.kind, until)
        found[number] = _looked(load_image, side, asked, everything, material, cache)
    return found


def _reads(
    encoder: Encoder, languages: Sequence[str], cache: FeatureCache
) -> Callable[[Sequence[str]], list[ReadAs]]:
    """Returns how search reads texts; where one table serves every language, whichever is guessed reads alike."""
    if encoder.second is None and len({encoder.text_route(language) for language in languages}) == 1:
        return lambda texts: [((languages[0], 0.0),)] * len(texts)
    return Reader(encoder, languages, cache)


def _looked(
    load_image: LoadImage,
    side: Side,
    one: Slice,
    everything: tuple[str, ...],
    material: Material,
    cache: FeatureCache,
) -> Looked:
    own = tuple(name for name in everything if material.domains[name] == one.key.domain)
    views = {TOLD: (View.OWN, own), SEARCHED: (View.MIXED, everything)}
    said: dict[str, set[str]] = {}
    for image_id, text in one.captions:
        said.setdefault(text, set()).add(image_id)
    recalls, first, ten, six = {}, {}, {}, np.empty(0, dtype=np.int64)
    for name, (view, gallery) in views.items():
        alike = Alike(gallery, {image_id: material.groups.get(image_id, image_id) for image_id in gallery})
        neutral = alike.neutral(one.captions, said)
        held_out = HeldOut(one.key, gallery, one.captions, view, groups=one.groups, neutral=neutral)
        results = measure_views(side, [held_out], load_image, cache)
        result = results[Measured(one.key, view)]
        recalls[name] = {key: round(value, 3) for key, value in result.recalls().items()}
        first[name], ten[name] = result.text_ranks < DEPTHS[0], result.text_ranks < DEPTHS[-1]
        if name == TOLD:
            back = result.image_ranks[np.searchsorted(result.image_rank_image, result.caption_image)]
            hits = [ranks < depth for ranks in (result.text_ranks, back) for depth in DEPTHS]
            six = np.sum(hits, axis=0, dtype=np.int64)
    return Looked(recalls, first, ten, six)


def _translated(one: Slice) -> Slice:
    """A slice whose captions are the English ones beside them, where there are any."""
    captions = tuple(
        (image_id, english or text)
        for (image_id, text), english in zip(one.captions, one.english, strict=True)
    )
    return replace(one, key=SliceKey(BASE_LANGUAGE, one.key.domain), captions=captions)
