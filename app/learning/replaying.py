"""Training what a release brought once more, from what is recorded of it, and comparing it with what the release holds.

The same machine, threads and libraries give the same bits, where no card trains. Elsewhere the comparison says what
differs, and what else was recorded of the machine. The index is not made again: which vectors a generation has follows
from the encoder.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from app.desk.errors import UsageProblem
from app.desk.jobs import Stage, UpdateRequest
from app.desk.releases import DifferingTensor, Replayed
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.lessons import Lesson, plan
from app.learning.made import Made, digest, environment
from app.learning.outcomes import Tell
from app.learning.training import device_for, trained
from ingest.sentence import known_fields
from ingest.standing import WITHDRAWN
from model_updates.features import Overlay
from model_updates.shards import read_shards
from model_updates.version_files import GRAPHS, read_manifest
from model_updates.versions import write_version


def replay(workspace: Workspace, release: str, progress: Tell) -> Replayed:
    """Trains again what a release's version was trained to be, in a folder of staging that is removed at the end.

    The home is opened for reading. What was recorded stands in the version's manifest (`app.learning.made`).

    Raises:
        UsageProblem: it cannot be made again: nothing trained it, its making was not written down, what it was made
            from has gone, or its data is not what it was. The sentence says which.
        UnknownRelease, ReleasePruned, ReleaseDamaged: as for any release.
    """
    progress(Stage("plan", f"reading what is recorded of {release}"))
    record = workspace.releases.verify_release(release, with_graphs=False, with_index=False)
    folder = workspace.releases.version_folder(record.version)
    said = read_manifest(folder)
    made = _made(record, said)
    kept = {chunk.id for chunk in workspace.catalog.standings() if chunk.standing != WITHDRAWN}
    workspace.beside = frozenset(made.beside) & kept
    lesson = _lesson(workspace, record, said, made)
    with (
        _threads(int(made.environment.get("threads", torch.get_num_threads()))),
        tempfile.TemporaryDirectory(prefix="replay-", dir=workspace.home.staging) as staged,
    ):
        found = _trained_again(workspace, lesson, Path(staged), progress)
        now = environment(device_for(workspace.settings.device), processes=1)
        differing = tuple(_differing(folder, said, Path(staged), found))
    then = {"processes": "1", **made.environment}
    return Replayed(
        release=record.id,
        version=record.version,
        is_identical=not differing,
        files=sum(not name.startswith(GRAPHS) for name in said["files"]),
        differing=differing,
        changed=tuple(_changed(workspace, made)),
        environment={name: (then.get(name, ""), now.get(name, "")) for name in sorted({*then, *now})},
    )


def _made(record: ReleaseRecord, said: dict[str, Any]) -> Made:
    """Returns how a version was made, where that is known."""
    if said.get("strategy") is None:
        raise UsageProblem(
            f"{record.id} holds the encoder that its line began with; no update trained it, so there is nothing to "
            "replay."
        )
    if "made" not in said:
        raise UsageProblem(
            f"{record.id} cannot be replayed: it was made before Perennial wrote down what an update is made of. "
            "Updates from now on can be."
        )
    return Made(**known_fields(Made, said["made"]))


def _lesson(workspace: Workspace, record: ReleaseRecord, said: dict[str, Any], made: Made) -> Lesson:
    """Plans the update that made a release once more; refuses where anything in it is not what it was."""
    parent = next((one for one in workspace.releases.line(record) if one.version == said["parent"]), None)
    if parent is None:
        raise _gone(record, f"the version it was taught onto, {said['parent']}, is not here")
    if parent.pruned is not None:
        raise _gone(record, f"{parent.id}, which it was taught onto, was pruned")
    chunk = next((one for one in workspace.catalog.chunks() if one.id == said["chunk"]), None)
    if chunk is None:
        raise _gone(record, f"chunk {said['chunk']}, which it was taught, is not here")
    if chunk.standing == WITHDRAWN:
        raise _gone(record, f"chunk {chunk.id}, which it was taught, was withdrawn")
    request = UpdateRequest(said["chunk"], said["strategy"], dict(said["options"]), said["seed"])
    lesson = plan(workspace, request, parent, frozenset(made.domains))
    if digest((*lesson.train, *lesson.validation)) != made.pairs:
        raise _gone(record, f"the pairs of chunk {chunk.id} are not those it was taught")
    return lesson


def _changed(workspace: Workspace, made: Made) -> Iterator[str]:
    """Yields a sentence for each chunk that stood beside the one that was taught and is not what it was."""
    chunks = {chunk.id: chunk for chunk in workspace.catalog.chunks()}
    for name, count in made.beside.items():
        chunk = chunks.get(name)
        if chunk is None or chunk.standing == WITHDRAWN:
            yield f"Chunk {name}, whose pairs it could be taught beside, has gone since."
        elif chunk.pairs != count:
            yield f"Chunk {name}, whose pairs it could be taught beside, had {count} and has {chunk.pairs}."


def _gone(record: ReleaseRecord, why: str) -> UsageProblem:
    return UsageProblem(f"{record.id} cannot be replayed: {why}. What it holds is as it was.")


def _trained_again(workspace: Workspace, lesson: Lesson, folder: Path, progress: Tell) -> dict[str, Any]:
    """Trains a lesson and writes it as a version without graphs; returns its manifest."""
    progress(Stage("train", f"training chunk {lesson.chunk} again"))
    candidate = trained(
        workspace,
        lesson,
        alone=True,
        cache=Overlay(workspace.features),
        progress=lambda step: progress(Stage("train", f"epoch {step.epoch} of {step.epochs}", step.done)),
    ).encoder
    states = {lesson.strategy.name: replace(lesson.strategy.carried(), update=lesson.number)}
    return write_version(
        folder, candidate, {}, states, parent=workspace.releases.version_folder(lesson.parent.version)
    )


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Computes with as many threads as an update did: sums come out otherwise with other ones."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _differing(
    then: Path, said: dict[str, Any], now: Path, found: dict[str, Any]
) -> Iterator[DifferingTensor]:
    """Yields what two versions differ in: tensors by their names, any other file by its own."""
    files = {
        name
        for name in {*said["files"], *found["files"]}
        if not name.startswith(GRAPHS) and said["files"].get(name) != found["files"].get(name)
    }
    tensors = {name for name in files if name.endswith(".safetensors")}
    yield from (DifferingTensor(name, None) for name in sorted(files - tensors))
    for stem in sorted({name.split(".")[0].split("-")[0] for name in tensors}):
        sides = [
            read_shards(path for path in sorted(folder.glob("*.safetensors")) if path.name.startswith(stem))
            for folder in (then, now)
        ]
        different = list(_unequal(*sides))
        yield from different
        if not different:  # the same numbers, and other facts beside them
            yield from (DifferingTensor(name, None) for name in sorted(tensors) if name.startswith(stem))


def _unequal(then: dict[str, NDArray[Any]], now: dict[str, NDArray[Any]]) -> Iterator[DifferingTensor]:
    for name in sorted({*then, *now}):
        a, b = then.get(name), now.get(name)
        if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
            yield DifferingTensor(name, None)
        elif not np.array_equal(a, b):
            yield DifferingTensor(name, float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()))
