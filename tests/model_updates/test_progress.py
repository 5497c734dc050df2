from __future__ import annotations

from model_updates.progress import Pace, TrainingProgress


def paced(ticks: list[float], *, epoch: int = 0, epochs: int = 2) -> tuple[Pace, list[TrainingProgress]]:
    """An epoch of three steps of 16 pairs, whose clock shows `ticks`, the first at its beginning."""
    shown: list[TrainingProgress] = []
    return Pace(epoch, epochs, 3, 16, shown.append, iter(ticks).__next__), shown


def test_rate_and_time_left_are_those_of_the_steps_done() -> None:
    pace, shown = paced([10.0, 12.0, 14.0, 16.0])
    pace.step({"contrastive": 3.0})
    pace.step({"contrastive": 1.0, "teacher": 4.0})

    # Two steps in four seconds: 32 pairs / 4 s, and one step of this epoch and three of the next are left.
    assert shown[-1] == TrainingProgress(
        epoch=1,
        epochs=2,
        step=2,
        steps=3,
        terms={"contrastive": 2.0, "teacher": 2.0},
        pairs_per_second=8.0,
        seconds_left=8.0,
    )


def test_reports_once_a_second_and_after_the_last_step() -> None:
    pace, shown = paced([0.0, 0.4, 1.2, 1.3])
    for value in (1.0, 2.0, 6.0):
        pace.step({"contrastive": value})

    assert [report.step for report in shown] == [2, 3]
    assert pace.means() == {"contrastive": 3.0}


def test_the_last_step_of_the_last_epoch_leaves_nothing() -> None:
    pace, shown = paced([0.0, 0.1, 0.2, 0.3], epoch=1)
    for _ in range(3):
        pace.step({})

    assert [report.epoch for report in shown] == [2]
    assert shown[-1].seconds_left == 0.0


def test_a_clock_that_stands_still_divides_by_nothing() -> None:
    pace, shown = paced([5.0, 5.0, 5.0, 5.0])
    for _ in range(3):
        pace.step({"contrastive": 1.0})

    assert shown[-1].pairs_per_second == 0.0
