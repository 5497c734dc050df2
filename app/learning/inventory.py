"""What lies in a home's chunks beside what teaches: rows that intake held, and pictures of one and the same thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.desk.chunks import HeldRow, PutAside, ShownAside, ShownQuestioned
from app.desk.operation import grown
from app.desk.pictures import OneThing
from ingest.findings import Outcome, findings_in
from ingest.records import ChunkRecord

if TYPE_CHECKING:  # a client that only needs the records loads no encoder
    from app.home.workspace import Workspace


def waiting(workspace: Workspace) -> list[ChunkRecord]:
    """Returns the chunks that wait for a person's word, newest first."""
    return [chunk for chunk in reversed(workspace.catalog.chunks()) if chunk.standing == "held"]


def held_rows(workspace: Workspace, *, limit: int, offset: int = 0) -> tuple[int, list[HeldRow]]:
    """Returns how many held rows nobody has decided yet, and some of them, those of the newest chunk first."""
    found = [
        row
        for chunk in reversed(workspace.catalog.chunks())
        if chunk.standing != "withdrawn"
        for row in _held_of(workspace, chunk)
    ]
    return len(found), found[offset : offset + limit]


def put_aside(workspace: Workspace, chunk: str) -> PutAside:
    """Returns what may be decided of a chunk, in the order of its upload; errors as `Catalog.chunk`."""
    record = workspace.catalog.chunk(chunk)
    pairs = workspace.catalog.aside.pairs(chunk=record.id)
    counts = workspace.catalog.aside.counts(record.id)
    shown = tuple(grown(ShownAside, pair) for pair in pairs)
    return PutAside(record.id, counts, shown, tuple(_questioned(workspace, record)))


def _questioned(workspace: Workspace, chunk: ChunkRecord) -> list[ShownQuestioned]:
    """Returns the pairs that speak against a chunk and that it still has, each once."""
    against = [one for one in findings_in(chunk.report) if one.outcome in (Outcome.HOLD, Outcome.REJECT)]
    named = [(one, example) for one in against for example in one.examples if example.text]
    numbers = workspace.catalog.pair_numbers(chunk.id, {example.image_id for _, example in named})
    found: dict[int, ShownQuestioned] = {}
    for finding, example in named:
        number = numbers.get((example.image_id, example.language, example.text))
        if number is not None and number not in found:
            texts = example.image_id, example.language, example.text
            found[number] = ShownQuestioned(number, *texts, finding.check, example.why)
    return list(found.values())


def things(workspace: Workspace, *, limit: int, offset: int = 0) -> tuple[int, list[OneThing]]:
    """Returns how many things have more than one picture in the gallery, and some of them, the largest first."""
    count, groups = workspace.catalog.clusters(limit=limit, offset=offset)
    return count, [OneThing(cluster, ids) for cluster, ids in groups]


def _held_of(workspace: Workspace, chunk: ChunkRecord) -> Iterator[HeldRow]:
    """Yields the pairs that wait, and then the rows of the report of which nothing was kept."""
    kept = workspace.catalog.aside.pairs(chunk=chunk.id, outcome="held")
    for pair in kept:
        if not pair.decided:
            yield HeldRow(chunk.id, chunk.name, pair.place, pair.code, pair.sentence, grown(ShownAside, pair))
    known = Counter((pair.place, pair.code) for pair in kept)
    for row in chunk.report.get("rows", ()):
        if row["outcome"] == "held":
            if known[row["where"], row["code"]]:
                known[row["where"], row["code"]] -= 1
            else:
                yield HeldRow(chunk.id, chunk.name, row["where"], row["code"], row["sentence"])
