"""What a package from another home may say of itself: every field has a type and a bound, before anything reads it.

A manifest vouches for bytes and not for sense: whoever writes one can make all its checksums fit. What is neither named
here nor needed is not looked at but for its size, so that a newer Perennial may add to it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from app.desk.errors import PackageDamaged
from app.desk.troubles import invalid_sentence
from app.home.onnx_wire import elsewhere
from ingest.captions import normalise_language
from ingest.errors import IngestError
from model_updates.portable_encoder import FACTS, lacks

ORIGIN = "origin.json"
"""The file beside a release's manifest in which one that another home made has that home's."""

_MOST_VALUES, _DEEPEST, _LONGEST = 500_000, 24, 1 << 20
_FILE = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,120}$"
_SHA256 = r"^[0-9a-f]{64}$"


def _language(tag: str) -> str:
    try:
        is_tag = normalise_language(tag) == tag
    except IngestError:
        is_tag = False
    if not is_tag:
        raise ValueError(f"{tag[:40]!r} is no language tag")
    return tag


Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e9, le=1e9)]
Language = Annotated[str, Field(max_length=35), AfterValidator(_language)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._+/-]{0,120}$")]
Digest = Annotated[str, Field(pattern=_SHA256)]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]
Chunk = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]


class _Said(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _File(_Said):
    bytes: Count
    sha256: Digest


class _Taught(_Said):
    """What versions and releases both say of how they came about."""

    languages: Annotated[list[Language], Field(max_length=1000)] = []
    chunks: Annotated[list[Chunk], Field(max_length=100_000)] = []
    strategy: Name | None = None
    options: dict[Annotated[str, Field(max_length=100)], Any] = {}
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] | None = None
    training: dict[str, Any] | None = None
    files: dict[Annotated[str, Field(pattern=_FILE)], _File] = {}


class _Preprocessing(_Said):
    size: Annotated[int, Field(ge=8, le=2048)]
    mean: Annotated[list[Finite], Field(min_length=3, max_length=3)]
    std: Annotated[list[Annotated[Finite, Field(gt=0)]], Field(min_length=3, max_length=3)]
    interpolation: Literal["bicubic", "bilinear", "nearest", "lanczos", "box", "hamming"] = "bicubic"
    resize_mode: Literal["shortest", "squash", "longest"] = "shortest"


class _Insert(_Said):
    kind: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,60}$")]
    owner: Annotated[list[Annotated[str, Field(max_length=100)]], Field(min_length=2, max_length=2)]
    config: dict[str, Any]


class _Version(_Taught):
    # Names with a scheme or a path would be asked of a hub, or read from this disk.
    architecture: Annotated[
        str,
        Field(
            pattern=r"^(sentence-transformers/[A-Za-z0-9._+-]{1,200}@[0-9a-f]{12}|[A-Za-z0-9][A-Za-z0-9._+-]{0,100})$"
        ),
    ]
    blueprint: dict[str, Any] | None = None
    preprocessing: _Preprocessing
    dim: Annotated[int, Field(ge=1, le=16_384)]
    image_fingerprint: Digest
    text_fingerprint: Digest
    image_routes: dict[Annotated[str, Field(max_length=100)], Digest] = {}
    inserts: Annotated[list[_Insert], Field(max_length=10_000)] = []
    needs_torch: Annotated[str, Field(max_length=2000)] = ""


class _Slice(_Said):
    language: Language
    domain: Name
    images: Count
    captions: Count
    recalls: dict[Annotated[str, Field(max_length=40)], Annotated[Finite, Field(ge=0, le=100)]]


class _Release(_Taught):
    version: Annotated[str, Field(pattern=r"^v[0-9]{1,12}-[0-9a-f]{8}$")]
    generation: Annotated[str, Field(pattern=r"^g[0-9]{1,12}-[0-9a-f]{8}$")]
    mode: Literal["none", "delta", "mapped", "full"] | None = None
    images_embedded: Count | None = None
    integrity: dict[Annotated[str, Field(max_length=40)], Finite] = {}
    parent: Annotated[str, Field(pattern=r"^r[0-9]{1,12}-[0-9a-f]{8}$")] | None = None
    gate: dict[str, Any] | None = None
    slices: Annotated[list[_Slice], Field(max_length=100_000)] = []
    created: Annotated[str, Field(max_length=40)] | None = None


def require_plain(package: str, folder: Path) -> None:
    """Refuses what a package says of itself unless it makes sense; its parts lie in `version/` and `release/` there.

    Raises:
        PackageDamaged: a field is of another type, out of its bounds, or names what is not in the package.
    """
    version = _read(package, folder / "version" / "manifest.json")
    _checked(package, "version", _Version, version)
    _checked(package, "release", _Release, _read(package, folder / "release" / "manifest.json"))
    there = {path.name for path in (folder / "version").iterdir()} - {"manifest.json"}
    if set(version.get("files", {})) != there:
        raise _refused(package, "its version names other files than it brings")
    if ("blueprint" in version) != version["architecture"].startswith("sentence-transformers/"):
        raise _refused(package, "its encoder's name and blueprint do not go together")
    facts = _read(package, folder / "version" / FACTS) if FACTS in there else {}
    if facts:
        _require_own_graphs(package, facts, there)
    for graph in (folder / "version").glob("*.onnx"):
        try:
            lacking = elsewhere(graph.read_bytes())
        except ValueError as error:
            raise _refused(package, f"{graph.name} cannot be read ({error})") from error
        # Each is given to the library by its name. One that is not would be read from the file that the graph names.
        if sorted(lacking) != sorted(lacks(facts, graph.name)):
            raise _refused(package, f"{graph.name} lacks other numbers than {FACTS} says")


def _require_own_graphs(package: str, facts: Mapping[str, Any], there: set[str]) -> None:
    graphs = facts.get("graphs")
    if not isinstance(graphs, dict) or not all(isinstance(one, dict) for one in graphs.values()):
        raise _refused(package, f"{FACTS} lists no graphs")
    named = {str(name) for part in graphs.values() for name in part.values()}
    if not named <= there:
        raise _refused(package, f"{FACTS} names graphs that it does not bring")
    tensors = facts.get("tensors", {})
    if not isinstance(tensors, dict) or not all(_are_names(one) for one in tensors.values()):
        raise _refused(package, f"{FACTS} lists no names of tensors")


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _read(package: str, path: Path) -> dict[str, Any]:
    def no_number(text: str) -> None:
        raise ValueError(f"{text} is no number")

    try:
        document = json.loads(path.read_bytes(), parse_constant=no_number)
    except (OSError, ValueError, RecursionError) as error:
        raise _refused(package, f"{path.name} cannot be read ({error})") from error
    if not isinstance(document, dict):
        raise _refused(package, f"{path.name} is no object")
    why = _too_much(document)
    if why:
        raise _refused(package, f"{path.name} {why}")
    return document


def _too_much(document: Any) -> str:
    """Returns what is out of bounds in a document, however deep; empty where nothing is."""
    waiting, seen = [(document, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if seen > _MOST_VALUES or depth > _DEEPEST:
            return "says more than a manifest has to say"
        if isinstance(value, str) and (len(value) > _LONGEST or re.search("[\ud800-\udfff]", value)):
            return "holds a text that is too long, or none"
        if isinstance(value, (int, float)) and not (math.isfinite(value) and abs(value) < 1 << 64):
            return "holds a number that is too large"
        if isinstance(value, dict):
            waiting += [(one, depth + 1) for pair in value.items() for one in pair]
        elif isinstance(value, list):
            waiting += [(one, depth + 1) for one in value]
    return ""


def _checked(package: str, what: str, kind: type[BaseModel], document: dict[str, Any]) -> None:
    try:
        kind.model_validate(document)
    except ValidationError as error:
        raise _refused(
            package, f"of its {what}, {str(invalid_sentence(error.errors())).rstrip('.')}"
        ) from error


def _refused(package: str, why: str) -> PackageDamaged:
    return PackageDamaged(f"{package} is refused: {why}. Nothing was taken in.")
