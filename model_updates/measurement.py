"""Measures an encoder on slices in the views that a gate looks at, with every feature computed at most once.

In the view `own` a slice's captions look among the held-out pictures of their domain, read in the slice's language. In
the others they look among pictures of everything, and are read as search would read them: what a searcher meets. A
picture that would be as right as the right one (the same caption, or the same thing) never counts as ahead of it there.
Where a slice is known and says what pictures show, one of those in front is as good as the right one, and styles of one
thing take no more places than one of them.

What an encoder makes of a caption follows from fingerprints. Where they are those of a version that was measured
already, so are the ranks, and nothing is computed again.
"""

import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ingest.pair import SliceKey
from model_updates.evaluation import (
    CONCEPT_DEPTH,
    TIE_TOLERANCE,
    FloatArray,
    IntArray,
    Shown,
    SliceResult,
    View,
    caption_ranks,
    rank_slice,
)
from model_updates.features import FeatureCache, LoadImage, image_features, text_features
from model_updates.readings import added, background
from model_updates.routes import BASE
from model_updates.search_encoder import Rows, SearchEncoder, unit

BLOCK = 1024
"""Captions whose similarities are held at once."""

ReadAs = tuple[tuple[str, float], ...]
"""How a text is read: languages, the likeliest first, and what each lowers its cosines by (0 or less)."""


@dataclass(frozen=True, order=True)
class Measured:
    """What is measured: a slice in a view, on the pairs of a chunk that is taught or on those that are known."""

    key: SliceKey
    view: View = View.OWN
    is_new: bool = False

    def __str__(self) -> str:
        return f"{self.key} {self.view}{' (taught)' if self.is_new else ''}"


@dataclass(frozen=True)
class HeldOut:
    """One slice in one view: its captions, and the gallery they are looked up in."""

    key: SliceKey  # language of the captions, domain of their pictures
    gallery: tuple[str, ...]  # picture ids; in the view `own` all held-out pictures of the domain
    captions: tuple[tuple[str, str], ...]  # (image id, text) of each pair
    view: View = View.OWN  # how the captions look
    is_new: bool = False  # whether these are pairs of a chunk that is being taught
    groups: tuple[str, ...] = ()  # the group of each caption's picture; empty when each is alone
    # by number of a caption, the places in the gallery that never count as ahead of its picture: they show the same
    neutral: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    # of each picture of the gallery; empty where nobody asks what stands in a place
    domains: tuple[str, ...] = ()
    # as `neutral`, but that they show the same is claimed alone: they are left out, and never as good as the own one
    claimed: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    # the number of what each picture of the gallery shows, of a slice that is ranked by things; else empty
    things: tuple[int, ...] = ()

    @property
    def measured(self) -> Measured:
        """What results of it are kept under."""
        return Measured(self.key, self.view, self.is_new)

    @cached_property
    def shown(self) -> Shown:
        """What its gallery shows, of a slice that is ranked by things; the same for every version."""
        return Shown.of(self.things, self.domains)


@dataclass(frozen=True, eq=False)
class Side:
    """One version as a searcher meets it."""

    encoder: SearchEncoder  # of the version
    # how search with this version reads texts; only the views beside `own` ask
    read: Callable[[Sequence[str]], Sequence[ReadAs]]
    routes: Mapping[str, str]  # of the gallery's pictures that do not take the base route
    # what makes each text's vectors, as far as it was asked (`_heard`)
    heard: dict[str, Hashable] = field(default_factory=dict)


Results = dict[Measured, SliceResult]
_Asked = tuple[HeldOut, NDArray[np.intp]]
"""A slice, and the numbers of those of its captions that are asked."""


def measure(
    encoder: SearchEncoder, slices: Iterable[HeldOut], load_image: LoadImage, cache: FeatureCache
) -> dict[SliceKey, SliceResult]:
    """Ranks every slice's captions, if it has any, among its gallery, each text read in the slice's language."""
    return {
        held_out.key: _own_result(encoder, held_out, load_image, cache)
        for held_out in slices
        if held_out.captions
    }


