from __future__ import annotations

from typing import Any

from app.desk.jobs import Stage
from app.jobs.track import MOST_POINTS, Track


def trained(epoch: int, step: int, loss: float, *, steps: int = 10) -> Stage:
    details: dict[str, Any] = {"epoch": epoch, "step": step, "steps": steps, "terms": {"pull": loss}}
    return Stage("train", "…", details=details)


def test_losses_become_a_curve_over_epochs() -> None:
    track = Track()
    track.stage(trained(1, 5, 2.0))
    track.stage(trained(2, 10, 1.0))
    assert track.to_json()["curve"] == [
        {"at": 0.5, "terms": {"pull": 2.0}},
        {"at": 2.0, "terms": {"pull": 1.0}},
    ]


def test_each_stage_has_its_seconds_and_a_second_worker_adds_to_them() -> None:
    now = [100.0]
    first = Track(clock=lambda: now[0])
    first.stage(Stage("features", "…"))
    now[0] = 103.0
    first.stage(trained(1, 5, 2.0))
    now[0] = 110.0
    first.lap()
    assert first.to_json()["seconds"] == {"features": 3.0, "train": 7.0}
    second = Track(first.to_json(), clock=lambda: now[0])
    second.stage(trained(1, 6, 1.9))
    now[0] = 112.0
    second.lap()
    assert second.to_json()["seconds"] == {"features": 3.0, "train": 9.0}


def test_steps_that_are_taken_again_replace_those_that_were_lost() -> None:
    first = Track()
    for epoch in (1, 2):
        for step in (5, 10):
            first.stage(trained(epoch, step, 9.0))
    second = Track(first.to_json())
    second.stage(trained(2, 2, 4.0))
    assert [point["at"] for point in second.to_json()["curve"]] == [0.5, 1.0, 1.2]


def test_a_long_update_keeps_a_short_curve_with_its_newest_point() -> None:
    track = Track()
    for epoch in range(1, 60):
        for step in range(1, 11):
            track.stage(trained(epoch, step, 1.0))
    curve = track.to_json()["curve"]
    assert MOST_POINTS / 2 <= len(curve) <= MOST_POINTS
    assert curve[-1]["at"] == 59.0
    assert [point["at"] for point in curve] == sorted(point["at"] for point in curve)


def test_a_stage_is_read_from_the_row_of_a_job_whatever_stands_beside_it() -> None:
    stage = trained(1, 5, 2.0)
    track = Track()
    track.stage(stage)
    assert Stage.from_json(stage.to_json() | track.to_json()) == stage
