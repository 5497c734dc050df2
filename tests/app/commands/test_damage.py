"""What of a home is damaged, as a person meets it: what can be made again is, and the rest says what to do."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, publishing, update_cycle
from app.server.serving import Serving
from ingest.intake import IntakeOptions
from model_updates import versions
from tests.app.commands.running import document, run
from tests.app.small_home import copy_of, sample_chunk

Hits = list[tuple[str, float]]


def hits(home: Path) -> Hits:
    found = document("search", "two red boats", "--language", "en", home=home)["hits"]
    return [(one["id"], one["score"]) for one in found]


def status(home: Path) -> str:
    return " ".join(run("status", home=home).output.split())


def rotted(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def emptied(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"")


def of_another(path: Path) -> None:
    path.unlink()
    path.write_bytes(path.with_name("search-trunk.onnx").read_bytes())


HARMS: list[tuple[str, Callable[[Path], None]]] = [
    ("search-text.onnx", Path.unlink),
    ("search-text.onnx", rotted),
    ("search-text.onnx", of_another),
    ("search.json", emptied),
]


@pytest.mark.parametrize(("name", "harm"), HARMS)
def test_damaged_graphs_of_a_release_are_made_again_and_answers_stay(
    home: Path, name: str, harm: Callable[[Path], None]
) -> None:
    before = hits(home)
    (version,) = home.glob("versions/*")
    harm(version / name)

    assert name in status(home)
    assert "the next search makes them of its weights" in status(home)
    found = run("doctor", "--fail-on", "warn", "--json", home=home)
    (said, *_) = [one for one in json.loads(found.stdout)["found"] if one["level"] == "warn"]
    assert name in said["sentence"]
    assert "made again of its weights when it is next opened" in said["advice"]
    assert found.exit_code == 1

    assert hits(home) == before
    assert "Torch searches it" not in status(home)
    assert run("doctor", "--fail-on", "warn", home=home).exit_code == 0, "they lie where they lay"


def without_graphs(*given: Any, portable: bool, **named: Any) -> dict[str, Any]:
    return versions.write_version(*given, **named)


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose version was written before they brought graphs along; a search has given it some."""
    home = tmp_path_factory.mktemp("older") / "home"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(publishing, "write_version", without_graphs)
        settings = load_settings(home=home)
        update_cycle.initialise(settings)
    with Workspace.open(settings) as workspace:
        adding.add_chunk(workspace, sample_chunk(home.parent / "x.zip"), IntakeOptions(), by="test")
    assert not list(home.glob("versions/*/search*"))
    return home


@pytest.mark.parametrize("name", ["manifest.json", "search.json", "search-text.onnx"])
@pytest.mark.parametrize("harm", [Path.unlink, emptied])
def test_graphs_that_an_older_version_got_later_are_made_again(
    older: Path, tmp_path: Path, name: str, harm: Callable[[Path], None]
) -> None:
    home = copy_of(older, tmp_path)
    before = hits(home)
    (later,) = home.glob("graphs/*")
    harm(later / name)
    assert "the next search makes them of its weights" in status(home)
    assert hits(home) == before
    assert "Torch searches it" not in status(home)
    assert [one.name for one in home.glob("graphs/*")] == [later.name]


def test_graphs_that_rotted_where_no_time_tells_are_found_by_doctor_and_made_again(home: Path) -> None:
    before = hits(home)
    (graph,) = home.glob("versions/*/search-text.onnx")
    for path in graph.parent.iterdir():
        os.utime(path, ns=(0, 0))
    hits(home)  # all are noted to be sound
    rotted(graph)
    os.utime(graph, ns=(0, 0))
    sound = hashlib.sha256(graph.read_bytes()).hexdigest()
    assert "search-text.onnx" in run("doctor", home=home).output
    assert hits(home) == before
    assert hashlib.sha256(graph.read_bytes()).hexdigest() != sound


def test_an_onnxruntime_that_cannot_open_a_graph_is_said_by_search_and_by_a_server_that_starts(
    older: Path, tmp_path: Path
) -> None:
    """As one that is older than the graph says it: numbers of their format only grow."""
    home = copy_of(older, tmp_path)
    (graph,) = home.glob("graphs/*/search-text.onnx")
    model = onnx.load(graph)
    model.ir_version = 99
    onnx.save(model, graph)
    manifest = graph.with_name("manifest.json")
    facts = json.loads(manifest.read_text())
    data = graph.read_bytes()
    facts["files"][graph.name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest.write_text(json.dumps(facts))

    found = run("search", "two red boats", home=home)
    assert found.exit_code == 1
    said = " ".join(found.output.split())
    assert "cannot open search-text.onnx" in said
    assert "pip install --upgrade onnxruntime" in said
    assert "Traceback" not in said
    settings = load_settings(home=home)
    with Workspace.open(settings, read_only=True) as workspace:
        serving = Serving(workspace)
        assert serving.refresh() is False
        assert "pip install --upgrade onnxruntime" in str(serving.problem)
