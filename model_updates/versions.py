"""Immutable version folders: weights, vocabulary, strategy state, and the manifest that is written last.

::

    weights-*.safetensors        every parameter, float32, cut as `shards.py` has it (versions of before: one file)
    inserts-*.safetensors        those of its inserts, by their numbers
    vocabulary.json              token tables (only for towers whose vocabulary is ours)
    tokenizer.json               rules of a tokenizer that open_clip does not bring
    languages.npz                what the captions of its languages look like (versions of before have none)
    state-*.safetensors          what each strategy carries, which the next update needs
    manifest.json                what it is, where it came from, size and sha256 of each file

A folder without a manifest does not exist. Publishing it durably is `app`'s business.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from model_updates import language_profiles
from model_updates.encoder import Encoder, ForeignTokenizer
from model_updates.errors import VersionDamaged
from model_updates.hub_texts import kept, tokenizer_for
from model_updates.inserts import Insert, Owner
from model_updates.kept_tokenizer import KeptTokenizer
from model_updates.opening import build_model, fit_weights
from model_updates.parts.kinds import KINDS
from model_updates.portable_writer import write_portable
from model_updates.sentence.folders import kept_tokenizer
from model_updates.sentence.model import SentenceClip
from model_updates.shards import read_shards, saying_what_the_disk_said, write_shards
from model_updates.strategy import State
from model_updates.towers import replace_token_table, text_parts
from model_updates.version_files import (
    GRAPHS,
    PROFILES,
    VOCABULARY,
    listed,
    preprocessing_of,
    read_manifest,
    verify,
    write_manifest,
)
from model_updates.vocabulary import Vocabulary

WEIGHTS = "weights"
TOKENIZER = "tokenizer.json"
INSERTS = "inserts"
STATE = "state-{}.safetensors"
OLD_STATES = "strategy_state.safetensors"  # versions of schema 1 kept all strategies' tensors in one file


@dataclass(frozen=True)
class Version:
    """A version read back: the encoder, and what its manifest says."""

    encoder: Encoder
    manifest: dict[str, Any]


def write_version(
    folder: Path,
    encoder: Encoder,
    facts: Mapping[str, Any],
    states: Mapping[str, State] | None = None,
    *,
    parent: Path | None = None,
    portable: bool = False,
) -> dict[str, Any]:
    """Writes a version into an empty folder and returns its manifest.

    The folder is made when missing, the encoder in its final state. `facts` say where it came from: parent, root,
    chunks, strategy, options, seed, languages, training report. `states` are what strategies carry from this update;
    those of other strategies come along from the folder of the version before, `parent`. A `portable` one can be
    searched without torch; where it cannot, the manifest says why.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = write_shards(_arrays(encoder.model.state_dict()), folder, WEIGHTS)
    names += _write_states(folder, dict(states or {}), parent)
    if encoder.vocabulary is not None:
        text = json.dumps(encoder.vocabulary.to_json(), ensure_ascii=False)
        (folder / VOCABULARY).write_text(text, encoding="utf-8")
        names.append(VOCABULARY)
    if isinstance(encoder.foreign_tokenizer, KeptTokenizer):
        (folder / TOKENIZER).write_text(encoder.foreign_tokenizer.text, encoding="utf-8")
        names.append(TOKENIZER)
    if encoder.profiles:
        (folder / PROFILES).write_bytes(language_profiles.to_bytes(encoder.profiles))
        names.append(PROFILES)
    if encoder.inserts:
        tensors = {f"{n}.{k}": v for n, i in enumerate(encoder.inserts) for k, v in i.state_dict().items()}
        names += write_shards(_arrays(tensors), folder, INSERTS)
    why = ""
    if portable:
        own, why = write_portable(folder, encoder, parent)
        names += own
    manifest = {
        **facts,
        **({"needs_torch": why} if why else {}),
        "architecture": encoder.architecture,
        **({"blueprint": encoder.model.blueprint} if isinstance(encoder.model, SentenceClip) else {}),
        "preprocessing": asdict(encoder.preprocessing),
        "dim": encoder.dim,
        "image_fingerprint": encoder.image_fingerprint(),
        "image_routes": {route: encoder.image_fingerprint(route) for route in encoder.image_routes},
        "text_fingerprint": encoder.text_fingerprint(),
        "inserts": [
            {"kind": i.kind, "owner": [i.owner.kind, i.owner.name], "config": i.config}
            for i in encoder.inserts
        ],
        "files": listed(folder, names),
    }
    write_manifest(folder, manifest)
    return manifest