def measure_views(
    side: Side,
    slices: Iterable[HeldOut],
    load_image: LoadImage,
    cache: FeatureCache,
    *,
    known: tuple[Side, Mapping[Measured, SliceResult]] | None = None,
    begin: Callable[[HeldOut], None] = lambda _: None,
    ranks_alone: bool = False,
) -> Results:
    """Ranks every slice in its view.

    A slice without captions is left out. `known` is another version and its results on the same slices: what the two
    read alike is not computed again. `begin` is told of each slice when its first captions come.
    Whoever needs `ranks_alone` is spared the search for concepts; those of captions that are ranked anew are NaN then.
    """
    galleries: dict[tuple[str, ...], _Gallery] = {}
    order: list[Measured] = []
    asked: dict[tuple[str, ...], list[_Asked]] = {}
    seen_alike: dict[tuple[str, ...], bool] = {}
    results: Results = {}
    for held_out in (one for one in slices if one.captions):
        order.append(held_out.measured)
        earlier = None if known is None else known[1].get(held_out.measured)
        if held_out.view is View.OWN:
            begin(held_out)
            if earlier is not None and known is not None and _same_own(side, known[0], held_out):
                results[held_out.measured] = earlier
            else:
                results[held_out.measured] = _own_result(side.encoder, held_out, load_image, cache)
            continue
        if held_out.gallery not in galleries:
            galleries[held_out.gallery] = _Gallery(side, held_out.gallery, load_image, cache)
            seen_alike[held_out.gallery] = known is not None and _seen_alike(side, known[0], held_out.gallery)
        same = known[0] if known is not None and seen_alike[held_out.gallery] else None
        ranks, concepts, moved = _known_ranks(side, held_out, same, earlier)
        if not len(moved):
            begin(held_out)
        asked.setdefault(held_out.gallery, []).append((held_out, moved))
        results[held_out.measured] = _result(held_out, galleries[held_out.gallery].places, ranks, concepts)
    for shown, captions in asked.items():
        for held_out, numbers, scores in _scored(galleries[shown], captions, begin):
            ranks_of = held_out.shown.ranks if held_out.things else caption_ranks
            own, right = _right(galleries[shown], held_out, numbers)
            result = results[held_out.measured]
            result.concepts[numbers] = np.nan if ranks_alone else _concepts(held_out, scores, right)
            _leave_out(scores, held_out, numbers, own, right)
            result.text_ranks[numbers] = ranks_of(scores, own, tolerance=TIE_TOLERANCE)
    return {key: results[key] for key in order}


def first_pictures(
    side: Side, held_out: HeldOut, numbers: Sequence[int], load_image: LoadImage, cache: FeatureCache
) -> list[str]:
    """Returns the picture that a version puts first for some captions of a slice, by their numbers in it."""
    asked = np.asarray(numbers, dtype=np.intp)
    if held_out.view is View.OWN:
        images = _own_images(side.encoder, held_out, load_image, cache)
        texts = [held_out.captions[number][1] for number in numbers]
        scores = unit(text_features(side.encoder, texts, held_out.key.language, cache)) @ images.T
    else:
        gallery = _Gallery(side, held_out.gallery, load_image, cache)
        scores = np.concatenate([rows for _, _, rows in _scored(gallery, [(held_out, asked)])])
        _leave_out(scores, held_out, asked, *_right(gallery, held_out, asked))
    return [held_out.gallery[place] for place in scores.argmax(axis=1).tolist()]


# ------------------------------------------------------------------------------------- held-out pictures alone


def _own_result(
    encoder: SearchEncoder, held_out: HeldOut, load_image: LoadImage, cache: FeatureCache
) -> SliceResult:
    place = {image_id: position for position, image_id in enumerate(held_out.gallery)}
    caption_image = np.asarray([place[image_id] for image_id, _ in held_out.captions], dtype=np.int64)
    images = _own_images(encoder, held_out, load_image, cache)
    texts = unit(
        text_features(encoder, [text for _, text in held_out.captions], held_out.key.language, cache)
    )
    ranks = rank_slice(images, texts, caption_image)
    return SliceResult(
        held_out.key.language,
        held_out.key.domain,
        held_out.gallery,
        caption_image,
        *ranks,
        caption_group=held_out.groups,
    )


def _own_images(
    encoder: SearchEncoder, held_out: HeldOut, load_image: LoadImage, cache: FeatureCache
) -> Rows:
    """(n, dim) float32 unit vectors of a gallery whose pictures are all of the slice's domain."""
    routes = dict.fromkeys(held_out.gallery, encoder.image_route(held_out.key.domain))
    return unit(image_features(encoder, held_out.gallery, load_image, cache, routes=routes))


