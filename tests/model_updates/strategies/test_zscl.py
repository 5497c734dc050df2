"""ZSCL: what distils from where, the distance to the weights before, and the average that is released."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption, NothingToLearn
from model_updates.options import options_of
from model_updates.pair_sets import Batch
from model_updates.pairs import TrainingPair
from model_updates.parts.reference_data import TeacherOutputs, chosen_reference
from model_updates.parts.two_towers import even_cross_entropy, inverse_temperature, unit_features
from model_updates.parts.weight_average import WeightAverage
from model_updates.strategies.zscl import Zscl
from model_updates.strategy import UpdateContext
from model_updates.trainer import run_update
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


def begun(encoder: Encoder | None = None, **options: Any) -> tuple[Zscl, Encoder, Batch]:
    encoder, strategy = encoder or tiny_encoder(), make_strategy("zscl", **options)
    assert isinstance(strategy, Zscl)
    context = context_for(encoder, toy_pairs(), anchor=tiny_encoder())
    data = data_for(strategy, context)
    strategy.before_update(context)
    strategy.take(data)
    batches = Batches(data.train, encoder, size=8, load_image=data.load_image)
    return strategy, encoder, next(iter(batches.epoch(0)))


def gradients(encoder: Encoder) -> dict[str, Tensor | None]:
    return {name: p.grad for name, p in encoder.model.named_parameters()}


def test_an_unchanged_model_pays_neither_for_its_answers_nor_for_its_weights() -> None:
    strategy, encoder, batch = begun()
    terms = strategy.terms(batch)
    (terms["distillation"] + terms["stay"]).backward()  # type: ignore[no-untyped-call]
    assert float(terms["distillation"].detach()) == pytest.approx(0, abs=1e-5)
    assert float(terms["stay"].detach()) == 0
    found = [g for g in gradients(encoder).values() if g is not None]
    assert max(float(g.abs().max()) for g in found) < 1e-4


def moved() -> Encoder:
    encoder = tiny_encoder()
    with torch.no_grad():
        for parameter in encoder.model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return encoder


def test_distillation_reaches_the_image_tower_alone() -> None:
    strategy, encoder, batch = begun(moved())
    term = strategy.terms(batch)["distillation"]
    term.backward()  # type: ignore[no-untyped-call]
    found = gradients(encoder)
    text = {name: g for name, g in found.items() if not name.startswith("visual.")}
    assert float(term.detach()) > 1e-3
    assert all(g is None or float(g.abs().sum()) == 0 for g in text.values())
    assert float(found["visual.proj"].abs().sum()) > 0  # type: ignore[union-attr]


def test_the_teacher_is_the_first_encoder_and_not_the_one_before() -> None:
    # Candidate and previous are the same moved encoder; the anchor is not.
    strategy, _, batch = begun(moved())
    assert float(strategy.terms(batch)["distillation"].detach()) > 1e-3
    assert float(strategy.terms(batch)["stay"].detach()) == 0


def divergence(before: Tensor, after: Tensor) -> float:
    """KL of two temperatures' softmaxes over the rows of logits, the mean over rows, T = 2."""
    p, q = (before / 2).softmax(dim=1), (after / 2).softmax(dim=1)
    return float((p * (p.log() - q.log())).sum(dim=1).mean())


def test_distillation_is_four_times_the_divergences_of_both_directions_at_half_the_logits() -> None:
    # All 16 pictures of the reference in one batch, so that their order does not matter.
    strategy, encoder, batch = begun(moved(), reference_size=16, reference_batch=16)
    first, english = tiny_encoder(), toy_pairs("en")
    pictures, texts = [draw(pair.image_id) for pair in english], [pair.text for pair in english]
    now, before = (torch.from_numpy(one.encode_images(pictures)).double() for one in (encoder, first))
    said = torch.from_numpy(first.encode_texts(texts, "en")).double()
    scale = encoder.state()["logit_scale"].double().exp()
    old, new = scale * before @ said.T, scale * now @ said.T
    pictures_by_texts, texts_by_pictures = divergence(old, new), divergence(old.T, new.T)
    assert min(pictures_by_texts, texts_by_pictures) > 1e-3
    term = float(strategy.terms(batch)["distillation"].detach())
    assert term == pytest.approx(2**2 * (pictures_by_texts + texts_by_pictures), rel=1e-3)