def write_graphs(version: Path, encoder: Encoder, place: Path) -> None:
    """Writes the graphs of a version into a folder of their own with a manifest, in place of what is there.

    Those that it was published with, byte by byte, go back into its folder. Where there can be none, the manifest says
    why.
    """
    place.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{version.name}-", dir=place.parent) as work:
        made = Path(work) / "made"
        made.mkdir()
        names, why = write_portable(made, encoder, None)
        graphs, own = listed(made, names), read_manifest(version)["files"]
        if graphs and graphs == {name: own[name] for name in own if name.startswith(GRAPHS)}:
            for name in graphs:
                (made / name).replace(version / name)
            return
        write_manifest(made, ({"needs_torch": why} if why else {}) | {"files": graphs})
        with suppress(FileNotFoundError):
            place.rename(Path(work) / "before")
        made.rename(place)


def load_version(folder: Path, *, checked: bool = True) -> Version:
    """Reads a version, checking the size and sha256 of each file that the encoder is made from.

    What strategies carry is left on the disk: only an update needs it (`load_state`).

    Raises:
        VersionDamaged: no manifest, a missing file, or one that differs from the manifest.
    """
    manifest = read_manifest(folder)
    if checked:
        own = [name for name in manifest["files"] if not _is_state(name) and not name.startswith(GRAPHS)]
        verify(folder, manifest, own)
    vocabulary = None
    if VOCABULARY in manifest["files"]:
        vocabulary = Vocabulary.read(folder / VOCABULARY)
    profiles = {}
    if PROFILES in manifest["files"]:
        profiles = language_profiles.from_bytes((folder / PROFILES).read_bytes())
    model = _built(manifest)
    if vocabulary is not None:
        _fit_table(model, vocabulary.size)
    fit_weights(model, _tensors(_files(folder, manifest, WEIGHTS)), f"version {folder.name}")
    encoder = Encoder(
        model,
        architecture=manifest["architecture"],
        preprocessing=preprocessing_of(folder, manifest),
        vocabulary=vocabulary,
        foreign_tokenizer=None if vocabulary else _tokenizer(folder, manifest),
        inserts=read_inserts(folder, model),
        profiles=profiles,
    )
    return Version(encoder, manifest)


