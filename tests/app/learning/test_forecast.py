"""Claims about what an update is expected to take, and what is laid beside it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.desk.jobs import Forecast, Taken, UpdateRequest, forecast_of, seconds_left
from app.desk.operation import document_of
from app.home.workspace import Workspace
from app.learning.forecast import forecast
from app.learning.judged import taken
from app.learning.lessons import plan
from app.learning.training import update_context
from app.words.forecast import compared_sentence, forecast_sentences
from app.words.messages import duration
from ingest.errors import UnknownChunk
from ingest.pair import Split
from ingest.records import JobRecord
from model_updates.strategies import STRATEGIES
from tests.app.server.served import make_home
from tests.model_updates.tiny import context_for, toy_pairs

STRATEGY = "language-tables"
EXPECTED = Forecast(
    STRATEGY, 10, 4, {"features": 2.0, "train": 40.0, "measure": 10.0, "embed": 5.0}, 10**9, 10**6, "x"
)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(make_home(tmp_path)) as workspace:
        yield workspace


def asked(workspace: Workspace, **options: Any) -> UpdateRequest:
    return UpdateRequest(workspace.catalog.chunks()[0].id, STRATEGY, options)


def ended(workspace: Workspace, *, strategy: str = STRATEGY, seconds: dict[str, float]) -> JobRecord:
    """An update that learned from 100 pairs in 2 epochs and was measured by 60 captions."""
    job = workspace.catalog.add_job("update", {"chunk": "x"})
    training = {"training_pairs": 100, "history": [{}, {}]}
    result = {"strategy": strategy, "training": training, "gate": {"rows": [{"captions": 60}]}}
    workspace.catalog.update_job(
        job.id, state="rejected", result=result, progress={"seconds": seconds, "peak_bytes": 777_000_000}
    )
    return workspace.catalog.job(job.id)


def test_the_first_update_is_forecast_by_what_the_live_encoder_reads_now(workspace: Workspace) -> None:
    found = forecast(workspace, asked(workspace, epochs=3))
    german = workspace.catalog.pairs(language="de", split=Split.TRAIN)
    assert (found.strategy, found.pairs, found.epochs) == (STRATEGY, len(german), 3)
    assert found.seconds["train"] > 0
    assert found.seconds["embed"] == 0  # a table of words moves no picture
    assert found.peak_bytes > 10**8
    assert found.disk_bytes > 10**6
    assert "No update has run here yet" in found.based_on


def test_every_strategy_can_be_forecast_before_anything_is_prepared(workspace: Workspace) -> None:
    encoder = workspace.open_encoder(workspace.releases.release("r1").version)
    context = context_for(encoder, toy_pairs("de"))
    for kind in STRATEGIES.values():
        assert kind().foreseen(context).epochs > 0, kind.name


def test_evergreen_is_forecast_as_it_is_then_prepared(workspace: Workspace) -> None:
    request = replace(asked(workspace), strategy=None)
    found = forecast(workspace, request)
    record = workspace.releases.release("r1")
    lesson = plan(workspace, request, record)
    candidate = workspace.open_encoder(record.version).copy()
    context = update_context(
        workspace, record, candidate, lesson.train, lesson.validation, lesson.known_domains
    )
    lesson.strategy.before_update(context)
    assert (found.strategy, found.pairs) == ("evergreen", len(lesson.train))
    assert found.epochs == lesson.strategy.schedule(candidate).epochs
    assert (found.seconds["embed"] > 0) == ("image" in lesson.strategy.touches)


def test_later_ones_by_what_earlier_ones_took(workspace: Workspace) -> None:
    ended(workspace, strategy="finetune", seconds={"train": 9999.0})
    ended(workspace, seconds={"features": 10.0, "train": 20.0, "measure": 5.0, "gate": 1.0})
    found = forecast(workspace, asked(workspace, epochs=3))
    assert found.seconds["features"] == pytest.approx(0.1 * found.pairs)
    assert found.seconds["train"] == pytest.approx(0.1 * found.pairs * 3)
    assert found.peak_bytes == 777_000_000
    assert found.based_on == f"Measured in 1 update by {STRATEGY} in this home."


def test_where_only_others_ran_that_is_said(workspace: Workspace) -> None:
    ended(workspace, strategy="finetune", seconds={"train": 20.0})
    assert "by other strategies" in forecast(workspace, asked(workspace)).based_on


def test_a_forecast_changes_nothing_and_an_unknown_chunk_is_named(workspace: Workspace) -> None:
    forecast(workspace, asked(workspace))
    assert workspace.catalog.jobs() == []
    with pytest.raises(UnknownChunk):
        forecast(workspace, replace(asked(workspace), chunk="ffffffffffff"))


def test_a_forecast_travels_with_its_job_and_comes_back(workspace: Workspace) -> None:
    job = workspace.catalog.add_job("update", {"forecast": document_of(EXPECTED)})
    assert forecast_of(job) == EXPECTED
    assert EXPECTED.total_seconds == 57.0


def test_the_time_left_is_that_of_the_stage_and_of_those_after_it(workspace: Workspace) -> None:
    job = workspace.catalog.add_job("update", {"forecast": document_of(EXPECTED)})
    assert seconds_left(job) is None
    training = {"name": "train", "fraction": 0.5, "details": {"seconds_left": 7.0}}
    assert seconds_left(replace(job, progress=training)) == 7.0 + 10.0 + 5.0
    assert seconds_left(replace(job, progress={"name": "measure", "fraction": None})) == 10.0 + 5.0


def test_what_was_taken_stands_beside_what_was_forecast(workspace: Workspace) -> None:
    version = workspace.releases.release("r2").version
    job = ended(workspace, seconds={"train": 20.0})
    assert taken(workspace.releases, job) is None
    judged = replace(job, result=job.result | {"version": version, "seconds": 66.0})
    took = taken(workspace.releases, judged)
    files = workspace.version_manifest(version)["files"]
    assert isinstance(files, dict)
    size = sum((workspace.home.versions / version / name).stat().st_size for name in files)
    assert took == Taken(66.0, 777_000_000, size)
    assert "It took 66 s and 777.0 MB of memory" in compared_sentence(EXPECTED, took)
    assert "the forecast was 57 s, 1.0 GB and 1.0 MB" in compared_sentence(EXPECTED, took)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "under a second"), (8.4, "8 s"), (200, "3 min"), (4800, "80 min"), (7260, "2 h 1 min")],
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_forecast_says_its_parts() -> None:
    first, based = forecast_sentences(EXPECTED)
    assert first == (
        "About 57 s (reading 2 s, learning 40 s, measuring 10 s, embedding 5 s) for 10 pairs in 4 epochs; "
        "1.0 GB of memory, 1.0 MB on disk."
    )
    assert based == "x"
