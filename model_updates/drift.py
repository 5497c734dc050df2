"""How far the space of one version has turned away from another's, and whether both towers turned together.

Three angles in degrees (Ni et al., "Mod-X", ICML 2023, section 3), over the same held-out pairs under both versions:

*SAM*, self-angle: how much the angle between two pictures, or two texts, has changed; the shape of a tower's space.
*RAM*, rotation: the angle between a picture's vector and its own earlier one, or a text's; how far a tower has turned.
*ImAM*, inter-modal: how much the angle between a text and its picture has changed, for pairs that the earlier version
retrieved. Both directions of retrieval are counted, since they leave other pairs out; the paper does not say which it
means, and takes pairs that were trained on where these are held out.

Beside them the recall that the angles come to, also of the later version's texts among the earlier one's pictures
(mixed-version recall): what keeping the old index would cost.

When both towers turn by the same rotation, RAM alone shows it and no search changes. When one turns alone, SAM shows
nothing and search breaks; ImAM shows that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from model_updates.features import FeatureCache, LoadImage
    from model_updates.pairs import TrainingPair
    from model_updates.search_encoder import SearchEncoder

CHANGE_EDGES = (5.0, 10.0, 15.0, 20.0)
"""Of SAM and ImAM, in degrees: up to 5, up to 10, and so on, above 20."""
ROTATION_EDGES = (15.0, 20.0, 25.0, 30.0)
"""Of RAM."""
SAMPLE = 2000
"""Vectors between which angles are taken, in pairs: all N**2 / 2 of more would cost hours and tell no more."""
BLOCK = 1024
TIE = 1e-9
"""Cosines that differ by less are equal: a product's last bits depend on how many rows it is made of."""

Rows = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Vectors:
    """What one version makes of some pictures and texts."""

    pictures: Rows  # (n, dim), of any length
    texts: Rows  # (m, dim), of any length
    pairs: Places  # (p, 2) int64, a picture's and a text's row of each pair


@dataclass(frozen=True)
class Angles:
    """How angles are spread."""

    # in degrees; the first bin is from 0 to the first edge, the last above the last one
    edges: tuple[float, ...]
    shares: tuple[float, ...]  # percent of the angles in each bin, an edge belonging to the bin below it
    mean: float | None  # in degrees; None of no angle
    count: int


@dataclass(frozen=True)
class Finds:
    """How many texts find their picture first, percent (R@1)."""

    before: float  # both as the earlier version has them
    after: float  # both as the later one has them
    # the later one's texts among the earlier one's pictures: search with no picture embedded again
    mixed: float


@dataclass(frozen=True)
class Drift:
    """What has moved between two versions."""

    sam_pictures: Angles  # change of the angle between two pictures
    sam_texts: Angles  # change of the angle between two texts
    ram_pictures: Angles  # angle between a picture now and before
    ram_texts: Angles  # angle between a text now and before
    # change of the angle between text and picture, of texts that found their picture first
    imam_text_to_image: Angles
    imam_image_to_text: Angles  # the same, of pictures that found their text first
    finds: Finds  # what that means for search


def drift(before: Vectors, after: Vectors, *, sample: int = SAMPLE, seed: int = 0) -> Drift:
    """Compares two versions' vectors of the same pictures and texts.

    The earlier version's retrieval decides which pairs ImAM counts. Of more than `sample` pictures or texts only a
    sample's angles among each other are compared.

    Raises:
        ValueError: the two are not of the same pictures, texts and pairs, or of another length.
    """
    if (
        before.pictures.shape != after.pictures.shape
        or before.texts.shape != after.texts.shape
        or not np.array_equal(before.pairs, after.pairs)
    ):
        raise ValueError(
            "drift compares what two versions make of the same pictures, texts and pairs, in vectors of one length; "
            f"found {before.pictures.shape} and {before.texts.shape} against {after.pictures.shape} and "
            f"{after.texts.shape}"
        )
    old_pictures, new_pictures = _unit(before.pictures), _unit(after.pictures)
    old_texts, new_texts = _unit(before.texts), _unit(after.texts)
    picture, text = before.pairs[:, 0], before.pairs[:, 1]
    changed = np.abs(
        _between(new_pictures[picture], new_texts[text]) - _between(old_pictures[picture], old_texts[text])
    )
    found, named = retrieved(old_pictures, old_texts, before.pairs)
    return Drift(
        sam_pictures=spread(self_angle_changes(old_pictures, new_pictures, sample, seed), CHANGE_EDGES),
        sam_texts=spread(self_angle_changes(old_texts, new_texts, sample, seed), CHANGE_EDGES),
        ram_pictures=spread(_between(old_pictures, new_pictures), ROTATION_EDGES),
        ram_texts=spread(_between(old_texts, new_texts), ROTATION_EDGES),
        imam_text_to_image=spread(changed[found], CHANGE_EDGES),
        imam_image_to_text=spread(changed[named], CHANGE_EDGES),
        finds=Finds(
            before=_texts_found(before.pairs, found),
            after=_texts_found(before.pairs, retrieved(new_pictures, new_texts, before.pairs)[0]),
            mixed=_texts_found(before.pairs, retrieved(old_pictures, new_texts, before.pairs)[0]),
        ),
    )


