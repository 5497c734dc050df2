"""lora, mla, p-tuning and evergreen where no table can grow: a language's module is all that learns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.inserts import Insert, language
from model_updates.pair_sets import Batch
from model_updates.pairs import TrainingPair
from model_updates.parts.layer_inserts import LayerBottlenecks, LayerLowRank
from model_updates.parts.lora import TARGETS, insert_lora, lora_parameters, merge_lora
from model_updates.parts.text_blocks import PrefixedAttention
from model_updates.parts.text_inserts import TextBottlenecks, TextLowRank, TextPrefixes
from model_updates.sentence.folders import open_folders
from model_updates.strategies import STRATEGIES
from model_updates.towers import text_tower
from model_updates.versions import load_version, write_version
from tests.model_updates import later_process
from tests.model_updates.contract import PowerCutError, context_of, made, prospect_of, run
from tests.model_updates.photographs import photo_encoder
from tests.model_updates.sentence_folders import both_folders, sentence_encoder, text_folder
from tests.model_updates.strategies.test_fits import prospect
from tests.model_updates.tiny import (
    assert_same_state,
    context_for,
    data_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

TEXTS = ["a red circle on paper", "ein roter Kreis auf Papier", "dot"]
LAYERED: dict[str, tuple[type[Insert], dict[str, Any]]] = {
    "mla": (LayerBottlenecks, {"reduction": 2}),
    "lora": (LayerLowRank, {"rank": 4, "alpha": 8.0}),
}
OWN = {"mla": TextBottlenecks, "lora": TextLowRank, "p-tuning": TextPrefixes}
every_layered = pytest.mark.parametrize("name", list(LAYERED))


def text_towers(home: Path) -> dict[str, Encoder]:
    """The three kinds of transformers' layers."""
    images, texts = both_folders()
    return {
        "clip": open_folders(images),
        "distilbert": open_folders(images, texts),
        "bert": open_folders(images, text_folder(home / "bert", kind="bert")),
    }


@pytest.fixture(scope="module")
def towers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Encoder]:
    return text_towers(tmp_path_factory.mktemp("towers"))


def built(name: str, encoder: Encoder, tag: str = "de") -> Insert:
    kind, config = LAYERED[name]
    torch.manual_seed(5)
    insert = kind.build(language(tag), config, encoder.model)
    encoder.inserts.append(insert)
    encoder.forget_fingerprints()
    return insert


def shaken(insert: Insert) -> None:
    with torch.no_grad():
        for parameter in insert.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(3))


@every_layered
@pytest.mark.parametrize("kind", ["clip", "distilbert", "bert"])
def test_a_module_is_read_by_its_language_alone(name: str, kind: str, towers: dict[str, Encoder]) -> None:
    encoder, plain = towers[kind].copy(), towers[kind].copy()
    insert = built(name, encoder)
    assert np.array_equal(encoder.text_features(TEXTS, "de"), plain.text_features(TEXTS, "de")), "untrained"
    shaken(insert)
    assert not np.allclose(encoder.text_features(TEXTS, "de"), plain.text_features(TEXTS, "de"), atol=1e-3)
    for other in ("en", "fr", ""):
        assert np.array_equal(encoder.text_features(TEXTS, other), plain.text_features(TEXTS, other))
        assert encoder.text_fingerprint(other) == plain.text_fingerprint(other)
    assert encoder.text_fingerprint("de") != plain.text_fingerprint("de")
    assert encoder.text_route("de") == "de"
    assert_same_state(encoder.model.state_dict(), plain.model.state_dict())
    assert not any(module._forward_hooks for module in encoder.model.modules())


@every_layered
@pytest.mark.parametrize("kind", ["clip", "distilbert", "bert"])
@pytest.mark.parametrize("targets", list(TARGETS))
def test_a_module_reads_through_adapters_as_through_what_they_merge_into(
    name: str, kind: str, targets: str, towers: dict[str, Encoder]
) -> None:
    encoder = towers[kind].copy()
    shaken(built(name, encoder))
    before, tower = encoder.text_features(TEXTS, "de"), text_tower(encoder.model)
    insert_lora(tower, rank=2, alpha=4, dropout=0.1, targets=targets)
    with torch.no_grad():
        for parameter in lora_parameters(tower.eval()):
            parameter.normal_(std=0.1, generator=torch.Generator().manual_seed(1))
    through = encoder.text_features(TEXTS, "de")
    merge_lora(tower)
    assert not np.allclose(through, before, atol=1e-2)
    np.testing.assert_allclose(through, encoder.text_features(TEXTS, "de"), atol=5e-4)


