"""The transformer blocks of both towers, and running a text tower with something put into them for one forward.

What is put in is taken out again when the block of code ends: the tower keeps every module and every bit. Other
threads must not run the tower meanwhile (the encoder takes turns).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.parts.lora import under_adapter
from model_updates.towers import image_tower, text_parts


def text_blocks(model: nn.Module) -> list[nn.Module]:
    """Returns the blocks of open_clip's own text tower, first to last; none where the tower is another one."""
    blocks = getattr(getattr(text_parts(model), "transformer", None), "resblocks", ())
    found = [block for block in blocks if isinstance(block, nn.Module)]
    known = all(_is_known(block) for block in found)
    return found if known else []


def require_blocks(model: nn.Module) -> list[nn.Module]:
    """Returns the blocks of a text tower.

    Raises:
        BadStrategyOption: it has none that we know.
    """
    blocks = text_blocks(model)
    if not blocks:
        raise BadStrategyOption(
            "modules of a language go into the transformer blocks of open_clip's own text tower, and this encoder has "
            "none that we know. Use language-tables, or an encoder with CLIP's text tower"
        )
    return blocks


def no_text_blocks(strategy: str, encoder: Encoder) -> str | None:
    """Says that a strategy has nowhere to put its modules, and what to do; None where there are blocks."""
    if text_blocks(encoder.model):
        return None
    return (
        f"{strategy} puts modules into the transformer blocks of the text tower, and that of {encoder.architecture} "
        "has none that we know. Use cll-clip or language-tables, or an encoder with CLIP's text tower"
    )


def width_of(block: nn.Module) -> int:
    """Returns the width of a block's attention."""
    width: int = block.attn.embed_dim  # type: ignore[union-attr, assignment]
    return width


Prefix = tuple[Tensor, Tensor]
"""Keys and values, (p, width) the same for all texts or (n, p, width)."""


class PrefixedAttention:
    """Self-attention that sees keys and values which are no tokens, before all tokens and from every position.

    open_clip has no padding mask, so nothing is masked but what the causal mask masks: the mask gains a column of zeros
    on its left for each prefix.

    Of the attention, which is batch first, the projections are used.
    """

    def __init__(self, attention: nn.MultiheadAttention, prefixes: Sequence[Prefix]) -> None:
        self.attention = attention
        self.prefixes = tuple(prefixes)

    def __call__(
        self,
        query: Tensor,
        _key: Tensor,
        _value: Tensor,
        need_weights: bool = False,
        attn_mask: Tensor | None = None,
    ) -> tuple[Tensor, None]:
        """Attends from (n, length, width) hidden states to themselves and to the prefixes."""
        attention = self.attention
        count, length, width = query.shape
        projected = functional.linear(query, attention.in_proj_weight, attention.in_proj_bias)
        asked, keys, values = torch.split(projected, width, dim=-1)
        for more_keys, more_values in self.prefixes:
            keys = torch.cat([more_keys.to(keys.dtype).expand(count, -1, -1), keys], dim=1)
            values = torch.cat([more_values.to(values.dtype).expand(count, -1, -1), values], dim=1)
        mask = None
        if attn_mask is not None:
            mask = functional.pad(attn_mask, (keys.shape[1] - length, 0)).to(asked.dtype)
            if mask.ndim == 3:  # one for each text and head
                mask = mask.view(count, attention.num_heads, length, -1)
        split = (count, -1, attention.num_heads, width // attention.num_heads)
        asked, keys, values = (rows.view(split).transpose(1, 2) for rows in (asked, keys, values))
        out = functional.scaled_dot_product_attention(asked, keys, values, attn_mask=mask)
        return attention.out_proj(out.transpose(1, 2).reshape(count, length, width)), None


@contextmanager
def prefixed(blocks: Sequence[nn.Module], prefixes: Sequence[Prefix | None]) -> Iterator[None]:
    """Gives the attention of some blocks keys and values of its own while the block of code runs.

    What an insert around this one put before them stays there, too. Prefixes go by block as in `PrefixedAttention`;
    None leaves a block as it is.
    """
    with ExitStack() as stack:
        for block, prefix in zip(blocks, prefixes, strict=True):
            if prefix is not None:
                stack.enter_context(_instead(_attention(block), prefix))
        yield


@contextmanager
def _instead(attention: nn.MultiheadAttention, prefix: Prefix) -> Iterator[None]:
    # The module stays where it is, so that whoever looks for its weights finds them (an adapter that lies on it puts
    # its own there around each run); only how it runs is another.
    own = attention.__dict__
    before = own.get("forward")
    earlier = before.prefixes if isinstance(before, PrefixedAttention) else ()
    own["forward"] = PrefixedAttention(attention, (*earlier, prefix))
    try:
        yield
    finally:
        if before is None:
            del own["forward"]
        else:
            own["forward"] = before


@contextmanager
def after_mlp(blocks: Sequence[nn.Module], modules: Sequence[nn.Module]) -> Iterator[None]:
    """Adds a module's reading of each block's MLP output to it while the block of code runs."""
    with added_behind([block.get_submodule("mlp") for block in blocks], modules):
        yield


@contextmanager
def added_behind(places: Sequence[nn.Module], modules: Sequence[nn.Module]) -> Iterator[None]:
    """Adds a module's reading of what each place gives out to it while the block of code runs."""
    with ExitStack() as stack:
        for place, module in zip(places, modules, strict=True):
            stack.callback(place.register_forward_hook(_adding(module)).remove)
        yield


def _adding(module: nn.Module) -> Callable[[nn.Module, object, Tensor], Tensor]:
    return lambda _, given, hidden: hidden + module(hidden)


def _is_known(block: nn.Module) -> bool:
    attention = _attention(block)
    return (
        isinstance(attention, nn.MultiheadAttention)
        and attention.batch_first
        and attention.in_proj_weight is not None
        and isinstance(getattr(block, "mlp", None), nn.Module)
    )


def _attention(block: nn.Module) -> Any:
    """The attention of a block; while an update has adapters in the tower (`parts.lora`), what they lie on."""
    attention = getattr(block, "attn", None)
    return under_adapter(attention) if isinstance(attention, nn.Module) else None


def require_image_blocks(model: nn.Module) -> list[nn.Module]:
    """Returns the blocks of open_clip's vision transformer, first to last.

    Raises:
        BadStrategyOption: the tower is none, or gives out another token than its first.
    """
    tower: Any = image_tower(model)
    blocks = list(getattr(getattr(tower, "transformer", None), "resblocks", ()))
    known = getattr(getattr(tower, "transformer", None), "batch_first", False)
    if not blocks or not known or not hasattr(tower, "class_embedding"):
        raise BadStrategyOption(
            f"modules go into the blocks of a vision transformer, and {type(tower).__name__} is none that we know; "
            "use evergreen"
        )
    if getattr(tower, "attn_pool", None) is not None or getattr(tower, "pool_type", "tok") != "tok":
        raise BadStrategyOption(
            f"modules are read through the class token, and this {type(tower).__name__} pools all tokens; "
            "use evergreen"
        )
    return blocks
