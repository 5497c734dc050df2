from __future__ import annotations

from pathlib import Path

from app.desk.releases import Node
from app.home.commits import CommitRecord
from app.home.lineage import lineage
from app.home.manifest import ReleaseManifest
from app.home.releases import ReleaseRecord


def release(number: int, parent: int | None, version: str | None = None) -> ReleaseRecord:
    manifest = ReleaseManifest(
        version=version or f"v{number}",
        generation="g1",
        parent=None if parent is None else f"r{parent}",
        created=f"2026-01-{number:02d}T00:00:00",
    )
    return ReleaseRecord(f"r{number}", number, manifest, Path(), "")


def commit(number: int, release: int, reason: str = "promote") -> CommitRecord:
    time = f"2026-02-{number:02d}T00:00:00"
    return CommitRecord(number, f"r{release}", "", number - 1 or None, reason, f"why {number}", "ada", time)


def nodes(*found: ReleaseRecord, history: list[CommitRecord], live: str) -> dict[str, Node]:
    return {node.release: node for node in lineage(found, history, live)}


def test_the_live_line_is_the_first_lane_and_a_branch_joins_it_at_its_parent() -> None:
    drawn = nodes(release(1, None), release(2, 1), release(3, 1), release(4, 2), history=[], live="r4")
    assert {name: node.lane for name, node in drawn.items()} == {"r4": 0, "r3": 1, "r2": 0, "r1": 0}
    assert drawn["r1"].joins == (0, 1)
    assert drawn["r2"].passes == (1,)
    assert not drawn["r1"].goes_on


def test_what_was_made_from_the_live_release_and_not_promoted_stands_beside_it() -> None:
    drawn = nodes(release(1, None), release(2, 1), release(3, 2), history=[], live="r2")
    assert (drawn["r3"].lane, drawn["r2"].lane, drawn["r2"].joins) == (1, 0, (1,))


def test_no_two_lines_share_a_lane() -> None:
    found = [release(1, None)] + [release(n, max(1, n // 2)) for n in range(2, 20)]
    for node in lineage(found, [], "r9"):
        assert node.lane not in node.passes
        assert len({*node.passes, *node.joins}) == len(node.passes) + len(node.joins)


def test_a_release_says_when_it_was_live_by_whom_and_why() -> None:
    history = [commit(1, 1, "init"), commit(2, 2), commit(3, 1, "rollback")]
    drawn = nodes(release(1, None), release(2, 1), history=history, live="r1")
    first, again = drawn["r1"].periods
    assert (first.since, first.until) == (history[0].time, history[1].time)
    assert (again.reason, again.by, again.why, again.until) == ("rollback", "ada", "why 3", None)
    assert drawn["r1"].is_live
    assert not drawn["r2"].is_live


def test_a_release_that_only_added_pictures_brought_no_version() -> None:
    drawn = nodes(release(1, None), release(2, 1, version="v1"), history=[], live="r2")
    assert drawn["r1"].is_new_version
    assert not drawn["r2"].is_new_version


def test_a_release_whose_parent_is_gone_begins_a_line() -> None:
    drawn = nodes(release(5, 4), release(6, 5), history=[], live="r6")
    assert not drawn["r5"].goes_on
    assert drawn["r5"].joins == (0,)
