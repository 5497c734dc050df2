"""The encoders that come with the program, and their first version, written without torch.

Their weights are read from files, and what torch once said of them, which is the same on every machine, lies beside
these as `version.json`: fingerprints, and what is said of their graphs. `python -m model_updates.portable_writer` asks
torch again.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from ingest.pair import BASE_LANGUAGE
from model_updates import language_profiles
from model_updates.errors import WeightsMismatch
from model_updates.onnx_sessions import SHIPPED
from model_updates.photo import packages
from model_updates.photo.tokenizer import sentence_pieces
from model_updates.photo.weights import CONTEXT, photo_weights
from model_updates.photo.weights import LANGUAGES as PHOTO_LANGUAGES
from model_updates.photo.weights import NAME as PHOTO
from model_updates.portable_encoder import FACTS
from model_updates.shards import write_shards
from model_updates.version_files import (
    PROFILES,
    VOCABULARY,
    listed,
    read_manifest,
    sha256_of,
    write_manifest,
)
from model_updates.vocabulary import Vocabulary

TINY = "perennial-tiny"
EMBEDDED = (TINY, PHOTO)
"""Encoders that need no download."""
SAID = "version.json"
WEIGHTS = "weights"


@dataclass(frozen=True)
class EmbeddedVersion:
    """What the first version of an embedded encoder consists of."""

    model: str  # name of the encoder
    weights: dict[str, NDArray[Any]]  # every parameter and buffer by its name
    vocabulary: Vocabulary
    said: dict[str, Any]  # by torch

    def write(self, folder: Path, facts: Mapping[str, Any]) -> None:
        """Writes into an empty folder what `versions.write_version` would, byte by byte.

        `facts` say where it came from.
        """
        folder.mkdir(parents=True, exist_ok=True)
        names = [*write_shards(self.weights, folder, WEIGHTS), VOCABULARY, PROFILES, FACTS]
        text = json.dumps(self.vocabulary.to_json(), ensure_ascii=False)
        (folder / VOCABULARY).write_text(text, encoding="utf-8")
        profiles = language_profiles.base_profiles(base_languages(self.model))
        (folder / PROFILES).write_bytes(language_profiles.to_bytes(profiles))
        (folder / FACTS).write_text(json.dumps(self.said["search"]) + "\n", encoding="utf-8")
        for part, graphs in self.said["search"]["graphs"].items():
            for name in graphs.values():
                shutil.copyfile(SHIPPED / f"{self.model}-{part}.onnx", folder / name)
                names.append(name)
        write_manifest(folder, {**facts, **self.said["manifest"], "files": listed(folder, names)})


def embedded_version(model: str) -> EmbeddedVersion | None:
    """Returns the first version of an embedded encoder; None where torch has to be asked.

    That is of another encoder, of one that is not whole here (`lacking`), and where this processor's arithmetic gives
    other weights.

    Raises:
        UnknownModel: a package of weights is not installed.
        WeightsMismatch: its file is not the pinned one.
    """
    if model not in EMBEDDED or lacking(model):
        return None
    weights, vocabulary = (_tiny if model == TINY else _photo)()
    said = json.loads((folder_of(model) / SAID).read_text(encoding="utf-8"))
    if said["weights"] != digest_of(weights):
        return None
    return EmbeddedVersion(model, weights, vocabulary, said)


def restore_graphs(version: Path) -> None:
    """Gives a version, each file under its name, those of its damaged graphs back that came with the program."""
    shipped = {sha256_of(path): path for path in SHIPPED.glob("*.onnx")}
    for name, facts in read_manifest(version)["files"].items():
        graph, sound = version / name, shipped.get(facts["sha256"])
        if sound is None or (graph.is_file() and sha256_of(graph) == facts["sha256"]):
            continue
        with TemporaryDirectory(prefix=f".{version.name}-", dir=version.parent) as work:
            shutil.copyfile(sound, Path(work) / name)
            (Path(work) / name).replace(graph)


def digest_of(weights: Mapping[str, NDArray[Any]]) -> str:
    """Returns the sha256 (hex) of tensors and their names, however they lie in files."""
    digest = hashlib.sha256()
    for name, value in sorted(weights.items()):
        digest.update(f"{name} {value.dtype.str} {value.shape}\n".encode())
        digest.update(np.ascontiguousarray(value).data)
    return digest.hexdigest()


def tiny_weights(home: Path) -> Path:
    """Returns where the weights of `perennial-tiny` lie in its folder.

    Raises:
        WeightsMismatch: they are not what its manifest says.
    """
    manifest = json.loads((home / "manifest.json").read_text(encoding="utf-8"))
    weights = home / "weights.safetensors"
    found = sha256_of(weights)
    if found != manifest["weights_sha256"]:
        raise WeightsMismatch(
            f"the embedded weights are damaged: sha256 {found[:12]}…, "
            f"expected {manifest['weights_sha256'][:12]}…; reinstall the package"
        )
    return weights


def _tiny() -> tuple[dict[str, NDArray[Any]], Vocabulary]:
    home = folder_of(TINY)
    weights = {name: value.astype(np.float32) for name, value in load_file(tiny_weights(home)).items()}
    return weights, Vocabulary.read(home / "vocabulary.json")


def _photo() -> tuple[dict[str, NDArray[Any]], Vocabulary]:
    return photo_weights(), photo_vocabulary()


def photo_vocabulary() -> Vocabulary:
    """Returns the segmentation of `perennial-photo`; see `packages.checked_file` for errors."""
    return Vocabulary.foreign(sentence_pieces(), context_length=CONTEXT)


def base_languages(model: str, stated: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns what languages a base encoder knows, `stated` if it does not say; the first reads any text."""
    if stated:
        return tuple(dict.fromkeys(stated))
    return PHOTO_LANGUAGES if model == PHOTO else (BASE_LANGUAGE,)


def lacking(model: str) -> str:
    """Returns a sentence that says what an encoder is made without on this machine; empty where it is whole."""
    if model != PHOTO or packages.is_installed(packages.SENTENCES):
        return ""
    return (
        f"{PHOTO} reads sixteen languages here and not about a hundred, as the package {packages.SENTENCES[0]}, "
        "which reads the others, is not installed; it is not made for Windows."
    )


def folder_of(model: str) -> Path:
    """Returns the folder of an embedded encoder's own files."""
    return Path(str(resources.files("model_updates") / "assets" / model))