@every_layered
def test_every_layer_has_one(name: str, towers: dict[str, Encoder]) -> None:
    for encoder in towers.values():
        assert len(LayerLowRank.layers_in(encoder.model)) == 4, "queries and values of two layers"
        assert len(LayerBottlenecks.layers_in(encoder.model)) == 2
        insert = built(name, encoder.copy())
        shapes = [tuple(p.shape) for n, p in insert.named_parameters() if not n.endswith("bias")]
        assert (
            shapes
            == {
                "mla": [(16, 32), (32, 16)] * 2,
                "lora": [(4, 32)] * 4 + [(32, 4)] * 4,
            }[name]
        )


def test_merged_into_the_weights_the_deltas_read_the_same(towers: dict[str, Encoder]) -> None:
    encoder = towers["distilbert"].copy()
    insert = built("lora", encoder)
    assert isinstance(insert, LayerLowRank)
    shaken(insert)
    through = encoder.text_features(TEXTS, "de")
    tower: Any = encoder.model.text
    layers = LayerLowRank.layers_in(encoder.model)
    with torch.no_grad():
        for name, down, up in zip(layers, insert.down, insert.up, strict=True):
            tower.get_submodule(name).weight.add_(8.0 / 4 * up @ down)
    assert np.allclose(encoder.text_features(TEXTS, "en"), through, atol=1e-5)


def test_texts_of_several_languages_run_together_as_they_do_alone() -> None:
    encoder = sentence_encoder()
    shaken(built("mla", encoder))
    tokens, tags = encoder.tokenize(TEXTS), ["de", "en", "de"]
    with torch.inference_mode():
        mixed = encoder.forward_tokens(tokens, tags)
        alone = [encoder.forward_tokens(tokens[n : n + 1], tag) for n, tag in enumerate(tags)]
    assert torch.allclose(mixed, torch.cat(alone), atol=1e-5)


def distance(encoder: Encoder, pairs: list[TrainingPair]) -> float:
    """How far captions lie from the English ones beside them, in cosines."""
    german = encoder.encode_texts([pair.text for pair in pairs], "de")
    english = encoder.encode_texts([pair.english or "" for pair in pairs], "en")
    return float(1 - (german * english).sum(axis=1).mean())


@every_layered
def test_a_language_is_learned_and_nothing_else_moves(name: str, tmp_path: Path) -> None:
    encoder = sentence_encoder()
    before, strategy = encoder.copy(), make_strategy(name, epochs=20)
    assert strategy.fits(prospect_of(encoder)) is None
    report = teach(encoder, strategy)  # without validation: these random pictures say nothing of words
    assert report.image_forwards == 0
    assert encoder.image_fingerprint() == before.image_fingerprint()
    for known in ("en", "fr", ""):
        assert encoder.text_fingerprint(known) == before.text_fingerprint(known)
        assert np.array_equal(encoder.encode_texts(TEXTS, known), before.encode_texts(TEXTS, known))
    assert encoder.text_fingerprint("de") != before.text_fingerprint("de")
    assert_same_state(encoder.model.state_dict(), before.model.state_dict())
    assert [(type(insert), insert.owner) for insert in encoder.inserts] == [
        (LAYERED[name][0], language("de"))
    ]
    assert any("the modules are all that learned" in note for note in report.notes)

    assert distance(encoder, toy_pairs()) < 0.6 * distance(before, toy_pairs())

    write_version(tmp_path / "version", encoder, {})
    opened = load_version(tmp_path / "version").encoder
    assert_same_state(later_process.answers(opened), later_process.answers(encoder))
    assert np.array_equal(opened.encode_texts(TEXTS, "de"), encoder.encode_texts(TEXTS, "de"))
    assert opened.text_fingerprint("de") == encoder.text_fingerprint("de")


@every_layered
def test_a_second_language_leaves_the_first_and_a_second_update_goes_on(name: str) -> None:
    encoder = sentence_encoder()
    teach(encoder, make_strategy(name))
    german = encoder.encode_texts(TEXTS, "de")
    teach(encoder, make_strategy(name), toy_pairs("fr"), languages=frozenset({"en", "de"}))
    assert [insert.owner for insert in encoder.inserts] == [language("de"), language("fr")]
    assert np.array_equal(encoder.encode_texts(TEXTS, "de"), german)
    report = teach(encoder, make_strategy(name), languages=frozenset({"en", "de", "fr"}))
    assert len(encoder.inserts) == 2
    assert not np.array_equal(encoder.encode_texts(TEXTS, "de"), german)
    assert any("went on learning" in note for note in report.notes)


@every_layered
def test_a_power_cut_changes_nothing_of_what_is_learned(name: str, tmp_path: Path) -> None:
    whole, broken = sentence_encoder(), sentence_encoder()
    run(made(name), context_of(whole, toy_pairs()), tmp_path / "whole")
    with pytest.raises(PowerCutError):
        run(made(name, cut_after=3), context_of(broken, toy_pairs()), tmp_path / "broken")
    again = sentence_encoder()
    run(made(name), context_of(again, toy_pairs()), tmp_path / "broken")
    assert_same_state(again.state(), whole.state())


