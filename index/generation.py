"""One immutable on-disk index over a gallery: a list of segments, those of their rows that were taken out, a manifest.

The manifest is written last and names the checksum of every other file, and its own, because FAISS
reads a rotten file without complaint (299 of 300 damaged bytes in a trial). A folder without a
manifest is not a generation.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.errors import (
    DimensionMismatch,
    FingerprintMismatch,
    GenerationDamaged,
    ResultCountError,
    UnknownIds,
)
from index.kinds import Chosen
from index.manifest import WHAT_TO_DO, Manifest, files_of, read_manifest, segments_of, verify_files
from index.segment import BASE, Contents, Elsewhere, Segment, as_bytes, open_segment, unpack_ids
from index.vectors import unit_rows

TAKEN_OUT_FILE = "taken-out.npy"
# How the vectors came to be: reused as they are, re-mapped from cached features, all embedded again,
# only new ones embedded.
MODES = ("none", "mapped", "full", "delta")
# A tie at the last place is looked at this far before asking FAISS again for more.
TIE_MARGIN = 8

Ids: TypeAlias = Collection[str] | NDArray[np.bytes_]
Rows: TypeAlias = NDArray[np.bool_]  # of all segments, one after the other: which are meant


@dataclass(frozen=True)
class Portion:
    """A segment in a generation, less the rows that were taken out of it."""

    segment: Segment
    number: int  # Its files are called by, in this generation's folder
    start: int  # Position of its first row among those of all segments
    live: NDArray[np.bool_] | None = None  # Which rows were not taken out; None when none was

    def __len__(self) -> int:
        return len(self.segment) if self.live is None else int(np.count_nonzero(self.live))

    @property
    def rows(self) -> NDArray[np.int64]:
        """Its rows, in order, but those that were taken out."""
        return np.arange(len(self.segment)) if self.live is None else np.flatnonzero(self.live)

    @property
    def dead(self) -> NDArray[np.int64]:
        """Its rows that were taken out, in order."""
        return np.empty(0, dtype=np.int64) if self.live is None else np.flatnonzero(~self.live)

    @property
    def ids(self) -> list[str]:
        """The content ids of its rows."""
        return unpack_ids(self.segment.ids if self.live is None else self.segment.ids[self.rows])

    def rows_of(self, ids: NDArray[np.bytes_]) -> NDArray[np.int64]:
        """Returns the row of each id, -1 where it has none here."""
        rows = self.segment.rows_of(ids)
        return rows if self.live is None else np.where(self.live[rows], rows, -1)

    def used_routes(self) -> set[str]:
        """Returns the names of its rows' routes."""
        routes, names = self.segment.routes, self.segment.facts["routes"]
        if routes is None:
            return {BASE}
        used = np.bincount(routes if self.live is None else routes[self.live], minlength=len(names))
        return {name for name, count in zip(names, used.tolist(), strict=True) if count}

    def contents(self) -> Contents:
        """Reads its rows back; rounded where the factory quantises."""
        rows, segment = self.rows, self.segment
        return Contents(segment.ids[rows], segment.index.vectors(rows), segment.route_names(rows))


