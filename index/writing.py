"""Writes generations: what is new becomes a segment, what stays is shared with the generation before.

Where there would be more than a few segments, the two neighbours that are smallest together become one, so that each
vector is written again as often as the gallery doubles, and ids keep their order. Whoever brings something new joins
small ones alone: large ones wait until somebody writes a generation that brings nothing, who has time. A segment most
of whose rows were taken out is written again without them.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np
from numpy.typing import ArrayLike

from index.errors import FingerprintMismatch, GenerationDamaged, VectorError
from index.faiss_index import FaissVectors
from index.generation import MODES, TAKEN_OUT_FILE, Generation, Portion
from index.kinds import AUTO, Chosen, fitting, of_segment
from index.manifest import KIND, SCHEMA, WHAT_TO_DO, Manifest, files_of, verify_files, write_manifest
from index.segment import BASE, Contents, file_names, pack_ids, unpack_ids, write_segment
from index.tuning import Rows
from index.vectors import unit_rows

MOST_SEGMENTS = 8
MOST_WAITING = 16  # segments; when so many are there, nobody has had time, and they are joined at once
JOINED_AT_ONCE = (
    10_000  # vectors, which take a few hundredths of a second; more may need lists, which take seconds
)

MOST_ASKED = 256  # of its own vectors, where nobody says what is asked

_Group = list[Portion | Contents]  # what becomes one segment


class _Making(NamedTuple):
    kind: str  # of the whole generation
    is_asked: bool  # whether a person asked for it
    queries: Callable[[], Rows] | None  # what an approximate segment is tuned on


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
    """Writes a generation of one segment into a folder; `app` publishes the folder afterwards.

    Args:
        folder: Made when missing; must not hold a generation already.
        fingerprint: Of what made the vectors of the base route.
        ids: (n,) content ids, ASCII, distinct; n may be 0.
        vectors: (n, dim) float32, scaled to unit rows here.
        mode: How the vectors came to be, one of `MODES`.
        factory: A FAISS factory string; `"Flat"` is exact (see `index.kinds.fitting`).
        routes: The route of each content whose vector the base route did not make.
        route_fingerprints: Of what made the vectors of each such route.

    Raises:
        VectorError: Vectors are not finite or not as many as ids; or the mode is unknown.
        UnknownIds: An id is empty, repeated or not ASCII.
        UnknownFactory: The factory is not offered, or needs more vectors.
    """
    new = contents_of(ids, vectors, routes or {})
    made_by = {**(route_fingerprints or {}), BASE: fingerprint}
    return grow_generation(
        folder,
        None,
        new,
        fingerprints=made_by,
        mode=mode,
        choice=Chosen(fitting(factory, *new.vectors.shape), factory, len(ids)),
    )


def contents_of(
    ids: Sequence[str],
    vectors: ArrayLike,
    routes: Mapping[str, str],
    rests_on: Mapping[str, Any] | None = None,
) -> Contents:
    """Returns contents that no generation holds yet, their vectors scaled to unit rows; see `write_generation`."""
    rows = unit_rows(vectors)
    if len(rows) != len(ids):
        raise VectorError(f"{len(ids)} ids came with {len(rows)} vectors; each id needs exactly one.")
    names = np.array([routes.get(one, BASE) for one in ids], dtype=np.str_)
    return Contents(pack_ids(ids), rows, names, rests_on or {})


def grow_generation(
    folder: Path,
    before: Generation | None,
    new: Contents,
    *,
    fingerprints: Mapping[str, str],
    mode: str,
    choice: Chosen,
    taken_out: Collection[str] = (),
    queries: Callable[[], Rows] | None = None,
) -> Manifest:
    """Writes a generation that holds what another one does and something new, as `write_generation` does.

    It lies on the disk of the generation before. What is `taken_out` of that it lacks, and what is new replaces what is
    there. `fingerprints` are by route, of what made all its vectors. An approximate kind is tuned on what
    `queries` gives, (q, dim) float32 unit rows, or else on some of the vectors.

    Raises:
        FingerprintMismatch: What stays of the generation before was made by something else.
        GenerationDamaged: A file of the generation before has gone.
    """
    if mode not in MODES:
        raise VectorError(f"A generation's mode is one of {', '.join(MODES)}; this one says {mode!r}.")
    kept = [] if before is None else _less(before, {*unpack_ids(new.ids), *taken_out})
    stay = set().union(*(portion.used_routes() for portion in kept))
    if before is not None:
        _require_same(before, stay, fingerprints)
    groups = _grouped(kept, new)
    folder.mkdir(parents=True, exist_ok=True)
    count, dim = sum(len(piece) for group in groups for piece in group), new.vectors.shape[1]
    kind = fitting(choice.kind, count, dim)
    making = _Making(kind, choice.asked != AUTO, queries)
    facts, files, shared = _write_groups(folder, groups, before, making)
    manifest: Manifest = {
        "schema": SCHEMA,
        "kind": KIND,
        "fingerprint": fingerprints[BASE],
        "fingerprints": {route: fingerprints[route] for route in {BASE, *stay, *new.routes.tolist()}},
        "segments": facts,
        "count": count,
        "dim": dim,
        "mode": mode,
        "factory": kind,
        "faiss": faiss.__version__,
        "choice": asdict(choice),
        "rests_on": dict(new.rests_on),
    }
    return write_manifest(folder, manifest, files, shared)


def _less(before: Generation, taken_out: Collection[str]) -> list[Portion]:
    """Returns what portions hold of a generation when some contents are taken out of it."""
    found = []
    gone = before.holding(taken_out)
    for portion in before.portions:
        live = ~gone[portion.start : portion.start + len(portion.segment)]
        found.append(replace(portion, live=live if portion.live is None else live & portion.live))
    return [portion for portion in found if len(portion)]


def _require_same(before: Generation, routes: Iterable[str], fingerprints: Mapping[str, str]) -> None:
    for route in sorted(routes):
        if before.fingerprints[route] != fingerprints[route]:
            raise FingerprintMismatch(
                f"Vectors of generation {before.id} for {route!r} pictures were made by "
                f"{before.fingerprints[route][:12]}, not by {fingerprints[route][:12]}. Give all of them anew."
            )


def _grouped(kept: Sequence[Portion], new: Contents) -> list[_Group]:
    """Returns what becomes which segment, in order."""
    groups: list[_Group] = [[portion] for portion in kept]
    if len(new) or not groups:
        groups.append([new])
    while len(groups) > MOST_SEGMENTS:
        sizes = [sum(map(len, group)) for group in groups]
        first = min(range(len(groups) - 1), key=lambda n: sizes[n] + sizes[n + 1])
        is_large = sizes[first] + sizes[first + 1] > JOINED_AT_ONCE
        if len(new) and is_large and len(groups) <= MOST_WAITING:
            break
        groups[first : first + 2] = [groups[first] + groups[first + 1]]
    return groups


def _write_groups(
    folder: Path, groups: Sequence[_Group], before: Generation | None, making: _Making
) -> tuple[list[dict[str, Any]], list[str], dict[str, object]]:
    """Writes or links each segment; returns what a manifest says of them, the files written, and those linked."""
    facts: list[dict[str, Any]] = []
    files: list[str] = []
    shared: dict[str, object] = {}
    out, start = [np.empty(0, dtype=np.int64)], 0
    number = 0 if before is None else max(portion.number for portion in before.portions)
    for group in groups:
        piece = group[0]
        if before is not None and isinstance(piece, Portion) and len(group) == 1 and not _is_hollow(piece):
            if not isinstance(piece.segment.index, FaissVectors):  # nobody has read the file
                verify_files(before.folder, before.manifest, file_names(piece.number)[:1])
            shared |= _linked(folder, before, piece.number)
            facts.append({**piece.segment.facts, "number": piece.number})
            out.append(start + piece.dead)
        else:
            number += 1
            contents = _joined(group)
            kind, own = making.kind, contents.vectors[:MOST_ASKED]
            facts.append(
                write_segment(
                    folder,
                    number,
                    contents,
                    kind if before is None else of_segment(kind, len(contents)),
                    making.queries or (lambda own=own: own),  # type: ignore[misc]
                    is_asked=making.is_asked,
                )
            )
            files += file_names(number)
        start += facts[-1]["count"]
    np.save(folder / TAKEN_OUT_FILE, np.concatenate(out), allow_pickle=False)
    return facts, [*files, TAKEN_OUT_FILE], shared


def _is_hollow(portion: Portion) -> bool:
    return 2 * len(portion) < len(portion.segment)


def _joined(group: _Group) -> Contents:
    pieces = [piece.contents() if isinstance(piece, Portion) else piece for piece in group]
    return Contents(
        np.concatenate([piece.ids for piece in pieces]),
        np.concatenate([piece.vectors for piece in pieces]),
        np.concatenate([piece.routes for piece in pieces]),
    )


def _linked(folder: Path, before: Generation, number: int) -> dict[str, object]:
    """Gives the files of a segment a name in another generation's folder; returns what its manifest says of them."""
    listed = files_of(before.folder, before.manifest)
    names = [name for name in file_names(number) if name in listed]
    for name in names:
        try:
            os.link(before.folder / name, folder / name)
        except FileNotFoundError as error:
            raise GenerationDamaged(
                f"{name} of generation {before.id} cannot be read: {error.strerror}. {WHAT_TO_DO}"
            ) from error
        except OSError:  # a file system without hard links
            shutil.copyfile(before.folder / name, folder / name)
    return {name: listed[name] for name in names}
