"""What a verdict suggests follows from its numbers."""

import re

from model_updates.gate.rules import Verdict
from tests.model_updates.gate.test_rules import GOOD, LIVE, ranks_with, verdict_of


def test_what_passed_needs_no_next_step() -> None:
    assert verdict_of(GOOD, LIVE).next_steps == ()


def test_a_small_new_slice_asks_for_as_many_pairs_as_it_lacks() -> None:
    live = {**LIVE, "de/photo": ranks_with(0.0, images=50)}
    report = verdict_of({**live, "de/photo": ranks_with(0.9, images=50)}, live)
    assert any(
        "50 different things are measured and 100 are needed; upload 50" in step for step in report.next_steps
    )


def test_a_gain_that_chance_explains_says_how_many_would_show_it() -> None:
    candidate = ranks_with(0.07)
    candidate[300:304] = 0
    live = ranks_with(0.05)
    live[200:208] = 0
    report = verdict_of({**LIVE, "de/photo": candidate}, {**LIVE, "de/photo": live})
    assert report.verdict is Verdict.REVIEW
    wanted = re.search(r"With about (\d+) held-out things instead of 400", " ".join(report.next_steps))
    assert wanted
    assert int(wanted[1]) > 400


def test_what_was_not_learned_sends_to_the_chunk_and_what_was_lost_to_another_strategy() -> None:
    assert "look whether its captions belong" in verdict_of(LIVE, LIVE).next_steps[0]
    lost = verdict_of({**GOOD, "en/photo": ranks_with(0.4)}, LIVE)
    assert any("`evergreen` teaches without touching it" in step for step in lost.next_steps)