def test_the_distance_to_the_weights_before_is_a_sum_without_the_temperature() -> None:
    strategy, encoder, batch = begun(stay=2.0)
    with torch.no_grad():
        encoder.model.get_parameter("visual.proj").add_(0.5)
    count = encoder.model.get_parameter("visual.proj").numel()
    assert float(strategy.terms(batch)["stay"].detach()) == pytest.approx(2 * 0.25 * count, rel=1e-5)
    scale = encoder.model.get_parameter("logit_scale")
    assert not scale.requires_grad
    assert all(p is not scale for group in strategy.parameter_groups() for p in group.parameters)


def test_smoothed_labels_are_those_of_cross_entropy() -> None:
    logits, right = torch.randn(5, 5, generator=torch.Generator().manual_seed(0)), torch.arange(5)
    sharp = (cross_entropy(logits, right) + cross_entropy(logits.T, right)) / 2
    smooth = (
        cross_entropy(logits, right, label_smoothing=0.2)
        + cross_entropy(logits.T, right, label_smoothing=0.2)
    ) / 2
    assert float(0.8 * sharp + 0.2 * even_cross_entropy(logits)) == pytest.approx(float(smooth), rel=1e-6)


def test_labels_are_smoothed_when_told() -> None:
    sharp, _, batch = begun()
    smooth, _, _ = begun(label_smoothing=0.2)
    one, other = (float(s.terms(batch)["contrastive"].detach()) for s in (sharp, smooth))
    even = float(even_cross_entropy(logits_of(sharp, batch)).detach())
    assert other == pytest.approx(0.8 * one + 0.2 * even, rel=1e-5)


def logits_of(strategy: Zscl, batch: Batch) -> Tensor:
    image, text = unit_features(strategy._encoder, batch)
    return inverse_temperature(strategy._encoder) * image @ text.T


def line(value: float) -> nn.Linear:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, value)
    return model


def test_a_thousand_iterations_average_twelve_weights() -> None:
    model = line(7.0)
    average, expected = WeightAverage(model, 100, 1000), [7.0]
    for step in range(1000):
        with torch.no_grad():
            model.weight.fill_(step)
        average.after_step()
        if step % 100 == 0 or step == 999:
            expected.append(float(step))
    assert average.terms == len(expected) == 12
    with average.in_place():
        assert float(model.weight.detach()) == pytest.approx(sum(expected) / 12, rel=1e-6)
    assert float(model.weight.detach()) == 999


@pytest.mark.parametrize(("epochs", "terms"), [(1, 3), (10, 12), (13, 11)])
def test_an_update_averages_a_tenth_of_its_steps_and_the_last(epochs: int, terms: int) -> None:
    # Two steps an epoch: 2, 20 and 26 of them, and a term at each, at each second and at each third one.
    report = teach(tiny_encoder(), make_strategy("zscl", epochs=epochs, batch_size=8))
    assert f"The mean of {terms} weights along the way." in report.notes


def test_an_average_goes_on_after_a_restart() -> None:
    model = line(1.0)
    whole = WeightAverage(model, 2)
    for value in (2.0, 3.0, 4.0):
        with torch.no_grad():
            model.weight.fill_(value)
        whole.after_step()
    other = line(0.0)
    again = WeightAverage(other, 2)
    again.restore(whole.state())
    assert (again.terms, again.steps) == (whole.terms, whole.steps) == (3, 3)
    again.put()
    assert float(other.weight.detach()) == pytest.approx((1 + 2 + 4) / 3)


def test_the_average_is_what_is_released() -> None:
    encoder = tiny_encoder()
    start = encoder.copy().state()
    strategy = make_strategy("zscl", average_every=10_000, learning_rate=1e-2)
    report = teach(encoder, strategy)
    # Start, first and last of four steps: five thirds of a step from the start, where the last alone is four away.
    assert "The mean of 3 weights along the way." in report.notes
    step = (encoder.state()["visual.proj"] - start["visual.proj"]).abs()
    assert 0 < float(step.max()) < 2e-2
    many = tiny_encoder()
    report = teach(many, make_strategy("zscl", learning_rate=1e-2))
    assert "The mean of 5 weights along the way." in report.notes
    assert float((many.state()["visual.proj"] - start["visual.proj"]).abs().max()) > float(step.max())


