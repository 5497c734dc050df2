"""A chunk that holds out too few is examined by copies: it goes live by itself where it gained, and not by luck."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.desk.jobs import Stage, UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, update_cycle
from app.learning.cross_fitting import folds_of
from app.learning.forecast import forecast
from app.learning.lessons import Lesson, plan
from app.learning.outcomes import UpdateOutcome, say_nothing
from app.learning.training import beside_others, trained, update_context
from app.learning.yardstick import Yardstick
from app.words.forecast import forecast_sentences
from ingest.intake import IntakeOptions
from ingest.pair import Split
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from model_updates.evaluation import View
from model_updates.gate.report import GateReport
from model_updates.pairs import Fold
from tests.app.small_home import copy_of, small_home

PICTURES = 160
QUICK = {"epochs": 3, "batch_size": 32}


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    home = small_home(tmp_path_factory, pictures=PICTURES)
    with Workspace.open(load_settings(home=copy_of(home, tmp_path), gate={"samples": 200})) as opened:
        yield opened


def request_of(workspace: Workspace) -> UpdateRequest:
    return UpdateRequest(workspace.catalog.chunks()[-1].id, "language-tables", QUICK)


def lesson_of(workspace: Workspace) -> Lesson:
    return plan(workspace, request_of(workspace), going_live.live_release(workspace)[1])


def taught(workspace: Workspace, told: list[Stage] | None = None) -> tuple[UpdateOutcome, GateReport]:
    outcome = update_cycle.update(
        workspace,
        request_of(workspace),
        scratch=workspace.home.staging / "job",
        progress=say_nothing if told is None else told.append,
    )
    return outcome, GateReport.from_json(outcome.gate)


def learned_by(fold: Fold) -> set[str]:
    return {pair.image_id for pair in (*fold.train, *fold.validation)}


def test_a_small_chunk_that_gained_goes_live_by_itself(workspace: Workspace) -> None:
    stages: list[Stage] = []
    outcome, report = taught(workspace, stages)

    assert outcome.verdict == "promote", outcome.sentence
    assert outcome.commit == going_live.live_release(workspace)[0].number
    assert f"All {PICTURES} pairs were examined" in report.first_reason
    own = next(row for row in report.rows if (row.role, row.view) == ("new", "own"))
    assert own.images == PICTURES
    held = len(workspace.catalog.pairs(language="de", split=Split.TEST))
    assert held < report.policy.minimum_images  # today's rule alone would have asked a person
    examined = [stage.fraction for stage in stages if stage.name == "examine"]
    assert examined == sorted(examined, key=float)  # type: ignore[arg-type]
    assert examined[-1] == 1.0


@pytest.mark.slow  # that no luck passes is in tests/model_updates/gate/test_examined.py; this is the whole way to it
def test_a_small_chunk_of_exchanged_captions_does_not(tmp_path: Path, workspace: Workspace) -> None:
    scenes = list(all_scenes())[3::40][:PICTURES]
    write_chunk(
        tmp_path / "exchanged.zip",
        scenes=[(scene, "flat", n) for n, scene in enumerate(scenes)],
        languages=["fr"],
        shuffle_captions=True,
    )
    chunk = adding.add_chunk(workspace, tmp_path / "exchanged.zip", IntakeOptions(), by="test")
    workspace.catalog.set_standing(
        chunk.report.chunk_id, "accepted", by="test", why="the gate alone is tried"
    )
    outcome, report = taught(workspace)

    assert outcome.verdict != "promote", outcome.sentence
    assert outcome.commit is None
    assert "pairs were examined" in " ".join(report.reasons)


def test_no_copy_is_asked_what_it_learned(workspace: Workspace) -> None:
    lesson = lesson_of(workspace)
    folds = folds_of(workspace, lesson)
    german = {(p.image_id, p.text) for p in workspace.catalog.pairs(language="de")}
    examined = [(p.image_id, p.text) for fold in folds for p in fold.examined]
    assert sorted(examined) == sorted(german)  # each pair of the chunk once, held-out ones too

    languages = lesson.parent.manifest.languages
    slices = list(Yardstick(workspace, lesson.parent, lesson.chunk).folds(languages, folds))
    for fold, asked in zip(folds, slices, strict=True):
        learned = learned_by(fold)
        assert {one.view for one in asked} == {View.OWN, View.MIXED}
        for one in asked:
            assert not learned & set(one.gallery)
            assert {image_id for image_id, _ in one.captions} <= set(one.gallery)
    mixed = next(one for one in slices[0] if one.view is View.MIXED)
    # A probe of a scene that the copy has learned is left out too: it shows the same thing.
    probes = workspace.catalog.test_images("probes")
    groups = workspace.catalog.groups([*probes, *learned_by(folds[0])])
    learned = {groups[image_id] for image_id in learned_by(folds[0])}
    assert {i for i in probes if groups[i] not in learned} == set(probes) & set(mixed.gallery)


def test_no_copy_trains_beside_captions_of_what_it_is_asked(workspace: Workspace) -> None:
    """The pairs of a chunk that waits to be learned count as known, and copies learned them so once."""
    lesson = lesson_of(workspace)
    fold = folds_of(workspace, lesson)[0]
    encoder = workspace.open_encoder(lesson.parent.version)
    asked = {pair.image_id for pair in fold.examined}
    context = update_context(
        workspace, lesson.parent, encoder, fold.train, fold.validation, lesson.known_domains
    )
    beside = {pair.image_id for pair in context.open_known()}
    apart = {pair.image_id for pair in beside_others(context, asked).open_known()}
    assert asked & beside
    assert apart == beside - asked
    taught = replace(context, open_earlier=lambda: (*fold.train, *fold.examined))
    assert {pair.image_id for pair in beside_others(taught, asked).open_earlier()} == {
        pair.image_id for pair in fold.train
    }


def test_a_second_tower_that_is_spared_is_not_while_something_is_learned(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = copy_of(small_home(tmp_path_factory, pictures=PICTURES), tmp_path)
    with Workspace.open(load_settings(home=home, second_tower="where-needed")) as workspace:
        lesson = replace(lesson_of(workspace), validation=())
        lesson = replace(lesson, train=lesson.train[:30])
        encoder = workspace.open_encoder(lesson.parent.version)
        context = update_context(workspace, lesson.parent, encoder.copy(), lesson.train, (), frozenset())
        assert encoder.spares_second
        assert not context.encoder.spares_second
        assert not context.open_previous().spares_second
        assert not context.open_anchor().spares_second
        assert trained(workspace, lesson)[0].spares_second  # it is measured as search will read with it


def test_pictures_of_one_thing_are_in_one_fold(workspace: Workspace) -> None:
    lesson = lesson_of(workspace)
    folds = folds_of(workspace, lesson)
    groups = workspace.catalog.groups({p.image_id for fold in folds for p in fold.examined})
    seen = [{groups[p.image_id] for p in fold.examined} for fold in folds]
    assert sum(map(len, seen)) == len(set().union(*seen))
    sizes = [len(things) for things in seen]
    assert max(sizes) - min(sizes) <= 1


def test_a_chunk_of_too_few_things_trains_no_copy(workspace: Workspace) -> None:
    lesson = lesson_of(workspace)
    few = replace(lesson, train=lesson.train[:30], validation=())
    kept = {pair.image_id for pair in few.train}
    held = [p for p in workspace.catalog.pairs(language="de", split=Split.TEST) if p.image_id not in kept]
    assert len(held) + 30 >= 40  # the chunk as a whole would do
    assert folds_of(workspace, few)
    nothing = replace(few, taught={})
    assert folds_of(workspace, nothing) == []


def test_the_forecast_says_that_copies_are_trained(workspace: Workspace) -> None:
    found = forecast(workspace, request_of(workspace))
    assert found.copies == 5
    assert found.seconds["examine"] == pytest.approx(4 * found.seconds["train"], rel=0.1)
    assert any("5 copies are trained too" in one for one in forecast_sentences(found))


def test_who_can_forget_is_not_examined(workspace: Workspace) -> None:
    found = forecast(workspace, replace(request_of(workspace), strategy="finetune", options={"epochs": 1}))
    assert found.copies == 0
    assert not any("copies" in one for one in forecast_sentences(found))
