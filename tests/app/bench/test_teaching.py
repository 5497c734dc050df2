"""Claims about a cell's steps: by which pairs a strategy chooses its epoch."""

from __future__ import annotations

from typing import Any

import pytest

from app.bench.sequence import trains_on_all
from app.bench.teaching import VALIDATED_PAIRS, Line, validation_pairs
from model_updates.pairs import TrainingPair
from model_updates.references import REFERENCES
from model_updates.strategies import STRATEGIES, strategy_named


def _pairs(first: int, count: int) -> tuple[TrainingPair, ...]:
    return tuple(
        TrainingPair(f"{n:064x}", f"caption {n}", "en", "photo") for n in range(first, first + count)
    )


def _line(*validation: tuple[TrainingPair, ...]) -> Line:
    nothing: Any = None
    return Line(nothing, nothing, nothing, ["en"], validation=list(validation))


def test_only_the_upper_bounds_train_on_all_chunks_so_far() -> None:
    found = {name for name in (*STRATEGIES, *REFERENCES) if trains_on_all(name)}
    assert found == {"joint", "cll-clip+joint"}


@pytest.mark.parametrize(("name", "is_on_all"), [("finetune", False), ("joint", True)])
def test_what_trains_on_all_chunks_chooses_its_epoch_by_all_of_them(name: str, is_on_all: bool) -> None:
    strategy = strategy_named(name)()
    old, new = _pairs(0, 30), _pairs(20, 30)  # ten are in both
    chosen = validation_pairs(strategy, _line(old, new))
    assert set(chosen) == (set(old) | set(new) if is_on_all else set(new))
    assert len(chosen) == len(set(chosen))
    many = validation_pairs(strategy, _line(_pairs(0, 900), new))
    assert len(many) == (VALIDATED_PAIRS if is_on_all else len(new))
    assert len({int(pair.image_id, 16) // 300 for pair in many} & {0, 1, 2}) == (3 if is_on_all else 1)
