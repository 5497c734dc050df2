"""Opens an encoder: an embedded one, an open_clip architecture with a tag or a local safetensors file, or a folder.

`open_clip.create_model` does the building and, for tags, the downloading; the trained parameters of a local
file are read by `safetensors` alone. Pickled files (.pt, .pth, .bin, .ckpt, .pkl) are refused: opening one
can run code.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import open_clip
import torch
from open_clip.tokenizer import default_bpe
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ingest.pair import BASE_LANGUAGE
from model_updates.embedded import EMBEDDED, TINY, base_languages, folder_of, photo_vocabulary, tiny_weights
from model_updates.encoder import Encoder
from model_updates.errors import UnknownModel, UnsafeWeights, WeightsMismatch
from model_updates.hub import hub_answers, is_cached
from model_updates.hub_texts import buildable, tokenizer_for
from model_updates.language_profiles import base_profiles
from model_updates.photo.model import PhotoModel, from_packages, preprocessing
from model_updates.photo.tokenizer import ROWS
from model_updates.photo.weights import LANGUAGES as PHOTO_LANGUAGES
from model_updates.photo.weights import NAME as PHOTO
from model_updates.photo.weights import WIDTH
from model_updates.preprocessing import Preprocessing
from model_updates.sentence.folders import is_folder, open_folders
from model_updates.towers import CLIP_ROWS, is_expandable, token_table
from model_updates.vocabulary import Vocabulary


def open_encoder(
    model: str = TINY,
    pretrained: str | None = None,
    *,
    texts: str | None = None,
    languages: Sequence[str] = (),
) -> Encoder:
    """Opens an encoder in eval mode on the CPU.

    `model` is an embedded encoder (`perennial-tiny`, `perennial-photo`), any architecture of open_clip such as
    `ViT-B-16`, or the path of a sentence-transformers folder with a CLIP model. `pretrained` is a tag of that
    architecture, or the path of a local ``.safetensors`` file; embedded encoders and folders have their own weights and
    take none. Beside a folder for pictures, `texts` is the path of the one for texts. `languages` are what the text
    tower of a folder or an architecture knows; the base language where none are named.

    Raises:
        UnknownModel: no such architecture or tag.
        UnsafeWeights: the file is in a pickled format.
        WeightsMismatch: the file does not fit the architecture.
    """
    if is_folder(model) and pretrained is None:
        return open_folders(Path(model), Path(texts) if texts else None, base_languages(model, languages))
    if texts is not None:
        raise UnknownModel(
            f"a text model goes with a local sentence-transformers folder, and {model!r} is none; "
            "name the folder of the image model"
        )
    if model in EMBEDDED:
        if languages:
            raise UnknownModel(
                f"{model} says itself which languages it knows; leave out {', '.join(languages)}"
            )
        if pretrained is not None:
            raise UnknownModel(f"{model} brings its own weights and takes none; leave out {pretrained!r}")
        return _EMBEDDED[model]()
    if pretrained is None:
        _config(model)
        raise UnknownModel(
            f"{model!r} needs weights: name a pretrained tag ({_some_tags(model)}) "
            "or a local .safetensors file"
        )
    local = Path(pretrained)
    is_tag = pretrained in open_clip.list_pretrained_tags_by_model(model)
    if not is_tag and (local.suffix or local.exists()):
        refuse_pickle(local)
        built = build_model(model)
        load_weights(built, local)
        return wrap(built, model, beside=local.parent, languages=languages)
    return wrap(_download(model, pretrained), model, languages=languages)


def open_embedded(folder: Path | None = None) -> Encoder:
    """Opens `perennial-tiny` from the package (or from a folder of the same shape), checking its SHA-256."""
    home = folder or folder_of(TINY)
    weights = tiny_weights(home)
    vocabulary = Vocabulary.read(home / "vocabulary.json")
    model = build_model(TINY, rows=vocabulary.size)
    load_weights(model, weights)
    return wrap(model, TINY, vocabulary)


def open_photo() -> Encoder:
    """Opens `perennial-photo` from the two packages that it is made of, checking their files first.

    Raises:
        UnknownModel: a package is not installed.
        WeightsMismatch: a package's file is not the pinned one.
    """
    return Encoder(
        from_packages(),
        architecture=PHOTO,
        preprocessing=preprocessing(),
        vocabulary=photo_vocabulary(),
        profiles=base_profiles(PHOTO_LANGUAGES),
    )


# Encoders that need no download, by name.
_EMBEDDED: dict[str, Callable[[], Encoder]] = {TINY: open_embedded, PHOTO: open_photo}


def build_model(model: str, *, rows: int | None = None, dim: int | None = None) -> nn.Module:
    """Builds an architecture with random weights; `rows` sets the token rows of an embedded one.

    `dim` is the length of its vectors where versions of it have several.
    """
    if model == PHOTO:
        return PhotoModel(rows or ROWS, is_double=dim != WIDTH).eval()
    if model == TINY:
        config = json.loads((folder_of(TINY) / "config.json").read_text(encoding="utf-8"))
        text = config["text_cfg"] | ({} if rows is None else {"vocab_size": rows})
        tiny: nn.Module = open_clip.CLIP(
            embed_dim=config["embed_dim"], vision_cfg=config["vision_cfg"], text_cfg=text
        )
        return tiny.eval()
    _config(model)
    with buildable(model) as told:
        built: nn.Module = open_clip.create_model(model, load_weights=False, pretrained_text=False, **told)
    return built.eval()


def drawn_anew(encoder: Encoder, seed: int) -> Encoder:
    """Returns an encoder of the same architecture and vocabulary with random weights, for training from scratch."""
    rows = None if encoder.vocabulary is None else encoder.vocabulary.size
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return encoder.around(build_model(encoder.architecture, rows=rows, dim=encoder.dim))


def _config(model: str) -> dict[str, Any]:
    # A name with a scheme would be asked of a hub, and one with a path read from this disk.
    is_known = model in open_clip.list_models()
    config: dict[str, Any] | None = open_clip.get_model_config(model) if is_known else None
    if config is None:
        near = get_close_matches(model, [*EMBEDDED, *open_clip.list_models()], n=6)
        hint = f"; similar: {', '.join(near)}" if near else ""
        raise UnknownModel(f"there is no encoder {model!r}, embedded or in open_clip{hint}")
    return config


def load_weights(model: nn.Module, path: Path) -> None:
    """Loads a local safetensors file into a model; fp16 is widened to the model's float32.

    Raises:
        UnsafeWeights: not a safetensors file.
        WeightsMismatch: missing, unexpected or differently shaped tensors.
    """
    refuse_pickle(path)
    if not path.is_file():
        raise WeightsMismatch(f"there is no weights file {path.name!r} at {str(path)!r}")
    try:
        # A file that is mapped lies in memory as it likes, and a product's last bit may depend on that.
        state: dict[str, Tensor] = {name: value.clone() for name, value in load_file(path).items()}
    except SafetensorError as error:
        raise WeightsMismatch(
            f"{path.name} is not a readable safetensors file ({error}); fetch it again"
        ) from error
    fit_weights(model, state, path.name)


def fit_weights(model: nn.Module, state: Mapping[str, Tensor], called: str) -> None:
    """Makes tensors a model's own; fp16 is widened to the model's float32. They are `called` so in an error.

    Raises:
        WeightsMismatch: missing, unexpected or differently shaped tensors.
    """
    later: frozenset[str] = getattr(model, "later", frozenset())
    for name in later - state.keys():  # what older versions do without, so that they stay what they were
        module, _, tensor = name.rpartition(".")
        setattr(model.get_submodule(module), tensor, None)
    wanted = model.state_dict()
    missing, extra = sorted(wanted.keys() - state.keys()), sorted(state.keys() - wanted.keys())
    shapes = [k for k in wanted.keys() & state.keys() if wanted[k].shape != state[k].shape]
    if missing or extra or shapes:
        raise WeightsMismatch(
            f"{called} does not fit this architecture: {len(missing)} tensors are missing "
            f"{missing[:2]}, {len(extra)} are unknown {extra[:2]}, "
            f"{len(shapes)} have another shape {shapes[:2]}"
        )
    # Copied, a large token table would be in memory twice.
    model.load_state_dict({k: v.to(wanted[k].dtype) for k, v in state.items()}, assign=True)


def refuse_pickle(path: Path) -> None:
    """Refuses every weights format but safetensors.

    Raises:
        UnsafeWeights: always, unless the name ends in .safetensors.
    """
    if path.suffix.lower() != ".safetensors":
        raise UnsafeWeights(
            f"{path.name} is not a .safetensors file. Pickled weights can run code when opened and are never "
            "loaded; convert them to safetensors on a machine you trust"
        )


def wrap(
    model: nn.Module,
    architecture: str,
    vocabulary: Vocabulary | None = None,
    *,
    beside: Path | None = None,
    languages: Sequence[str] = (),
) -> Encoder:
    """Makes an encoder of a built model, with CLIP's vocabulary where it fits, else open_clip's tokenizer.

    The rules of a tokenizer that open_clip does not bring may lie in the folder `beside`, where its weights are. Its
    `languages` are those that it knows, for telling a query's language; the base language where none are named.

    Raises:
        UnknownModel: they do not, and no hub answers.
    """
    preprocessing = _preprocessing(architecture, model)
    foreign = None
    if vocabulary is None:
        table = token_table(model)
        is_clips = table is not None and len(table) == CLIP_ROWS
        if is_clips and is_expandable(model) and _reads_as_clip(architecture):
            context = int(model.context_length)  # type: ignore[arg-type]
            vocabulary = Vocabulary.clip(Path(default_bpe()), context_length=context)
        else:
            foreign = tokenizer_for(architecture, beside)
    return Encoder(
        model,
        architecture=architecture,
        preprocessing=preprocessing,
        vocabulary=vocabulary,
        foreign_tokenizer=foreign,
        profiles=base_profiles(languages or [BASE_LANGUAGE]),
    )


def _reads_as_clip(architecture: str) -> bool:
    """True unless open_clip pairs an architecture with another tokenizer than CLIP's, or with other rules for it."""
    text: dict[str, Any] = (open_clip.get_model_config(architecture) or {}).get("text_cfg", {})
    return not text.get("hf_tokenizer_name") and not text.get("tokenizer_kwargs")


