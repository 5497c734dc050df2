"""Updates of an encoder that holds inserts already: a strategy is chosen anew, what it finds was left by others.

What trains the towers reads pictures of a domain and texts of a language on their own routes, in training and in
validation; C-CLIP does so with peft's adapters around the very layers that an insert lays its sums over.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.inserts import domain
from model_updates.pairs import TrainingPair
from model_updates.parts.lora import TARGETS, insert_lora, lora_parameters, merge_lora
from model_updates.parts.low_rank import LowRank
from model_updates.parts.merging_towers import count_statistics
from model_updates.parts.prompt_pool import ImagePrompts, TextPrompts
from model_updates.routes import BASE
from model_updates.strategies.c_clip import CClip
from model_updates.towers import image_tower, text_tower
from tests.model_updates.contract import (
    BOTH,
    CASES,
    WHOLE_OF_EACH_KIND,
    context_of,
    first_update,
    made,
    run,
    trains_whole_towers,
)
from tests.model_updates.tiny import (
    DOMAIN,
    NEGATIVE,
    TEXT_ONLY,
    data_for,
    draw,
    image_ids,
    styled_pairs,
    tiny_encoder,
    toy_pairs,
)

# What leaves an insert of each kind that a tower is run with.
LEAVE_INSERTS = (
    BOTH,
    "lora",
    "mla",
    "p-tuning",
    "dualprompt",
    "coda-prompt",
    "moe-adapters",
    "cpe-clip",
    "l2p",
)
PICTURES = [*(pair.image_id for pair in styled_pairs(NEGATIVE)), *image_ids()[:4]]
TEXTS = [pair.text for pair in toy_pairs()]
every_target = pytest.mark.parametrize("targets", list(TARGETS))


@functools.cache
def with_a_domain() -> Encoder:
    """An encoder that domain-adapters taught the negatives; whoever goes on takes a copy."""
    encoder = tiny_encoder()
    run(made("domain-adapters"), context_of(encoder, styled_pairs(NEGATIVE)))
    assert encoder.image_routes == (NEGATIVE,)
    return encoder


def chunk() -> list[TrainingPair]:
    """German pairs of the base's domain, and English ones of the domain that has a route; some of each in a batch."""
    return [*toy_pairs()[::2], *styled_pairs(NEGATIVE)]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.slow if trains_whole_towers(name) and name not in WHOLE_OF_EACH_KIND else [],
        )
        for name in CASES
        if name not in TEXT_ONLY
    ],
)
def test_what_trains_a_tower_goes_on_after_an_adapter_of_a_domain(name: str) -> None:
    encoder = with_a_domain().copy()
    report = run(made(name), context_of(encoder, chunk()))
    assert all("validation" in epoch for epoch in report.history)
    assert set(encoder.model.state_dict()) == set(with_a_domain().model.state_dict())
    assert NEGATIVE in encoder.image_routes
    assert np.isfinite(encoder.image_features([draw(name) for name in PICTURES], NEGATIVE)).all()


# Whoever left them, and however it teaches; every pair of the two under -m slow.
@pytest.mark.parametrize(
    ("options", "left_by"),
    [
        pytest.param(
            options, left_by, marks=[pytest.mark.slow] if options and left_by not in {BOTH, "lora"} else []
        )
        for options in ({}, {"targets": "mlp"}, {"adapters": False})
        for left_by in LEAVE_INSERTS
    ],
    ids=str,
)
def test_c_clip_teaches_both_towers_after_whatever_left_inserts(
    left_by: str, options: dict[str, Any]
) -> None:
    encoder = first_update(left_by).after.copy()
    report = run(made("c-clip", towers="both", **options), context_of(encoder, chunk(), earlier=toy_pairs()))
    assert all({"validation", "known"} <= epoch.keys() for epoch in report.history)


@pytest.mark.parametrize("left_by", ["domain-adapters", *LEAVE_INSERTS])
def test_c_clip_compares_new_features_with_old_ones_of_the_same_route(
    left_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = with_a_domain().copy() if left_by == "domain-adapters" else first_update(left_by).after.copy()
    strategy = made("c-clip", towers="both")
    assert isinstance(strategy, CClip)
    context = context_of(encoder, chunk(), earlier=toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    strategy._projector = nn.Identity()
    compared: list[tuple[Tensor, Tensor]] = []

    def watched(new: Tensor, old: Tensor, scale: Tensor) -> Tensor:
        compared.append((new.detach(), old))
        return torch.zeros(())

    monkeypatch.setattr("model_updates.strategies.c_clip.ckc", watched)
    batch = next(iter(Batches(data.train, encoder, size=16, load_image=draw).epoch(0)))
    assert {DOMAIN, NEGATIVE} == set(batch.domains)
    assert {"de", "en"} == set(batch.languages)
    strategy.terms(batch)
    new, old = compared[0]
    assert torch.allclose(new, old, atol=1e-4)


@pytest.mark.parametrize("left_by", LEAVE_INSERTS)
@every_target
def test_an_insert_reads_through_adapters_as_through_what_they_merge_into(left_by: str, targets: str) -> None:
    encoder = first_update(left_by).after.copy()
    towers = [image_tower(encoder.model), text_tower(encoder.model)]
    before = list(answers(encoder))
    adapt(towers, targets)
    unmerged = list(answers(encoder))
    for tower in towers:
        merge_lora(tower)
    for was, through, merged in zip(before, unmerged, answers(encoder), strict=True):
        assert not np.allclose(through, was, atol=1e-2)
        np.testing.assert_allclose(through, merged, atol=2e-4)


def adapt(towers: list[nn.Module], targets: str) -> None:
    """Inserts adapters that have trained."""
    generator = torch.Generator().manual_seed(2)
    for tower in towers:
        insert_lora(tower, rank=4, alpha=8, dropout=0.1, targets=targets)
        with torch.no_grad():
            for parameter in lora_parameters(tower.eval()):
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))


