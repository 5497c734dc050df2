"""Features that are computed once: the protocol of a feature cache, and how encoders fill it.

A feature is a raw float32 row (not normalised) under (fingerprint, kind, content id). Of a picture the trunk feature
is kept, what the image tower gives out: a head that changes needs no picture again. `app` hands in a cache
that lives in LMDB; without one, `NoCache` computes everything each time.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ingest.decoding import at_once
from model_updates.pairs import TrainingPair, by_language
from model_updates.routes import BASE
from model_updates.search_encoder import IMAGE_BATCH, Rows, SearchEncoder

LoadImage = Callable[[str], Image.Image]

Ahead = Callable[[int], None]
"""Is told how many of some things are done."""
IMAGE = "image"
TEXT = "text"
# Items computed before their rows are stored: bounds memory, and what a crash would lose.
CHUNK = 512


class FeatureCache(Protocol):
    """Where raw features are kept between runs."""

    def get(
        self, fingerprint: str, kind: str, content_ids: Sequence[str], dim: int
    ) -> tuple[Rows, NDArray[np.bool_]]:
        """Returns the known rows (m, dim) in the order asked, and a mask (n,) saying which were known."""
        ...

    def put(self, fingerprint: str, kind: str, content_ids: Sequence[str], rows: Rows, /) -> object:
        """Keeps rows (n, dim) under their ids; what it returns does not matter."""
        ...


class NoCache:
    """A cache that knows nothing."""

    def get(
        self, fingerprint: str, kind: str, content_ids: Sequence[str], dim: int
    ) -> tuple[Rows, NDArray[np.bool_]]:
        """Returns no row."""
        return np.empty((0, dim), dtype=np.float32), np.zeros(len(content_ids), dtype=np.bool_)

    def put(self, fingerprint: str, kind: str, content_ids: Sequence[str], rows: Rows) -> None:
        """Forgets the rows."""


class Overlay:
    """A feature cache that reads a home's and keeps its own in memory: whoever goes leaves no features behind."""

    def __init__(self, below: FeatureCache) -> None:
        self._below = below
        self._own: dict[tuple[str, str, str], Rows] = {}

    def get(
        self, fingerprint: str, kind: str, content_ids: Sequence[str], dim: int
    ) -> tuple[Rows, NDArray[np.bool_]]:
        """Returns the known rows (m, dim) in the order asked, and a mask (n,) saying which were known."""
        own = [self._own.get((fingerprint, kind, name)) for name in content_ids]
        missing = [name for name, row in zip(content_ids, own, strict=True) if row is None]
        kept, found = self._below.get(fingerprint, kind, missing, dim)
        below = iter(kept)
        known = iter(found.tolist())
        rows = [row if row is not None else (next(below) if next(known) else None) for row in own]
        mask = np.asarray([row is not None for row in rows], dtype=np.bool_)
        chosen = [row for row in rows if row is not None]
        return (np.stack(chosen) if chosen else np.empty((0, dim), dtype=np.float32)), mask

    def put(self, fingerprint: str, kind: str, content_ids: Sequence[str], rows: Rows, /) -> None:
        """Keeps rows (n, dim) in memory."""
        self._own |= {(fingerprint, kind, name): row for name, row in zip(content_ids, rows, strict=True)}

    def forget_but(self, fingerprints: set[str]) -> None:
        """Drops rows under other fingerprints: those of encoders that are gone."""
        self._own = {key: row for key, row in self._own.items() if key[0] in fingerprints}


