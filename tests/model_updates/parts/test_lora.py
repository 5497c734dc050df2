"""Low-rank adapters: nothing at first, everything trains, merging changes no output."""

import re

import open_clip
import pytest
import torch
from torch import Tensor, nn

from model_updates.errors import BadStrategyOption
from model_updates.parts.lora import TARGETS, insert_lora, lora_parameters, merge_lora, trainable
from model_updates.parts.merging import keep_share
from model_updates.towers import image_tower, text_tower
from tests.model_updates.tiny import assert_same_state, tiny_encoder

every_target = pytest.mark.parametrize("targets", list(TARGETS))
both_towers = pytest.mark.parametrize("side", ["image", "text"])


def adapted(side: str, targets: str, *, dropout: float = 0.0) -> tuple[nn.Module, nn.Module, Tensor]:
    """The model, one of its towers with adapters that have trained, and an input for the model."""
    model = tiny_encoder().model
    tower = image_tower(model) if side == "image" else text_tower(model)
    insert_lora(tower, rank=4, alpha=8, dropout=dropout, targets=targets)
    return model, tower, example(side)


def example(side: str) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    if side == "image":
        return torch.randn(3, 3, 32, 32, generator=generator)
    return torch.randint(3, 500, (3, 16), generator=generator)


def run(model: nn.Module, side: str, given: Tensor) -> Tensor:
    output: Tensor = (model.encode_image if side == "image" else model.encode_text)(given)  # type: ignore[operator]
    return output


def train_a_little(tower: nn.Module) -> None:
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in lora_parameters(tower):
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))


@both_towers
@every_target
def test_a_fresh_adapter_leaves_the_output_as_it_is(side: str, targets: str) -> None:
    plain = tiny_encoder().model
    model, _, given = adapted(side, targets, dropout=0.1)
    with torch.no_grad():
        for training in (False, True):
            for each in (model, plain):
                each.train(training)
            assert torch.equal(run(model, side, given), run(plain, side, given))


@both_towers
@every_target
def test_every_adapter_tensor_gets_a_gradient(side: str, targets: str) -> None:
    model, tower, given = adapted(side, targets)
    train_a_little(tower)
    model.requires_grad_(False)
    parameters = trainable(lora_parameters(tower))
    run(model.train(), side, given).square().sum().backward()  # type: ignore[no-untyped-call]
    assert len(parameters) == 2 * 2 * (4 if targets == "qkvo+mlp" else 2)  # up and down, two blocks
    assert all(p.grad is not None and float(p.grad.abs().sum()) > 0 for p in parameters)
    assert all(p.grad is None for n, p in model.named_parameters() if "lora_" not in n)


@both_towers
@every_target
def test_a_merged_tower_gives_the_unmerged_output(side: str, targets: str) -> None:
    model, tower, given = adapted(side, targets, dropout=0.1)
    layout = list(tiny_encoder().model.state_dict())
    train_a_little(tower)
    unmerged = run(model.eval(), side, given)
    model.train()  # merging must not draw a dropout mask
    merge_lora(tower)
    assert torch.allclose(run(model.eval(), side, given), unmerged, atol=1e-5)
    assert sorted(model.state_dict()) == sorted(layout)
    assert not lora_parameters(tower)


def outputs_moved_by(name: str, weight: str) -> tuple[Tensor, Tensor]:
    """The tower's output with one trained adapter, and with the formula's delta added by hand."""
    model, tower, given = adapted("image", "qkvo+mlp")
    plain = tiny_encoder().model
    holder = tower.get_submodule(name)
    up, down = holder.lora_B["default"].weight, holder.lora_A["default"].weight  # type: ignore[index,union-attr]
    with torch.no_grad():
        up.normal_(generator=torch.Generator().manual_seed(3))
        image_tower(plain).get_parameter(weight).add_(2.0 * up @ down)
    return run(model.eval(), "image", given), run(plain.eval(), "image", given)


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("transformer.resblocks.0.attn", "transformer.resblocks.0.attn.in_proj_weight"),
        # peft 0.21.2 adds this one twice; we insert it at half its factor.
        ("transformer.resblocks.0.attn.base_layer.out_proj", "transformer.resblocks.0.attn.out_proj.weight"),
        ("transformer.resblocks.0.mlp.c_fc", "transformer.resblocks.0.mlp.c_fc.weight"),
    ],
)
def test_an_adapter_moves_the_output_as_the_formula_says(name: str, weight: str) -> None:
    adapted_output, by_hand = outputs_moved_by(name, weight)
    assert torch.allclose(adapted_output, by_hand, atol=1e-5)


