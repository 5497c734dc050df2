"""mla, p-tuning and lora: what each module computes, and that its language alone reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.inserts import Insert, language
from model_updates.options import options_of
from model_updates.pairs import TrainingPair
from model_updates.parts.text_blocks import PrefixedAttention, prefixed, text_blocks
from model_updates.parts.text_inserts import TextBottlenecks, TextLowRank, TextPrefixes
from model_updates.strategies import STRATEGIES
from tests.model_updates.photographs import photo_encoder
from tests.model_updates.strategies.test_fits import prospect
from tests.model_updates.tiny import assert_same_state, make_strategy, teach, tiny_encoder, toy_pairs

NAMES = ("mla", "p-tuning", "lora")
KINDS: dict[str, tuple[type[Insert], dict[str, Any]]] = {
    "mla": (TextBottlenecks, {"reduction": 2}),
    "p-tuning": (TextPrefixes, {"length": 3, "hidden": 8, "folded": False}),
    "lora": (TextLowRank, {"rank": 4, "alpha": 8.0}),
}
TEXTS = ["a red circle on paper", "a blue bar", "a black dot on paper"]
every_name = pytest.mark.parametrize("name", NAMES)


def built(name: str, encoder: Encoder, tag: str = "de") -> Insert:
    kind, config = KINDS[name]
    torch.manual_seed(5)
    made = kind.build(language(tag), config, encoder.model)
    encoder.inserts.append(made)
    encoder.forget_fingerprints()
    return made


def french() -> list[TrainingPair]:
    return [TrainingPair(p.image_id, f"fr {p.text}", "fr", p.domain, p.english) for p in toy_pairs()]


@pytest.mark.parametrize("name", ["mla", "lora"])
def test_a_module_that_nothing_trained_changes_no_bit(name: str) -> None:
    encoder = tiny_encoder()
    before = encoder.text_features(TEXTS, "de")
    built(name, encoder)
    assert np.array_equal(encoder.text_features(TEXTS, "de"), before)


@every_name
def test_a_module_is_read_by_its_language_alone_and_nothing_of_it_stays_in_the_tower(name: str) -> None:
    encoder, plain = tiny_encoder(), tiny_encoder()
    with torch.no_grad():
        for parameter in built(name, encoder).parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(3))
    assert not np.allclose(encoder.text_features(TEXTS, "de"), plain.text_features(TEXTS, "de"), atol=1e-3)
    for other in ("en", "fr", ""):
        assert np.array_equal(encoder.text_features(TEXTS, other), plain.text_features(TEXTS, other))
        assert encoder.text_fingerprint(other) == plain.text_fingerprint(other)
    assert encoder.text_fingerprint("de") != plain.text_fingerprint("de")
    assert encoder.text_route("de") == "de"
    assert not any("forward" in module.__dict__ for module in encoder.model.modules())
    assert_same_state(encoder.model.state_dict(), plain.model.state_dict())


@every_name
def test_texts_of_several_languages_run_together_as_they_do_alone(name: str) -> None:
    encoder = tiny_encoder()
    with torch.no_grad():
        for parameter in built(name, encoder).parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(3))
    tokens = encoder.tokenize(TEXTS)
    tags = ["de", "en", "de"]
    with torch.inference_mode():
        mixed = encoder.forward_tokens(tokens, tags)
        alone = [encoder.forward_tokens(tokens[n : n + 1], tag) for n, tag in enumerate(tags)]
    # Weights this large blow the last bits up: on a processor with other kernels to 2e-5, of features of 2.
    assert torch.allclose(mixed, torch.cat(alone), atol=1e-4)


def test_a_bottleneck_adds_to_what_the_mlp_gives_out() -> None:
    encoder = tiny_encoder()
    insert = built("mla", encoder)
    with torch.no_grad():
        for parameter in insert.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(1))
    state = insert.state_dict()
    assert tuple(state["bottlenecks.0.0.weight"].shape) == (16, 32), "half as wide as the tower"
    seen: dict[str, list[Tensor]] = {"block": [], "mlp": []}
    block = text_blocks(encoder.model)[0]
    block.register_forward_hook(lambda _, given, out: seen["block"].append(out))
    block.get_submodule("mlp.c_proj").register_forward_hook(lambda _, given, out: seen["mlp"].append(out))
    with torch.no_grad():
        for tag in ("de", "en"):
            encoder.forward_tokens(encoder.tokenize(TEXTS), tag)
    down = seen["mlp"][0] @ state["bottlenecks.0.0.weight"].T + state["bottlenecks.0.0.bias"]
    added = functional.relu(down) @ state["bottlenecks.0.2.weight"].T + state["bottlenecks.0.2.bias"]
    assert torch.allclose(seen["block"][0] - seen["block"][1], added, atol=1e-4)
    assert float(added.abs().max()) > 0.01


def test_deltas_lie_on_queries_and_values_and_keys_keep_every_bit() -> None:
    encoder = tiny_encoder()
    insert = built("lora", encoder)
    assert isinstance(insert, TextLowRank)
    for up in insert.up:
        nn.init.normal_(up, generator=torch.Generator().manual_seed(1))
    blocks = text_blocks(encoder.model)
    base = blocks[1].get_parameter("attn.in_proj_weight").detach()
    summed = insert.sums(blocks)["resblocks.1.attn.in_proj_weight"].detach()
    assert torch.equal(summed[32:64], base[32:64])
    query, value = (insert.up[n] @ insert.down[n] * (8.0 / 4) for n in (2, 3))
    assert torch.allclose(summed[:32], base[:32] + query, atol=1e-6)
    assert torch.allclose(summed[64:], base[64:] + value, atol=1e-6)

    through = encoder.text_features(TEXTS, "de")
    for number, weight in enumerate(insert.sums(blocks).values()):
        blocks[number].get_parameter("attn.in_proj_weight").data = weight.detach()
    assert np.allclose(encoder.text_features(TEXTS, "en"), through, atol=1e-5), "merged, they read the same"


def test_a_prefix_is_seen_from_every_position_and_the_future_from_none() -> None:
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    hidden, mask = torch.randn(2, 4, 8), torch.full((4, 4), -torch.inf).triu(1)
    keys, values = torch.randn(3, 8), torch.randn(3, 8)
    out, _ = PrefixedAttention(attention, [(keys, values)])(hidden, hidden, hidden, attn_mask=mask)

    projected = hidden @ attention.in_proj_weight.T + attention.in_proj_bias
    asked, seen, said = projected.chunk(3, dim=-1)
    for text in range(2):
        for place in range(4):
            heads = []
            for part in (slice(0, 4), slice(4, 8)):
                near = torch.cat([keys[:, part], seen[text, : place + 1, part]])
                weights = torch.softmax(near @ asked[text, place, part] / 2, dim=0)
                heads.append(weights @ torch.cat([values[:, part], said[text, : place + 1, part]]))
            expected = attention.out_proj(torch.cat(heads))
            assert torch.allclose(out[text, place], expected, atol=1e-5)


def test_no_prefix_is_attention_as_it_was() -> None:
    encoder = tiny_encoder()
    plain = encoder.text_features(TEXTS)
    nothing = torch.zeros(0, 32)
    with prefixed(text_blocks(encoder.model), [(nothing, nothing), None]):
        assert np.allclose(encoder.text_features(TEXTS), plain, atol=1e-5)


def test_folded_prefixes_read_as_the_network_did() -> None:
    encoder = tiny_encoder()
    insert = built("p-tuning", encoder)
    assert isinstance(insert, TextPrefixes)
    before = encoder.text_features(TEXTS, "de")
    encoder.inserts[0] = insert.folded(encoder.model)
    assert np.allclose(encoder.text_features(TEXTS, "de"), before, atol=1e-6)
    assert [name for name, _ in encoder.inserts[0].named_parameters()] == ["prefixes"]


@every_name
def test_a_later_language_leaves_the_module_of_an_earlier_one_as_it_was(name: str) -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy(name))
    (german,) = encoder.inserts
    kept = {key: value.clone() for key, value in german.state_dict().items()}
    teach(encoder, make_strategy(name), french(), languages=frozenset({"en", "de"}))
    assert [insert.owner for insert in encoder.inserts] == [language("de"), language("fr")]
    assert_same_state(encoder.inserts[0].state_dict(), kept)


@every_name
def test_a_second_update_of_a_language_goes_on_with_its_module(name: str) -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy(name))
    kept = {key: value.clone() for key, value in encoder.inserts[0].state_dict().items()}
    report = teach(encoder, make_strategy(name))
    assert len(encoder.inserts) == 1
    assert any(not torch.equal(v, kept[k]) for k, v in encoder.inserts[0].state_dict().items())
    assert any("went on learning" in note for note in report.notes)


@every_name
def test_the_base_language_has_no_module(name: str) -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy(name), [*toy_pairs("en")[:8], *toy_pairs()[8:]])
    assert [insert.owner for insert in encoder.inserts] == [language("de")]


@pytest.mark.parametrize("name", [*NAMES, "teir+mla"])
def test_towers_without_transformer_blocks_are_refused(name: str) -> None:
    bare = tiny_encoder()
    bare.model.transformer.resblocks = nn.ModuleList([nn.Linear(32, 32)])  # type: ignore[union-attr]
    said = str(make_strategy(name).fits(prospect("de", encoder=bare)))
    assert f"{name} puts modules into the transformer blocks" in said
    assert "give the language a table of its own" in str(
        make_strategy(name).fits(prospect("cs", encoder=photo_encoder()))
    )
    assert make_strategy(name).fits(prospect("de")) is None
    with pytest.raises(BadStrategyOption, match="none that we know"):
        TextBottlenecks.build(language("de"), {"reduction": 2}, bare.model)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("mla", {"reduction": 0}, "reduction is at least 1"),
        ("p-tuning", {"length": 0}, "length is at least 1"),
        ("lora", {"rank": 0}, "rank is at least 1"),
    ],
)
def test_unusable_options_are_refused(name: str, given: dict[str, object], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        options_of(STRATEGIES[name], given)
