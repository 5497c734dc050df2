"""Modules in the layers of a foreign text tower, one of transformers' (CLIP, DistilBERT, BERT and kin).

The same modules as in `text_inserts`, for towers that project queries, keys and values apart and bring a tokenizer of
their own. What they lie on is named in their configuration, so that a version finds it again.
"""

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from model_updates.errors import BadStrategyOption
from model_updates.inserts import Owner
from model_updates.parts.low_rank import low_rank_pairs, overlaid
from model_updates.parts.text_blocks import added_behind
from model_updates.parts.text_inserts import InsideText, bottleneck
from model_updates.towers import text_tower

_LAYER = r"(.*\.)?layers?\.\d+\."
_QUERIES_AND_VALUES = re.compile(_LAYER + r"(self_attn\.[qv]_proj|attention\.([qv]_lin|self\.(query|value)))")
_MLPS = re.compile(_LAYER + r"(mlp|ffn|output\.dense)")


class InsideLayers(InsideText):
    """A module in the layers that its configuration names, or in all of its kind."""

    places: ClassVar[re.Pattern[str]]  # what the names of its kind of layer match
    sort: ClassVar[type[nn.Module]]  # what such a layer is

    @classmethod
    def layers_in(cls, model: nn.Module) -> list[str]:
        """Returns the names of the layers of its kind in a text tower; none where it is a tower of another kind."""
        if not hasattr(model, "text"):
            return []
        return [
            name
            for name, module in text_tower(model).named_modules()
            if cls.places.fullmatch(name) and isinstance(module, cls.sort)
        ]

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes the module for each layer of a model's text tower.

        Raises:
            BadStrategyOption: it has none that we know.
        """
        layers = list(config.get("layers") or _required(cls.layers_in(model)))
        tower = text_tower(model)
        return cls(owner, {**config, "layers": layers}, tower).to(next(tower.parameters()).device)


class LayerLowRank(InsideLayers):
    """``W x + (alpha / r) B A x`` for the query and the value projection of every layer (Hu et al., ICLR 2022).

    Attributes:
        down: a (rank, in) matrix A for each layer of `config["layers"]`, in their order; Kaiming-uniform.
        up: an (out, rank) matrix B for each; zero, so that the tower's output is unchanged.
    """

    kind = "layer-low-rank"
    # The projections of queries and values.
    places, sort = _QUERIES_AND_VALUES, nn.Linear

    def __init__(self, owner: Owner, config: Mapping[str, Any], tower: nn.Module) -> None:
        super().__init__(owner, config, tower)
        shapes = [tower.get_parameter(f"{name}.weight").shape for name in config["layers"]]
        self.down, self.up = low_rank_pairs(shapes, int(config["rank"]))

    def inside(self, model: nn.Module) -> AbstractContextManager[object]:
        tower = text_tower(model)
        return overlaid(tower, self.sums(tower))

    def sums(self, tower: nn.Module) -> dict[str, Tensor]:
        """Returns each adapted weight of a tower with its delta added."""
        factor = float(self.config["alpha"]) / float(self.config["rank"])
        named = zip((f"{name}.weight" for name in self.config["layers"]), self.down, self.up, strict=True)
        return {name: tower.get_parameter(name) + factor * up @ down for name, down, up in named}


class LayerBottlenecks(InsideLayers):
    """``h + W_up relu(W_down h)`` behind the MLP of every layer (Houlsby et al., ICML 2019); W_up starts at zero."""

    kind = "layer-bottlenecks"
    # What gives out a layer's MLP output, before it is added to the stream.
    places, sort = _MLPS, nn.Module

    def __init__(self, owner: Owner, config: Mapping[str, Any], tower: nn.Module) -> None:
        super().__init__(owner, config, tower)
        widths = [_given_out(tower.get_submodule(name)) for name in config["layers"]]
        self.bottlenecks = nn.ModuleList(bottleneck(width, int(config["reduction"])) for width in widths)

    def inside(self, model: nn.Module) -> AbstractContextManager[object]:
        tower = text_tower(model)
        places = [tower.get_submodule(name) for name in self.config["layers"]]
        return added_behind(places, list(self.bottlenecks))


def _required(layers: list[str]) -> list[str]:
    if not layers:
        raise BadStrategyOption(
            "modules of a language go into the layers of the text tower, and this encoder has none that we know. Use "
            "finetune, or an encoder with a text tower built like CLIP's"
        )
    return layers


def _given_out(place: nn.Module) -> int:
    *_, last = (module for module in place.modules() if isinstance(module, nn.Linear))
    return last.out_features
