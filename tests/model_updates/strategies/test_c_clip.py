"""C-CLIP: which towers it adapts, what it keeps, and how far it goes."""

import numpy as np
import open_clip
import pytest
import torch

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.preprocessing import Preprocessing
from model_updates.strategies.c_clip import PAPER, SMALL, SMALL_WHOLE, Defaults
from model_updates.strategy import State, UpdateContext
from tests.model_updates.tiny import (
    assert_same_state,
    context_for,
    data_for,
    draw,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

GERMAN_TOO = frozenset({"en", "de"})


def test_auto_adapts_both_towers_while_only_the_base_language_is_known() -> None:
    encoder = tiny_encoder()
    image, text = encoder.image_fingerprint(), encoder.text_fingerprint()
    strategy = make_strategy("c-clip")
    report = teach(encoder, strategy, toy_pairs("en"))
    assert "text" in strategy.touches
    assert encoder.image_fingerprint() != image
    assert encoder.text_fingerprint() != text
    assert report.notes == ("Adapters in both towers.",)


def test_auto_leaves_the_text_tower_alone_once_other_languages_are_known() -> None:
    encoder = tiny_encoder()
    image, text = encoder.image_fingerprint(), encoder.text_fingerprint("de")
    strategy = make_strategy("c-clip")
    report = teach(encoder, strategy, toy_pairs("en"), languages=GERMAN_TOO)
    assert "text" not in strategy.touches
    assert encoder.image_fingerprint() != image
    assert encoder.text_fingerprint("de") == text
    assert report.notes == ("Adapters in the image tower only.",)


def test_both_can_be_asked_for_all_the_same() -> None:
    encoder = tiny_encoder()
    text = encoder.text_fingerprint()
    teach(encoder, make_strategy("c-clip", towers="both"), toy_pairs("en"), languages=GERMAN_TOO)
    assert encoder.text_fingerprint() != text


def test_the_vocabulary_and_its_rows_stay() -> None:
    encoder = tiny_encoder()
    rows = encoder.model.token_embedding.weight.detach().clone()  # type: ignore[union-attr,operator]
    teach(encoder, make_strategy("c-clip"))
    assert torch.equal(encoder.model.token_embedding.weight, rows)  # type: ignore[union-attr,arg-type]


def test_train_outer_also_moves_what_lies_outside_the_blocks() -> None:
    encoder = tiny_encoder()
    before = {k: v.clone() for k, v in encoder.model.state_dict().items()}
    teach(encoder, make_strategy("c-clip", train_outer=True))
    state = encoder.model.state_dict()
    moved = {name for name in state if not torch.equal(state[name], before[name])}
    assert {"token_embedding.weight", "text_projection", "visual.proj", "visual.ln_pre.weight"} <= moved
    assert "visual.conv1.weight" not in moved


@pytest.mark.parametrize(
    ("rank", "papers_count"), [(8, 27_622_401), (16, 29_096_961), (32, 32_046_081), (64, 37_944_321)]
)
def test_as_many_parameters_train_in_a_vit_b_16_as_the_papers_table_6_says(
    rank: int, papers_count: int
) -> None:
    with torch.device("meta"):
        model = open_clip.CLIP(
            embed_dim=512,
            vision_cfg={"image_size": 224, "patch_size": 16, "width": 768, "layers": 12},
            text_cfg={"width": 512, "heads": 8, "layers": 12},
        )
        encoder = Encoder(
            model,
            architecture="ViT-B-16",
            preprocessing=Preprocessing(size=224, mean=(0.5,) * 3, std=(0.5,) * 3),
            vocabulary=None,
        )
        strategy = make_strategy("c-clip", rank=rank, targets="mlp", train_outer=True, towers="both")
        context = UpdateContext(encoder, [], frozenset({"en"}), lambda: encoder, lambda: encoder)
        strategy.before_update(context)
        groups = strategy.parameter_groups()
    projector = sum(p.numel() for p in groups[1].parameters)
    trained = sum(p.numel() for group in groups for p in group.parameters) - projector
    # The paper also counts adapters on the attention's output projection, which its forward never runs: in each of
    # twelve layers of both towers two matrices of width times rank.
    never_run = 12 * 2 * (768 + 512) * rank
    assert trained + never_run == papers_count


def test_adapters_alone_train_no_projector_and_have_no_consolidation() -> None:
    encoder, strategy = tiny_encoder(), make_strategy("c-clip", consolidation=0.0)
    before = encoder.image_fingerprint()
    report = teach(encoder, strategy, toy_pairs("en"))
    assert set(report.history[0]) == {"contrastive"}
    assert encoder.image_fingerprint() != before


def test_consolidation_alone_trains_every_weight_and_goes_the_whole_way() -> None:
    encoder, strategy = tiny_encoder(), make_strategy("c-clip", adapters=False)
    before = {name: value.clone() for name, value in encoder.model.state_dict().items()}
    assert strategy.schedule(encoder).learning_rate == SMALL_WHOLE.learning_rate
    report = teach(encoder, strategy, toy_pairs("en"))
    assert set(report.history[0]) == {"contrastive", "consolidation"}
    assert report.notes == ("Both towers trained.",)
    state = encoder.model.state_dict()
    assert {"visual.conv1.weight", "transformer.resblocks.0.attn.in_proj_weight", "logit_scale"} <= {
        name for name in state if not torch.equal(state[name], before[name])
    }


def test_consolidation_alone_leaves_the_text_tower_where_it_holds_other_languages() -> None:
    encoder, strategy = tiny_encoder(), make_strategy("c-clip", adapters=False)
    text = encoder.text_fingerprint("de")
    report = teach(encoder, strategy, toy_pairs("en"), languages=GERMAN_TOO)
    assert encoder.text_fingerprint("de") == text
    assert report.notes == ("The image tower trained.",)


def test_consolidation_draws_the_new_features_to_the_old_ones() -> None:
    """The same update with and without: what CKC can read of the old space through a fresh projector stays more."""
    strays = []
    for weight in (0.0, 5.0):
        encoder = tiny_encoder()
        before = encoder.encode_images([draw(pair.image_id) for pair in toy_pairs()])
        teach(
            encoder, make_strategy("c-clip", adapters=False, consolidation=weight, epochs=6), toy_pairs("en")
        )
        after = encoder.encode_images([draw(pair.image_id) for pair in toy_pairs()])
        strays.append(float(np.abs(before @ before.T - after @ after.T).mean()))
    assert strays[1] < strays[0]


def test_half_a_merge_is_half_the_way_of_a_whole_one() -> None:
    base, half, whole = tiny_encoder(), tiny_encoder(), tiny_encoder()
    teach(half, make_strategy("c-clip", merge=0.5))
    teach(whole, make_strategy("c-clip", merge=1.0))
    old, middle, new = (encoder.model.state_dict() for encoder in (base, half, whole))
    assert all(torch.allclose(middle[key], (old[key] + new[key]) / 2, atol=1e-6) for key in old)
    assert any(not torch.equal(old[key], new[key]) for key in old)


@pytest.mark.parametrize(("width", "defaults"), [(32, SMALL), (512, PAPER)])
def test_rate_and_merge_suit_the_size_of_the_encoder(width: int, defaults: Defaults) -> None:
    encoder = tiny_encoder()
    before = encoder.copy()
    encoder.dim = width
    strategy = make_strategy("c-clip", epochs=1, batch_size=16)
    assert strategy.schedule(encoder).learning_rate == defaults.learning_rate
    context = context_for(encoder, toy_pairs("en"))
    data = data_for(strategy, context)
    strategy.before_update(context)
    batches = Batches(data.train, encoder, size=8, load_image=data.load_image)
    with torch.no_grad():
        encoder.model.logit_scale.add_(1.0)  # type: ignore[operator]
    strategy.after_update(context, batches)
    moved = encoder.model.logit_scale - before.model.logit_scale  # type: ignore[operator]
    assert float(moved.detach()) == pytest.approx(defaults.merge)


def test_a_whole_merge_gives_what_the_adapters_gave() -> None:
    encoder = tiny_encoder()
    strategy = make_strategy("c-clip", merge=1.0)
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    batches = Batches(data.train, encoder, size=8, load_image=data.load_image)
    with torch.no_grad():
        for parameter in (p for group in strategy.parameter_groups() for p in group.parameters):
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    encoder.model.eval()
    texts = [pair.text for pair in toy_pairs()]
    adapted = torch.from_numpy(encoder.text_features(texts, "de"))
    strategy.after_update(context, batches)
    assert torch.allclose(torch.from_numpy(encoder.text_features(texts, "de")), adapted, atol=1e-5)


def test_nothing_is_kept_between_updates() -> None:
    strategy = make_strategy("c-clip")
    teach(tiny_encoder(), strategy)
    assert strategy.carried() == State()
    assert strategy.progress() == {}


def test_validation_sees_the_weights_of_the_merge_and_training_goes_on_from_its_own() -> None:
    encoder, strategy = tiny_encoder(), make_strategy("c-clip", merge=0.5, dropout=0.0, train_outer=True)
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    with torch.no_grad():
        for group in strategy.parameter_groups():
            for parameter in group.parameters:
                parameter.add_(0.05 * torch.randn_like(parameter))
    trained = {name: value.clone() for name, value in encoder.model.state_dict().items()}
    picture = [draw("red circle")]
    at_full_strength = encoder.encode_images(picture)
    with strategy.deployed():
        deployed = encoder.encode_images(picture)
    assert_same_state(encoder.model.state_dict(), trained)
    assert (encoder.encode_images(picture) == at_full_strength).all()
    strategy.after_update(context, Batches(data.train, encoder, size=8, load_image=data.load_image))
    assert np.allclose(encoder.encode_images(picture), deployed, atol=1e-5)
    assert not np.allclose(deployed, at_full_strength, atol=1e-3)


def test_a_strategy_object_can_run_two_updates() -> None:
    once, twice, strategy = tiny_encoder(), tiny_encoder(), make_strategy("c-clip")
    teach(once, make_strategy("c-clip"))
    teach(once, make_strategy("c-clip"))
    teach(twice, strategy)
    teach(twice, strategy)
    assert_same_state(once.model.state_dict(), twice.model.state_dict())


def test_a_batch_without_pictures_is_refused() -> None:
    encoder, strategy = tiny_encoder(), make_strategy("c-clip")
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    batch = next(iter(Batches(data.train, encoder, size=8, load_image=None).epoch(0)))
    with pytest.raises(ValueError, match="needs before_update, pictures"):
        strategy.terms(batch)


def test_the_temperature_stays_in_clips_range() -> None:
    encoder, strategy = tiny_encoder(), make_strategy("c-clip")
    strategy.before_update(context_for(encoder, toy_pairs()))
    with torch.no_grad():
        encoder.model.get_parameter("logit_scale").fill_(9.0)
    strategy.after_step()
    assert float(encoder.model.get_parameter("logit_scale").exp()) == pytest.approx(100)
