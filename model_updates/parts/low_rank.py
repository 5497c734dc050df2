"""Low-rank deltas on the weights of an image tower, laid over them for one forward: an insert of one domain.

``W' = W + (alpha / r) * B A`` (Hu et al., ICLR 2022) for every chosen weight of the tower: fused query-key-value
matrices, linear layers, and convolution kernels flattened to (out, in * height * width). No module is wrapped and no
weight is written: the sum takes the weight's place while the tower runs and the weight itself is put back, so the base
tower keeps every bit. What training leaves is rounded to float16 and stored so.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from model_updates.errors import BadStrategyOption
from model_updates.inserts import Insert, Owner, RunImages
from model_updates.parts.lora import under_adapter
from model_updates.towers import image_tower

# Attention and MLP of open_clip's own blocks, of those of timm towers (SigLIP), and of transformers' CLIP.
_BLOCKS = re.compile(
    r"(.*\.)?((res)?blocks\.\d+\."
    r"(attn\.(in_proj_weight|out_proj\.weight|qkv\.weight|proj\.weight)|mlp\.(c_fc|c_proj|fc1|fc2)\.weight)"
    r"|layers\.\d+\.(self_attn\.(q|k|v|out)_proj|mlp\.fc[12])\.weight)"
)
FLOAT32, FLOAT16 = "float32", "float16"


class LowRank(Insert):
    """Low-rank deltas that pictures of one domain are read with.

    Attributes:
        down: one (rank, in) matrix A for each weight of `config["weights"]`, in their order.
        up: one (out, rank) matrix B for each; zero at first, so that the tower's output is unchanged.
    """

    kind: ClassVar[str] = "low-rank"
    tower: ClassVar[str] = "image"

    def __init__(self, owner: Owner, config: Mapping[str, Any], tower: nn.Module) -> None:
        """Makes deltas of the shapes that a tower's weights ask for; A is drawn from the global generator."""
        super().__init__(owner, config)
        weights = [tower.get_parameter(name) for name in config["weights"]]
        shapes = [(len(weight), weight[0].numel()) for weight in weights]
        self.down, self.up = low_rank_pairs(shapes, int(config["rank"]), weights[0].device)
        if config.get("precision") == FLOAT16:
            self.half()

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        return cls(owner, config, image_tower(model))

    @staticmethod
    def configuration(model: nn.Module, *, rank: int, alpha: float) -> dict[str, Any]:
        """Returns the configuration of deltas on attention and MLP of a model's image tower.

        Raises:
            BadStrategyOption: no weight of the tower is larger than the rank both ways.
        """
        weights = adaptable_weights(image_tower(model), rank)
        return {"rank": rank, "alpha": alpha, "weights": weights, "precision": FLOAT32}

    def around_image(self, model: nn.Module, run: RunImages, pixels: Tensor) -> Tensor:
        """Runs the image tower on the sums of its weights and the deltas."""
        tower = image_tower(model)
        with _statistics_held(tower), overlaid(tower, self.sums(tower)):
            return run(pixels)

    def sums(self, tower: nn.Module) -> dict[str, Tensor]:
        """Returns each adapted weight of a tower with its delta added, with gradients if enabled."""
        factor = float(self.config["alpha"]) / float(self.config["rank"])
        summed = {}
        for name, down, up in zip(self.config["weights"], self.down, self.up, strict=True):
            weight = tower.get_parameter(name)
            summed[name] = weight + factor * (up.float() @ down.float()).view_as(weight)
        return summed

    def loosen(self) -> None:
        """Makes the deltas ready to train: float32, with gradients."""
        self.config["precision"] = FLOAT32
        self.float().requires_grad_(True)

    def settle(self) -> None:
        """Ends training: rounds the deltas to float16, the precision they are stored and used in."""
        self.config["precision"] = FLOAT16
        self.half().requires_grad_(False)


def low_rank_pairs(
    shapes: Iterable[Sequence[int]], rank: int, device: torch.device | None = None
) -> tuple[nn.ParameterList, nn.ParameterList]:
    """Returns A (rank, in), Kaiming-uniform, and B (out, rank), zero, for each (out, in): B A changes nothing yet."""
    down, up = nn.ParameterList(), nn.ParameterList()
    for outputs, inputs in shapes:
        drawn = torch.empty(rank, inputs)  # on the CPU, so that a seed means the same on a card
        nn.init.kaiming_uniform_(drawn, a=math.sqrt(5))
        down.append(nn.Parameter(drawn.to(device)))
        up.append(nn.Parameter(torch.zeros(outputs, rank, device=device)))
    return down, up


def adaptable_weights(tower: nn.Module, rank: int) -> list[str]:
    """Returns the names of the weights that deltas go on: attention and MLP of transformer blocks.

    A tower without blocks that we know (a convolutional one) gets them on every matrix and kernel that is larger than
    the rank both ways; depthwise kernels are not.

    Raises:
        BadStrategyOption: there is none.
    """
    matrices = [
        name
        for name, weight in tower.named_parameters()
        if weight.ndim in {2, 4} and min(weight.shape[0], weight[0].numel()) > rank
    ]
    chosen = [name for name in matrices if _BLOCKS.fullmatch(name)] or [
        name for name in matrices if name.endswith("weight")
    ]
    if not chosen:
        raise BadStrategyOption(
            f"no weight of {type(tower).__name__} is larger than rank {rank} both ways; choose a smaller rank"
        )
    return chosen


@contextmanager
def _statistics_held(tower: nn.Module) -> Iterator[None]:
    """Keeps running statistics, which every route shares, as they are while a domain's pictures run.

    A frozen tower runs as it answers. In one that trains the rest goes on (the dropout of adapters), and the norms go
    on counting after the block. A tower that is not in training is left alone: who counts its statistics anew has its
    norms in training (`merging_towers`).
    """
    held: list[nn.Module] = []
    if tower.training and not any(parameter.requires_grad for parameter in tower.parameters()):
        tower.eval()
    elif tower.training:
        norms = (m for m in tower.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm))
        held = [norm.eval() for norm in norms if norm.training]
    try:
        yield
    finally:
        for norm in held:
            norm.train()


@contextmanager
def overlaid(module: nn.Module, values: Mapping[str, Tensor]) -> Iterator[None]:
    """Puts tensors in the place of a module's parameters inside the block, and the parameters back after it.

    An adapter of `parts.lora` that lies on one adds to what is put there as it adds to the parameter.

    Other threads must not run the module meanwhile (the encoder takes turns).

    The module's own modules read parameters by attribute, as `nn.MultiheadAttention` and linear layers do; the values
    go by dotted parameter name and have the parameter's shape.
    """
    places = [
        (under_adapter(module.get_submodule(name.rpartition(".")[0])), name.rpartition(".")[2])
        for name in values
    ]
    originals: Sequence[nn.Parameter | None] = [holder._parameters[leaf] for holder, leaf in places]
    try:
        for (holder, leaf), value in zip(places, values.values(), strict=True):
            holder._parameters[leaf] = value  # type: ignore[assignment]
        yield
    finally:
        for (holder, leaf), parameter in zip(places, originals, strict=True):
            holder._parameters[leaf] = parameter
