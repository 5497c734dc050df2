"""Writes into a version what `model_updates.portable_encoder` searches with: graphs that torch agrees with.

A graph holds no numbers: they are the version's, in the files that torch reads, too.
A graph that the version before has for the same fingerprint is taken from it. What cannot be written, or gives other
vectors, leaves no file of this behind: the version says why and is searched by torch.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from model_updates.embedded import EMBEDDED, SAID, digest_of, folder_of
from model_updates.encoder import Encoder
from model_updates.errors import NotPortable
from model_updates.fingerprints import text_body_digest
from model_updates.graph_skeletons import filled, kinds_of, lacking
from model_updates.inserts import Insert, Router, domain, reading
from model_updates.onnx_graphs import HeadGraph, TextGraph, TokensGraph, Tower, TrunkGraph
from model_updates.onnx_sessions import SHIPPED, session
from model_updates.opening import open_encoder
from model_updates.photo.e5 import BODY, MOST_TOKENS
from model_updates.photo.e5_file import PackedFile
from model_updates.photo.packages import IMAGE, SENTENCES, checked_file, write_layers
from model_updates.portable_encoder import BESIDE, FACTS, HEAD, ROUTER, TEXT, TRUNK, graphs_of, lacks
from model_updates.routes import BASE, extended
from model_updates.towers import embed, text_parts
from model_updates.vocabulary import SHARED

if TYPE_CHECKING:
    from onnx import ModelProto

CLOSEST = 1e-5
"""Numbers of two features of length 1 that are to be the same differ by at most this."""
MOST_BYTES = 1 << 30  # of a model; torch follows it with its numbers into one protobuf, which holds 2 GB
TEXTS = ("a", "two red boats on a lake, seen from the shore", "zwei rote Boote", "दो लाल नावें", "一只狗", "ok")


@dataclass
class _Graphs:
    """The graphs of one version, in the order in which they are written."""

    encoder: Encoder
    folder: Path
    before: Path | None
    names: dict[str, dict[str, str]] = field(default_factory=lambda: {TEXT: {}, TRUNK: {}, HEAD: {}})
    prints: dict[str, str] = field(default_factory=dict)  # by file
    tensors: dict[str, list[str]] = field(default_factory=dict)  # by file, what it lacks

    def add(self, part: str, route: str, fingerprint: str, made: Callable[[], TriedPart]) -> None:
        """Writes the graph of a route, or takes it from the version before where its fingerprint is the same."""
        name = f"search-{part}{f'-{hashlib.sha256(route.encode()).hexdigest()[:8]}' if route else ''}.onnx"
        known = {} if self.before is None else _said(self.before)
        if self.before is not None and known["prints"].get(name) == fingerprint:
            shutil.copyfile(self.before / name, self.folder / name)
            self.tensors[name] = lacks(known, name)
        else:
            self.tensors[name] = made().write(self.folder / name)
        self.names[part][route], self.prints[name] = name, fingerprint


def write_portable(folder: Path, encoder: Encoder, before: Path | None) -> tuple[list[str], str]:
    """Writes the files into a version's folder; returns their names, or why there are none.

    `before` is the folder of a version that has some of them already.
    """
    if before is not None and graphs_of(before, before).place is None:
        before = None  # what is damaged is not handed on
    try:
        _require(encoder)
        graphs = _written(folder, encoder, before)
    except NotPortable as error:
        for file in folder.glob("search-*.onnx"):
            file.unlink()
        return [], str(error)
    facts = _facts(encoder) | {"graphs": graphs.names, "prints": graphs.prints, "tensors": graphs.tensors}
    (folder / FACTS).write_text(json.dumps(facts) + "\n", encoding="utf-8")
    return [FACTS, *graphs.prints], ""


def _require(encoder: Encoder) -> None:
    if encoder.vocabulary is None:
        raise NotPortable(f"{encoder.architecture} cuts texts by a tokenizer of its own")
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise NotPortable(f"{', '.join(missing)} is not installed")
    table = encoder.model.get_parameter(_table(encoder)).nbytes
    if sum(value.nbytes for value in encoder.model.state_dict().values()) - table > MOST_BYTES:
        raise NotPortable(f"{encoder.architecture} is too large for a graph in one file")
    strange = [one.kind for one in encoder.inserts if not _is_known(one)]
    if strange:
        raise NotPortable(f"{strange[0]} is read by torch alone")


def _is_known(insert: Insert) -> bool:
    if isinstance(insert, Router):
        return insert.kind == ROUTER
    return insert.tower == "image" or (
        insert.tower == "text" and (insert.runs_in_tower or insert.kind == BESIDE)
    )


def require_same(folder: Path, encoder: Encoder) -> None:
    """Compares the graphs of a version that came from elsewhere with its weights: both must give the same vectors.

    Raises:
        NotPortable: they do not, or what is said of them is not true.
    """
    said = _said(folder)
    true = json.loads(json.dumps(_facts(encoder)))
    wrong = [name for name, value in true.items() if said.get(name) != value]
    if wrong:
        raise NotPortable(f"{FACTS} says something else of {', '.join(wrong)} than the weights do")
    for part, route, fingerprint, made in _parts(encoder):
        name = said["graphs"][part][route]
        if said["prints"][name] != fingerprint:
            raise NotPortable(f"{name} was written for other weights")
        made().compare(folder / name, lacks(said, name))


def _written(folder: Path, encoder: Encoder, before: Path | None) -> _Graphs:
    graphs = _Graphs(encoder, folder, before)
    for part in _parts(encoder):
        graphs.add(*part)
    return graphs


def _parts(encoder: Encoder) -> Iterator[tuple[str, str, str, Callable[[], TriedPart]]]:
    """Yields each part that has a graph, its route, its fingerprint, and what makes it."""
    body = text_body_digest(encoder.model, encoder.architecture).hexdigest()
    own = {one.owner.name for one in encoder.inserts if one.tower == "text" and one.runs_in_tower}
    for language in sorted({SHARED, *own}):
        read = reading(encoder.inserts, "text", language)
        digest = extended(body, [one.digest() for one in read])
        yield TEXT, language, digest, partial(text_part, encoder, read)
    for route in (BASE, *encoder.image_routes):
        seen = reading(encoder.inserts, "image", route)
        if route == BASE or any(one.runs_in_tower for one in seen):
            digest = encoder.trunk_fingerprint(route)
            yield TRUNK, route, digest, partial(trunk_part, encoder, seen)
        if hasattr(encoder.model, "image_head") or any(not one.runs_in_tower for one in seen):
            digest = encoder.image_fingerprint(route)
            yield HEAD, route, digest, partial(head_part, encoder, seen)


@dataclass(frozen=True)
class TriedPart:
    """A tower, or a head, and what it is tried with."""

    name: str
    tower: Tower
    cases: list[dict[str, Tensor]]
    moving: Mapping[str, dict[int, str]]

    def graph(self) -> ModelProto:
        """Returns it as a graph; see `graph_skeletons.filled` for errors."""
        return filled(self.name, self.tower, self.cases[0], self.moving)

    def write(self, file: Path) -> list[str]:
        """Writes the graph, has all cases read by both engines, and returns the names of the tensors that it lacks.

        Raises:
            NotPortable: onnxruntime cannot read it, or gives other numbers.
        """
        model, names = lacking(self.name, self.tower, self.cases[0], self.moving)
        file.write_bytes(model.SerializeToString())
        self.compare(file, names)
        return names

    def compare(self, file: Path, lacking: Sequence[str]) -> None:
        """Has all cases read by both engines, the graph with the tower's tensors of these names; errors as `write`."""
        state = self.tower.state_dict()
        try:
            opened = session(file, {name: state[name].detach().cpu().numpy() for name in lacking})
        except Exception as error:  # its errors have no class in common
            raise NotPortable(f"onnxruntime cannot open {file.name} ({type(error).__name__})") from error
        for case in self.cases:
            with torch.inference_mode():
                ours = self.tower(*case.values()).float().cpu().numpy()
            given = {name: value.cpu().numpy() for name, value in case.items()}
            try:
                theirs = opened.run(None, given)[0]
            except Exception as error:  # its errors have no class in common
                raise NotPortable(f"onnxruntime cannot run {file.name} ({type(error).__name__})") from error
            length = np.linalg.norm(ours, axis=1, keepdims=True).clip(min=1e-9)
            apart = float(np.abs((ours - theirs) / length).max())
            if not apart <= CLOSEST:
                raise NotPortable(
                    f"{file.name} gives other numbers than torch, {apart:.1e} of a feature's length away"
                )