def _preprocessing(architecture: str, model: nn.Module) -> Preprocessing:
    config: dict[str, Any] = dict(getattr(model.visual, "preprocess_cfg", None) or {})
    size = config.get("size", getattr(model.visual, "image_size", 224))
    defaults = open_clip.transform.PreprocessCfg()
    return Preprocessing(
        size=int(size[0] if isinstance(size, tuple | list) else size),
        mean=tuple(config.get("mean", defaults.mean)),
        std=tuple(config.get("std", defaults.std)),
        interpolation=config.get("interpolation", defaults.interpolation),
        resize_mode=config.get("resize_mode", defaults.resize_mode),
    )


def fitting_variant(model: str, tag: str) -> str:
    """Returns the architecture with the activation that a tag was trained with: the model, or its other variant."""
    needs = bool(open_clip.get_pretrained_cfg(model, tag).get("quick_gelu", False))
    if needs == bool(_config(model).get("quick_gelu", False)):
        return model
    return f"{model}-quickgelu" if needs else model.removesuffix("-quickgelu")


def _some_tags(model: str) -> str:
    tags = [
        tag for tag in open_clip.list_pretrained_tags_by_model(model) if fitting_variant(model, tag) == model
    ]
    return ", ".join(tags[:4]) if tags else "none known for it"


def _download(model: str, tag: str) -> nn.Module:
    _config(model)
    tags = open_clip.list_pretrained_tags_by_model(model)
    if tag not in tags:
        raise UnknownModel(f"{model} has no pretrained tag {tag!r}; it has: {', '.join(tags) or 'none'}")
    fitting = fitting_variant(model, tag)
    if fitting != model:
        raise UnknownModel(
            f"the weights {tag!r} were trained with another activation (GELU or QuickGELU) than {model} has: every "
            f"vector would be off; ask for the model {fitting!r}"
        )
    if not is_cached(str(open_clip.get_pretrained_cfg(model, tag).get("hf_hub", ""))) and not hub_answers():
        raise UnknownModel(
            f"the weights {tag!r} of {model} are not on this machine, and no hub answers from here to fetch them; "
            "download them elsewhere and pass the path of the .safetensors file"
        )
    try:
        with torch.no_grad():
            built: nn.Module = open_clip.create_model(model, pretrained=tag, weights_only=True)
    except (OSError, RuntimeError) as error:
        raise UnknownModel(
            f"the weights {tag!r} of {model} could not be fetched ({error}); "
            "download them elsewhere and pass the path of the .safetensors file"
        ) from error
    return built.eval()
