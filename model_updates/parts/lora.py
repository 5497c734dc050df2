"""Low-rank adapters in the residual blocks of the towers, transformers or ResNets, through peft: insert, list, merge.

``W' = W + (alpha / r) * B A`` (Hu et al., ICLR 2022). open_clip fuses Q, K and V in ``nn.MultiheadAttention``, which
reads its weights without calling a submodule: peft adapts that module as a whole (target ``attn``), never its
``out_proj`` alone, which would not be run at all.

Two habits of peft 0.21.2 are put right here (tests show both). It adds the attention's output projection twice, in
every forward and in the merge: that adapter is inserted at half its factor, and the sum is the formula. It adds and
takes away the attention's deltas around each forward, so that rounding would stay in the frozen weights and a resumed
update would end elsewhere: the frozen weights themselves are put back after each forward.

peft is imported where adapters are at hand: a search, a server and most jobs start without the second that it takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import nn

from model_updates.errors import BadStrategyOption

if TYPE_CHECKING:
    from peft.tuners.lora.layer import MultiheadAttention
    from torch import Tensor

# open_clip's own blocks, those of timm towers (SigLIP), and transformers' layers (CLIP, DistilBERT, BERT and kin).
_ATTENTION = r"attn|attn\.(qkv|proj)"
_MLP = r"mlp\.(c_fc|c_proj|fc1|fc2)"
_LAYER_ATTENTION = (
    r"self_attn\.(q|k|v|out)_proj|attention\.((q|k|v|out)_lin|self\.(query|key|value)|output\.dense)"
)
_LAYER_MLP = r"mlp\.fc[12]|ffn\.lin[12]|intermediate\.dense|output\.dense"
# open_clip's modified ResNet has neither; an adapter goes beside each convolution of its bottlenecks.
_CONVOLUTION = r"layer\d\.\d+\.conv\d"
TARGETS = {
    "qkvo+mlp": rf"(.*\.)?((res)?blocks\.\d+\.({_ATTENTION}|{_MLP})"
    rf"|layers?\.\d+\.({_LAYER_ATTENTION}|{_LAYER_MLP})|{_CONVOLUTION})",
    "mlp": rf"(.*\.)?((res)?blocks\.\d+\.({_MLP})|layers?\.\d+\.({_LAYER_MLP})|{_CONVOLUTION})",
}
ADAPTER = "default"
# What lies outside the blocks and is no convolution.
OUTER = {
    "image": ("class_embedding", "positional_embedding", "ln_pre", "ln_post", "proj"),
    "text": ("token_embedding", "positional_embedding", "ln_final", "text_projection"),
}
TIMES_OUT_PROJ_IS_ADDED = 2


def insert_lora(
    tower: nn.Module, *, rank: int, alpha: int, dropout: float, targets: str = "qkvo+mlp"
) -> None:
    """Inserts adapters into a tower's residual blocks, in place; outputs are unchanged until they train.

    The tower has residual blocks of open_clip, timm or transformers; in a ResNet a kernel of k x k gets one of rank r
    and one of 1 x 1 behind it. Dropout is on an adapter's input in training; fused attention has none. Targets are
    "qkvo+mlp" (attention and MLP) or "mlp".

    Raises:
        BadStrategyOption: the tower has no such block.
    """
    from peft import LoraConfig, inject_adapter_in_model
    from peft.tuners.lora.layer import MultiheadAttention

    chosen = adaptable(tower, targets)
    if not chosen:
        raise BadStrategyOption(no_blocks(tower))
    config = LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=chosen, bias="none")
    inject_adapter_in_model(config, tower, adapter_name=ADAPTER)
    for name in chosen:
        adapted = tower.get_submodule(name)
        if isinstance(adapted, MultiheadAttention):
            _correct(adapted)


def adaptable(tower: nn.Module, targets: str = "qkvo+mlp") -> list[str]:
    """Returns the names of a tower's modules that adapters go into; none where it has no blocks that we know."""
    return [name for name, module in tower.named_modules() if _is_target(name, module, TARGETS[targets])]


def no_blocks(tower: nn.Module) -> str:
    """Says that a tower has nowhere to put adapters, and what to do."""
    return (
        f"adapters go into the blocks of a transformer or of CLIP's ResNet, and {type(tower).__name__} has none that "
        "we know; use evergreen, or an encoder with ViT towers"
    )


