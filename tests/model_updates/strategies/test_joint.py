"""Joint training: from where it starts, and on what."""

from dataclasses import replace

import pytest
import torch

from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.parts.merging import return_to
from model_updates.strategies.joint import JointOptions
from model_updates.trainer import TrainingReport, run_update
from tests.model_updates.tiny import (
    assert_same_state,
    context_for,
    data_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)


def jointly(encoder: Encoder, base: Encoder, start: str) -> TrainingReport:
    """Teaches German after English, which every update may see again."""
    strategy = make_strategy("joint", start=start)
    context = replace(
        context_for(encoder, toy_pairs(), anchor=base), open_earlier=lambda: [*toy_pairs("en"), *toy_pairs()]
    )
    return run_update(strategy, context, lambda frozen: data_for(strategy, frozen))


def test_it_starts_from_the_base_and_learns_every_chunk_once_again() -> None:
    base = tiny_encoder()
    moved = base.copy()
    teach(moved, make_strategy("finetune", epochs=3), toy_pairs("en"))
    fresh = base.copy()
    report = jointly(fresh, base, "base")
    jointly(moved, base, "base")
    assert_same_state(moved.state(), fresh.state())
    assert report.notes == ("16 pairs of earlier chunks were learned again.",), (
        "pairs of this chunk count once"
    )


def test_a_warm_start_goes_on_from_the_live_encoder() -> None:
    base = tiny_encoder()
    moved = base.copy()
    teach(moved, make_strategy("finetune", epochs=3), toy_pairs("en"))
    fresh = base.copy()
    jointly(fresh, base, "warm")
    jointly(moved, base, "warm")
    assert any(not torch.equal(moved.state()[name], value) for name, value in fresh.state().items())


def test_rows_that_the_base_lacks_go_on_from_the_live_encoder_and_it_says_so() -> None:
    base = tiny_encoder()
    grown = base.copy()
    teach(grown, make_strategy("language-tables"))
    rows = len(base.model.get_parameter("token_embedding.weight"))
    live = grown.copy()
    with torch.no_grad():
        grown.model.get_parameter("token_embedding.weight").add_(1.0)
    left = return_to(grown.model, base.model)
    table = grown.model.get_parameter("token_embedding.weight")
    assert left == ["token_embedding.weight"]
    assert torch.equal(table[:rows], base.model.get_parameter("token_embedding.weight"))
    assert torch.equal(table[rows:], live.model.get_parameter("token_embedding.weight")[rows:] + 1.0)
    report = jointly(live, base, "base")
    assert "went on from the live encoder: token_embedding.weight." in report.notes[-1]


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(BadStrategyOption, match="'base' or 'warm'"):
        JointOptions(start="cold")
