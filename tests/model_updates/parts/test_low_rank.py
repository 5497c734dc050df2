"""Low-rank deltas: the formula, the route, and a base that keeps every bit."""

import threading

import numpy as np
import pytest
import torch
from open_clip.transformer import VisionTransformer
from torch import nn

from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.inserts import domain
from model_updates.parts.low_rank import LowRank, adaptable_weights, overlaid
from model_updates.towers import image_tower
from tests.model_updates.domains import NEW
from tests.model_updates.tiny import assert_same_state, draw, image_ids, tiny_encoder

PICTURES = [draw(image_id) for image_id in image_ids()[:4]]


def with_deltas(*, trained: bool = True, settled: bool = False) -> Encoder:
    encoder = tiny_encoder()
    deltas = LowRank.build(domain(NEW), LowRank.configuration(encoder.model, rank=4, alpha=8), encoder.model)
    if trained:
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for up in deltas.up:
                up.copy_(torch.randn(up.shape, generator=generator) * 0.1)
    if settled:
        deltas.settle()
    encoder.inserts.append(deltas)
    return encoder


def test_new_deltas_change_nothing() -> None:
    encoder = with_deltas(trained=False)
    assert np.array_equal(encoder.image_features(PICTURES, NEW), encoder.image_features(PICTURES))


def test_the_tower_runs_on_the_sum_of_weight_and_delta() -> None:
    encoder, merged = with_deltas(), tiny_encoder()
    deltas = encoder.inserts[0]
    assert isinstance(deltas, LowRank)
    tower = image_tower(merged.model)
    with torch.no_grad():
        for name, down, up in zip(deltas.config["weights"], deltas.down, deltas.up, strict=True):
            weight = tower.get_parameter(name)
            weight.add_(8 / 4 * (up @ down).view_as(weight))
    np.testing.assert_array_equal(encoder.image_features(PICTURES, NEW), merged.image_features(PICTURES))
    assert not np.allclose(encoder.image_features(PICTURES, NEW), encoder.image_features(PICTURES))


def test_attention_is_adapted_as_a_whole_and_so_is_the_mlp() -> None:
    names = adaptable_weights(image_tower(tiny_encoder().model), 4)
    first = sorted(name.rpartition("resblocks.0.")[2] for name in names if ".0." in name)
    assert first == ["attn.in_proj_weight", "attn.out_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight"]


def test_the_base_keeps_every_bit_through_forwards_and_a_failure() -> None:
    encoder = with_deltas()
    before = {name: value.clone() for name, value in encoder.model.state_dict().items()}
    fingerprint = encoder.image_fingerprint()
    encoder.image_features(PICTURES, NEW)
    tower = image_tower(encoder.model)
    name = encoder.inserts[0].config["weights"][0]
    with pytest.raises(RuntimeError), overlaid(tower, {name: torch.zeros(1, 1)}):
        encoder.forward_images(encoder.prepare_images(PICTURES))
    encoder.forget_fingerprints()
    assert_same_state(encoder.model.state_dict(), before)
    assert encoder.image_fingerprint() == fingerprint != encoder.image_fingerprint(NEW)


def test_a_gradient_reaches_the_deltas_alone() -> None:
    encoder = with_deltas()
    encoder.model.requires_grad_(False)
    encoder.forward_images(encoder.prepare_images(PICTURES), NEW).sum().backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in encoder.inserts[0].parameters())
    assert all(parameter.grad is None for parameter in encoder.model.parameters())


def test_threads_on_two_routes_see_their_own_weights() -> None:
    encoder = with_deltas(settled=True)
    right = {route: encoder.image_features(PICTURES, route) for route in ("", NEW)}
    wrong: list[str] = []

    def ask(route: str) -> None:
        for _ in range(20):
            if not np.array_equal(encoder.image_features(PICTURES, route), right[route]):
                wrong.append(route)

    threads = [threading.Thread(target=ask, args=(route,)) for route in ("", NEW) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_settled_deltas_take_two_bytes_a_value_and_can_train_on() -> None:
    deltas = with_deltas(settled=True).inserts[0]
    assert isinstance(deltas, LowRank)
    assert {value.dtype for value in deltas.state_dict().values()} == {torch.float16}
    before = {name: value.float() for name, value in deltas.state_dict().items()}
    deltas.loosen()
    assert all(parameter.requires_grad for parameter in deltas.parameters())
    assert_same_state(deltas.state_dict(), before)


def test_an_adapter_of_a_vit_b_16_is_at_most_six_megabytes() -> None:
    with torch.device("meta"):
        tower = VisionTransformer(224, 16, 768, 12, 12, mlp_ratio=4.0, output_dim=512)
    shapes = [tower.get_parameter(name).shape for name in adaptable_weights(tower, 16)]
    assert len(shapes) == 12 * 4
    assert sum(2 * 16 * (shape[0] + shape[1]) for shape in shapes) <= 6_000_000


def test_a_convolutional_tower_is_adapted_by_its_larger_kernels() -> None:
    tower = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Conv2d(16, 16, 3, groups=16), nn.Conv2d(16, 12, 1))
    assert adaptable_weights(tower, 9) == ["0.weight", "2.weight"]
    with pytest.raises(BadStrategyOption, match="no weight of Sequential is larger than rank 16"):
        adaptable_weights(tower, 16)