@dataclass(frozen=True)
class Generation:
    """A loaded index that search can use from many threads."""

    id: str  # The folder's name, for a published generation its id
    folder: Path
    fingerprint: str  # Of what made the vectors of the base route
    dim: int  # Number of columns
    portions: tuple[Portion, ...]
    # Of what made the vectors of each route, by route; "" is the base route
    fingerprints: dict[str, str]
    manifest: Manifest = field(default_factory=dict)  # What the folder says about itself
    lost: int = 0  # Vectors of segments that are missing or damaged, and were left out

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        return sum(len(portion) for portion in self.portions)

    @property
    def ids(self) -> list[str]:
        """Content ids in the order of the segments: all of them, made anew, so nothing that answers a query asks."""
        return [content_id for portion in self.portions for content_id in portion.ids]

    def positions_of(self, ids: Collection[str]) -> NDArray[np.int64]:
        """Returns where each id is among the rows of all segments, -1 where it has none."""
        return self._places_of(as_bytes(ids))

    def _places_of(self, ids: NDArray[np.bytes_]) -> NDArray[np.int64]:
        found = np.full(len(ids), -1, dtype=np.int64)
        for portion in self.portions:
            rows = portion.rows_of(ids)
            found[rows >= 0] = portion.start + rows[rows >= 0]
        return found

    def holding(self, ids: Ids) -> Rows:
        """Returns which rows are of some ids, those outside the gallery left out."""
        last = self.portions[-1]
        mask = np.zeros(last.start + len(last.segment), dtype=np.bool_)
        # Many are found several times sooner in their order.
        found = self._places_of(np.sort(as_bytes(ids)))
        mask[found[found >= 0]] = True
        return mask

    def without(self, ids: Ids) -> Rows:
        """Returns which rows are of other ids. Like `holding`, it leaves out what is no longer in the index."""
        mask = ~self.holding(ids)
        for portion in self.portions:
            mask[portion.start + portion.dead] = False
        return mask

    def among(self, ids: Sequence[str], allowed: Rows | None = None) -> list[str]:
        """Returns those of some ids that are here, and in a row that is allowed, in their order."""
        found = self.positions_of(ids)
        there = np.flatnonzero(found >= 0)
        there = there if allowed is None else there[allowed[found[there]]]
        return [ids[n] for n in there.tolist()]

    def beginning(self, text: str, most: int, allowed: Rows | None = None) -> list[str]:
        """Returns ids of allowed rows that begin so, at most so many."""
        found: list[str] = []
        for portion in self.portions:
            rows = portion.segment.rows_beginning(text.encode())
            rows = rows if portion.live is None else rows[portion.live[rows]]
            places = portion.start + rows
            places = places if allowed is None else places[allowed[places]]
            found += self._ids_at(places[: most - len(found)])
        return found

    def spread(self, most: int) -> list[str]:
        """Returns at most so many ids, spread over the whole gallery."""
        places = np.concatenate([portion.start + portion.rows for portion in self.portions])
        return self._ids_at(places[:: max(1, -(-len(places) // most))])

    @cached_property
    def routes(self) -> dict[str, str]:
        """The route of each content that did not take the base route."""
        found: dict[str, str] = {}
        for portion in self.portions:
            names = portion.segment.route_names(portion.rows)
            rows = portion.rows[names != BASE]
            found |= zip(unpack_ids(portion.segment.ids[rows]), names[names != BASE].tolist(), strict=True)
        return found

    def routes_of(self, ids: Sequence[str]) -> dict[str, str]:
        """Returns the route of each of some contents that are here and did not take the base route."""
        found: dict[str, str] = {}
        asked = as_bytes(ids)
        for portion in self.portions:
            rows = portion.rows_of(asked)
            there = np.flatnonzero(rows >= 0)
            names = portion.segment.route_names(rows[there])
            found |= {ids[n]: name for n, name in zip(there.tolist(), names.tolist(), strict=True) if name}
        return found

    @property
    def choice(self) -> Chosen:
        """The kind that it was to be of, and why."""
        return Chosen.of_manifest(self.manifest)

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
        self, queries: ArrayLike, k: int, *, allowed: Rows | None = None
    ) -> tuple[NDArray[np.float32], list[list[str]]]:
        """Finds the contents nearest to each query.

        Fewer than `k` come back when the gallery, or what is `allowed` of it (see `holding`), is smaller.

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
        available = len(self) if allowed is None else int(np.count_nonzero(allowed))
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
        asked = as_bytes(ids)
        found = np.empty((len(ids), self.dim), dtype=np.float32)
        lacking = np.ones(len(ids), dtype=np.bool_)
        for portion in self.portions:
            rows = portion.rows_of(asked)
            found[rows >= 0] = portion.segment.index.vectors(rows[rows >= 0])
            lacking &= rows < 0
        if lacking.any():
            raise UnknownIds(
                f"{int(lacking.sum())} of {len(ids)} ids are not in generation {self.id}, "
                f"{ids[int(lacking.argmax())]!r} first. Ask only for ids of its gallery."
            )
        return found

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
        self, queries: NDArray[np.float32], wanted: int, available: int, allowed: Rows | None
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
        self, queries: NDArray[np.float32], k: int, allowed: Rows | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Returns the first k of all segments, best first; a vector's score does not depend on its neighbours."""
        scores, positions = [], []
        for portion in self.portions:
            end = portion.start + len(portion.segment)
            mask = portion.live if allowed is None else allowed[portion.start : end]
            found = portion.segment.search(queries, k, mask)
            scores.append(found[0])
            positions.append(np.where(found[1] < 0, -1, found[1] + portion.start))
        together = np.concatenate(scores, axis=1)
        order = np.argsort(-together, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(together, order, axis=1)
        return best, np.take_along_axis(np.concatenate(positions, axis=1), order, axis=1)

    def _in_stable_order(
        self, scores: NDArray[np.float32], positions: NDArray[np.int64], wanted: int
    ) -> tuple[NDArray[np.float32], list[list[str]]]:
        ordered_scores = np.full((len(scores), wanted), -np.inf, dtype=np.float32)
        ordered_ids: list[list[str]] = []
        for row, (row_scores, row_positions) in enumerate(zip(scores, positions, strict=True)):
            there = row_positions >= 0
            falling, found = row_scores[there], self._ids_at(row_positions[there])
            _settle_ties(found, falling)
            ordered_scores[row, : len(found[:wanted])] = falling[:wanted]
            ordered_ids.append(found[:wanted])
        return ordered_scores, ordered_ids

    def _ids_at(self, positions: NDArray[np.int64]) -> list[str]:
        own = np.searchsorted([portion.start for portion in self.portions], positions, side="right") - 1
        return [
            str(self.portions[n].segment.ids[position - self.portions[n].start], "ascii")
            for n, position in zip(own.tolist(), positions.tolist(), strict=True)
        ]


def _settle_ties(ids: list[str], scores: NDArray[np.float32]) -> None:
    """Orders the ids of each run of equal scores; a deep page has thousands before it, of which few are alike."""
    alike = np.flatnonzero(scores[1:] == scores[:-1])
    for run in np.split(alike, np.flatnonzero(np.diff(alike) > 1) + 1) if len(alike) else ():
        first, last = int(run[0]), int(run[-1]) + 2
        ids[first:last] = sorted(ids[first:last])


def load_generation(
    folder: Path,
    *,
    verify: bool = True,
    use_gpu: bool = False,
    but_damaged: bool = False,
    elsewhere: Elsewhere | None = None,
) -> Generation:
    """Loads a generation, whose id is the folder's name, after checking every byte of it that is not held already.

    Without `verify` the manifest's own checksum is the only one that is checked. A GPU is used where faiss and the
    machine have one. With `but_damaged` segments that cannot be read are left out, as long as one can. What `elsewhere`
    has of the vectors is searched there, but where damage is looked for, which is of files.

    Raises:
        GenerationDamaged: A file is missing, changed, a git-LFS pointer, or disagrees with the manifest.
    """
    manifest = read_manifest(folder)
    taken_out = read_taken_out(folder, manifest, verify=verify)
    portions: list[Portion] = []
    there = start = lost = 0
    for said in segments_of(manifest):
        own = taken_out[(taken_out >= there) & (taken_out < there + said["count"])] - there
        there += said["count"]
        try:
            segment = open_segment(
                folder,
                manifest,
                said,
                verify=verify,
                use_gpu=use_gpu,
                is_doubted=but_damaged,
                elsewhere=None if but_damaged else elsewhere,
            )
        except GenerationDamaged:
            lost += said["count"] - len(own)
            if not but_damaged or lost == manifest["count"]:
                raise
            continue
        live = np.ones(len(segment), dtype=np.bool_)
        live[own] = False
        portions.append(Portion(segment, said["number"], start, live if len(own) else None))
        start += len(segment)
    return _checked(folder, manifest, portions, lost)


def _checked(folder: Path, manifest: Manifest, portions: Sequence[Portion], lost: int) -> Generation:
    generation = Generation(
        id=folder.name,
        folder=folder,
        fingerprint=str(manifest["fingerprint"]),
        dim=portions[0].segment.index.dim,
        portions=tuple(portions),
        fingerprints=_fingerprints(manifest),
        manifest=manifest,
        lost=lost,
    )
    found = (len(generation) + lost, *(portion.segment.index.dim for portion in portions))
    if found != (manifest["count"], *(manifest["dim"] for _ in portions)):
        raise GenerationDamaged(
            f"Generation {folder.name} should hold {manifest['count']} vectors of {manifest['dim']} dimensions; "
            f"found {found[0]} vectors of {generation.dim}. {WHAT_TO_DO}"
        )
    return generation


def read_taken_out(folder: Path, manifest: Manifest, *, verify: bool = True) -> NDArray[np.int64]:
    """Returns the positions of rows that were taken out, among the rows of all segments.

    Raises:
        GenerationDamaged: the file that says so is missing or changed.
    """
    if TAKEN_OUT_FILE not in files_of(folder, manifest):
        return np.empty(0, dtype=np.int64)
    if verify:
        verify_files(folder, manifest, [TAKEN_OUT_FILE])
    try:
        positions: NDArray[np.int64] = np.load(folder / TAKEN_OUT_FILE, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise GenerationDamaged(f"Generation {folder.name} cannot be read: {error}. {WHAT_TO_DO}") from error
    return positions


def _fingerprints(manifest: Manifest) -> dict[str, str]:
    listed = manifest.get("fingerprints")
    if not isinstance(listed, dict):
        return {BASE: str(manifest["fingerprint"])}
    return {str(route): str(fingerprint) for route, fingerprint in listed.items()}
