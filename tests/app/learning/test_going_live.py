"""What is live changes by hand: promoting, going back, mending."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.errors import NoRelease, UnknownRelease, UsageProblem
from app.home.commits import CommitRecord
from app.home.releases import ReleaseRecord
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, publishing
from app.query.snapshot import Snapshot
from ingest.intake import IntakeOptions
from ingest.pair import SliceKey
from model_updates.evaluation import View
from tests.app.small_home import copy_of, sample_chunk, small_home


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))) as opened:
        yield opened


def promoted(workspace: Workspace, first: ReleaseRecord, name: str) -> CommitRecord:
    facts = publishing.version_facts(workspace, strategy=name, languages=["en"], parent=first.version)
    version = publishing.publish_version(workspace, workspace.open_encoder(first.version), facts, {})
    release = workspace.releases.publish_release(first.manifest.successor(first.id, version=version))
    return going_live.promote(workspace, release, why=name, by="test")


def test_going_back_twice_goes_back_further(workspace: Workspace) -> None:
    first = going_live.live_release(workspace)[1]
    for name in ("second", "third"):
        promoted(workspace, first, name)

    second = going_live.rollback(workspace, why="", by="test").release
    assert workspace.releases.release(second).id.startswith("r3")
    assert going_live.rollback(workspace, why="", by="test").release == first.id
    with pytest.raises(UsageProblem, match="is kept; there is nothing to go back to"):
        going_live.rollback(workspace, why="", by="test")


def test_going_back_goes_further_where_an_index_was_made_again(workspace: Workspace) -> None:
    first, releases = going_live.live_release(workspace)[1], workspace.releases
    second, third = (promoted(workspace, first, name) for name in ("second", "third"))
    again = releases.publish_release(releases.release(second.release).manifest.successor(second.release))
    live = releases.commit(again, parent=third.number, reason="rollback", why="its index was", by="test")
    assert going_live.before(workspace, live) == first.id


def test_going_back_passes_what_was_damaged_when_pictures_came(workspace: Workspace) -> None:
    first, releases = going_live.live_release(workspace)[1], workspace.releases
    second, third = (promoted(workspace, first, name) for name in ("second", "third"))
    again = releases.publish_release(releases.release(second.release).manifest.successor(second.release))
    damaged = releases.release(third.release).version
    releases.damage.note(damaged, "a byte", workspace.home.versions / damaged)
    live = releases.commit(again, parent=second.number, reason="ingest", why="repaired", by="test")
    assert going_live.before(workspace, live) == first.id


def test_nobody_goes_back_to_what_was_never_live(workspace: Workspace) -> None:
    first = going_live.live_release(workspace)[1]
    facts = publishing.version_facts(workspace, strategy="second", languages=["en"], parent=first.version)
    version = publishing.publish_version(workspace, workspace.open_encoder(first.version), facts, {})
    waiting = workspace.releases.publish_release(first.manifest.successor(first.id, version=version))
    with pytest.raises(UsageProblem, match=f"{waiting} was never live, .* `perennial promote {waiting}`"):
        going_live.rollback(workspace, waiting, why="", by="test")
    going_live.promote(workspace, waiting, why="a look", by="test")
    going_live.rollback(workspace, why="", by="test")
    assert going_live.rollback(workspace, waiting, why="", by="test").release == waiting


@pytest.mark.sqlite  # the commits are files
def test_a_home_without_an_intact_commit_is_mended_by_promoting(workspace: Workspace) -> None:
    live = going_live.live_release(workspace)[1].id
    for path in workspace.home.commits.iterdir():
        path.chmod(0o644)
        path.write_bytes(b"{}")
    with pytest.raises(NoRelease, match="perennial repair"):
        going_live.live_release(workspace)

    assert Snapshot.load(workspace, live).release.id == live, "so it is tried, where another home made it"
    going_live.promote(workspace, live, why="mend", by="test")

    assert going_live.live_release(workspace)[1].id == live


def test_pictures_that_an_older_release_lacks_are_counted(workspace: Workspace, tmp_path: Path) -> None:
    old = going_live.live_release(workspace)[1].id
    more = sample_chunk(tmp_path / "more.zip", pictures=6, first=7)
    added = adding.add_chunk(workspace, more, IntakeOptions(), by="test")
    assert added.commit is not None
    going_live.promote(workspace, old, why="", by="test")
    assert (
        going_live.left_out(workspace, old),
        going_live.left_out(workspace, added.commit.release),
    ) == (6, 0)

    adding.add_chunk(workspace, more, IntakeOptions(), by="test")

    assert going_live.left_out(workspace, going_live.live_release(workspace)[1].id) == 0


def test_what_cannot_be_rolled_back_or_promoted_is_said(workspace: Workspace) -> None:
    live = going_live.live_release(workspace)[1].id
    with pytest.raises(UsageProblem, match="is kept; there is nothing to go back to"):
        going_live.rollback(workspace, why="", by="test")
    with pytest.raises(UsageProblem, match="live already"):
        going_live.promote(workspace, live, why="", by="test")
    with pytest.raises(UnknownRelease, match="r99"):
        going_live.promote(workspace, "r99", why="", by="test")


def test_evaluate_measures_trusted_pairs_of_the_learned_languages_only(workspace: Workspace) -> None:
    probes, scenes = SliceKey("en", "probes"), SliceKey("en", "scenes")
    assert {(one.key, one.view) for one in going_live.evaluate(workspace)} == {
        (probes, View.OWN),
        (probes, View.MIXED),
    }
    chunk = workspace.catalog.chunks()[-1].id
    workspace.catalog.set_standing(chunk, "accepted", by="test", why="checked by hand", measures=True)
    measured = {(one.key, one.view) for one in going_live.evaluate(workspace)}
    assert measured == {(key, view) for key in (probes, scenes) for view in View} - {(probes, View.MEMORY)}
