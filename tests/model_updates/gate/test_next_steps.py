"""What a verdict suggests follows from its numbers, and never names what was just done."""

import re

import pytest

from model_updates.gate.next_steps import next_steps
from model_updates.gate.report import GateReport
from model_updates.gate.rules import Verdict
from tests.model_updates.gate.test_rules import GOOD, LIVE, ranks_with, verdict_of


def steps(report: GateReport, strategy: str = "finetune") -> tuple[str, ...]:
    return next_steps(report, strategy).next_steps


def test_what_passed_needs_no_next_step() -> None:
    assert steps(verdict_of(GOOD, LIVE)) == ()


def test_a_small_new_slice_asks_for_as_many_pairs_as_it_lacks() -> None:
    live = {**LIVE, "de/photo": ranks_with(0.0, images=50)}
    report = verdict_of({**live, "de/photo": ranks_with(0.9, images=50)}, live)
    asked = re.search(
        r"50 different things are measured and 100 are needed; .* with (\d+) more", " ".join(steps(report))
    )
    assert asked
    # Whoever does as it says is asked for nothing more.
    many = 50 + int(asked[1])
    live = {**LIVE, "de/photo": ranks_with(0.0, images=many)}
    assert steps(verdict_of({**live, "de/photo": ranks_with(0.9, images=many)}, live)) == ()


def test_a_gain_that_chance_explains_says_how_many_would_show_it() -> None:
    candidate = ranks_with(0.07)
    candidate[300:304] = 0
    live = ranks_with(0.05)
    live[200:208] = 0
    report = verdict_of({**LIVE, "de/photo": candidate}, {**LIVE, "de/photo": live})
    assert report.verdict is Verdict.REVIEW
    wanted = re.search(r"With about (\d+) held-out things instead of 400", " ".join(steps(report)))
    assert wanted
    assert int(wanted[1]) > 400


def test_what_was_not_learned_sends_to_the_chunk_and_what_was_lost_to_another_strategy() -> None:
    assert "look whether its captions belong" in steps(verdict_of(LIVE, LIVE))[0]
    lost = verdict_of({**GOOD, "en/photo": ranks_with(0.4)}, LIVE)
    assert any("`evergreen` teaches without touching it" in step for step in steps(lost))


@pytest.mark.parametrize("strategy", ["evergreen", "language-tables", "c-clip"])
def test_nobody_is_sent_to_the_strategy_that_taught(strategy: str) -> None:
    lost = verdict_of({**GOOD, "en/photo": ranks_with(0.4)}, LIVE)
    told = " ".join(steps(lost, strategy))
    assert told
    assert f"`{strategy}`" not in told
