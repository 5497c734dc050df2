"""Where releases come from: each with its parent, when it was live, who made it so and why, laid out in lanes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.desk.releases import Node, Period
from app.home.commits import CommitRecord
from app.home.releases import ReleaseRecord


def lineage(
    releases: Sequence[ReleaseRecord], history: Sequence[CommitRecord], live: str | None
) -> list[Node]:
    """Returns every release with its place, newest first; `live` is the id of what is live."""
    by_id = {record.id: record for record in releases}
    periods = periods_of(history)
    return [
        _node(record, by_id, periods.get(record.id, ()), live, place)
        for record, place in _placed(by_id, _line_of(by_id, live))
    ]


def periods_of(history: Sequence[CommitRecord]) -> dict[str, tuple[Period, ...]]:
    """Returns by release the times in which it was live."""
    found: dict[str, list[Period]] = {}
    ends = [commit.time for commit in history[1:]]
    for commit, until in zip(history, [*ends, None], strict=False):
        found.setdefault(commit.release, []).append(
            Period(commit.number, commit.reason, commit.by, commit.why, commit.time, until)
        )
    return {release: tuple(own) for release, own in found.items()}


@dataclass(frozen=True, slots=True)
class _Place:
    lane: int
    joins: tuple[int, ...]
    passes: tuple[int, ...]


def _line_of(by_id: Mapping[str, ReleaseRecord], live: str | None) -> set[str]:
    """Returns what is live and everything it comes from."""
    line: set[str] = set()
    at = live
    while at is not None and at in by_id and at not in line:
        line.add(at)
        at = by_id[at].manifest.parent
    return line


def _placed(by_id: Mapping[str, ReleaseRecord], line: set[str]) -> Iterator[tuple[ReleaseRecord, _Place]]:
    """Yields releases newest first, each with its lane; a lane is taken from a release down to its parent."""
    awaited: dict[int, str] = {}
    for record in sorted(by_id.values(), key=lambda one: -one.seq):
        joins = sorted(lane for lane, wanted in awaited.items() if wanted == record.id)
        for lane in joins:
            del awaited[lane]
        free = next(lane for lane in range(1, len(awaited) + 2) if lane not in awaited)
        lane = 0 if record.id in line else joins[0] if joins else free
        yield record, _Place(lane, tuple(joins), tuple(sorted(awaited)))
        parent = record.manifest.parent
        if parent is not None and parent in by_id:
            awaited[lane] = parent


def _node(
    record: ReleaseRecord,
    by_id: Mapping[str, ReleaseRecord],
    periods: tuple[Period, ...],
    live: str | None,
    place: _Place,
) -> Node:
    said = record.manifest
    parent = by_id.get(said.parent or "")
    return Node(
        release=record.id,
        parent=said.parent,
        version=record.version,
        strategy=said.strategy,
        verdict=said.verdict,
        languages=said.languages,
        created=said.created or "",
        is_new_version=parent is None or parent.version != record.version,
        is_live=record.id == live,
        periods=periods,
        lane=place.lane,
        joins=place.joins,
        passes=place.passes,
        goes_on=parent is not None,
        pruned=None if record.pruned is None else record.pruned.time,
    )
