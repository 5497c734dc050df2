"""Immutable version folders: weights, vocabulary, strategy state, and the manifest that is written last.

::

    weights.safetensors          every parameter, float32
    vocabulary.json              token tables (only for towers whose vocabulary is ours)
    strategy_state.safetensors   "<strategy>/<name>" tensors that the next update needs
    manifest.json                what it is, where it came from, size and sha256 of each file

A folder without a manifest does not exist. Publishing it durably is `app`'s business.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from model_updates.encoder import Encoder
from model_updates.errors import VersionDamaged
from model_updates.opening import build_model, foreign_tokenizer, load_weights
from model_updates.preprocessing import Preprocessing
from model_updates.towers import resize_token_table
from model_updates.vocabulary import Vocabulary

WEIGHTS = "weights.safetensors"
VOCABULARY = "vocabulary.json"
STATE = "strategy_state.safetensors"
MANIFEST = "manifest.json"
BLOCK = 1 << 20


@dataclass(frozen=True)
class Version:
    """A version read back: the encoder, what its manifest says, and each strategy's state by name."""

    encoder: Encoder
    manifest: dict[str, Any]
    strategy_states: dict[str, dict[str, Tensor]]


def write_version(
    folder: Path,
    encoder: Encoder,
    facts: Mapping[str, Any],
    strategy_states: Mapping[str, Mapping[str, Tensor]],
) -> dict[str, Any]:
    """Writes a version into an empty folder and returns its manifest.

    Args:
        folder: is made when missing.
        encoder: in its final state, no adapters inserted.
        facts: where it came from: parent, root, chunks, strategy, options, seed, languages, training report.
        strategy_states: what each strategy keeps between updates.
    """
    folder.mkdir(parents=True, exist_ok=True)
    state = {k: v.detach().cpu().clone().contiguous() for k, v in encoder.model.state_dict().items()}
    save_file(state, folder / WEIGHTS)
    tensors = {
        f"{strategy}/{name}": value.detach().cpu().clone().contiguous()
        for strategy, values in strategy_states.items()
        for name, value in values.items()
    }
    save_file(tensors, folder / STATE)
    names = [WEIGHTS, STATE]
    if encoder.vocabulary is not None:
        text = json.dumps(encoder.vocabulary.to_json(), ensure_ascii=False)
        (folder / VOCABULARY).write_text(text, encoding="utf-8")
        names.append(VOCABULARY)
    manifest = {
        **facts,
        "architecture": encoder.architecture,
        "preprocessing": asdict(encoder.preprocessing),
        "dim": encoder.dim,
        "image_fingerprint": encoder.image_fingerprint(),
        "text_fingerprint": encoder.text_fingerprint(),
        "files": {name: _file_facts(folder / name) for name in names},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return manifest


def load_version(folder: Path, *, verify: bool = True) -> Version:
    """Reads a version, checking each file's size and sha256 first.

    Raises:
        VersionDamaged: no manifest, a missing file, or one that differs from the manifest.
    """
    manifest = read_manifest(folder)
    if verify:
        _verify(folder, manifest)
    vocabulary = None
    if VOCABULARY in manifest["files"]:
        vocabulary = Vocabulary.from_json(json.loads((folder / VOCABULARY).read_text(encoding="utf-8")))
    model = build_model(manifest["architecture"])
    if vocabulary is not None:
        _fit_table(model, vocabulary.size)
    load_weights(model, folder / WEIGHTS)
    values: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in manifest["preprocessing"].items()
    }
    preprocessing = Preprocessing(**values)
    encoder = Encoder(
        model,
        architecture=manifest["architecture"],
        preprocessing=preprocessing,
        vocabulary=vocabulary,
        foreign_tokenizer=None if vocabulary else foreign_tokenizer(manifest["architecture"]),
    )
    states: dict[str, dict[str, Tensor]] = {}
    for key, value in load_file(folder / STATE).items():
        strategy, _, name = key.partition("/")
        states.setdefault(strategy, {})[name] = value
    return Version(encoder, manifest, states)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Reads a version's manifest.

    Raises:
        VersionDamaged: there is none, or it is not JSON.
    """
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VersionDamaged(
            f"version {folder.name} has no readable manifest ({error}); it is not complete"
        ) from error
    return manifest


def _fit_table(model: Any, rows: int) -> None:
    # The embedded architecture's config names more rows than a small vocabulary may have.
    if model.token_embedding.num_embeddings > rows:
        model.token_embedding.weight.data = model.token_embedding.weight.data[:rows].clone()
        model.token_embedding.num_embeddings = rows
    resize_token_table(model, rows)


def _file_facts(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": _sha256(path)}


def _verify(folder: Path, manifest: dict[str, Any]) -> None:
    for name, facts in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise VersionDamaged(f"version {folder.name} lacks {name}; roll back to another release")
        if path.stat().st_size != facts["bytes"] or _sha256(path) != facts["sha256"]:
            raise VersionDamaged(
                f"{name} of version {folder.name} differs from its manifest; roll back to another release"
            )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while block := opened.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
