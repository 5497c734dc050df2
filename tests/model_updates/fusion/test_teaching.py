"""What the fusion encoder learns: hidden words, the slow model's guesses, and pairs against hard negatives."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import NoFusion
from model_updates.fusion.encoder import FusionEncoder, PictureFeatures, Texts, new_fusion, usable
from model_updates.fusion.matching import Matcher
from model_updates.fusion.teaching import Masked, SlowFusion, hard_negatives, matching, word_terms
from model_updates.fusion.tokens import read_images, read_texts, real_words
from model_updates.pair_sets import Batch
from model_updates.strategy import Strategy
from model_updates.trainer import run_update
from model_updates.versions import read_inserts, write_version
from tests.model_updates.tiny import (
    DOMAIN,
    assert_same_state,
    context_for,
    data_for,
    draw,
    image_ids,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

PICTURES = [draw(image_id) for image_id in image_ids()]


def with_fusion() -> tuple[Encoder, FusionEncoder]:
    """The tiny encoder with an untaught fusion encoder."""
    encoder = tiny_encoder()
    torch.manual_seed(1)
    fusion = new_fusion(encoder, 2)
    encoder.inserts.append(fusion.eval())
    return encoder, fusion


def fused(encoder: Encoder, fusion: FusionEncoder, texts: list[str]) -> Tensor:
    """The tokens for the whole of texts with the first pictures."""
    with torch.inference_mode():
        tokens = encoder.tokenize(texts)
        pictures = fusion.pictures(read_images(encoder, encoder.prepare_images(PICTURES[: len(texts)])))
        read = fusion.texts(read_texts(encoder, tokens), real_words(encoder, tokens))
        whole: Tensor = fusion(read, pictures)[0]
        return whole


def three_pairs() -> tuple[Texts, PictureFeatures]:
    """Texts and pictures of random numbers, as the tiny fusion encoder reads them."""
    real = torch.ones(3, 4, dtype=torch.bool)
    return Texts(torch.randn(3, 4, 32), real, torch.randn(3, 24)), PictureFeatures(
        torch.randn(3, 5, 32), torch.randn(3, 24)
    )


def test_padding_changes_nothing_and_words_and_pictures_do() -> None:
    encoder, fusion = with_fusion()
    short = fused(encoder, fusion, ["a red circle"])
    padded = fused(encoder, fusion, ["a red circle", "a blue square on paper and more"])
    assert torch.allclose(short[0], padded[0], atol=1e-5)
    assert not torch.allclose(short, fused(encoder, fusion, ["a blue circle"]), atol=1e-4)
    same_text = fused(encoder, fusion, ["a red circle"] * 2)
    assert not torch.allclose(same_text[0], same_text[1], atol=1e-4)


def test_an_encoders_vectors_do_not_depend_on_its_fusion_encoder() -> None:
    plain, (more, _) = tiny_encoder(), with_fusion()
    assert plain.image_fingerprint() == more.image_fingerprint()
    assert plain.text_fingerprint() == more.text_fingerprint()
    assert more.image_routes == ()


def test_the_slow_models_guesses_cost_nothing_where_they_are_the_same() -> None:
    logits = torch.randn(5, 9, generator=torch.Generator().manual_seed(0), requires_grad=True)
    nothing = torch.zeros(1, 1, dtype=torch.bool)
    masked = Masked(torch.zeros(1, 1), nothing, nothing, torch.arange(5))
    terms = word_terms(logits, masked, logits.detach().clone())
    terms["slow-words"].backward()  # type: ignore[no-untyped-call]
    assert float(terms["slow-words"].detach()) == pytest.approx(0, abs=1e-6)
    assert logits.grad is not None
    assert float(logits.grad.abs().max()) < 1e-6
    by_hand = -logits.detach().log_softmax(dim=1).diagonal().mean()
    assert float(terms["words"].detach()) == pytest.approx(float(by_hand), rel=1e-5)


def test_negatives_are_never_of_the_same_picture_and_mostly_the_most_alike() -> None:
    torch.manual_seed(0)
    similarities = torch.zeros(4, 4)
    similarities[0, 2] = 1.0  # picture 0 and text 2 look alike
    similarities[1, 0] = 1.0  # but text 0 shows the picture of row 1 as well
    index = torch.tensor([0, 0, 1, 2])
    drawn = torch.stack([hard_negatives(similarities, index, 10.0) for _ in range(200)])
    assert not bool((index[drawn] == index[None, :]).any())
    assert float((drawn[:, 0] == 2).float().mean()) > 0.95
    assert set(drawn[:, 3].tolist()) == {0, 1, 2}


def test_a_batch_of_one_picture_has_no_negatives() -> None:
    _, fusion = with_fusion()
    nowhere = hard_negatives(torch.zeros(3, 3), torch.zeros(3, dtype=torch.int64), 10.0)
    assert nowhere.tolist() == [-1, -1, -1]
    texts, pictures = three_pairs()
    loss = matching(fusion, texts, pictures, (nowhere, nowhere))
    odds = fusion.log_odds(fusion(texts, pictures)[0]).detach()
    assert float(loss.detach()) == pytest.approx(float(torch.log1p((-odds).exp()).mean()), rel=1e-5)


def test_an_undecided_head_costs_ln_2() -> None:
    _, fusion = with_fusion()
    torch.nn.init.zeros_(fusion.match.weight)
    torch.nn.init.zeros_(fusion.match.bias)
    others = torch.tensor([1, 2, 0])
    loss = matching(fusion, *three_pairs(), (others, others))
    assert float(loss.detach()) == pytest.approx(math.log(2))


def test_the_slow_one_moves_as_the_towers_do() -> None:
    _, fusion = with_fusion()
    old = fusion.whole.detach().clone()
    slow = SlowFusion(fusion, momentum=0.9, share_of_old=0.5)
    with torch.no_grad():
        fusion.whole.add_(1.0)
    for _ in range(10):
        slow.step(fusion)
    assert torch.allclose(slow.fusion.whole, old + 0.325661, atol=1e-5)


def test_a_fusion_encoder_is_asked_only_beside_the_towers_it_learned_with() -> None:
    encoder = tiny_encoder()
    with pytest.raises(NoFusion, match="`ctp` with fusion=yes teaches one"):
        Matcher(encoder)
    teach(encoder, make_strategy("ctp", fusion=True))
    assert usable(encoder) is None
    teach(encoder, make_strategy("language-tables"))
    assert usable(encoder) is None
    teach(encoder, make_strategy("finetune"))
    with pytest.raises(NoFusion, match="have moved since.*teach it again"):
        Matcher(encoder)
    teach(encoder, make_strategy("ctp", fusion=True))
    assert usable(encoder) is None
    assert sum(isinstance(insert, FusionEncoder) for insert in encoder.inserts) == 1


def begin(encoder: Encoder, **options: Any) -> tuple[Strategy, Batch]:
    """`ctp` with a fusion encoder, ready for its first step, and the batch of that step."""
    strategy = make_strategy("ctp", fusion=True, **options)
    context = context_for(encoder, toy_pairs("en"))
    data = data_for(strategy, context)
    torch.manual_seed(3)
    strategy.before_update(context)
    encoder.train()
    batches = Batches(data.train, encoder, size=8, load_image=data.load_image)
    return strategy, next(iter(batches.epoch(0)))


@pytest.mark.parametrize("architecture", ["tiny", "tiny-resnet", "tiny-custom-text", "tiny-both-ways"])
def test_every_parameter_that_trains_gets_a_gradient(architecture: str) -> None:
    strategy, batch = begin(tiny_encoder(architecture=architecture))
    terms = strategy.terms(batch)
    assert {"words", "slow-words", "matching"} <= set(terms)
    torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
    parameters = [p for group in strategy.parameter_groups() for p in group.parameters]
    assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in parameters)


def test_without_a_slow_model_nothing_is_distilled() -> None:
    strategy, batch = begin(tiny_encoder(), momentum_contrast=0)
    assert "slow-words" not in strategy.terms(batch)
    assert strategy.progress() == {}


def test_an_interrupted_update_ends_at_the_same_weights(tmp_path: Path) -> None:
    whole, broken, again = tiny_encoder(), tiny_encoder(), tiny_encoder()
    teach(whole, make_strategy("ctp", fusion=True, epochs=3), checkpoints=tmp_path / "whole")
    strategy = make_strategy("ctp", fusion=True, epochs=3)

    def stop(_: object) -> None:
        if list((tmp_path / "broken").glob("*.safetensors")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_update(
            strategy,
            context_for(broken, toy_pairs()),
            lambda frozen: data_for(strategy, frozen),
            checkpoints=tmp_path / "broken",
            progress=stop,
        )
    teach(again, make_strategy("ctp", fusion=True, epochs=3), checkpoints=tmp_path / "broken")
    assert_same_state(again.state(), whole.state())


def test_a_version_keeps_it_and_answers_the_same_after_a_cold_start(tmp_path: Path) -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy("ctp", fusion=True))
    write_version(tmp_path / "v", encoder, {})
    opened = encoder.copy()
    opened.inserts = read_inserts(tmp_path / "v", opened.model)
    assert usable(opened) is None
    odds = [
        made.log_odds("ein roter Kreis", "de", made.read(PICTURES, DOMAIN))
        for made in (Matcher(encoder), Matcher(opened))
    ]
    assert odds[0].shape == (16,)
    assert np.array_equal(odds[0], odds[1])


def test_pairs_are_told_from_others_once_it_has_learned() -> None:
    encoder = tiny_encoder()
    strategy = make_strategy("ctp", fusion=True, epochs=60, learning_rate=1e-3, batch_size=16)
    teach(encoder, strategy, toy_pairs("en"))
    matcher = Matcher(encoder)
    seen = matcher.read(PICTURES, DOMAIN)
    odds = np.stack([matcher.log_odds(pair.text, "en", seen) for pair in toy_pairs("en")])
    assert np.mean(odds.argmax(axis=1) == np.arange(16)) >= 0.5  # chance is 1/16
    assert np.diag(odds).mean() > odds[~np.eye(16, dtype=bool)].mean() + 1


def test_nothing_is_asked_of_no_pictures() -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy("ctp", fusion=True, epochs=1))
    matcher = Matcher(encoder)
    assert matcher.read([]) == []
    assert matcher.log_odds("red", "en", []).shape == (0,)


@pytest.mark.gpu
def test_a_bf16_update_on_cuda_matches_texts_to_pictures_as_the_cpu_does() -> None:
    odds = []
    for device in ("cpu", "cuda"):
        encoder = tiny_encoder().to(device)
        teach(encoder, make_strategy("ctp", fusion=True), toy_pairs("en"))
        matcher = Matcher(encoder.to("cpu"))
        odds.append(matcher.log_odds("a red circle", "en", matcher.read(PICTURES, DOMAIN)))
    assert np.isfinite(odds[1]).all()
    assert np.abs(odds[0] - odds[1]).max() < 0.5
