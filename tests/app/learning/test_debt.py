"""What a person accepts to lose, and what examples a verdict shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.home.commits import Debt, kept_at
from app.home.durable import FileSystem
from app.home.releases import ReleaseRecord
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, publishing
from app.learning.judging import Taught, judge_taught
from app.learning.past import debt_of, debts
from ingest.intake import IntakeOptions
from ingest.pair import SliceKey
from model_updates.gate.report import GateReport, Policy
from tests.app.gate_reports import gate_report
from tests.app.small_home import copy_of, sample_chunk, small_home


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))) as opened:
        yield opened


def judged_release(workspace: Workspace, report: GateReport, *, seed: int = 0) -> ReleaseRecord:
    _, record = going_live.live_release(workspace)
    facts = record.manifest.successor(record.id, gate=report.to_json(), seed=seed)
    return workspace.releases.release(workspace.releases.publish_release(facts))


def test_promoting_in_spite_of_a_review_records_what_is_lost(workspace: Workspace) -> None:
    report = gate_report("review")
    release = judged_release(workspace, report)
    commit = going_live.promote(workspace, release.id, why="worth it", by="anna", force=True)

    lost = {(row.slice, row.view): row for row in report.rows if row.role == "kept" and row.difference < 0}
    assert {(owed.slice, owed.view) for owed in commit.debt} <= set(lost)
    mixed = next(owed for owed in commit.debt if (owed.slice, owed.view) == ("de/icons", "mixed"))
    row = lost["de/icons", "mixed"]
    assert mixed.points == pytest.approx(max(-row.difference, -(row.water_difference or 0)), abs=1e-3)
    assert (mixed.who, mixed.why) == ("anna", "worth it")
    assert workspace.releases.current() == commit, "what was written is what is read"

    live = going_live.live_release(workspace)[1]
    assert debts(workspace, live)["de/icons", "mixed"] == mixed.points


def test_debt_is_owed_once_and_given_up_by_going_back(workspace: Workspace) -> None:
    before = going_live.live_release(workspace)[1]
    release = judged_release(workspace, gate_report("review"))
    going_live.promote(workspace, release.id, why="a", by="anna", force=True)
    owed = debts(workspace, going_live.live_release(workspace)[1])
    going_live.rollback(workspace, before.id, why="", by="anna")
    assert debts(workspace, going_live.live_release(workspace)[1]) == {}
    going_live.promote(workspace, release.id, why="b", by="anna", force=True)
    assert debts(workspace, going_live.live_release(workspace)[1]) == owed

    # What is made from it owes it too, and adds its own.
    second = judged_release(workspace, gate_report("review"), seed=1)
    going_live.promote(workspace, second.id, why="c", by="anna", force=True)
    both = debts(workspace, going_live.live_release(workspace)[1])
    assert both == {key: pytest.approx(2 * points) for key, points in owed.items()}


def test_what_passed_owes_nothing(workspace: Workspace) -> None:
    release = judged_release(workspace, gate_report("promote"))
    assert debt_of(release, who="anna", why="") == ()
    commit = going_live.promote(workspace, release.id, why="", by="anna")
    assert commit.debt == ()
    kept = kept_at(workspace.home.commits_place, workspace.home, FileSystem()).read(commit.number)
    assert kept is not None
    assert b'"debt"' not in kept, "an older program can read it"


def test_debt_lowers_the_water_that_a_later_candidate_is_held_against(workspace: Workspace) -> None:
    commit, record = going_live.live_release(workspace)
    chunk = workspace.catalog.chunks()[-1].id
    # Another version was live before, and ranks otherwise.
    encoder = workspace.open_encoder(record.version).copy()
    words = {k: v for k, v in encoder.state().items() if k.endswith("token_embedding.weight")}
    encoder.load_state({name: value.roll(1, 0) for name, value in words.items()})
    facts = publishing.version_facts(workspace, strategy="mixed", languages=["en"], parent=record.version)
    version = publishing.publish_version(workspace, encoder, facts, {})
    release = workspace.releases.publish_release(record.manifest.successor(record.id, version=version))
    owed = (Debt("en/probes", "own", 2.5, "anna", "worth it"),)
    workspace.releases.commit(release, parent=commit.number, reason="promote", why="", by="anna", debt=owed)
    live = going_live.live_release(workspace)[1]
    candidate = encoder.copy()
    candidate.load_state({name: value.roll(2, 0) for name, value in words.items()})
    taught = Taught(chunk, {SliceKey("de", "scenes"): 30}, ("en", "de"))
    policy = replace(Policy(), samples=200)
    report, _ = judge_taught(workspace, taught, candidate, live, policy)
    row = next(row for row in report.rows if (row.slice, row.view) == ("en/probes", "own"))
    assert row.debt == 2.5
    others = [row for row in report.rows if row.view != "own" and row.role == "kept"]
    assert {row.debt for row in others} == {0.0}


def test_pictures_that_are_added_do_not_inherit_a_verdict(workspace: Workspace, tmp_path: Path) -> None:
    release = judged_release(workspace, gate_report("review"))
    going_live.promote(workspace, release.id, why="few pictures", by="anna", force=True)
    source = sample_chunk(tmp_path / "more.zip", pictures=4, first=7)
    adding.add_chunk(workspace, source, IntakeOptions(), by="test")
    live = going_live.live_release(workspace)[1]
    assert live.id != release.id
    assert (live.manifest.gate, live.manifest.verdict) == (None, None)
    assert debts(workspace, live), "but what was accepted still counts"


def test_the_captions_that_lost_and_won_most_are_shown_with_what_stands_first(workspace: Workspace) -> None:
    record = going_live.live_release(workspace)[1]
    chunk = workspace.catalog.chunks()[-1].id
    candidate = workspace.open_encoder(record.version).copy()
    words = {k: v for k, v in candidate.state().items() if k.endswith("token_embedding.weight")}
    candidate.load_state({name: value.roll(1, 0) for name, value in words.items()})
    taught = Taught(chunk, {SliceKey("de", "scenes"): 30}, ("en", "de"))
    report, results = judge_taught(workspace, taught, candidate, record, replace(Policy(), samples=200))
    assert report.verdict == "reject"
    assert len(report.lost) == 10
    assert {one.slice for one in report.lost} == {"en/probes"}, "where it was decided"
    gallery = set(workspace.catalog.test_images("probes"))
    for one in report.lost:
        assert 1 <= one.live_rank < one.candidate_rank
        assert one.image_id in gallery
        assert one.first_image not in {None, one.image_id}
        assert one.text in workspace.catalog.captions_in("en", [one.image_id])[one.image_id]
    factors = [one.candidate_rank / one.live_rank for one in report.lost]
    assert factors == sorted(factors, reverse=True)
    for one in report.won:
        assert one.candidate_rank < one.live_rank
        assert (one.first_image == one.image_id) == (one.candidate_rank == 1)
    assert GateReport.from_json(report.to_json()) == report
    assert results
