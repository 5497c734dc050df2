"""One immutable on-disk index over a gallery: FAISS file, ids, manifest.

The manifest is written last and names the checksum of every other file, and its own, because FAISS
reads a rotten file without complaint (299 of 300 damaged bytes in a trial). A folder without a
manifest is not a generation.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import ArrayLike, NDArray

from index import faiss_index
from index.errors import (
    DimensionMismatch,
    FingerprintMismatch,
    GenerationDamaged,
    ResultCountError,
    UnknownIds,
    VectorError,
)
from index.manifest import KIND, SCHEMA, WHAT_TO_DO, Manifest, read_manifest, verify_files, write_manifest
from index.vectors import unit_rows

INDEX_FILE = "index.faiss"
IDS_FILE = "ids.npy"
ROUTES_FILE = "routes.npy"
BASE = ""
# How the vectors came to be: reused as they are, re-mapped from cached features, all embedded again,
# only new ones embedded.
MODES = ("none", "mapped", "full", "delta")
# A tie at the last place is looked at this far before asking FAISS again for more.
TIE_MARGIN = 8


@dataclass(frozen=True)
class Generation:
    """A loaded index that search can use from many threads."""

    id: str  # The folder's name, for a published generation its id
    fingerprint: str  # Of what made the vectors of the base route
    dim: int  # Number of columns
    ids: list[str]  # Content ids by position
    index: faiss_index.FaissIndex  # The CPU index
    gpu_index: faiss_index.FaissIndex | None = None  # Its copy on a GPU, if there is one
    # Of what made the vectors of each route, by route; "" is the base route
    fingerprints: dict[str, str] = field(default_factory=dict)
    # The route of each content that did not take the base route
    routes: dict[str, str] = field(default_factory=dict)
    manifest: Manifest = field(default_factory=dict)  # What the folder says about itself
    _gpu_turn: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Position by id."""
        return {content_id: position for position, content_id in enumerate(self.ids)}

    def require_made_by(self, fingerprint_of: Callable[[str], str]) -> None:
        """Refuses an encoder that did not make this generation.

        Raises:
            FingerprintMismatch: That of a route differs.
        """
        for route, made_by in self.fingerprints.items():
            found = fingerprint_of(route)
            if found != made_by:
                whose = f" for {route!r} pictures" if route else ""
                raise FingerprintMismatch(
                    f"Generation {self.id} was made by image tower {made_by[:12]}{whose}; this encoder's is "
                    f"{found[:12]}. Scores between them mean nothing: embed the gallery with this encoder."
                )

    def search(
        self, queries: ArrayLike, k: int, *, allowed_ids: Collection[str] | None = None
    ) -> tuple[NDArray[np.float32], list[list[str]]]:
        """Finds the contents nearest to each query.

        Fewer than `k` come back when the gallery, or what is allowed of it, is smaller; allowed ids outside the
        gallery are ignored.

        Returns:
            Scores (q, k) float32, best first, and the ids of each row; equal scores are ordered by id.
            Where an approximate index found fewer than k, its ids are fewer and its scores end in -inf.

        Raises:
            VectorError: A query is not finite or has length zero.
            DimensionMismatch: Queries have another dimension than this generation.
            ResultCountError: k is below 1.
        """
        if k < 1:
            raise ResultCountError(f"{k} results were asked for; ask for at least 1.")
        rows = self._query_rows(queries)
        allowed = None
        if allowed_ids is not None:
            known = {self.positions[content_id] for content_id in allowed_ids if content_id in self.positions}
            allowed = np.array(sorted(known), dtype=np.int64)
        available = len(self.ids) if allowed is None else len(allowed)
        wanted = min(k, available)
        if wanted == 0 or len(rows) == 0:
            return np.empty((len(rows), 0), dtype=np.float32), [[] for _ in rows]
        scores, positions = self._search_past_ties(rows, wanted, available, allowed)
        return self._in_stable_order(scores, positions, wanted)

    def vectors(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """Gives stored vectors back, (m, dim) float32 of unit length, rounded where the factory quantises.

        Raises:
            UnknownIds: An id is not in this generation.
        """
        missing = [content_id for content_id in ids if content_id not in self.positions]
        if missing:
            raise UnknownIds(
                f"{len(missing)} of {len(ids)} ids are not in generation {self.id}, {missing[0]!r} first. "
                "Ask only for ids of its gallery."
            )
        return faiss_index.reconstruct(
            self.index, np.array([self.positions[content_id] for content_id in ids], dtype=np.int64)
        )

    def scores_of(self, queries: ArrayLike, ids: Sequence[str]) -> NDArray[np.float32]:
        """Returns the scores of given contents, (q, m) float32, whether or not a search would find them.

        Raises:
            VectorError: A query is not finite or has length zero.
            DimensionMismatch: Queries have another dimension than this generation.
            UnknownIds: An id is not in this generation.
        """
        scores: NDArray[np.float32] = self._query_rows(queries) @ self.vectors(ids).T
        return scores

    def _query_rows(self, queries: ArrayLike) -> NDArray[np.float32]:
        try:
            return unit_rows(queries, dim=self.dim)
        except DimensionMismatch as mismatch:
            columns = np.asarray(queries).shape[1]
            raise DimensionMismatch(
                f"Generation {self.id} holds {self.dim}-dimensional vectors of image tower "
                f"{self.fingerprint[:12]}; this query has {columns} dimensions. "
                "Encode it with the encoder of the same release."
            ) from mismatch

    def _search_past_ties(
        self, queries: NDArray[np.float32], wanted: int, available: int, allowed: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Fetches past the last place until its score drops, so that ties there are settled by id too."""
        fetched = min(available, wanted + TIE_MARGIN)
        while True:
            scores, positions = self._search_once(queries, fetched, allowed)
            tied = (scores[:, wanted - 1] == scores[:, -1]) & (positions[:, -1] >= 0)
            if fetched == available or not tied.any():
                return scores, positions
            fetched = min(available, fetched * 4)

    def _search_once(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        if self.gpu_index is None or allowed is not None or k > faiss_index.GPU_MOST_NEIGHBOURS:
            return faiss_index.search(self.index, queries, k, allowed=allowed)
        with self._gpu_turn:
            return faiss_index.search(self.gpu_index, queries, k)

    def _in_stable_order(
        self, scores: NDArray[np.float32], positions: NDArray[np.int64], wanted: int
    ) -> tuple[NDArray[np.float32], list[list[str]]]:
        ordered_scores = np.full((len(scores), wanted), -np.inf, dtype=np.float32)
        ordered_ids: list[list[str]] = []
        for row, (row_scores, row_positions) in enumerate(zip(scores, positions, strict=True)):
            there = row_positions >= 0
            # FAISS has them in order; nothing says that it must.
            order = np.argsort(-row_scores[there], kind="stable")
            falling = row_scores[there][order]
            found = [self.ids[position] for position in row_positions[there][order].tolist()]
            _settle_ties(found, falling)
            ordered_scores[row, : len(found[:wanted])] = falling[:wanted]
            ordered_ids.append(found[:wanted])
        return ordered_scores, ordered_ids


def _settle_ties(ids: list[str], scores: NDArray[np.float32]) -> None:
    """Orders the ids of each run of equal scores; a deep page has thousands before it, of which few are alike."""
    alike = np.flatnonzero(scores[1:] == scores[:-1])
    for run in np.split(alike, np.flatnonzero(np.diff(alike) > 1) + 1) if len(alike) else ():
        first, last = int(run[0]), int(run[-1]) + 2
        ids[first:last] = sorted(ids[first:last])


def write_generation(
    folder: Path,
    *,
    fingerprint: str,
    ids: Sequence[str],
    vectors: ArrayLike,
    mode: str,
    factory: str = "Flat",
    routes: Mapping[str, str] | None = None,
    route_fingerprints: Mapping[str, str] | None = None,
) -> Manifest:
    """Writes a generation into a folder; `app` publishes the folder afterwards.

    Args:
        folder: Made when missing; must not hold a generation already.
        fingerprint: Of what made the vectors of the base route.
        ids: (n,) content ids, ASCII, distinct; n may be 0.
        vectors: (n, dim) float32, scaled to unit rows here.
        mode: How the vectors came to be, one of `MODES`.
        factory: A FAISS factory string; `"Flat"` is exact.
        routes: The route of each content whose vector the base route did not make.
        route_fingerprints: Of what made the vectors of each such route.

    Raises:
        VectorError: Vectors are not finite or not as many as ids; or the mode is unknown.
        UnknownIds: An id is empty, repeated or not ASCII.
        UnknownFactory: The factory is not offered, or needs more vectors.
    """
    if mode not in MODES:
        raise VectorError(f"A generation's mode is one of {', '.join(MODES)}; this one says {mode!r}.")
    rows = unit_rows(vectors)
    if len(rows) != len(ids):
        raise VectorError(f"{len(ids)} ids came with {len(rows)} vectors; each id needs exactly one.")
    packed_ids = _pack_ids(ids)
    names, numbers = _pack_routes(ids, routes or {})
    made_by = {BASE: fingerprint} | {name: (route_fingerprints or {})[name] for name in names[1:]}
    folder.mkdir(parents=True, exist_ok=True)
    faiss_index.write(faiss_index.build(rows, factory), folder / INDEX_FILE)
    np.save(folder / IDS_FILE, packed_ids, allow_pickle=False)
    np.save(folder / ROUTES_FILE, numbers, allow_pickle=False)
    manifest: Manifest = {
        "schema": SCHEMA,
        "kind": KIND,
        "fingerprint": fingerprint,
        "routes": names,
        "fingerprints": made_by,
        "count": len(ids),
        "dim": rows.shape[1],
        "mode": mode,
        "factory": factory,
        "faiss": faiss.__version__,
    }
    return write_manifest(folder, manifest, (INDEX_FILE, IDS_FILE, ROUTES_FILE))


def load_generation(folder: Path, *, verify: bool = True, use_gpu: bool = False) -> Generation:
    """Loads a generation, whose id is the folder's name, after checking every byte of it.

    Without `verify` the manifest's own checksum is the only one that is checked. A GPU is used where faiss and the
    machine have one.

    Raises:
        GenerationDamaged: A file is missing, changed, a git-LFS pointer, or disagrees with the manifest.
    """
    manifest = read_manifest(folder)
    if verify:
        verify_files(folder, manifest)
    try:
        ids = _unpack_ids(np.load(folder / IDS_FILE, allow_pickle=False))
        index = faiss_index.read(folder / INDEX_FILE)
        numbers = _read_route_numbers(folder, manifest)
    except (OSError, ValueError, RuntimeError) as error:
        raise GenerationDamaged(f"Generation {folder.name} cannot be read: {error}. {WHAT_TO_DO}") from error
    found = (index.ntotal, len(ids), index.d)
    expected = (manifest["count"], manifest["count"], manifest["dim"])
    if found != expected:
        raise GenerationDamaged(
            f"Generation {folder.name} should hold {expected[0]} vectors of {expected[2]} dimensions; "
            f"found {found[0]} vectors, {found[1]} ids, {found[2]} dimensions. {WHAT_TO_DO}"
        )
    if numbers is not None and len(numbers) != len(ids):
        raise GenerationDamaged(
            f"Generation {folder.name} has {len(numbers)} routes for {len(ids)} vectors. {WHAT_TO_DO}"
        )
    return Generation(
        id=folder.name,
        fingerprint=str(manifest["fingerprint"]),
        dim=index.d,
        ids=ids,
        index=index,
        fingerprints=_fingerprints(manifest),
        routes=_routes(manifest, ids, numbers),
        gpu_index=faiss_index.clone_to_gpu(index) if use_gpu else None,
        manifest=manifest,
    )


def _pack_ids(ids: Sequence[str]) -> NDArray[np.bytes_]:
    """Fixed-width bytes, so that the file needs no pickle. numpy drops trailing NULs, hence the checks."""
    if len(set(ids)) != len(ids):
        raise UnknownIds(f"{len(ids) - len(set(ids))} ids occur more than once; an id has one vector.")
    for content_id in ids:
        if not content_id or not content_id.isascii() or "\0" in content_id:
            raise UnknownIds(f"{content_id!r} cannot be an id: ids are non-empty ASCII text without NUL.")
    width = max((len(content_id) for content_id in ids), default=1)
    return np.array([content_id.encode("ascii") for content_id in ids], dtype=f"S{width}")


def _unpack_ids(packed: NDArray[np.bytes_]) -> list[str]:
    return [content_id.decode("ascii") for content_id in packed.tolist()]


def _pack_routes(ids: Sequence[str], routes: Mapping[str, str]) -> tuple[list[str], NDArray[np.uint16]]:
    """The names of the routes in use, the base route first, and the number of each content's route."""
    names = [BASE, *sorted({routes[content_id] for content_id in ids if content_id in routes} - {BASE})]
    number = {name: n for n, name in enumerate(names)}
    return names, np.array([number[routes.get(content_id, BASE)] for content_id in ids], dtype=np.uint16)


def _read_route_numbers(folder: Path, manifest: Manifest) -> NDArray[np.uint16] | None:
    """The number of each content's route; None in a folder from before there were routes."""
    if "routes" not in manifest:
        return None
    numbers: NDArray[np.uint16] = np.load(folder / ROUTES_FILE, allow_pickle=False)
    return numbers


def _routes(manifest: Manifest, ids: Sequence[str], numbers: NDArray[np.uint16] | None) -> dict[str, str]:
    names = manifest.get("routes")
    if numbers is None or not isinstance(names, list):
        return {}
    return {ids[int(n)]: str(names[int(numbers[n])]) for n in np.flatnonzero(numbers)}


def _fingerprints(manifest: Manifest) -> dict[str, str]:
    listed = manifest.get("fingerprints")
    if not isinstance(listed, dict):
        return {BASE: str(manifest["fingerprint"])}
    return {str(route): str(fingerprint) for route, fingerprint in listed.items()}
