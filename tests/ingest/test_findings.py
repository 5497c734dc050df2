from __future__ import annotations

import json

import pytest

from ingest.findings import Example, Finding, Outcome, findings_in, holds

MOVED = Finding(
    "row_shift",
    Outcome.HOLD,
    "The captions look moved by one row.",
    {"offset": 1, "scores": [2.0, 3.5], "language": "sw"},
    (Example("a" * 64, "sw", "paka", "fits the picture in the row above"),),
)


def test_a_finding_survives_json() -> None:
    assert Finding.from_json(json.loads(json.dumps(MOVED.to_json()))) == MOVED


def test_what_a_newer_release_says_beside_is_left_out() -> None:
    stored = json.loads(json.dumps(MOVED.to_json()))
    stored["since"] = 3
    stored["examples"][0]["rank"] = 1
    assert Finding.from_json(stored) == MOVED
    assert findings_in({"findings": [stored]}) == [MOVED]


def test_something_else_is_no_finding() -> None:
    with pytest.raises(ValueError, match="perhaps"):
        Finding.from_json({**MOVED.to_json(), "outcome": "perhaps"})


@pytest.mark.parametrize(
    ("outcome", "held"),
    [(Outcome.ACCEPT, False), (Outcome.UNKNOWN, False), (Outcome.HOLD, True), (Outcome.REJECT, True)],
)
def test_one_finding_that_says_hold_or_reject_holds_a_chunk(outcome: Outcome, held: bool) -> None:
    assert holds([Finding("a", Outcome.ACCEPT, "Fine."), Finding("b", outcome, "?")]) is held
    assert not holds([])


def test_findings_are_read_from_a_report() -> None:
    assert findings_in({"findings": [MOVED.to_json()]}) == [MOVED]
    assert findings_in({}) == []