def text_id(text: str) -> str:
    """Returns the content id of a text: the sha256 of its UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def image_features(
    encoder: SearchEncoder,
    image_ids: Sequence[str],
    load: LoadImage,
    cache: FeatureCache,
    *,
    routes: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Rows:
    """Returns raw (n, dim) float32 features of pictures, decoding only those whose trunk features the cache lacks.

    `routes` has the pictures that do not take the base route; `progress` is told (pictures embedded, pictures to
    embed).
    """
    ids = list(image_ids)
    rows = np.empty((len(ids), encoder.dim), dtype=np.float32)
    for route, positions in _by_route(ids, routes or {}).items():
        chosen = [ids[n] for n in positions]
        rows[positions] = _route_features(encoder, chosen, load, cache, route, progress)
    return rows


def _route_features(
    encoder: SearchEncoder,
    ids: list[str],
    load: LoadImage,
    cache: FeatureCache,
    route: str,
    progress: Callable[[int, int], None] | None,
) -> Rows:
    fingerprint = encoder.image_fingerprint(route)
    if fingerprint == encoder.trunk_fingerprint(route):
        return trunk_features(encoder, ids, load, cache, route=route, progress=progress)

    # Kept too, though cheap to compute: a product's last bit depends on how many rows it is made of, and the vectors of
    # a route whose fingerprint has not changed must not change either.
    def project(lacking: list[str], tell: Ahead) -> Rows:
        def ahead(done: int, total: int) -> None:
            tell(len(lacking) - total + done)

        trunk = trunk_features(encoder, lacking, load, cache, route=route, progress=ahead)
        return encoder.projected(trunk, route)

    return _cached(cache, (fingerprint, IMAGE, encoder.dim), ids, project, progress)


def trunk_features(
    encoder: SearchEncoder,
    image_ids: Sequence[str],
    load: LoadImage,
    cache: FeatureCache,
    *,
    route: str = BASE,
    progress: Callable[[int, int], None] | None = None,
) -> Rows:
    """Returns (n, trunk_dim) float32 trunk features of pictures on one route, through the cache."""
    kept = (encoder.trunk_fingerprint(route), IMAGE, encoder.trunk_dim)
    return _cached(
        cache, kept, image_ids, lambda ids, tell: _embed(encoder, ids, load, route, tell), progress
    )


def _by_route(ids: Sequence[str], routes: Mapping[str, str]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for position, image_id in enumerate(ids):
        grouped.setdefault(routes.get(image_id, BASE), []).append(position)
    return grouped


def _embed(
    encoder: SearchEncoder, image_ids: Sequence[str], load: LoadImage, route: str, tell: Ahead
) -> Rows:
    """Runs the image tower on one batch while the next is decoded and prepared beside it; tells how many are done.

    Decoding and resizing leave the interpreter free, so the tower hardly waits for them.
    """
    batches = [image_ids[start : start + IMAGE_BATCH] for start in range(0, len(image_ids), IMAGE_BATCH)]

    def prepare(image_id: str) -> Rows:
        return encoder.preprocessing.pixels([load(image_id)])

    rows = []
    pool = ThreadPoolExecutor(at_once(), thread_name_prefix="decode")
    try:
        coming = [pool.submit(prepare, image_id) for image_id in batches[0]]
        for following in [*batches[1:], []]:
            prepared = np.concatenate([one.result() for one in coming])
            coming = [pool.submit(prepare, image_id) for image_id in following]
            rows.append(encoder.trunk_of(prepared, route))
            tell(sum(map(len, rows)))
    finally:
        pool.shutdown(cancel_futures=True)  # some wait, where one failed or nobody wants the rest
    return np.concatenate(rows)


def text_features(encoder: SearchEncoder, texts: Sequence[str], language: str, cache: FeatureCache) -> Rows:
    """Returns raw (n, dim) float32 features of texts in one language, through the cache."""
    by_id = {text_id(text): text for text in texts}
    kept = (encoder.text_fingerprint(language), TEXT, encoder.dim)
    ids = [text_id(text) for text in texts]
    return _cached(
        cache, kept, ids, lambda some, _: encoder.text_features([by_id[i] for i in some], language)
    )


def caption_features(
    encoder: SearchEncoder, pairs: Sequence[TrainingPair], cache: FeatureCache | None = None
) -> Rows:
    """Returns raw (n, dim) float32 text features of pairs, each read in its own language."""
    rows = np.zeros((len(pairs), encoder.dim), dtype=np.float32)
    for language, places in by_language(pairs):
        texts = [pairs[n].text for n in places]
        if cache is None:  # nor is a fingerprint asked for, which would not follow weights in training
            rows[places] = encoder.text_features(texts, language)
        else:
            rows[places] = text_features(encoder, texts, language, cache)
    return rows


def _cached(
    cache: FeatureCache,
    kept: tuple[str, str, int],
    ids: Sequence[str],
    compute: Callable[[list[str], Ahead], Rows],
    progress: Callable[[int, int], None] | None = None,
) -> Rows:
    """Returns the rows of ids that are kept under a fingerprint, a kind and a length; computes what is lacking.

    `compute` is told whom to tell how many of its ids are done.
    """
    fingerprint, kind, dim = kept
    unique = list(dict.fromkeys(ids))
    rows, known = cache.get(fingerprint, kind, unique, dim)
    missing = np.flatnonzero(~known)
    if len(missing):
        known_rows, rows = rows, np.empty((len(unique), dim), dtype=np.float32)
        rows[known] = known_rows
    for start in range(0, len(missing), CHUNK):

        def tell(done: int, start: int = start) -> None:
            if progress is not None:
                progress(start + done, len(missing))

        tell(0)
        part = missing[start : start + CHUNK]
        chosen = [unique[int(i)] for i in part]
        rows[part] = compute(chosen, tell)
        cache.put(fingerprint, kind, chosen, rows[part])
        tell(len(chosen))
    if len(unique) == len(ids):  # a copy of many rows takes as long as reading them
        return rows
    position = {content_id: n for n, content_id in enumerate(unique)}
    return rows[[position[content_id] for content_id in ids]] if ids else rows