def _same_own(side: Side, other: Side, held_out: HeldOut) -> bool:
    """Whether two versions read a slice's captions and see its pictures with the same parameters."""
    language, domain = held_out.key.language, held_out.key.domain
    a, b = side.encoder, other.encoder
    return a.text_fingerprint(language) == b.text_fingerprint(language) and a.image_fingerprint(
        a.image_route(domain)
    ) == b.image_fingerprint(b.image_route(domain))


# ------------------------------------------------------------------------------------------- among everything


class _Gallery:
    """A gallery under one version; its pictures' vectors are made when somebody first asks."""

    def __init__(self, side: Side, ids: tuple[str, ...], load_image: LoadImage, cache: FeatureCache) -> None:
        self.side, self.ids, self.cache = side, ids, cache
        self.places = {image_id: position for position, image_id in enumerate(ids)}
        self._load = load_image
        self._vectors: Rows | None = None

    @property
    def vectors(self) -> Rows:
        """(n, dim) float32 unit vectors."""
        if self._vectors is None:
            encoder, routes = self.side.encoder, self.side.routes
            self._vectors = unit(image_features(encoder, self.ids, self._load, self.cache, routes=routes))
        return self._vectors


def _known_ranks(
    side: Side, held_out: HeldOut, same: Side | None, earlier: SliceResult | None
) -> tuple[IntArray, FloatArray, NDArray[np.intp]]:
    """Returns ranks and concepts as another version has them, and the captions that this one reads differently.

    `same` is that version if it sees the gallery's pictures as this one does.
    """
    count = len(held_out.captions)
    if same is None or earlier is None:
        return np.zeros(count, dtype=np.int64), np.full((count, 3), np.nan), np.arange(count)
    texts = [text for _, text in held_out.captions]
    pairs = zip(_heard(side, texts), _heard(same, texts), strict=True)
    moved = np.flatnonzero([mine != other for mine, other in pairs])
    return earlier.text_ranks.copy(), earlier.concepts.copy(), moved


def _seen_alike(side: Side, other: Side, gallery: tuple[str, ...]) -> bool:
    """Whether two versions see a gallery's pictures with the same parameters."""
    routes = {(side.routes.get(image_id, BASE), other.routes.get(image_id, BASE)) for image_id in gallery}
    return all(
        side.encoder.image_fingerprint(a) == other.encoder.image_fingerprint(b) for a, b in sorted(routes)
    )


def _heard(side: Side, texts: Sequence[str]) -> list[Hashable]:
    """Returns what makes each text's vectors: the fingerprints that read it, and how they are weighed."""
    fresh = [text for text in dict.fromkeys(texts) if text not in side.heard]
    readings = side.read(fresh)
    tags = {language for reading in readings for language, _ in reading}
    read_by = {language: side.encoder.text_fingerprint(language) for language in tags}
    for text, reading in zip(fresh, readings, strict=True):
        side.heard[text] = tuple((read_by[language], round(lowered, 6)) for language, lowered in reading)
    return [side.heard[text] for text in texts]


def _scored(
    gallery: _Gallery, asked: Sequence[_Asked], begin: Callable[[HeldOut], None] = lambda _: None
) -> Iterator[tuple[HeldOut, NDArray[np.intp], NDArray[np.float32]]]:
    """Yields some captions of a slice at a time, each read as search reads it: slice, numbers in it, and (n, m) scores.

    What the captions of a block have in common is computed once, of whatever slices they are. `begin` is told of each
    slice that a block begins with or comes to, before anything of the block is computed.
    """
    side = gallery.side
    captions = [(one, int(number)) for one, numbers in asked for number in numbers]
    for start in range(0, len(captions), BLOCK):
        block = captions[start : start + BLOCK]
        texts = [one.captions[number][1] for one, number in block]
        for place, (one, _) in enumerate(block, start):
            if place == 0 or captions[place - 1][0] is not one:
                begin(one)
        scores = searched(side.encoder, texts, side.read(texts), gallery.vectors, gallery.cache)
        row = 0
        for _, part in itertools.groupby(block, key=lambda caption: id(caption[0])):
            told = list(part)
            numbers = np.asarray([number for _, number in told], dtype=np.intp)
            yield told[0][0], numbers, scores[row : row + len(told)]
            row += len(told)


