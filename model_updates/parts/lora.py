"""Low-rank adapters in open_clip towers through peft: insert, list, merge.

open_clip fuses Q, K and V in ``nn.MultiheadAttention``; peft adapts that module as a whole (target ``attn``). A generic
injection on ``out_proj`` would never run, because the attention reads its weight directly (METHODS.md 0, trap 2).
"""

from __future__ import annotations

from collections.abc import Iterator

from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import MultiheadAttention as AdaptedAttention
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn

TARGETS = {
    "qkvo+mlp": r"(.*\.)?resblocks\.\d+\.(attn|mlp\.c_fc|mlp\.c_proj)",
    "mlp": r"(.*\.)?resblocks\.\d+\.mlp\.(c_fc|c_proj)",
}


def insert_lora(
    tower: nn.Module, *, rank: int, alpha: int, dropout: float, targets: str = "qkvo+mlp"
) -> None:
    """Inserts adapters into a tower's residual blocks, in place; outputs are unchanged until they train.

    Args:
        tower: an image or text tower with open_clip's ``resblocks``.
        rank: inner size r of each adapter.
        alpha: numerator of the factor alpha / r on the adapter's output.
        dropout: on the adapter's input.
        targets: "qkvo+mlp" (attention and MLP) or "mlp".
    """
    config = LoraConfig(
        r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=TARGETS[targets], bias="none"
    )
    inject_adapter_in_model(config, tower)


def lora_parameters(tower: nn.Module) -> list[nn.Parameter]:
    """Returns the adapters' parameters, the only ones of the tower's blocks that should train."""
    return [parameter for name, parameter in tower.named_parameters() if "lora_" in name]


def merge_lora(tower: nn.Module) -> None:
    """Adds each adapter to the weights it sits on and removes it, in place; the eval output stays the same."""
    for name, layer in list(_outermost(tower)):
        parent = tower.get_submodule(name.rpartition(".")[0])
        setattr(parent, name.rpartition(".")[2], _merged(layer))


def _merged(layer: nn.Module) -> nn.Module:
    if isinstance(layer, AdaptedAttention):
        # The wrapper nests its out_proj; peft's own routine merges and unwraps both.
        merged: nn.Module = layer.unload_and_optionally_merge_module(
            merge=True, safe_merge=False, adapter_names=None
        )
        return merged
    layer.merge()  # type: ignore[operator]
    base: nn.Module = layer.get_base_layer()  # type: ignore[operator]
    return base


def _outermost(tower: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    inside: list[str] = []
    for name, module in tower.named_modules():
        if isinstance(module, BaseTunerLayer) and not any(name.startswith(outer + ".") for outer in inside):
            inside.append(name)
            yield name, module


def trainable(parameters: list[nn.Parameter]) -> list[nn.Parameter]:
    """Marks parameters as trainable and returns them."""
    for parameter in parameters:
        parameter.requires_grad_(True)
    return parameters
