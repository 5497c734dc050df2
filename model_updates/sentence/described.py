"""What a sentence-transformers folder says of its model: modules, configurations, tokenizer, preprocessing.

What ``modules.json`` names is looked up in a short list; code that a folder brings is never run. Folders of older and
of newer versions of the library are read alike.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from model_updates.errors import UnknownModel
from model_updates.kept_tokenizer import AS_IT_IS, LOWERED, KeptTokenizer
from model_updates.preprocessing import Preprocessing
from model_updates.sentence.model import ACTIVATIONS, POOLINGS

MODULES = "modules.json"
LONGEST = 512
# Of transformers' configurations: where they came from, not what they build.
_PROVENANCE = ("_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype")
_RESAMPLING = {2: "bilinear", 3: "bicubic"}


def modules_of(folder: Path) -> list[tuple[str, Path]]:
    """Returns the kind and the folder of each module, in their order."""
    said = _json(folder / MODULES)
    if said is None:
        raise UnknownModel(
            f"{folder.name} is no sentence-transformers folder: it has no readable {MODULES}; "
            "name the folder that the model was saved to"
        )
    strange = [part["type"] for part in said if not str(part["type"]).startswith("sentence_transformers.")]
    if strange:
        raise UnknownModel(
            f"{folder.name} asks for code of its own ({strange[0]}), which is never run; "
            "use a model made of sentence-transformers' own modules"
        )
    return [(str(part["type"]).rpartition(".")[2], folder / part["path"]) for part in said]


def clip_folder(folder: Path) -> Path:
    """Returns where a folder keeps a CLIP model."""
    (kind, place), *others = modules_of(folder)
    if kind not in {"CLIPModel", "Transformer"} or "vision_config" not in config_of(place):
        raise UnknownModel(
            f"{folder.name} has no image tower of CLIP; name a folder such as clip-ViT-B-32 for pictures, "
            "and the text model's folder beside it"
        )
    _require_known(folder, others, {"Normalize"})
    return place


def text_side(folder: Path, modules: list[tuple[str, Path]]) -> tuple[dict[str, Any], Path]:
    """Returns what a folder's text tower is made of, and where its transformer is."""
    (kind, place), *others = modules
    _require_known(folder, [(kind, place)], {"CLIPModel", "Transformer"})
    config = config_of(place)
    if "text_config" in config:
        return {"kind": "clip", "config": config["text_config"]}, place
    _require_known(folder, others, {"Pooling", "Dense", "Normalize"})
    if not others or others[0][0] != "Pooling":
        raise UnknownModel(
            f"the text tower of {folder.name} says not how it pools its tokens; it needs a Pooling"
        )
    layers = [_layer(folder, *other) for other in others[1:]]
    return {"kind": "pooled", "config": config, "pooling": _pooling(others[0][1]), "layers": layers}, place


def _layer(folder: Path, kind: str, place: Path) -> dict[str, Any]:
    if kind == "Normalize":
        return {"kind": "normalize"}
    said = _json(place / "config.json") or {}
    activation = str(said.get("activation_function", "Tanh")).rpartition(".")[2]
    if kind != "Dense" or activation not in ACTIVATIONS or said.get("use_residual"):
        raise UnknownModel(
            f"{folder.name} has a layer that is not known here ({kind}, {activation}); "
            f"known are dense layers with {', '.join(ACTIVATIONS)}"
        )
    return {
        "kind": "dense",
        "inputs": said["in_features"],
        "outputs": said["out_features"],
        "bias": bool(said.get("bias", True)),
        "activation": activation,
    }


def _pooling(place: Path) -> str:
    said = _json(place / "config.json") or {}
    mode = said.get("pooling_mode")
    if mode is None:  # saved by an older library
        names = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}
        chosen = [key.removeprefix("pooling_mode_") for key, value in said.items() if value is True]
        modes = [names.get(key, key) for key in chosen if f"pooling_mode_{key}" in said]
        mode = modes[0] if len(modes) == 1 else "+".join(modes)
    if mode not in POOLINGS:
        raise UnknownModel(f"pooling by {mode!r} is not known here; known are {', '.join(POOLINGS)}")
    return str(mode)