def lora_parameters(tower: nn.Module) -> list[nn.Parameter]:
    """Returns the adapters' parameters, the only ones of the tower's blocks that should train."""
    return [parameter for name, parameter in tower.named_parameters() if "lora_" in name]


def outer_parameters(model: nn.Module, side: str) -> list[nn.Parameter]:
    """Returns the parameters of the "image" or "text" side outside its blocks: embeddings, norms, projections."""
    prefix = "visual." if side == "image" else ("text." if hasattr(model, "text") else "")
    return [
        parameter
        for name, parameter in model.named_parameters()
        if any(name.startswith(prefix + wanted) for wanted in OUTER[side]) and "lora_" not in name
    ]


def under_adapter(layer: nn.Module) -> nn.Module:
    """Returns the layer that an adapter lies on, which holds the weights; the layer itself where there is none."""
    while isinstance(base := getattr(layer, "base_layer", None), nn.Module):
        layer = base
    return layer


def merge_lora(tower: nn.Module) -> None:
    """Adds each adapter to the weight it sits on and removes it, in place; the eval output stays the same."""
    for name, layer in list(_outermost(tower)):
        parent = tower.get_submodule(name.rpartition(".")[0])
        setattr(parent, name.rpartition(".")[2], _merged(layer))
    if hasattr(tower, "peft_config"):
        del tower.peft_config  # else peft takes the next update's adapters for second ones


@contextmanager
def scaled_lora(tower: nn.Module, share: float) -> Iterator[None]:
    """Weakens a tower's adapters to a share of their strength while the block runs; what it leaves is bit-identical."""
    from peft.tuners.lora.layer import LoraLayer

    layers: list[Any] = [module for module in tower.modules() if isinstance(module, LoraLayer)]
    before = [dict(layer.scaling) for layer in layers]
    for layer, scaling in zip(layers, before, strict=True):
        layer.scaling.update({name: value * share for name, value in scaling.items()})
    try:
        yield
    finally:
        for layer, scaling in zip(layers, before, strict=True):
            layer.scaling.update(scaling)


def trainable(parameters: list[nn.Parameter]) -> list[nn.Parameter]:
    """Marks parameters as trainable and returns them."""
    for parameter in parameters:
        parameter.requires_grad_(True)
    return parameters


def _is_target(name: str, module: nn.Module, pattern: str) -> bool:
    return (
        isinstance(module, nn.Linear | nn.MultiheadAttention | nn.Conv2d)
        and re.fullmatch(pattern, name) is not None
    )


def _correct(layer: MultiheadAttention) -> None:
    attention: Any = layer.base_layer  # peft is untyped
    attention.out_proj.scaling[ADAPTER] /= TIMES_OUT_PROJ_IS_ADDED
    places = [(attention, "in_proj_weight"), (attention.out_proj.base_layer, "weight")]
    present: list[Tensor] = []

    def keep(*_: object) -> None:
        present[:] = [holder._parameters[leaf] for holder, leaf in places]

    def put_back(*_: object) -> None:
        # peft replaced these by new ones and left the old ones as they were. They are not always the tower's own: an
        # insert may have laid its sums over those, and reads with them again before it takes them away.
        for (holder, leaf), weight in zip(places, present, strict=True):
            holder._parameters[leaf] = weight
        present.clear()

    layer.register_forward_pre_hook(keep)
    layer.register_forward_hook(put_back)


def _merged(layer: nn.Module) -> nn.Module:
    from peft.tuners.lora.layer import MultiheadAttention

    if isinstance(layer, MultiheadAttention):
        # It nests its out_proj; peft's own routine merges and unwraps both.
        merged: nn.Module = layer.unload_and_optionally_merge_module(
            merge=True, safe_merge=False, adapter_names=None
        )
        return merged
    layer.merge()  # type: ignore[operator]
    base: nn.Module = layer.get_base_layer()  # type: ignore[operator]
    return base


def _outermost(tower: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    from peft.tuners.tuners_utils import BaseTunerLayer

    inside: list[str] = []
    for name, module in tower.named_modules():
        is_adapted = isinstance(module, BaseTunerLayer)
        if is_adapted and not any(name.startswith(outer + ".") for outer in inside):
            inside.append(name)
            yield name, module