@pytest.mark.parametrize("name", list(OWN))
def test_blocks_of_open_clip_that_read_both_ways_take_the_modules_they_always_took(name: str) -> None:
    encoder = tiny_encoder(architecture="tiny-both-ways")
    before = encoder.copy()
    teach(encoder, make_strategy(name))
    (insert,) = encoder.inserts
    assert type(insert) is OWN[name]
    assert encoder.text_fingerprint("de") != before.text_fingerprint("de")
    assert np.array_equal(encoder.encode_texts(TEXTS, "en"), before.encode_texts(TEXTS, "en"))
    assert not np.allclose(encoder.encode_texts(TEXTS, "de"), before.encode_texts(TEXTS, "de"), atol=1e-5)
    assert_same_state(encoder.model.state_dict(), before.model.state_dict())


def test_a_frozen_tower_reads_without_dropout_while_its_modules_learn() -> None:
    encoder = sentence_encoder()
    strategy = make_strategy("lora")
    strategy.before_update(context_of(encoder, toy_pairs()))
    (insert,) = encoder.inserts
    encoder.train()
    assert any(isinstance(module, nn.Dropout) and module.p > 0 for module in encoder.model.modules())
    rows = encoder.tokenize(TEXTS)
    batch = replace(_any_batch(encoder), tokens=rows, languages=("de",) * len(rows))
    one, other = strategy.text_features(batch), strategy.text_features(batch)  # type: ignore[attr-defined]
    assert torch.equal(one, other)
    assert insert.training


def _any_batch(encoder: Encoder) -> Batch:
    strategy = make_strategy("lora")
    data = data_for(strategy, context_for(encoder, toy_pairs()))
    return next(iter(Batches(data.train, encoder, size=8, load_image=None).epoch(0)))


def test_evergreen_gives_a_new_language_deltas_where_no_table_can_grow() -> None:
    encoder = sentence_encoder()
    before, strategy = encoder.copy(), make_strategy("evergreen")
    assert strategy.fits(prospect_of(encoder)) is None
    known = frozenset({"drawn"})
    context = replace(context_of(encoder, toy_pairs()), learned_domains=known)
    report = run(strategy, context)
    assert [type(insert) for insert in encoder.inserts] == [LayerLowRank]
    assert any(note.startswith("lora: ") for note in report.notes)
    assert encoder.image_fingerprint("drawn") == before.image_fingerprint("drawn")
    assert encoder.text_fingerprint("en") == before.text_fingerprint("en")
    assert encoder.text_fingerprint("de") != before.text_fingerprint("de")


def test_evergreen_teaches_a_language_and_a_domain_beside_each_other_there() -> None:
    encoder = sentence_encoder()
    before = encoder.copy()
    run(make_strategy("evergreen"), context_of(encoder, [*toy_pairs()[:8], *toy_pairs("en")[8:]]))
    assert {insert.kind for insert in encoder.inserts} >= {"layer-low-rank", "low-rank"}
    assert encoder.image_fingerprint() == before.image_fingerprint()
    assert encoder.text_fingerprint("en") == before.text_fingerprint("en")


def test_what_has_no_place_for_a_module_says_so() -> None:
    texts = sentence_encoder()
    said = str(make_strategy("p-tuning").fits(prospect_of(texts)))
    assert "brings a tokenizer of its own, so its vocabulary cannot grow, and p-tuning knows no place" in said
    assert "Use lora, mla or finetune" in said
    bare = sentence_encoder()
    bare.model.text.body = nn.Linear(2, 2)  # type: ignore[union-attr]
    for name in (*OWN, "evergreen"):
        assert "knows no place for its modules in it. Use finetune or c-clip" in str(
            make_strategy(name).fits(prospect_of(bare))
        )
    for name in OWN:
        assert "give the language a table of its own" in str(
            make_strategy(name).fits(prospect("cs", encoder=photo_encoder()))
        )
    for name in LAYERED:
        assert "captions in en alone" in str(make_strategy(name).fits(prospect("en", encoder=texts)))


@pytest.mark.parametrize("name", ["teir+mla", "teir+lora", "teir+p-tuning", "cll-clip"])
def test_what_is_about_rows_of_the_table_still_needs_one(name: str) -> None:
    assert name in STRATEGIES
    said = str(make_strategy(name).fits(prospect_of(sentence_encoder())))
    assert f"so its vocabulary cannot grow, and {name} grows it" in said


def test_prefixes_take_a_mask_for_each_text_and_head_as_they_take_one_for_all() -> None:
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    hidden, mask = torch.randn(3, 4, 8), torch.full((4, 4), -torch.inf).triu(1)
    prefixed = PrefixedAttention(attention, [(torch.randn(2, 8), torch.randn(2, 8))])
    one, _ = prefixed(hidden, hidden, hidden, attn_mask=mask)
    each, _ = prefixed(hidden, hidden, hidden, attn_mask=mask.repeat(3 * 2, 1, 1))
    assert torch.allclose(one, each, atol=1e-6)