def _right(
    gallery: _Gallery, held_out: HeldOut, numbers: NDArray[np.intp]
) -> tuple[IntArray, dict[int, set[int]]]:
    """Returns the place of each caption's picture, and by row the places of all that are right, where it has others."""
    own = [gallery.places[held_out.captions[number][0]] for number in numbers.tolist()]
    right = {}
    for row, (number, place) in enumerate(zip(numbers.tolist(), own, strict=True)):
        same = {*held_out.neutral.get(number, ()), place}
        if len(same) > 1:
            right[row] = same
    return np.asarray(own, dtype=np.int64), right


def _leave_out(
    scores: NDArray[np.float32],
    held_out: HeldOut,
    numbers: NDArray[np.intp],
    own: IntArray,
    right: Mapping[int, Collection[int]],
) -> None:
    """Takes out of (n, m) scores, in place, the pictures that are as right as a caption's own."""
    for row, (number, place) in enumerate(zip(numbers.tolist(), own.tolist(), strict=True)):
        shows = list(right.get(row, ()))
        best = scores[row, shows].max() if held_out.things and shows else scores[row, place]
        scores[row, [*shows, *held_out.claimed.get(number, ())]] = -np.inf
        scores[row, place] = best


def _concepts(
    held_out: HeldOut, scores: NDArray[np.float32], right: Mapping[int, Collection[int]]
) -> FloatArray:
    """Returns (n, 3) what `SliceResult.concepts` has of captions.

    Scores are (n, m) of a gallery, `right` by row the places of pictures of the same thing.
    """
    found = np.full((len(scores), 3), np.nan)
    if not right:
        return found
    domains = np.asarray(held_out.domains or (held_out.key.domain,) * scores.shape[1])
    depth, named = min(CONCEPT_DEPTH, scores.shape[1]), list(right)
    first = np.argpartition(-scores[named], depth - 1, axis=1)[:, :depth]
    others = (domains[first] != held_out.key.domain).mean(axis=1)
    rows = zip(first.tolist(), others, right.values(), strict=True)
    found[named] = [
        (sum(place in places for place in near) / min(depth, len(places)), other, min(places))
        for near, other, places in rows
    ]
    return found


def searched(
    encoder: SearchEncoder,
    texts: Sequence[str],
    readings: Sequence[ReadAs],
    images: Rows,
    cache: FeatureCache,
) -> NDArray[np.float32]:
    """Returns (n_texts, n_images) scores in the order of search: each picture's by all readings of the text together.

    Of several readings each counts by how far it stands out (`model_updates.readings`), as in search; what all scores
    of a text share is left out.

    Each text has at least one reading; the images are (n_images, dim) float32 unit vectors.
    """
    scores = np.full((len(texts), len(images)), -np.inf, dtype=np.float32)
    is_scored = np.zeros(len(texts), dtype=np.bool_)
    scale = encoder.similarity_scale
    spoken: dict[str, list[tuple[int, float]]] = {}
    for row, reading in enumerate(readings):
        for language, lowered in reading:
            spoken.setdefault(language, []).append((row, lowered))
    for language, entries in sorted(spoken.items()):
        rows = np.asarray([row for row, _ in entries])
        offsets = np.asarray([value for _, value in entries], dtype=np.float32)
        vectors = unit(text_features(encoder, [texts[row] for row in rows], language, cache))
        cosines = vectors @ images.T
        several = np.asarray([len(readings[row]) > 1 for row in rows])
        offsets[several] -= background(cosines[several])
        cosines += offsets[:, None]
        # As `model_updates.readings.fused`, one reading after another.
        again = is_scored[rows]
        scores[rows[~again]] = cosines[~again]
        scores[rows[again]] = added(scores[rows[again]], cosines[again], scale)
        is_scored[rows] = True
    return scores


def _result(
    held_out: HeldOut, places: Mapping[str, int], ranks: IntArray, concepts: FloatArray
) -> SliceResult:
    nothing = np.empty(0, dtype=np.int64)
    return SliceResult(
        held_out.key.language,
        held_out.key.domain,
        held_out.gallery,
        np.asarray([places[image_id] for image_id, _ in held_out.captions], dtype=np.int64),
        ranks,
        nothing,
        nothing,
        view=held_out.view,
        caption_group=held_out.groups,
        concepts=concepts,
    )
