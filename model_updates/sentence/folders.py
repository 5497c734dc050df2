"""Opens sentence-transformers models from local folders: one that does both, or one for pictures and one for texts.

Everything is built by us from what the folders say; pickled weights are never opened, and the library itself is not
needed (tests compare with it).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from model_updates.encoder import Encoder
from model_updates.errors import UnsafeWeights, WeightsMismatch
from model_updates.kept_tokenizer import AS_IT_IS, LOWERED, KeptTokenizer
from model_updates.language_profiles import base_profiles
from model_updates.preprocessing import Preprocessing
from model_updates.sentence import described
from model_updates.sentence.model import Dense, PooledText, SentenceClip, without_pooler

FAMILY = "sentence-transformers"


def is_folder(model: str) -> bool:
    """True when a model's name is the path of a sentence-transformers folder."""
    return (Path(model) / described.MODULES).is_file()


def open_folders(images: Path, texts: Path | None = None, languages: Sequence[str] = ("en",)) -> Encoder:
    """Opens the image tower of one folder with its own text tower or that of another, in eval mode on the CPU.

    `images` holds a CLIP model, `texts` a text model that was trained into the same space, None for CLIP's own. The
    languages are those that the text tower knows, for telling a query's language.

    Raises:
        UnknownModel: a folder holds no such model, or one of parts that are not known here.
        UnsafeWeights: the weights are pickled.
        WeightsMismatch: the weights do not fit, or the two towers are no pair.
    """
    clip = described.clip_folder(images)
    text_modules = described.modules_of(texts or images)
    said, text_folder = described.text_side(texts or images, text_modules)
    tokenizer, tokens = described.tokenizer_of(text_folder, said["config"])
    blueprint = {
        "name": "+".join(
            described.plain_name(folder.resolve().name) for folder in (images, texts) if folder is not None
        ),
        "image": described.config_of(clip)["vision_config"],
        "text": said,
        "tokens": tokens,
    }
    model = SentenceClip(blueprint)
    with _quietly():
        _load(model.visual, "clip", clip)
        _load(model.text, "clip" if said["kind"] == "clip" else "body", text_folder)
    if isinstance(model.text, PooledText):
        _load_layers(model.text, texts or images, text_modules)
    _load_scale(model, clip)
    encoder = wrap(model, tokenizer, described.preprocessing_of(clip), languages)
    _require_one_space(encoder, images, texts)
    return encoder


def wrap(
    model: SentenceClip, tokenizer: KeptTokenizer, preprocessing: Preprocessing, languages: Sequence[str]
) -> Encoder:
    """Makes an encoder; its architecture's name covers what is neither weight nor preprocessing."""
    said = json.dumps(model.blueprint, sort_keys=True) + tokenizer.text
    digest = hashlib.sha256(said.encode()).hexdigest()[:12]
    return Encoder(
        model,
        architecture=f"{FAMILY}/{model.blueprint['name']}@{digest}",
        preprocessing=preprocessing,
        vocabulary=None,
        foreign_tokenizer=tokenizer,
        profiles=base_profiles(languages),
    )


def kept_tokenizer(text: str, blueprint: Mapping[str, Any]) -> KeptTokenizer:
    """Returns the tokenizer of a version from the text it keeps and its blueprint."""
    tokens = blueprint["tokens"]
    return KeptTokenizer(text, longest=tokens["longest"], clean=LOWERED if tokens["lower"] else AS_IT_IS)


def _load(tower: nn.Module, part: str, place: Path) -> None:
    """Loads a transformer's weights from a folder into one part of a tower."""
    _require_safe(place)
    empty = getattr(tower, part)
    try:
        loaded, info = type(empty).from_pretrained(
            place,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise WeightsMismatch(f"the weights of {place.name} cannot be read ({error})") from error
    if isinstance(tower, PooledText):
        without_pooler(loaded)
    missing = sorted(name for name in info["missing_keys"] if name in loaded.state_dict())
    if missing:
        raise WeightsMismatch(
            f"the weights of {place.name} lack {len(missing)} tensors, such as {missing[0]}"
        )
    empty.load_state_dict(loaded.state_dict())


def _load_layers(tower: PooledText, folder: Path, modules: list[tuple[str, Path]]) -> None:
    for layer, (_, place) in zip(tower.layers, modules[2:], strict=True):
        if isinstance(layer, Dense):
            _require_safe(place)
            state = load_file(place / "model.safetensors")
            wanted = {f"linear.{name}": value for name, value in layer.linear.state_dict().items()}
            if {k: v.shape for k, v in state.items()} != {k: v.shape for k, v in wanted.items()}:
                raise WeightsMismatch(f"a dense layer of {folder.name} is not what its configuration says")
            layer.linear.load_state_dict({k.removeprefix("linear."): v.float() for k, v in state.items()})


def _load_scale(model: SentenceClip, place: Path) -> None:
    for path in sorted(place.glob("*.safetensors")):
        with safe_open(path, framework="pt") as opened:
            if "logit_scale" in opened.keys():  # noqa: SIM118 - no mapping
                with torch.no_grad():
                    model.logit_scale.copy_(opened.get_tensor("logit_scale").float())


def _require_safe(place: Path) -> None:
    if not any(place.glob("*.safetensors")):
        raise UnsafeWeights(
            f"{place.name} has no .safetensors file. Pickled weights can run code when opened and are never loaded; "
            "save the model again with safetensors on a machine you trust"
        )


def _require_one_space(encoder: Encoder, images: Path, texts: Path | None) -> None:
    size = encoder.preprocessing.size
    with torch.inference_mode():
        pictures = encoder.forward_images(torch.zeros(1, 3, size, size)).shape[1]
    if pictures != encoder.dim:
        raise WeightsMismatch(
            f"the image tower of {images.name} gives {pictures} numbers and the text tower of "
            f"{(texts or images).name} {encoder.dim}: they are no pair"
        )
    encoder.image_forwards = 0


@contextmanager
def _quietly() -> Iterator[None]:
    """Keeps transformers' progress bars, and what it says of the other tower's weights, off the terminal."""
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