def test_the_weights_underneath_keep_every_bit() -> None:
    # peft 0.21.2 alone leaves the rounding of each forward in them.
    model, tower, given = adapted("image", "qkvo+mlp")
    train_a_little(tower)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    for _ in range(5):
        run(model.train(), "image", given).sum().backward()  # type: ignore[no-untyped-call]
        with torch.inference_mode():
            run(model.eval(), "image", given)
    assert_same_state(model.state_dict(), before)
    assert not any(parameter.is_inference() for parameter in model.parameters())


def test_dropout_acts_in_training_only() -> None:
    model, tower, given = adapted("image", "mlp", dropout=0.5)
    train_a_little(tower)
    model.eval()
    assert torch.equal(run(model, "image", given), run(model, "image", given))
    model.train()
    assert not torch.equal(run(model, "image", given), run(model, "image", given))


def test_a_tower_without_known_blocks_is_refused() -> None:
    with pytest.raises(BadStrategyOption, match="Sequential has none that we know; use evergreen"):
        insert_lora(nn.Sequential(nn.Linear(3, 3)), rank=2, alpha=4, dropout=0.0)


def test_the_convolutions_of_a_resnet_are_adapted_and_merged() -> None:
    model, given = tiny_encoder(architecture="tiny-resnet").model.eval(), example("image")
    tower = image_tower(model)
    for name, parameter in tower.named_parameters():
        if name.endswith("bn3.weight"):  # a new ResNet's blocks add nothing
            nn.init.ones_(parameter)
    plain, layout = run(model, "image", given), list(model.state_dict())
    insert_lora(tower, rank=2, alpha=4, dropout=0.0)
    blocks = [name for name, _ in tower.named_modules() if re.fullmatch(r"layer\d\.\d+", name)]
    assert len(lora_parameters(tower)) == 2 * 3 * len(blocks) > 0
    assert torch.equal(run(model, "image", given), plain)
    train_a_little(tower)
    unmerged = run(model.eval(), "image", given)
    assert not torch.allclose(unmerged, plain, atol=1e-3)
    merge_lora(tower)
    assert torch.allclose(run(model.eval(), "image", given), unmerged, atol=1e-4)
    assert sorted(model.state_dict()) == sorted(layout)


def test_timm_towers_are_adapted_too() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.proj = nn.Linear(4, 12), nn.Linear(4, 4)

    block = nn.ModuleDict(
        {"attn": Attention(), "mlp": nn.ModuleDict({"fc1": nn.Linear(4, 8), "fc2": nn.Linear(8, 4)})}
    )
    tower = nn.ModuleDict({"trunk": nn.ModuleDict({"blocks": nn.ModuleList([block])})})
    insert_lora(tower, rank=2, alpha=4, dropout=0.0)
    assert len(lora_parameters(tower)) == 8


def two_states() -> tuple[nn.Module, dict[str, Tensor], dict[str, Tensor]]:
    old = {k: v.clone() for k, v in tiny_encoder(0).model.state_dict().items()}
    model: open_clip.CLIP = tiny_encoder(1).model
    return model, old, {k: v.clone() for k, v in model.state_dict().items()}


def test_keeping_nothing_restores_the_old_model_bit_by_bit() -> None:
    model, old, _ = two_states()
    keep_share(model.state_dict(), old, 0.0)
    assert_same_state(model.state_dict(), old)


def test_keeping_everything_leaves_the_new_model_bit_by_bit() -> None:
    model, old, new = two_states()
    keep_share(model.state_dict(), old, 1.0)
    assert_same_state(model.state_dict(), new)


def test_keeping_half_is_half_way_for_every_key() -> None:
    model, old, new = two_states()
    keep_share(model.state_dict(), old, 0.5)
    state = model.state_dict()
    assert all(torch.allclose(state[key], (old[key] + new[key]) / 2, atol=1e-7) for key in old)
