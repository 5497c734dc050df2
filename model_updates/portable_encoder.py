"""An encoder that searches without torch: the graphs of a version, run by onnxruntime, and its tensors, mapped.

What is in a version's folder for it (`model_updates.portable_writer` writes it):

::

    search.json              which graph reads which route, and what fingerprints are made of
    search-text*.onnx        embedded tokens to text features; a language with inserts in the tower has its own
    search-trunk*.onnx       prepared pictures to trunk features; likewise a domain
    search-head*.onnx        trunk features to image features; likewise

A graph lacks its numbers, which are those of the version's weights and inserts, mapped; versions of before have graphs
that hold their own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.sentence import phrase
from model_updates import language_profiles
from model_updates.errors import VersionDamaged
from model_updates.gaussians import Gaussians
from model_updates.kept_tensors import KeptTensors
from model_updates.onnx_sessions import session
from model_updates.photo.second_space import SecondSpace
from model_updates.routes import BASE, loudness
from model_updates.search_encoder import Rows, SearchEncoder, Tokens, unit
from model_updates.version_files import (
    GRAPHS,
    PROFILES,
    VOCABULARY,
    preprocessing_of,
    read_manifest,
    verify,
)
from model_updates.vocabulary import SHARED, Vocabulary

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

FACTS = "search.json"
TEXT, TRUNK, HEAD = "text", "trunk", "head"
TOGETHER = 64  # texts in one run
ROUTER, BESIDE = "lda-router", "second-reading"
"""Kinds of inserts that are read as numbers: no graph is needed for them."""
OF_MODEL = "model"
"""What a graph's names of the model's tensors begin with; those of inserts have the place on the route second."""


class PortableEncoder(SearchEncoder):
    """Both towers as graphs, each opened when it is first asked for."""

    def __init__(self, folder: Path, *, graphs: Path | None = None, checked: bool = True) -> None:
        """Reads what is small of a version's folder, every byte of its encoder compared with its manifest first.

        `graphs` is where its graphs lie when they were written later than the version.

        Raises:
            VersionDamaged: no manifest, a missing file, or one that differs from the manifest.
        """
        manifest = read_manifest(folder)
        files = manifest["files"]
        if checked:
            own = [name for name in files if not name.startswith(("state-", "strategy_state", GRAPHS))]
            verify(folder, manifest, own)
            _require_sound(graphs or folder)
        self._folder, self._graphs_in = folder, graphs or folder
        self._facts = json.loads((self._graphs_in / FACTS).read_text(encoding="utf-8"))
        super().__init__(
            architecture=manifest["architecture"],
            preprocessing=preprocessing_of(folder, manifest),
            vocabulary=Vocabulary.read(folder / VOCABULARY),
            profiles=language_profiles.from_bytes((folder / PROFILES).read_bytes())
            if PROFILES in files
            else {},
        )
        self._weights = KeptTensors(folder / name for name in files if name.startswith("weights"))
        self._inserts = KeptTensors(folder / name for name in files if name.startswith("inserts"))
        self._table = self._weights.rows(self._facts["table"])
        self._sessions: dict[str, InferenceSession] = {}
        self._opening = threading.Lock()

    @cached_property
    def tower_dim(self) -> int:
        return int(self._facts["tower_dim"])

    @cached_property
    def trunk_dim(self) -> int:
        return int(self._facts["trunk_dim"])

    @cached_property
    def second(self) -> SecondSpace | None:
        if self._facts["second"] is None:
            return None
        space = SecondSpace()
        space.first = frozenset(self._facts["second"])
        for name in ("offsets", "trusts", "first_offsets"):
            own = f"second.{name}"
            setattr(space, name, self._weights.array(own) if own in self._weights else None)
        return space

    @cached_property
    def image_routes(self) -> tuple[str, ...]:
        owners = (one["owner"] for one in self._facts["inserts"] if one["tower"] == "image")
        return tuple(sorted({name for kind, name in owners if kind == "domain"}))

    @cached_property
    def router(self) -> Gaussians | None:
        for number, one in enumerate(self._facts["inserts"]):
            if one["kind"] == ROUTER:
                whitening, means, radii, margin = (
                    self._inserts.array(f"{number}.{name}").astype(np.float64)
                    for name in ("whitening", "means", "radii", "margin")
                )
                own = one["config"]
                return Gaussians(whitening, means, radii, float(margin), own["domains"], own["routes"])
        return None

    @cached_property
    def apart(self) -> Rows | None:
        found = self._facts["apart"]
        return None if found is None else np.asarray(found, dtype=np.float32)

    @property
    def similarity_scale(self) -> float:
        return float(self._facts["scale"])

    def text_route(self, language: str) -> str:
        owners = [one["owner"][1] for one in self._facts["inserts"] if one["tower"] == "text"]
        if not self.tower_reads(language) or (language and language in owners):
            return language
        return SHARED if self.vocabulary is None else self.vocabulary.table_name(language)

    def whole(self) -> SearchEncoder:
        if not self.spares_second:
            return self
        return PortableEncoder(self._folder, graphs=self._graphs_in, checked=False)

    def trunk_of(self, pixels: Rows, route: str = BASE) -> Rows:
        self.image_forwards += len(pixels)
        # More at once wait longer for memory than they compute (docs/log.md).
        parts = [
            self._run(TRUNK, route, pixels=pixels[start : start + 8]) for start in range(0, len(pixels), 8)
        ]
        return np.concatenate(parts) if parts else np.empty((0, self.trunk_dim), dtype=np.float32)

    def _head(self, trunk: Rows, route: str) -> Rows:
        if not len(trunk):
            return np.empty((0, self.dim), dtype=np.float32)
        # Where neither a route nor the base has a head, what the tower gives out is the vector itself.
        return self._run(HEAD, route, trunk=trunk) if self._graph(HEAD, route) else trunk

    def _foreign_tokens(self, texts: Sequence[str]) -> Tokens:
        raise ValueError("a version that searches without torch has a vocabulary of its own")

    def _first(self, tokens: Tokens, languages: Sequence[str]) -> Rows:
        end = self.vocabulary.end_row if self.vocabulary is not None else 0
        ends = (tokens == end).argmax(axis=1)
        graphs = self._facts["graphs"][TEXT]
        read_by = [graphs.get(language, graphs[SHARED]) for language in languages]
        rows = np.empty((len(tokens), self.tower_dim), dtype=np.float32)
        for graph in dict.fromkeys(read_by):
            own = np.asarray([n for n, name in enumerate(read_by) if name == graph])
            # Texts of like length together, each group as far as its longest reaches: padding costs what words cost.
            own = own[ends[own].argsort(kind="stable")]
            for start in range(0, len(own), TOGETHER):
                part = own[start : start + TOGETHER]
                embedded = self._table[tokens[part, : int(ends[part].max()) + 1]]
                rows[part] = self._opened(graph).run(None, {"embedded": embedded, "ends": ends[part]})[0]
        return rows

    def _beside(self, first: Rows, rest: Rows, language: str) -> tuple[Rows, Rows]:
        for number, one in enumerate(self._facts["inserts"]):
            if one["kind"] == BESIDE and one["owner"] == ["language", language]:
                by, length = (self._inserts.array(f"{number}.{name}") for name in ("by", "length"))
                turned = unit(rest + rest @ by.astype(np.float32))
                read = np.linalg.norm(rest, axis=1, keepdims=True)
                first, rest = np.where(read > 0, np.float32(length), np.float32(1)) * first, turned * read
        return first, rest

    def _side(self, part: str) -> str:
        known: dict[str, str] = self._facts["digests"]
        return known[part]

    def _digests(self, tower: str, route: str, *, in_tower_alone: bool = False) -> list[str]:
        read = (self._facts["inserts"][number] for number in self._reading(tower, route))
        return [one["digest"] for one in read if one["in_tower"] or not in_tower_alone]

    def _reading(self, tower: str, route: str) -> list[int]:
        """Returns the numbers of the inserts that an input of a route runs through, as `inserts.reading` does."""
        owners = [["encoder", ""], ["language" if tower == "text" else "domain", loudness(route)[0]]]
        listed = enumerate(self._facts["inserts"])
        return [number for number, one in listed if one["tower"] == tower and one["owner"] in owners]

    def _run(self, part: str, route: str, **inputs: Rows) -> Rows:
        found: Rows = self._opened(self._graph(part, route)).run(None, inputs)[0]
        return found

    def _graph(self, part: str, route: str) -> str:
        """Returns the file of a route's graph, or of the base's; "" where neither has one."""
        graphs: dict[str, str] = self._facts["graphs"][part]
        return graphs.get(loudness(route)[0]) or graphs.get(BASE, "")

    def _opened(self, graph: str) -> InferenceSession:
        with self._opening:
            if graph not in self._sessions:
                self._sessions[graph] = self._read(graph)
            return self._sessions[graph]

    def _read(self, graph: str) -> InferenceSession:
        from onnxruntime import __version__

        tensors = self._tensors(graph)
        try:
            return session(self._graphs_in / graph, tensors)
        except Exception as error:  # its errors have no class in common
            raise VersionDamaged(
                f"onnxruntime {__version__} cannot open {graph} of {self._graphs_in.name} ({str(error)[:200]}). "
                "Its bytes are as they were written, so the library is too old for it, or not made for this processor: "
                "pip install --upgrade onnxruntime, or roll back to another release"
            ) from error

    def _tensors(self, graph: str) -> dict[str, NDArray[Any]]:
        """Returns what a graph lacks by the names that it has for it."""
        part, route = next(
            (part, route)
            for part, names in self._facts["graphs"].items()
            for route, name in names.items()
            if name == graph
        )
        read = self._reading("text" if part == TEXT else "image", route)
        found = {}
        for name in lacks(self._facts, graph):
            kind, _, own = name.partition(".")
            place, _, inside = own.partition(".")
            try:
                found[name] = (
                    self._weights.array(own)
                    if kind == OF_MODEL
                    else self._inserts.array(f"{read[int(place)]}.{inside}")
                )
            except (KeyError, IndexError, ValueError) as error:
                raise VersionDamaged(
                    f"version {self._folder.name} lacks {name}, which {graph} is to read; roll back to another release"
                ) from error
        return found


def lacks(facts: Mapping[str, Any], graph: str) -> list[str]:
    """Returns the names of the tensors that a graph does not hold, by what is said of a version's graphs."""
    names: list[str] = facts.get("tensors", {}).get(graph, [])
    return names


