"""What of a home is damaged, as a person meets it: what can be made again is, and the rest says what to do."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live
from app.server.serving import Serving
from index import segment as opened
from ingest.intake import IntakeOptions
from tests.app import small_home
from tests.app.commands.running import document, run
from tests.app.small_home import copy_of, sample_chunk
from tests.ingest.material import folder_of, picture

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
    opened._held.clear()  # elsewhere each verb is a process of its own, which holds nothing open


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


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose live version was written before they brought graphs along; a search has given it some."""
    home = small_home.older(
        copy_of(small_home.small_home(tmp_path_factory), tmp_path_factory.mktemp("older"))
    )
    assert hits(home)
    assert len(list(home.glob("graphs/*"))) == 1
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
    model = onnx.load(graph, load_external_data=False)
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


@pytest.fixture
def grown(home: Path, tmp_path: Path) -> Path:
    """A home whose index has two segments, of 40 pictures and of 6."""
    added = run("ingest", sample_chunk(tmp_path / "more.zip", pictures=6, first=7), home=home)
    assert added.exit_code == 0, added.output
    return home


def segment(home: Path, number: int) -> Path:
    """Returns the index file of a segment of the live generation."""
    generation = str(document("status", home=home)["live"]["generation"])
    name = "index.faiss" if number == 1 else f"index-{number}.faiss"
    return home / "generations" / generation / name


def vectors(home: Path) -> dict[str, list[float]]:
    with Workspace.open(load_settings(home=home)) as workspace:
        generation = workspace.open_generation(going_live.live_release(workspace)[1].generation)
        ids = sorted(generation.ids)
        return dict(zip(ids, generation.vectors(ids).tolist(), strict=True))


@pytest.mark.parametrize(("number", "lost", "kept"), [(1, 40, 6), (2, 6, 40)])
def test_of_a_damaged_segment_only_its_vectors_are_made_again(
    grown: Path, tmp_path: Path, number: int, lost: int, kept: int
) -> None:
    before, found = vectors(grown), hits(grown)
    rotted(segment(grown, number))
    rotten = segment(grown, number).name
    (sound,) = {segment(grown, 1), segment(grown, 2)} - {segment(grown, number)}

    said = run("search", "two red boats", home=grown)
    assert said.exit_code == 0  # a release before answers
    assert f"{rotten} of generation" in said.output.replace("Index", "index")
    assert "`perennial repair` mends it." in " ".join(said.output.split())
    said = run("doctor", home=grown)
    assert "The next `perennial add` makes what the live index lost again" in " ".join(said.output.split())

    said = run("ingest", sample_chunk(tmp_path / "one.zip", pictures=1, first=19), home=grown)
    assert said.exit_code == 0, said.output
    told = " ".join(said.output.split())
    assert f"The index had lost {lost} of 46 vectors; they are made again: {lost} of what was kept" in told
    assert ", 0 by embedding them again." in told
    now = vectors(grown)
    assert {one: now[one] for one in before} == before
    assert len(now) == 47
    new = set(now) - set(before)
    shown = [one for one in hits(grown) if one[0] not in new]
    assert shown == found[: len(shown)]
    assert any(sound.samefile(one) for one in segment(grown, 1).parent.glob("index*"))


def test_where_a_segment_is_missing_the_release_before_answers_and_says_so(grown: Path) -> None:
    live = document("status", home=grown)["live"]["release"]
    segment(grown, 2).unlink()
    found = document("search", "two red boats", home=grown)
    assert found["release"] != live
    assert "What went live last cannot be served" in found["note"]
    assert "has lost its file index-2.faiss" in found["note"]
    assert "Commit" in status(grown)


def test_a_server_goes_on_from_what_it_has_mapped_and_takes_what_was_made_again(
    grown: Path, tmp_path: Path
) -> None:
    settings = load_settings(home=grown)
    lost = segment(grown, 2)
    with Workspace.open(settings) as workspace:
        serving = Serving(workspace)
        assert serving.refresh() is True
        before = serving.snapshot()
        lost.unlink()
        assert serving.refresh() is False
        assert serving.snapshot() is before
        assert "has lost its file index-2.faiss" in str(serving.problem)
        (shown,) = before.generation.search(before.generation.vectors(before.generation.ids[-1:]), 46)[1]
        assert len(shown) == 46
        more = sample_chunk(tmp_path / "one.zip", pictures=1, first=19)
        adding.add_chunk(workspace, more, IntakeOptions(), by="test")
        assert serving.refresh() is True
        assert serving.problem is None
        assert serving.snapshot().pictures == 47