def reference_of(
    context: UpdateContext, chunk: str = "", count: int = 4
) -> tuple[str, Sequence[TrainingPair]]:
    found = chosen_reference(context, chunk, count)
    return found.origin, found.pairs


def test_the_reference_is_the_named_chunk_else_what_is_known_else_what_was_learned_else_the_chunk() -> None:
    english = toy_pairs("en")
    bare = context_for(tiny_encoder(), toy_pairs())
    assert reference_of(bare)[0] == "the chunk itself, for want of others"
    earlier = replace(bare, open_earlier=lambda: english)
    assert reference_of(earlier)[0] == "chunks learned before"
    known = replace(earlier, open_known=lambda: english)
    assert reference_of(known)[0] == "pictures of the gallery that are found today"
    named = replace(known, open_reference=lambda chunk: english if chunk == "c7" else [])
    origin, pairs = reference_of(named, "c7")
    assert origin == "the chunk c7"
    assert len(pairs) == 4
    assert reference_of(named, "c7") == (origin, pairs)
    with pytest.raises(NothingToLearn, match="no reference chunks, and 'c9' was asked for"):
        reference_of(bare, "c9")


def test_a_reference_shows_each_picture_once_and_speaks_english() -> None:
    twice = [*toy_pairs(), *toy_pairs("en")]
    found = chosen_reference(context_for(tiny_encoder(), twice), "", 100)
    assert len({pair.image_id for pair in found.pairs}) == len(found.pairs) == 16
    teacher = tiny_encoder()
    taught = TeacherOutputs(found, teacher, draw)
    english = {pair.english for pair in twice if pair.english}
    expected = torch.from_numpy(teacher.encode_texts(sorted(english), "en"))
    assert taught.texts.shape == expected.shape
    nearest = (taught.texts @ expected.T).max(dim=1).values
    assert torch.allclose(nearest, torch.ones(16), atol=1e-5)


def test_notes_name_the_reference() -> None:
    english = toy_pairs("en")
    context = replace(context_for(tiny_encoder(), toy_pairs()), open_known=lambda: english)
    strategy = make_strategy("zscl", reference_size=6)
    report = run_update(strategy, context, lambda frozen: data_for(strategy, frozen))
    assert "6 reference pictures from pictures of the gallery that are found today." in report.notes
    assert set(report.history[0]) == {"contrastive", "distillation", "stay"}
    alone = make_strategy("zscl", distillation=0.0)
    report = teach(tiny_encoder(), alone)
    assert report.notes[0] == "No reference pictures."
    assert set(report.history[0]) == {"contrastive", "stay"}


def test_without_its_parts_it_is_finetune_with_a_fixed_temperature() -> None:
    plain: dict[str, Any] = {"distillation": 0.0, "stay": 0.0}
    strategy, encoder, batch = begun(**plain)
    finetune = make_strategy("finetune")
    finetune.before_update(context_for(encoder, toy_pairs()))
    ours, theirs = strategy.terms(batch), finetune.terms(batch)
    assert float(ours["contrastive"].detach()) == pytest.approx(float(theirs["contrastive"].detach()))
    before = encoder.copy()
    teach(encoder, make_strategy("zscl", **plain))
    assert torch.equal(encoder.state()["logit_scale"], before.state()["logit_scale"])
    with pytest.raises(AssertionError):
        assert_same_state(encoder.state(), before.state())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"reference_size": 1}, "reference_size is at least 2"),
        ({"average_every": -1}, "average_every is not negative"),
        ({"stay": -1}, "stay is not negative"),
        ({"temperature": 0}, "temperature is above 0"),
        ({"label_smoothing": 1}, "label_smoothing is at least 0 and below 1"),
    ],
)
def test_unusable_options_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        options_of(Zscl, given)
