"""The transformer blocks of an image tower that reads a picture by its class token."""

from typing import Any

from torch import nn

from model_updates.errors import BadStrategyOption
from model_updates.towers import image_tower


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
            "use finetune or ewc"
        )
    if getattr(tower, "attn_pool", None) is not None or getattr(tower, "pool_type", "tok") != "tok":
        raise BadStrategyOption(
            f"modules are read through the class token, and this {type(tower).__name__} pools all tokens; "
            "use finetune or ewc"
        )
    return blocks