class _Unfilled(TorchFunctionMode):
    """Models built under it have any numbers where random ones would be drawn, which takes most of building."""

    _DRAWN = (
        *(Tensor.normal_, Tensor.uniform_, nn.init.normal_, nn.init.uniform_),
        *(nn.init.trunc_normal_, nn.init.kaiming_uniform_),
    )

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Leaves a tensor as it is where `func` would draw its numbers, and calls it else."""
        told = kwargs or {}
        if func in self._DRAWN:
            return args[0] if args else told["tensor"]
        if func is torch.randn:
            return torch.empty(*args, **told)
        return func(*args, **told)


def _built(manifest: Mapping[str, Any]) -> nn.Module:
    with _Unfilled():
        if "blueprint" in manifest:
            return SentenceClip(manifest["blueprint"]).eval()
        return build_model(manifest["architecture"], dim=manifest.get("dim"))


def _tokenizer(folder: Path, manifest: Mapping[str, Any]) -> ForeignTokenizer:
    if "blueprint" in manifest:
        return kept_tokenizer((folder / TOKENIZER).read_text(encoding="utf-8"), manifest["blueprint"])
    if TOKENIZER in manifest["files"]:
        return kept(manifest["architecture"], (folder / TOKENIZER).read_text(encoding="utf-8"))
    return tokenizer_for(manifest["architecture"])


def load_state(folder: Path, strategy: str) -> State | None:
    """Reads what a strategy carried to a version; None when it never ran on its line.

    Raises:
        VersionDamaged: the file is missing or differs from the manifest.
    """
    manifest = read_manifest(folder)
    name = _state_file(strategy)
    if name not in manifest["files"]:
        return _old_state(folder, manifest, strategy)
    verify(folder, manifest, [name])
    with safe_open(folder / name, framework="pt") as opened:
        said = json.loads((opened.metadata() or {}).get("state", "{}"))
        tensors = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118 - no mapping
    return State(tensors, said.get("facts", {}), said.get("update", 0))


def _write_states(folder: Path, states: Mapping[str, State], parent: Path | None) -> list[str]:
    """Writes the states of this update and copies those of other strategies; returns the files' names."""
    names = []
    for strategy, state in sorted(states.items()):
        if state.tensors or state.facts:
            names.append(_state_file(strategy))
            said = json.dumps({"facts": state.facts, "update": state.update}, allow_nan=False)
            _save(state.tensors, folder / names[-1], {"state": said})
    older = [] if parent is None else [name for name in read_manifest(parent)["files"] if _is_state(name)]
    for name in older:
        if parent is not None and name not in map(_state_file, states):
            shutil.copyfile(parent / name, folder / name)
            names.append(name)
    return names


def _state_file(strategy: str) -> str:
    return STATE.format(strategy)


def _is_state(name: str) -> bool:
    return name == OLD_STATES or name.startswith("state-")


def _old_state(folder: Path, manifest: dict[str, Any], strategy: str) -> State | None:
    if OLD_STATES not in manifest["files"]:
        return None
    verify(folder, manifest, [OLD_STATES])
    prefix = f"{strategy}/"
    own = {
        k.removeprefix(prefix): v for k, v in load_file(folder / OLD_STATES).items() if k.startswith(prefix)
    }
    return State(own) if own else None


def read_inserts(folder: Path, model: nn.Module) -> list[Insert]:
    """Builds a version's inserts for its model and loads their tensors.

    Raises:
        VersionDamaged: one is of a kind that this program does not know.
    """
    manifest = read_manifest(folder)
    listed = manifest.get("inserts", [])
    tensors = _tensors(_files(folder, manifest, INSERTS))
    made = []
    for number, said in enumerate(listed):
        if said["kind"] not in KINDS:
            raise VersionDamaged(
                f"version {folder.name} holds an insert of kind {said['kind']!r}, which this program does not know "
                f"(it knows {', '.join(KINDS) or 'none'}); use the program version that wrote it"
            )
        insert = KINDS[said["kind"]].build(Owner(*said["owner"]), said["config"], model)
        own = {k.removeprefix(f"{number}."): v for k, v in tensors.items() if k.startswith(f"{number}.")}
        insert.load_state_dict(own)
        made.append(insert.requires_grad_(False))
    return made


def _arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    return {name: value.detach().cpu().numpy() for name, value in tensors.items()}


def _tensors(files: Sequence[Path]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(value) for name, value in read_shards(files).items()}


def _files(folder: Path, manifest: Mapping[str, Any], stem: str) -> list[Path]:
    """Returns the files of tensors whose names begin so."""
    return [folder / name for name in manifest["files"] if name.split(".")[0].split("-")[0] == stem]


def _save(tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    with saying_what_the_disk_said():
        save_file(
            {k: v.detach().cpu().clone().contiguous() for k, v in tensors.items()}, path, metadata=metadata
        )


def _fit_table(model: nn.Module, rows: int) -> None:
    """Gives a model a token table of so many rows, in which nothing is written: those of the version come next."""
    old: nn.Embedding = text_parts(model).token_embedding  # type: ignore[assignment]
    replace_token_table(model, torch.empty(rows, old.embedding_dim, dtype=old.weight.dtype))