def text_part(encoder: Encoder, inserts: list[Insert]) -> TriedPart:
    """Returns the text tower with its inserts; embedded tokens are what it takes."""
    end = 0 if encoder.vocabulary is None else encoder.vocabulary.end_row
    cases = []
    for texts in (TEXTS, TEXTS[:1]):
        tokens = encoder.tokenize(texts)
        ends = (tokens == end).int().argmax(dim=-1)
        cases.append({"embedded": embed(encoder.model, tokens), "ends": ends})
    moving = {"embedded": {0: "texts", 1: "length"}, "ends": {0: "texts"}}
    return TriedPart(f"{encoder.architecture}-{TEXT}", TextGraph(encoder.model, inserts), cases, moving)


def tokens_part(encoder: Encoder, inserts: list[Insert]) -> TriedPart:
    """Returns the text tower of a tokenizer that is not ours, with its inserts; tokens are what it takes."""
    cases = [{"tokens": encoder.tokenize(texts)} for texts in (TEXTS, TEXTS[:1])]
    tower, moving = TokensGraph(encoder.model, inserts), {"tokens": {0: "texts"}}
    return TriedPart(f"{encoder.architecture}-tokens", tower, cases, moving)


def trunk_part(encoder: Encoder, inserts: list[Insert]) -> TriedPart:
    """Returns the image tower with its inserts."""
    size = encoder.preprocessing.size
    pixels = torch.randn(3, 3, size, size, generator=torch.Generator().manual_seed(0)).to(encoder.device)
    tower, moving = TrunkGraph(encoder.model, inserts), {"pixels": {0: "pictures"}}
    return TriedPart(
        f"{encoder.architecture}-{TRUNK}", tower, [{"pixels": pixels}, {"pixels": pixels[:1]}], moving
    )


