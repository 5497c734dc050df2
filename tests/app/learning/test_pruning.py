"""Claims about pruning a home: what stays and why, and what can still be asked of what went."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from app.desk.desk import Desk
from app.desk.errors import ReleasePruned, UsageProblem
from app.desk.hits import SearchRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.gallery import embed_gallery
from app.local.at_home import AtHome
from model_updates.versions import write_version
from tests.app.commands.running import document, run
from tests.app.small_home import copy_of, small_home

VERSIONS = 5


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home not to be changed, of which five versions went live after its first release and one with pictures."""
    settings = load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path_factory.mktemp("grown")))
    with Workspace.open(settings) as workspace:
        for number in range(VERSIONS):
            record = going_live.live_release(workspace)[1]
            encoder = workspace.open_encoder(record.version).copy()
            with torch.no_grad():
                dict(encoder.parameters())["token_embedding.weight"].mul_(1.01)
            encoder.forget_fingerprints()
            folder = settings.home / "staging/version"
            facts = {"root": workspace.root_of(record.version), "languages": ["en"], "parent": record.version}
            write_version(folder, encoder, {**facts, "number": number})
            version = workspace.releases.publish_version(folder)
            generation = embed_gallery(workspace, encoder, previous=None).generation
            made = workspace.releases.publish_release(
                record.manifest.successor(record.id, version=version, generation=generation)
            )
            going_live.promote(workspace, made, why=f"number {number}", by="test", force=True)
    return settings.home


@pytest.fixture
def home(grown: Path, tmp_path: Path) -> Path:
    return copy_of(grown, tmp_path)


@pytest.fixture
def desk(home: Path) -> Iterator[Desk]:
    with AtHome(load_settings(home=home), by="ada") as desk:
        yield desk


def _numbers(names: list[str]) -> list[str]:
    return [name.split("-")[0] for name in names]


def test_a_plan_says_what_goes_what_stays_and_why_and_changes_nothing(desk: Desk) -> None:
    before = desk.status().used_bytes
    plan = desk.prune_plan(keep=2)
    assert _numbers([one.release for one in plan.going]) == ["r5", "r4", "r3", "r2", "r1"]
    stays = {one.release.split("-")[0]: one.why for one in plan.staying}
    assert stays == {"r7": "it is live.", "r6": "going back would make it live."}
    # The version that all lines started from stays, and so does what it shares with others.
    assert len([name for name in plan.folders if name.startswith("v")]) == 3
    assert 0 < plan.bytes < before
    assert desk.status().used_bytes == before
    assert _numbers([one.release for one in desk.prune_plan().going]) == ["r2", "r1"]


def test_what_was_pruned_leaves_the_room_that_was_said_and_its_history(desk: Desk) -> None:
    before = desk.status().used_bytes
    plan = desk.prune_plan(keep=2)
    done = desk.prune([one.release for one in plan.going], 2, "room for more")
    assert set(done.folders) == set(plan.folders)
    assert before - desk.status().used_bytes == pytest.approx(plan.bytes, abs=64_000)  # marks, and a folder
    assert desk.verify() == []
    listed = {one.id.split("-")[0]: one.pruned for one in desk.releases()}
    assert [name for name, pruned in listed.items() if pruned] == ["r5", "r4", "r3", "r2", "r1"]
    node = next(one for one in desk.lineage() if one.release.startswith("r4-"))
    assert (node.pruned is not None, node.periods[0].why) == (True, "number 1")
    assert desk.release("r4").manifest["languages"] == ("en",)
    assert desk.examine(True, lambda _: None).level == "ok"
    for ask in (
        lambda: desk.search(SearchRequest(text="a boat", release="r4")),
        lambda: desk.roll_back("r4"),
        lambda: desk.promote("r4", force=True),
        lambda: desk.difference("r4", "r7"),
    ):
        with pytest.raises(ReleasePruned, match="r4-.* was pruned"):
            ask()
    assert desk.roll_back().release.startswith("r6-")
    assert len(desk.search(SearchRequest(text="a boat", k=3)).hits) == 3
    assert desk.prune_plan(keep=2).going == ()


def test_pinned_shadowed_and_compared_releases_stay(desk: Desk, home: Path) -> None:
    desk.start_shadow("r4")
    plan = desk.prune_plan(keep=0)
    assert {one.release[:2] for one in plan.staying} == {"r7", "r6", "r4"}
    with pytest.raises(UsageProblem, match=r"stays: it is in the shadow\. Nothing was pruned"):
        desk.prune(["r3", "r4"], 0)
    assert all(one.pruned is None for one in desk.releases())
    with Workspace.open(load_settings(home=home)) as workspace:
        job = workspace.catalog.add_job("update", {"chunk": "c", "onto": plan.going[0].release})
        assert plan.going[0].release in {one.release for one in desk.prune_plan(keep=0).staying}
        workspace.catalog.update_job(job.id, state="succeeded")
    assert desk.prune_plan(keep=0) == plan


def test_the_verb_shows_first_and_does_it_when_told(home: Path) -> None:
    shown = run("prune", "--keep", "2", home=home)
    assert shown.exit_code == 0, shown.output
    assert "--yes" in shown.output
    assert document("prune", "--keep", "2", home=home)["going"]
    assert document("prune", "--keep", "2", "--yes", home=home)["folders"]
    for more in ([], ["--yes"]):
        assert "nothing to prune" in run("prune", "--keep", "2", *more, home=home).output
    assert "pruned" in run("releases", home=home).output
