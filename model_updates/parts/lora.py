"""Low-rank adapters on the weights of open_clip's residual blocks: insert, list, merge.

``W' = W + (alpha / r) * B A`` (METHODS.md B.11), registered on the weight itself through
`torch.nn.utils.parametrize`. open_clip fuses Q, K and V in ``nn.MultiheadAttention``, which reads its weights
without calling a submodule, so an adapter must sit on the weight to be run at all (METHODS.md 0, trap 2).

Not peft: its attention wrapper (0.21.2) adds the output projection's delta twice, and adds and subtracts the
delta around every forward, so that the frozen weights drift by rounding and a resumed update ends elsewhere.

Dropout falls on the adapter's input features, one draw for a whole batch, because the weight is shared by it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as drop
from torch.nn.utils import parametrize

from model_updates.errors import BadStrategyOption

# open_clip's own blocks, and those of timm towers (SigLIP).
_ATTENTION = r"attn|attn\.(out_proj|qkv|proj)"
_MLP = r"mlp\.(c_fc|c_proj|fc1|fc2)"
TARGETS = {
    "qkvo+mlp": re.compile(rf"(.*\.)?(res)?blocks\.\d+\.({_ATTENTION}|{_MLP})"),
    "mlp": re.compile(rf"(.*\.)?(res)?blocks\.\d+\.({_MLP})"),
}


class LowRank(nn.Module):
    """Adds a low-rank product to the (out, in) weight it is registered on; zero until it trains."""

    def __init__(self, weight: Tensor, *, rank: int, alpha: int, dropout: float) -> None:
        super().__init__()
        rows, columns = weight.shape
        self.factor = alpha / rank
        self.dropout = dropout
        self.down = nn.Parameter(weight.new_empty(rank, columns))
        self.up = nn.Parameter(weight.new_zeros(rows, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, weight: Tensor) -> Tensor:
        """Returns the adapted (out, in) weight."""
        kept = drop(torch.ones_like(self.down[0]), self.dropout, self.training)
        return weight + self.factor * (self.up @ (self.down * kept))


def insert_lora(
    tower: nn.Module, *, rank: int, alpha: int, dropout: float, targets: str = "qkvo+mlp"
) -> None:
    """Inserts adapters into a tower's residual blocks, in place; outputs are unchanged until they train.

    Args:
        tower: an image or text tower with open_clip's or timm's residual blocks.
        rank: inner size r of each adapter.
        alpha: numerator of the factor alpha / r on the adapter's output.
        dropout: share of input features that an adapter does not see in a training step.
        targets: "qkvo+mlp" (attention and MLP) or "mlp".

    Raises:
        BadStrategyOption: the tower has no such block.
    """
    weights = list(_targeted(tower, TARGETS[targets]))
    if not weights:
        raise BadStrategyOption(
            f"adapters go into transformer blocks, and {type(tower).__name__} has none that we know; "
            "use finetune, or an encoder with ViT towers"
        )
    for module, name in weights:
        adapter = LowRank(getattr(module, name), rank=rank, alpha=alpha, dropout=dropout)
        parametrize.register_parametrization(module, name, adapter.train(module.training))


def lora_parameters(tower: nn.Module) -> list[nn.Parameter]:
    """Returns the adapters' parameters, the only ones of the tower's blocks that should train."""
    return [p for module in tower.modules() if isinstance(module, LowRank) for p in module.parameters()]


def merge_lora(tower: nn.Module) -> None:
    """Adds each adapter to the weight it sits on and removes it, in place; the eval output stays the same."""
    for module in list(tower.modules()):
        if not parametrize.is_parametrized(module):
            continue
        adapted: nn.ModuleDict = module.parametrizations  # type: ignore[assignment]
        for name in list(adapted):
            adapted[name].eval()  # no dropout in what is merged
            parametrize.remove_parametrizations(module, name, leave_parametrized=True)


def trainable(parameters: list[nn.Parameter]) -> list[nn.Parameter]:
    """Marks parameters as trainable and returns them."""
    for parameter in parameters:
        parameter.requires_grad_(True)
    return parameters


def _targeted(tower: nn.Module, pattern: re.Pattern[str]) -> Iterator[tuple[nn.Module, str]]:
    for path, module in tower.named_modules():
        if pattern.fullmatch(path):
            for name in ("in_proj_weight", "weight"):
                if isinstance(getattr(module, name, None), nn.Parameter):
                    yield module, name
