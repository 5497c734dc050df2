"""Teaching a language through the token table: CLL-CLIP's two terms by hand, and the temperature of an update."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from model_updates.batches import Batches
from model_updates.pair_sets import Batch
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.table_rows import TeachingOptions
from tests.model_updates.tiny import context_for, data_for, make_strategy, teach, tiny_encoder, toy_pairs

AT_FIRST = math.log(1 / 0.07)
every_table = pytest.mark.parametrize("name", ["cll-clip", "teir", "language-tables"])


def begun(name: str) -> tuple[LanguageTeaching, Batch]:
    encoder, strategy = tiny_encoder(), make_strategy(name)
    assert isinstance(strategy, LanguageTeaching)
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    return strategy, next(iter(Batches(data.train, encoder, size=8, load_image=data.load_image).epoch(0)))


@every_table
def test_the_terms_are_those_of_the_paper_with_its_weights_and_its_first_temperature(name: str) -> None:
    strategy, batch = begun(name)
    terms = {term: float(value.detach()) for term, value in strategy.terms(batch).items()}
    text, english = strategy.text_features(batch).detach(), batch.english_features
    assert english is not None
    # Each picture once: the right column of a row is its own.
    logits = normalize(batch.image_features, dim=1) @ normalize(text, dim=1).T / 0.07
    right = torch.arange(len(logits))
    contrast = (cross_entropy(logits, right) + cross_entropy(logits.T, right)) / 2
    assert terms["cross-modal"] == pytest.approx(0.01 * float(contrast), rel=1e-4)
    squares = (text - english) ** 2
    assert terms["cross-lingual"] == pytest.approx(float(squares.sum()) / squares.numel(), rel=1e-4)
    assert float(squares.sum()) > 0


def test_the_weights_are_the_papers_unless_told() -> None:
    options = TeachingOptions()
    assert (options.cross_modal, options.cross_lingual, options.weight_decay) == (0.01, 1, 0.05)


@every_table
def test_each_update_starts_at_a_temperature_of_7_hundredths(name: str) -> None:
    encoder, strategy = tiny_encoder(), make_strategy(name)
    teach(encoder, strategy)
    # The same strategy in a second update, and another one that takes up what it carries, as a later process would.
    later = make_strategy(name)
    later.carry(strategy.carried())
    for one in (strategy, later):
        one.before_update(context_for(encoder.copy(), toy_pairs()))
        assert float(one.progress()["log_scale"]) == pytest.approx(AT_FIRST)


@every_table
def test_the_temperature_learns_within_an_update(name: str) -> None:
    strategy, batch = begun(name)
    (scale,) = strategy.parameter_groups()[-1].parameters
    assert float(scale.detach()) == pytest.approx(AT_FIRST)
    strategy.terms(batch)["cross-modal"].backward()  # type: ignore[no-untyped-call]
    assert scale.grad is not None
    assert float(scale.grad) != 0


@every_table
@pytest.mark.parametrize(
    ("reached", "kept"), [(1e-5, 0.001), (0.001, 0.001), (0.2, 0.2), (0.5, 0.5), (3, 0.5)]
)
def test_the_temperature_stays_between_a_thousandth_and_a_half(
    name: str, reached: float, kept: float
) -> None:
    strategy, _ = begun(name)
    strategy.load_progress({"log_scale": torch.tensor(math.log(1 / reached))})
    strategy.after_step()
    assert math.exp(-float(strategy.progress()["log_scale"])) == pytest.approx(kept, rel=1e-5)
