"""dualprompt and coda-prompt: what a text finds, what trains, and what keeps every bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.inserts import ENCODER, language
from model_updates.options import options_of
from model_updates.pairs import TrainingPair
from model_updates.parts.queried_prefixes import CodaPrompts, DualPrompts, orthogonal_rows
from model_updates.parts.text_blocks import text_blocks
from model_updates.parts.text_inserts import TextPrefixes
from model_updates.strategies import STRATEGIES
from model_updates.strategies.dual_prompt import DualPrompt
from tests.model_updates.tiny import (
    assert_same_state,
    context_for,
    data_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

TEXTS = ["a red circle on paper", "a blue bar", "a black dot on paper"]
NAMES = ("dualprompt", "coda-prompt")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def french() -> list[TrainingPair]:
    return [replace(pair, text=f"voici {pair.text}", language="fr") for pair in toy_pairs()]


def dual(encoder: Encoder, *tasks: str) -> DualPrompts:
    config = DualPrompts.configuration(encoder.model, general=1, expert=2)
    empty = DualPrompts.build(ENCODER, config, encoder.model)
    made = empty.with_tasks(list(tasks), encoder.model, seeded())
    encoder.inserts.append(made)
    return made


def test_a_text_takes_the_expert_whose_key_is_nearest_unless_training_says_which() -> None:
    encoder = tiny_encoder()
    plain = torch.from_numpy(encoder.text_features(TEXTS))
    made = dual(encoder, "de", "fr")
    with torch.no_grad():
        made.keys.copy_(torch.stack([plain[0], -plain[0]]) * 3)
    by_itself = encoder.text_features(TEXTS[:1])
    with torch.no_grad():
        with made.told(0):
            right = encoder.forward_tokens(encoder.tokenize(TEXTS[:1])).numpy()
        with made.told(1):
            wrong = encoder.forward_tokens(encoder.tokenize(TEXTS[:1])).numpy()
    assert np.allclose(by_itself, right, atol=1e-6)
    assert not np.allclose(by_itself, wrong, atol=1e-4)
    assert [float(d) for d in torch.cat(made.distances)] == pytest.approx([0, 2], abs=1e-5)


@pytest.mark.parametrize(
    ("blocks", "expected"), [(6, (2, 3)), (4, (2, 2)), (3, (2, 1)), (2, (1, 1)), (1, (0, 1))]
)
def test_every_block_that_has_prompts_uses_them(blocks: int, expected: tuple[int, int]) -> None:
    model = tiny_encoder().model
    one = text_blocks(model)[0]
    model.transformer.resblocks = torch.nn.ModuleList([one] * blocks)  # type: ignore[union-attr]
    config = DualPrompts.configuration(model, general=1, expert=8)
    assert (config["general_blocks"], config["expert_blocks"]) == expected
    made = DualPrompts.build(ENCODER, config, model).with_tasks(["de"], model, seeded())
    found = made.found(torch.randn(3, 24, generator=seeded()))
    assert len(found) == sum(expected)
    assert [tuple(keys.shape) for keys, _ in found[expected[0] :]] == [(3, 8, 32)] * expected[1]
    assert all(bool(keys.any()) and bool(values.any()) for keys, values in found)
    assert float(made.experts.detach().abs().max()) <= 1


def test_training_reads_each_text_with_its_own_languages_expert() -> None:
    encoder, strategy = tiny_encoder(), make_strategy("dualprompt")
    assert isinstance(strategy, DualPrompt)
    pairs = [*toy_pairs()[:4], *french()[4:8]]
    context = context_for(encoder, pairs)
    data = data_for(strategy, context)
    strategy.before_update(context)
    (made,) = encoder.inserts
    assert isinstance(made, DualPrompts)
    assert made.config["tasks"] == ["de", "fr"]
    batch = next(iter(Batches(data.train, encoder, size=8, load_image=None).epoch(0)))
    together = strategy.text_features(batch).detach()
    for row, tag in enumerate(batch.languages):
        with made.told(["de", "fr"].index(tag)):
            alone = encoder.forward_tokens(batch.tokens[[row]], tag).detach()
        assert torch.allclose(together[row], alone[0], atol=1e-5)
    made.distances.clear()
    terms = strategy.terms(batch)
    assert 0 < float(terms["keys"].detach()) < 2
    assert made.distances == [], "nothing of a batch is kept, which holds its whole graph"


def test_keys_learn_faster_than_the_rest_and_come_nearer_to_their_texts() -> None:
    encoder, strategy = tiny_encoder(), make_strategy("dualprompt", epochs=6)
    report = teach(encoder, strategy)
    (made,) = encoder.inserts
    assert isinstance(made, DualPrompts)
    (fast,) = [group for group in strategy.parameter_groups() if group.rate_factor > 1]
    assert [id(parameter) for parameter in fast.parameters] == [id(made.keys)]
    assert report.history[-1]["keys"] < report.history[0]["keys"] - 0.05


def test_experts_of_earlier_languages_keep_every_bit() -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy("dualprompt"))
    before = {key: value.clone() for key, value in encoder.inserts[0].state_dict().items()}
    report = teach(encoder, make_strategy("dualprompt"), french(), languages=frozenset({"en", "de"}))
    after = encoder.inserts[0].state_dict()
    assert len(encoder.inserts) == 1
    assert after["keys"].shape[0] == 2
    assert_same_state(
        {k: after[k][:1] for k in ("keys", "experts")}, {k: before[k] for k in ("keys", "experts")}
    )
    assert not torch.equal(after["general"], before["general"])
    assert report.notes[-1] == "Experts: de, fr."
    teach(encoder, make_strategy("dualprompt"), french(), languages=frozenset({"en", "de", "fr"}))
    assert encoder.inserts[0].config["tasks"] == ["de", "fr"], (
        "a language that comes again goes on with its own"
    )


def test_new_rows_are_unit_rows_at_right_angles_to_all_earlier_ones() -> None:
    earlier = torch.randn(12, 40, generator=seeded(1)) * 5
    rows = orthogonal_rows(earlier, 5, 40, seeded(2))
    assert torch.allclose(rows.norm(dim=1), torch.ones(5), atol=1e-6)
    unit = torch.nn.functional.normalize(earlier, dim=1)
    assert float((rows @ unit.T).abs().max()) < 1e-5
    assert float((rows @ rows.T - torch.eye(5)).abs().max()) < 1e-5


def test_where_no_dimension_is_left_only_the_newest_earlier_rows_count() -> None:
    earlier = torch.randn(30, 8, generator=seeded(1))
    rows = orthogonal_rows(earlier, 5, 8, seeded(2))
    assert torch.isfinite(rows).all()
    assert float((rows @ rows.T - torch.eye(5)).abs().max()) < 1e-5
    assert float((rows @ earlier[-3:].T).abs().max()) < 1e-5


def test_a_prefix_is_the_sum_of_components_by_how_well_they_fit() -> None:
    encoder = tiny_encoder()
    config = CodaPrompts.configuration(encoder.model, length=4)
    made = CodaPrompts.build(ENCODER, config, encoder.model).with_components(3, encoder.model, seeded())
    made.requires_grad_(False)
    query = torch.randn(2, 24, generator=seeded(4))
    keys, values = made.found(query)[1]
    for text in range(2):
        summed = torch.zeros(4, 32)
        for m in range(3):
            looked_at = query[text] * made.attention[1, m]
            weight = torch.cosine_similarity(looked_at, made.keys[1, m], dim=0)
            summed = summed + weight * made.prompts[1, m]
        assert torch.allclose(keys[text], summed[:2], atol=1e-5)
        assert torch.allclose(values[text], summed[2:], atol=1e-5)
    assert float((made.prompts[0].flatten(1).norm(dim=1) - 1).abs().max()) < 1e-5


def test_components_of_earlier_updates_get_no_gradient_and_keep_every_bit() -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy("coda-prompt"))
    before = {key: value.clone() for key, value in encoder.inserts[0].state_dict().items()}
    strategy = make_strategy("coda-prompt")
    report = teach(encoder, strategy, french(), languages=frozenset({"en", "de"}))
    after = encoder.inserts[0].state_dict()
    assert len(encoder.inserts) == 1
    for name, value in before.items():
        assert torch.equal(after[name][:, :5], value)
        assert after[name].shape[1] == 10
    assert report.notes[-1] == "10 components, the newest 5 trained."


@pytest.mark.parametrize("name", NAMES)
def test_every_text_reads_the_prompts_and_no_query_names_its_language(name: str) -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy(name))
    assert [insert.owner for insert in encoder.inserts] == [ENCODER]
    assert encoder.text_route("de") == encoder.text_route("en") == ""
    with_prompts = encoder.text_features(TEXTS, "en")
    encoder.inserts.clear()
    assert not np.allclose(encoder.text_features(TEXTS, "en"), with_prompts, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_prompts_stand_beside_a_languages_own_prefixes(name: str) -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy("p-tuning"))
    own = encoder.inserts[0]
    assert isinstance(own, TextPrefixes)
    teach(encoder, make_strategy(name), french(), languages=frozenset({"en", "de"}))
    assert [insert.owner for insert in encoder.inserts] == [language("de"), ENCODER]
    both = encoder.text_features(TEXTS, "de")
    prompts = encoder.inserts.pop()
    assert not np.allclose(encoder.text_features(TEXTS, "de"), both, atol=1e-4)
    encoder.inserts[:] = [prompts]
    assert not np.allclose(encoder.text_features(TEXTS, "de"), both, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("dualprompt", {"expert": 0}, "expert is at least 1"),
        ("dualprompt", {"pull": -1}, "pull is not negative"),
        ("coda-prompt", {"components": 0}, "components is at least 1"),
        ("coda-prompt", {"length": 3}, "length is even"),
    ],
)
def test_unusable_options_are_refused(name: str, given: dict[str, object], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        options_of(STRATEGIES[name], given)