def head_part(encoder: Encoder, inserts: list[Insert]) -> TriedPart:
    """Returns the head of pictures with its inserts."""
    trunk = torch.rand(16, encoder.trunk_dim, generator=torch.Generator().manual_seed(0)).to(encoder.device)
    tower, moving = HeadGraph(encoder.model, inserts), {"trunk": {0: "pictures"}}
    return TriedPart(
        f"{encoder.architecture}-{HEAD}", tower, [{"trunk": trunk}, {"trunk": trunk[:1]}], moving
    )


def _facts(encoder: Encoder) -> dict[str, Any]:
    vocabulary, second = encoder.vocabulary, encoder.second
    tables = {SHARED, *(vocabulary.tables if vocabulary else ())}
    parts = ["image", "trunk", *(f"table:{table}" for table in sorted(tables))]
    return {
        "engine": "onnxruntime",
        "tower_dim": encoder.tower_dim,
        "trunk_dim": encoder.trunk_dim,
        "scale": encoder.similarity_scale,
        "apart": None if encoder.apart is None else encoder.apart.tolist(),
        "table": _table(encoder),
        "second": None if second is None else sorted(second.first),
        "digests": {part: encoder.part_digest(part) for part in parts},
        "inserts": [
            {
                "kind": one.kind,
                "owner": [one.owner.kind, one.owner.name],
                "config": one.config if one.kind == ROUTER else {},
                "tower": one.tower,
                "in_tower": one.runs_in_tower,
                "digest": one.digest(),
            }
            for one in encoder.inserts
        ],
    }


def _table(encoder: Encoder) -> str:
    own = text_parts(encoder.model).token_embedding
    return next(f"{name}.weight" for name, part in encoder.model.named_modules() if part is own)


def _said(folder: Path) -> dict[str, Any]:
    """Returns what is said of a version's graphs."""
    found: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    return found


def ship() -> None:
    """Writes the graphs of the embedded encoders without their weights, for `graph_skeletons` and `photo.e5`.

    And what torch says of these encoders, for `embedded`.
    """
    from model_updates.parts.ridge_head import RidgeHead
    from model_updates.photo.e5_graph import bare_graph
    from model_updates.strategies.ridge_heads import empty_head
    from model_updates.versions import write_version

    write_layers(torch.load(checked_file(IMAGE), map_location="cpu", weights_only=True))
    SHIPPED.mkdir(exist_ok=True)
    file = PackedFile(checked_file(SENTENCES))
    (SHIPPED / BODY).write_bytes(bare_graph(file, MOST_TOKENS).SerializeToString())
    for model in EMBEDDED:
        encoder = open_encoder(model)
        parts = [text_part(encoder, []), trunk_part(encoder, [])]
        parts += [head_part(encoder, [])] if hasattr(encoder.model, "image_head") else []
        config = empty_head(encoder, "any").config | {"axes": 2, "like": 3}  # any counts but none
        parts.append(head_part(encoder, [RidgeHead.build(domain("any"), config, encoder.model)]))
        for part in parts:
            place = SHIPPED / f"{part.name}{kinds_of(part.tower)}.onnx"
            place.unlink(missing_ok=True)
            graph, _ = lacking(part.name, part.tower, part.cases[0], part.moving)
            place.write_bytes(graph.SerializeToString())
        with TemporaryDirectory() as work:
            manifest = write_version(Path(work) / "v", encoder, {}, portable=True)
            search = _said(Path(work) / "v")
        weights = {name: value.numpy() for name, value in encoder.model.state_dict().items()}
        said = {
            "weights": digest_of(weights),
            "search": search,
            "manifest": {name: value for name, value in manifest.items() if name != "files"},
        }
        (folder_of(model) / SAID).write_text(json.dumps(said) + "\n", encoding="utf-8")


if __name__ == "__main__":
    ship()
