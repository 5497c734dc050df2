"""Claims about how fast work goes: every stage that takes long has a count, a rate and the time left, in each place."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from app.desk.jobs import Stage, StagePace, UpdateRequest, counted
from app.doctor.examination import examine
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, update_cycle
from app.ui.update_words import progress_view
from app.words.messages import paced
from ingest.intake import IntakeOptions
from tests.app.small_home import copy_of, sample_chunk, small_home, taught_chunk


def test_a_rate_and_the_time_left_follow_from_what_was_done_since_the_stage_began() -> None:
    now = [100.0]
    pace = StagePace(lambda: now[0])
    assert "rate" not in pace(counted("embed", "0 of 60", 0, 60)).details
    now[0] = 104.0
    told = pace(counted("embed", "20 of 60", 20, 60)).details
    assert (told["rate"], told["seconds_left"]) == (5.0, 8.0)
    now[0] = 110.0
    assert "rate" not in pace(counted("measure", "0 of 4", 0, 4)).details
    now[0] = 112.0
    told = pace(counted("measure", "1 of 4", 1, 4)).details
    assert (told["rate"], told["seconds_left"]) == (0.5, 6.0)


def test_what_a_stage_says_itself_is_believed() -> None:
    now = [0.0]
    pace = StagePace(lambda: now[0])
    pace(Stage("train", "…", 0.0, {"seconds_left": 9.0}))
    now[0] = 50.0
    assert pace(Stage("train", "…", 0.5, {"seconds_left": 3.0})).details == {"seconds_left": 3.0}


def test_terminal_and_page_say_count_rate_and_time_left() -> None:
    stage = counted("embed", "20 of 60 pictures embedded", 20, 60)
    details = {**stage.details, "rate": 5.0, "seconds_left": 8.0}
    assert paced(stage.message, details) == "20 of 60 pictures embedded · 5.0 a second · 8 s left"
    shown = progress_view("running", {**stage.to_json(), "details": details})
    assert "20 of 60 pictures embedded" in shown
    assert "8 s left" in shown
    assert paced("waiting", None) == "waiting"


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of(small_home(tmp_path_factory), tmp_path)


def _told(stages: list[Stage]) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for stage in stages:
        if "total" in stage.details:
            found[stage.name].append((stage.details["done"], stage.details["total"]))
    return found


def test_every_step_that_takes_long_is_counted(home: Path, tmp_path: Path) -> None:
    taking_in: list[Stage] = []
    learning: list[Stage] = []
    settings = load_settings(home=home, gate={"samples": 200, "cross_fit": False})
    with Workspace.open(settings) as workspace:
        source = sample_chunk(tmp_path / "more.zip", pictures=70, first=3)
        adding.add_chunk(workspace, source, IntakeOptions(), by="test", progress=taking_in.append)
        request = UpdateRequest(taught_chunk(home), "language-tables", {"epochs": 1}, by="test")
        scratch = workspace.home.staging / "j1"
        scratch.mkdir()
        update_cycle.update(workspace, request, scratch=scratch, progress=learning.append)
    counted_there, counted_here = _told(taking_in), _told(learning)
    assert {"ingest", "embed", "check"} <= set(counted_there)
    # Said before the first picture is done, and again with each batch of 64.
    assert [done for done, _ in counted_there["embed"]][:2] == [0, 64]
    assert {"measure"} <= set(counted_here)
    done, total = counted_here["measure"][-1]
    assert done == total - 1, "each is told when it begins"
    assert [stage.name for stage in learning][0] == "plan"
    examined: list[Stage] = []
    examine(settings, progress=examined.append)
    assert [stage.details["done"] for stage in examined] == list(range(examined[0].details["total"]))