def _require_known(folder: Path, modules: Sequence[tuple[str, Path]], known: set[str]) -> None:
    strange = sorted({kind for kind, _ in modules} - known)
    if strange:
        raise UnknownModel(
            f"{folder.name} holds a {strange[0]}, which is not known here; known are {', '.join(sorted(known))}"
        )


def config_of(place: Path) -> dict[str, Any]:
    """Returns a transformer's configuration with every default written out, without where it came from."""
    from transformers import AutoConfig

    try:
        read = AutoConfig.from_pretrained(place, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise UnknownModel(f"{place.name} holds no configuration of a transformer ({error})") from error
    return _without_provenance(read.to_dict())


def _without_provenance(said: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_provenance(value) if isinstance(value, dict) else value
        for name, value in said.items()
        if name not in _PROVENANCE
    }


def tokenizer_of(place: Path, config: dict[str, Any]) -> tuple[KeptTokenizer, dict[str, Any]]:
    """Returns a folder's tokenizer, and what a blueprint says of it."""
    from transformers import AutoTokenizer

    try:
        read = AutoTokenizer.from_pretrained(place, local_files_only=True, trust_remote_code=False)
        rules = read.backend_tokenizer
    except (OSError, ValueError, AttributeError) as error:
        raise UnknownModel(f"{place.name} holds no tokenizer that can be read ({error})") from error
    said = _json(place / "sentence_bert_config.json") or {}
    positions = int(config.get("max_position_embeddings", LONGEST))
    if "roberta" in str(config.get("model_type", "")):
        positions -= 2  # the first two are padding's
    longest = min(int(said.get("max_seq_length") or LONGEST), int(read.model_max_length), positions, LONGEST)
    rules.no_truncation()
    rules.no_padding()
    lower = bool(said.get("do_lower_case"))
    tokens = {"longest": longest, "pad": int(read.pad_token_id or 0), "lower": lower}
    return KeptTokenizer(rules.to_str(), longest=longest, clean=LOWERED if lower else AS_IT_IS), tokens


def preprocessing_of(place: Path) -> Preprocessing:
    """Returns how a folder's image tower wants its pictures."""
    said = _json(place / "preprocessor_config.json")
    if said is None:
        said = (_json(place / "processor_config.json") or {}).get("image_processor")
    if said is None:
        raise UnknownModel(
            f"{place.name} does not say how its pictures are prepared (preprocessor_config.json)"
        )
    side, mode = _side(said.get("size"))
    crop, _ = _side(said.get("crop_size", side))
    resampling = _RESAMPLING.get(int(said.get("resample", 3)))
    if side is None or crop != side or resampling is None or not said.get("do_normalize", True):
        raise UnknownModel(
            f"{place.name} prepares its pictures in a way that is not known here (size {said.get('size')}, crop "
            f"{said.get('crop_size')}, resampling {said.get('resample')})"
        )
    mean, deviation = (tuple(map(float, said[key])) for key in ("image_mean", "image_std"))
    return Preprocessing(
        size=side,
        mean=(mean[0], mean[1], mean[2]),
        std=(deviation[0], deviation[1], deviation[2]),
        interpolation=resampling,
        resize_mode=mode,
    )


def _side(said: Any) -> tuple[int | None, str]:
    """Returns the pixels of a square and how a picture gets there."""
    if isinstance(said, int):
        return said, "shortest"
    given = dict(said or {})
    if "shortest_edge" in given:
        return int(given["shortest_edge"]), "shortest"
    if given and given.get("height") == given.get("width"):
        return int(given["height"]), "squash"
    return None, ""


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def plain_name(name: str) -> str:
    """Returns a folder's name as a part of an architecture's."""
    return re.sub(r"[^\w.-]+", "-", name) or "model"