def _texts_found(pairs: Places, found: NDArray[np.bool_]) -> float:
    """Returns how many of the texts find a picture of theirs first, percent."""
    return 100 * len(np.unique(pairs[found, 1])) / max(1, len(np.unique(pairs[:, 1])))


def spread(degrees: Rows, edges: tuple[float, ...]) -> Angles:
    """Returns the shares of the bins that edges make."""
    if not len(degrees):
        return Angles(edges, (0.0,) * (len(edges) + 1), None, 0)
    counts = np.bincount(np.searchsorted(edges, degrees, side="left"), minlength=len(edges) + 1)
    shares = tuple(float(100 * count / len(degrees)) for count in counts)
    return Angles(edges, shares, float(degrees.mean()), len(degrees))


def self_angle_changes(before: Rows, after: Rows, sample: int = SAMPLE, seed: int = 0) -> Rows:
    """Returns in degrees how far the angles of each two of (n, dim) unit rows changed, a < b, of `sample` at most."""
    chosen = np.arange(len(before))
    if len(chosen) > sample:
        chosen = np.sort(np.random.default_rng(seed).permutation(len(chosen))[:sample])
    pairs = np.triu_indices(len(chosen), k=1)
    angles = [_degrees((rows[chosen] @ rows[chosen].T)[pairs]) for rows in (before, after)]
    changes: Rows = np.abs(angles[1] - angles[0])
    return changes


def retrieved(pictures: Rows, texts: Rows, pairs: Places) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Returns two masks over pairs, (p,) each: the text finds its picture first, the picture finds its text first.

    A picture with several texts finds any of them; the pair of the nearest counts. A tie with what is wrong is no find.

    Pictures (n, dim) and texts (m, dim) are unit rows; the pairs (p, 2) are rows that belong together.
    """
    own = np.einsum("pd,pd->p", pictures[pairs[:, 0]], texts[pairs[:, 1]])
    return (_first(texts, pictures, pairs[:, ::-1], own), _first(pictures, texts, pairs, own))


def _first(queries: Rows, gallery: Rows, pairs: Places, own: Rows) -> NDArray[np.bool_]:
    """Returns (p,) bool: whether a pair's query has no wrong item as near as the pair, and no right one nearer."""
    found = np.zeros(len(pairs), dtype=np.bool_)
    for start in range(0, len(queries), BLOCK):
        here = np.flatnonzero((pairs[:, 0] >= start) & (pairs[:, 0] < start + BLOCK))
        if not len(here):
            continue
        cosines = queries[start : start + BLOCK] @ gallery.T
        rows, columns = pairs[here, 0] - start, pairs[here, 1]
        right = np.full(len(cosines), -np.inf)
        np.maximum.at(right, rows, cosines[rows, columns])
        cosines[rows, columns] = -np.inf
        wrong = cosines.max(axis=1)
        found[here] = (own[here] >= right[rows] - TIE) & (right[rows] > wrong[rows] + TIE)
    return found


def embedded(
    encoder: SearchEncoder, pairs: Sequence[TrainingPair], load_image: LoadImage, cache: FeatureCache
) -> Vectors:
    """Returns what an encoder makes of the pictures and texts of some pairs, each once, on their own routes."""
    # Imported here because whoever only reads a `Drift` should not load torch.
    from model_updates.features import image_features, text_features
    from model_updates.routes import BASE

    pictures = {image_id: n for n, image_id in enumerate(dict.fromkeys(pair.image_id for pair in pairs))}
    texts = {said: n for n, said in enumerate(dict.fromkeys((pair.language, pair.text) for pair in pairs))}
    routes = {pair.image_id: encoder.image_route(pair.domain) for pair in pairs}
    chosen = {image_id: route for image_id, route in routes.items() if route != BASE}
    rows = np.empty((len(texts), encoder.dim))
    for language in sorted({language for language, _ in texts}):
        places = [(n, text) for (its, text), n in texts.items() if its == language]
        rows[[n for n, _ in places]] = text_features(encoder, [text for _, text in places], language, cache)
    return Vectors(
        pictures=image_features(encoder, list(pictures), load_image, cache, routes=chosen).astype(np.float64),
        texts=rows,
        pairs=np.array([(pictures[p.image_id], texts[p.language, p.text]) for p in pairs], dtype=np.int64),
    )


def _unit(rows: Rows) -> Rows:
    wide = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: Rows = wide / np.where(lengths > 0, lengths, 1.0)
    return unit


def _between(one: Rows, other: Rows) -> Rows:
    return _degrees(np.einsum("nd,nd->n", one, other))


def _degrees(cosines: Rows) -> Rows:
    angles: Rows = np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)))
    return angles
