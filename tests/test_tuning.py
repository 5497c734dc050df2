"""Which trials the tuning of a strategy goes on with, on made-up scores."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from app.bench.sequence import StrategyRun, read_sequence

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def tuning(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports the script as running it would."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("tuning")


def _tuned(tuning: Any, name: str, scores: dict[float, float]) -> tuple[Any, dict[Any, float]]:
    trials = [
        tuning.Trial(StrategyRun(name=name, options={} if rate == 3.0 else {"learning_rate": rate}), rate)
        for rate in scores
    ]
    sequence = read_sequence(BENCHMARKS / "sequences" / "tune-languages.toml")
    return tuning.Tuned(sequence, trials), dict(zip(trials, scores.values(), strict=True))


def _options(trials: list[Any]) -> list[dict[str, Any]]:
    return [dict(trial.compared.options) for trial in trials]


def test_rates_go_on_until_the_best_is_inside(tuning: Any) -> None:
    upwards = _tuned(tuning, "finetune", {3.0: 5.0, 1.0: 4.0, 9.0: 6.0})
    assert _options(tuning.further(*upwards)) == [{"learning_rate": 27.0}]
    downwards = _tuned(tuning, "finetune", {3.0: 5.0, 1.0: 6.0, 9.0: 4.0})
    assert _options(tuning.further(*downwards)) == [{"learning_rate": pytest.approx(1 / 3, rel=1e-2)}]
    inside = _tuned(tuning, "finetune", {3.0: 6.0, 1.0: 5.0, 9.0: 4.0})
    assert tuning.further(*inside) == []
    many = {3.0: 1.0, 1.0: 2.0, 0.33: 3.0, 0.11: 4.0, 0.037: 5.0, 0.012: 6.0}
    assert tuning.further(*_tuned(tuning, "finetune", many)) == []  # no further than that


def test_weights_of_a_penalty_are_tried_once_at_the_best_rate(tuning: Any) -> None:
    tuned, scores = _tuned(tuning, "ewc", {3.0: 5.0, 1.0: 6.0, 0.33: 5.5})
    more = tuning.further(tuned, scores)
    assert _options(more) == [
        {"learning_rate": 1.0, "strength": 500_000.0},
        {"learning_rate": 1.0, "strength": 50_000_000.0},
    ]
    tuned.trials += more
    assert tuning.further(tuned, scores | dict.fromkeys(more, 9.0)) == []
    pulled = tuning.penalties_of(tuning.Trial(StrategyRun(name="afec"), 3.0))
    assert _options(pulled) == [{"strength": 5e5, "pull": 1e4}, {"strength": 5e7, "pull": 1e6}]
    for name in ("lwf", "dualprompt"):
        assert tuning.penalties_of(tuning.Trial(StrategyRun(name=name), 3.0)) == []


def test_every_table_that_a_sequence_names_is_written_by_the_tuning(tuning: Any) -> None:
    named = set()
    for path in (BENCHMARKS / "sequences").glob("*.toml"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("tuned = "):
                named.add(line.removeprefix("tuned = ").strip('"'))
    assert named == set(tuning.TABLES)