class Graphs(NamedTuple):
    """Where the graphs of a version lie."""

    place: Path | None  # None where there are none that a search may use
    why: str = ""  # there are none
    may_be_made: bool = False  # of its weights, by torch
    are_damaged: bool = False  # there were some


def graphs_of(folder: Path, later: Path) -> Graphs:
    """Returns where sound graphs of a version lie: in its folder, or in that of those which it got later.

    Raises:
        VersionDamaged: it has no readable manifest.
    """
    manifest = read_manifest(folder)
    if "needs_torch" in manifest:
        return Graphs(None, str(manifest["needs_torch"]))
    why: str = phrase("it was written before versions brought graphs along")
    are_damaged = False
    for place in (folder, later) if FACTS in manifest["files"] else (later,):
        try:
            said = read_manifest(place) if place.exists() else {}
            if "needs_torch" in said:
                return Graphs(None, str(said["needs_torch"]))
            if said:
                _require_sound(place)
                return Graphs(place)
        except VersionDamaged as error:
            why, are_damaged = str(error).partition(";")[0], True
    return Graphs(None, why, may_be_made=True, are_damaged=are_damaged)


def is_portable(folder: Path) -> bool:
    """Says whether a version brings graphs along, by which it can be searched without torch."""
    return FACTS in read_manifest(folder)["files"]


def _require_sound(graphs: Path) -> None:
    """Compares graphs with the manifest beside them; errors as `version_files.verify`."""
    manifest = read_manifest(graphs)
    names = [name for name in manifest["files"] if name.startswith(GRAPHS)]
    if FACTS not in names:
        raise VersionDamaged(f"the graphs of version {graphs.name} are not complete")
    verify(graphs, manifest, names)