def answers(encoder: Encoder) -> Iterator[np.ndarray[Any, np.dtype[np.float32]]]:
    """What an encoder says on every route."""
    for route in ("", *encoder.image_routes):
        yield encoder.image_features([draw(name) for name in PICTURES], route)
    for language in ("en", "de"):
        yield encoder.text_features(TEXTS, language)


@every_target
def test_an_insert_that_runs_the_tower_twice_inside_another_finds_its_sums_both_times(targets: str) -> None:
    # The prompts look for theirs in one run and read with them in a second, both inside the domain's deltas.
    encoder = with_a_domain().copy()
    made("l2p").before_update(context_of(encoder, chunk()))
    kinds = [type(insert) for insert in encoder.inserts]
    assert kinds.index(LowRank) < kinds.index(ImagePrompts) < kinds.index(TextPrompts)
    encoder.train(False)
    tower = image_tower(encoder.model)
    adapt([tower], targets)
    through = list(answers(encoder))
    merge_lora(tower)
    for one, merged in zip(through, answers(encoder), strict=True):
        np.testing.assert_allclose(one, merged, atol=2e-4)


def test_a_gradient_reaches_the_adapters_under_a_domains_deltas_and_not_the_deltas() -> None:
    encoder = with_a_domain().copy()
    tower = image_tower(encoder.model)
    adapt([tower], "qkvo+mlp")
    encoder.model.requires_grad_(False)
    for parameter in lora_parameters(tower):
        parameter.requires_grad_(True)
    pixels = encoder.prepare_images([draw(name) for name in PICTURES])
    encoder.forward_images(pixels, NEGATIVE).square().sum().backward()  # type: ignore[no-untyped-call]
    for parameter in lora_parameters(tower):
        assert parameter.grad is not None
        assert float(parameter.grad.abs().sum()) > 0
    assert all(parameter.grad is None for insert in encoder.inserts for parameter in insert.parameters())


def test_adapters_keep_their_dropout_after_pictures_of_a_domain() -> None:
    encoder = with_a_domain().copy()
    adapt([image_tower(encoder.model)], "mlp")
    encoder.train()
    pixels = encoder.prepare_images([draw(name) for name in PICTURES])
    for route in (NEGATIVE, ""):
        one, other = (encoder.forward_images(pixels, route) for _ in range(2))
        assert not torch.equal(one, other), "dropout draws another mask"


def resnet_with_deltas() -> Encoder:
    """A ResNet, whose batch norms keep running statistics, with an insert of a domain."""
    encoder = tiny_encoder(architecture="tiny-resnet")
    config = LowRank.configuration(encoder.model, rank=2, alpha=4)
    encoder.inserts.append(LowRank.build(domain(NEGATIVE), config, encoder.model))
    return encoder


@pytest.mark.parametrize("trains", [True, False])
def test_pictures_of_a_domain_move_no_running_statistics(trains: bool) -> None:
    encoder = resnet_with_deltas()
    encoder.model.requires_grad_(trains)
    before = {name: value.clone() for name, value in encoder.model.named_buffers()}
    encoder.train()
    encoder.forward_images(encoder.prepare_images([draw(name) for name in PICTURES]), NEGATIVE)
    assert image_tower(encoder.model).training == trains
    assert all(torch.equal(value, before[name]) for name, value in encoder.model.named_buffers())
    # The pictures of the base route that come next are counted as those that came before would have been.
    encoder.forward_images(encoder.prepare_images([draw(name) for name in PICTURES]), BASE)
    assert trains == any(
        not torch.equal(value, before[name]) for name, value in encoder.model.named_buffers()
    )


def test_statistics_that_are_counted_anew_are_counted_over_pictures_of_a_domain_too() -> None:
    encoder, strategy = resnet_with_deltas(), made("ties")
    data = data_for(strategy, context_of(encoder, styled_pairs(NEGATIVE)))
    batches = Batches(data.train, encoder, size=4, load_image=draw)
    count_statistics(encoder, batches, seed=0)
    norms: list[Any] = [m for m in encoder.model.modules() if isinstance(m, nn.BatchNorm2d)]
    assert {int(norm.num_batches_tracked) for norm in norms} == {len(batches)}
