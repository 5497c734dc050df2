"""What `perennial-photo` is made of, as arrays under the names that `PhotoModel` has for them; no torch is needed.

Images: EfficientNet-Lite2, each batch normalisation folded into the convolution before it. Texts: the multilingual
Universal Sentence Encoder. The head between them and the second text space: what `precomputed` has shipped.
"""

import math
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from model_updates.photo import packages

NAME = "perennial-photo"
# What the sentence encoder was trained on; all of them read the one shared token table.
LANGUAGES = (
    "en",
    "ar",
    "de",
    "es",
    "fr",
    "it",
    "ja",
    "ko",
    "nl",
    "pl",
    "pt",
    "ru",
    "th",
    "tr",
    "zh",
    "zh-TW",
)
CONTEXT = 128  # rows a text may have; captions have about 20
FIRST_SCALE = 16.0  # where a learned temperature settles on photographs
WIDTH = 512  # of a token's embedding, and of a text's vector
ORDERS = ((2, 0), (3, 1), (5, 2))  # tokens a convolution sees, and how many of them lie before its own
TABLE = "token_embedding.weight"

_STAGES = (3, 3, 4, 4, 5, 1)  # blocks of each stage after the first, which has one with two convolutions
_OF_CONVOLUTION = 5  # tensors: its weight, and four of its normalisation
_EPSILON = np.float32(1e-3)  # of the normalisations
_PRECOMPUTED = resources.files("model_updates") / "assets" / "perennial-photo" / "precomputed.safetensors"


def photo_weights(*, is_double: bool = True) -> dict[str, NDArray[np.float32]]:
    """Returns every number of the model; without its second space where that is not to be.

    Raises:
        UnknownModel: a package is not installed.
        WeightsMismatch: a package's file is not the pinned one.
    """
    fixed = shipped()
    weights = image_weights() | text_weights()
    weights["logit_scale"] = np.asarray(math.log(FIRST_SCALE), dtype=np.float32)
    weights["image_head.classes"] = np.ascontiguousarray(fixed["classes"][:, : None if is_double else WIDTH])
    if is_double:
        weights["image_head.centre"] = fixed["centre"]
        weights |= {f"second.{name}": fixed[name] for name in ("offsets", "trusts", "first_offsets")}
    return weights


def image_weights() -> dict[str, NDArray[np.float32]]:
    """Returns the image tower and, for the head, ImageNet's classifier; see `packages.checked_file` for errors."""
    *layers, weight, bias = packages.image_arrays().values()
    found = {"image_head.weight": weight, "image_head.bias": bias}
    starts = range(0, len(layers), _OF_CONVOLUTION)
    for name, start in zip(_convolutions(), starts, strict=True):
        kernel, bias = _folded(*layers[start : start + _OF_CONVOLUTION])
        found |= {f"visual.body.{name}.weight": kernel, f"visual.body.{name}.bias": bias}
    return found


def _convolutions() -> list[str]:
    """Returns timm's names of the convolutions in the order in which they run, which is the package's."""
    names = ["conv_stem", "blocks.0.0.conv_dw", "blocks.0.0.conv_pw"]
    for stage, blocks in enumerate(_STAGES, 1):
        for block in range(blocks):
            names += [f"blocks.{stage}.{block}.{part}" for part in ("conv_pw", "conv_dw", "conv_pwl")]
    return [*names, "conv_head"]


def _folded(
    kernel: NDArray[np.float32],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    mean: NDArray[np.float32],
    variance: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Folds a batch normalisation into the convolution before it, which had no bias; returns its weight and bias.

    In the order of torch's `fuse_conv_bn_weights`, so that every bit is the same.
    """
    inverse = np.float32(1) / np.sqrt(variance + _EPSILON)
    return kernel * (weight * inverse).reshape(-1, 1, 1, 1), (0 - mean) * inverse * weight + bias


def text_weights() -> dict[str, NDArray[np.float32]]:
    """Returns the text tower and its token table; see `packages.checked_file` for errors."""
    arrays = packages.text_arrays()
    return {TABLE: _token_rows(arrays)} | {
        f"text.{name}": np.ascontiguousarray(value) for name, value in _tower(arrays).items()
    }


def _tower(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    def across(name: str) -> NDArray[np.float32]:
        return np.concatenate([arrays[f"{name}{order}"] for order, _ in ORDERS], axis=-1)

    state = {
        "project.weight": across("proj").T,
        "project.bias": across("proj_b"),
        "norm_in.weight": across("ln_g"),
        "norm_in.bias": across("ln_b"),
        "norm_out.weight": arrays["ln_g"],
        "norm_out.bias": arrays["ln_b"],
        "pool.weight": arrays["cnn_W"].T,
        "pool.bias": arrays["cnn_b"],
        "dense_in.weight": arrays["d0"].T,
        "dense_hidden.weight": arrays["d1"].T,
        "shortcut_in.weight": arrays["p1"].T,
        "dense_out.weight": arrays["d2"].T,
        "shortcut_out.weight": arrays["p3"].T,
        "last.weight": arrays["d3"].T,
    }
    for place, (order, _) in enumerate(ORDERS):
        for layer, number in (("first", 1), ("second", 2)):
            state[f"stacks.{place}.{layer}.weight"] = arrays[f"w{number}_{order}"].T
            state[f"stacks.{place}.{layer}.bias"] = arrays[f"b{number}_{order}"]
    return state


def _token_rows(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Returns the (128010, 512) token embeddings; the package keeps them in 17 blocks of bytes."""
    blocks = len(arrays["scale"])
    rows = np.empty((blocks * len(arrays["q1"]), WIDTH), dtype=np.float32)
    for block in range(blocks):
        rows[block::blocks] = arrays[f"q{block + 1}"]
        rows[block::blocks] *= arrays["scale"][block]
        rows[block::blocks] += arrays["lo"][block]
    return rows


def shipped() -> dict[str, NDArray[np.float32]]:
    """Returns what `precomputed.computed` returned once, float32, by name; those of both spaces one after the other.

    ``classes`` (1000, 896) are ImageNet's (`conse.class_vectors`), ``centre`` (896,) is what captions have in common,
    and ``offsets`` (languages, 384) what texts of each language have in common in the second space. ``trusts``
    (languages,) and ``first_offsets`` (languages, 512) say how the first space reads each language
    (`model_updates.photo.second_space`).
    """
    return {name: value.astype(np.float32) for name, value in load_file(precomputed_file()).items()}


def precomputed_file() -> Path:
    """Returns where that lies."""
    return Path(str(_PRECOMPUTED))