def test_going_back_to_a_release_whose_index_is_damaged_makes_what_is_lost_again(
    reviewed: Path, tmp_path: Path
) -> None:
    home = copy_of(reviewed, tmp_path)
    live = document("status", home=home)["live"]
    found = hits(home)
    candidate = document("releases", home=home)[-1]["id"]
    assert run("promote", candidate, "--force", "--why", "test", home=home).exit_code == 0
    rotted(home / "generations" / live["generation"] / "index.faiss")
    assert run("rollback", live["release"], home=home).exit_code == 0
    now = document("status", home=home)["live"]
    assert now["version"] == live["version"]
    assert now["generation"] != live["generation"]
    assert hits(home) == found


def test_adding_a_folder_again_that_is_as_it_was_makes_again_what_the_index_lost(
    home: Path, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1), "b.png": picture(2)})
    assert run("add", folder, home=home).exit_code == 0
    before = vectors(home)
    rotted(segment(home, 1))
    said = run("add", folder, home=home)
    assert "The index had lost 40 of 42 vectors" in " ".join(said.output.split())
    assert vectors(home) == before
    assert "The index had lost" not in run("add", folder, home=home).output


def test_a_library_that_is_older_than_asked_for_is_named_by_doctor(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = tmp_path / "onnxruntime-1.2.0.dist-info" / "METADATA"
    facts.parent.mkdir()
    facts.write_text("Metadata-Version: 2.1\nName: onnxruntime\nVersion: 1.2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    said = " ".join(run("doctor", home=home).output.split())
    assert "onnxruntime 1.2.0 is installed; this Perennial needs >=1.23." in said
    assert "pip install 'onnxruntime>=1.23'" in said


@pytest.mark.parametrize("listed", ["RECORD", "top_level.txt"])
def test_another_package_with_files_in_a_folder_of_ours_is_named_by_doctor(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str
) -> None:
    facts = tmp_path / "intruder-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: intruder\nVersion: 1.0\n")
    (facts / listed).write_text({"RECORD": "appendix/a.py,,\napp/b.py,,\n", "top_level.txt": "app\n"}[listed])
    monkeypatch.syspath_prepend(tmp_path)
    said = " ".join(run("doctor", home=home).output.split())
    assert "The package 'app' also belongs to intruder" in said
    assert "'perennial' also belongs" not in said


def test_a_library_that_is_not_made_for_the_processor_is_named_in_place_of_a_traceback(home: Path) -> None:
    """As numpy says it of a processor that lacks what it was built for; onnxruntime and FAISS choose as they load."""
    told = os.environ | {"NPY_DISABLE_CPU_FEATURES": "X86_V2 NEON", "PERENNIAL_HOME": str(home)}
    command = [sys.executable, "-c", "import perennial; perennial.main()", "search", "two red boats"]
    found = subprocess.run(command, env=told, capture_output=True, text=True, check=False)
    said = " ".join(found.stderr.split())
    assert found.returncode == 1
    assert said.startswith("A library that this needs cannot be loaded here (")
    assert "You cannot disable CPU feature" in said
    assert "pip install --force-reinstall" in said
    assert "Traceback" not in said


def test_a_library_that_is_broken_is_named_in_place_of_a_traceback(home: Path, tmp_path: Path) -> None:
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('libstdc++.so.6: version not found')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    told = os.environ | {"PYTHONPATH": path, "PERENNIAL_HOME": str(home)}
    command = [sys.executable, "-c", "import perennial; perennial.main()", "search", "two red boats"]
    found = subprocess.run(command, env=told, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    said = " ".join(found.stderr.split())
    assert "cannot be loaded here (libstdc++.so.6: version not found). It is missing, damaged, or not" in said
