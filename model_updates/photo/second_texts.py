"""The second text space (`model_updates.photo.second_space`) in a torch model, whose tensors are its arrays."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from model_updates.photo.e5_file import WIDTH
from model_updates.photo.second_space import SHARE, SecondSpace, readable
from model_updates.photo.weights import WIDTH as FIRST_WIDTH


class SecondTexts(SecondSpace, nn.Module):
    """Texts to vectors (n, 384); nothing in it trains."""

    def __init__(self, first: Sequence[str]) -> None:
        nn.Module.__init__(self)
        self.first = frozenset(first)
        self.register_buffer("offsets", torch.zeros(len(readable()), WIDTH))
        self.register_buffer("trusts", torch.zeros(len(readable())))
        self.register_buffer("first_offsets", torch.zeros(len(readable()), FIRST_WIDTH))

    def write(self, folder: Path) -> dict[str, Any]:
        """Writes it for `model_updates.onnx_loader`; returns what that has to know. See `write_e5` for errors."""
        from model_updates.photo.e5_folder import write_e5  # loads onnx

        if self.first_offsets is not None:
            np.save(folder / "second.first.npy", self.first_offsets)
        return write_e5(folder, self.offsets) | {"share": SHARE, "languages": readable()}
