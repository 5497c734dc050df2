"""Packages that another home made to do harm. Each comes through `perennial import`.

Their checksums all fit: whoever writes a package can make them. What is refused leaves nothing behind.

Row 4 of what fell once (SECURITY.md).
"""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from app.commands.cli import app
from app.desk.errors import PackageDamaged, UsageProblem
from app.doctor.examination import examine
from app.home.durable import sha256_of
from app.home.foreign import ORIGIN
from app.home.package import write_package
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.apart import try_release
from app.learning.transfer import export_release
from model_updates.errors import UnknownModel
from model_updates.language_profiles import from_bytes
from model_updates.opening import build_model
from model_updates.versions import write_version
from tests.app.small_home import copy_of, small_home

pytestmark = pytest.mark.usefixtures("starts_at_once")

Document = dict[str, Any]
Harm = Callable[[Document, Document, Path], None]
"""Changes a version's manifest, a release's, or files of the version in a folder."""


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the parts of an honest package, whose encoder no home has."""
    place = tmp_path_factory.mktemp("sent")
    settings = load_settings(home=copy_of(small_home(tmp_path_factory), place))
    with Workspace.open(settings) as workspace:
        record = going_live.live_release(workspace)[1]
        encoder = workspace.open_encoder(record.version)
        with torch.no_grad():
            next(encoder.model.parameters()).mul_(1.01)
        staged = settings.home / "staging/version"
        facts = {"strategy": "test", "root": record.version, "languages": ["en", "de"]}
        write_version(staged, encoder, facts, portable=True)
        version = workspace.releases.publish_version(staged)
        release = workspace.releases.publish_release(record.manifest.successor(record.id, version=version))
        package = export_release(workspace, release, place / "honest.perennial").path
    with zipfile.ZipFile(package) as archive:
        archive.extractall(place / "parts")
    return place / "parts"


@pytest.fixture
def settings(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))


def forged(sent: Path, place: Path, harm: Harm) -> Path:
    """Returns a package of parts that were changed, with checksums that fit."""
    parts = Path(shutil.copytree(sent, place / "forged"))
    manifests = [parts / kind / "manifest.json" for kind in ("version", "release")]
    version, release = (json.loads(path.read_text()) for path in manifests)
    harm(version, release, parts / "version")
    for path in (parts / "version").iterdir():
        said = version["files"].get(path.name)
        if isinstance(said, dict) and said["sha256"] != "0" * 64:
            said |= {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    for path, document in zip(manifests, (version, release), strict=True):
        path.write_text(json.dumps(document))
    files = {
        path.relative_to(parts).as_posix(): path
        for path in parts.rglob("*")
        if path.is_file() and path.name != "export.json"
    }
    target = place / "forged.perennial"
    write_package(target, files, {"release": "r9-00000000", "version": "v9-00000000"})
    return target


def brought(settings: Settings, package: Path) -> tuple[int, str]:
    run = CliRunner().invoke(app, ["import", str(package), "--home", str(settings.home)])
    assert run.exception is None or isinstance(run.exception, SystemExit), run.exception
    return run.exit_code, " ".join(run.output.split())


def bomb(folder: Path) -> None:
    """An .npz of some hundred kilobytes that unpacks to a hundred megabytes."""
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **{"en/alphabet": np.zeros(25_000_000, dtype=np.uint32)})
    (folder / "languages.npz").write_bytes(file.getvalue())


def lying_shape(folder: Path) -> None:
    """An .npz whose header claims a terabyte that is not there."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<u4", "fortran_order": False, "shape": (1 << 38,)}
    )
    with zipfile.ZipFile(folder / "languages.npz", "w") as archive:
        archive.writestr("en/alphabet.npy", header.getvalue() + b"\0" * 64)


def set_in(document: str, *path: str | int, to: Any) -> Harm:
    def harm(version: Document, release: Document, _: Path) -> None:
        place: Any = {"version": version, "release": release}[document]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return harm


def deep() -> Document:
    document: Document = {}
    for _ in range(60):
        document = {"a": document}
    return document


def renamed_graph(version: Document, release: Document, folder: Path) -> None:
    facts = json.loads((folder / "search.json").read_text())
    facts["graphs"]["text"] = dict.fromkeys(facts["graphs"]["text"], "../../../../etc/passwd")
    (folder / "search.json").write_text(json.dumps(facts))


def elsewhere(version: Document, release: Document, folder: Path) -> None:
    graph = next(folder.glob("search-text*.onnx"))
    graph.write_bytes(graph.read_bytes() + _tensor_elsewhere(b"\x0a\x08location\x12\x0b/etc/passwd"))


def elsewhere_by_name(version: Document, release: Document, folder: Path) -> None:
    """As the tensors of a version's graphs are, but none that is given to who opens it."""
    graph = next(folder.glob("search-text*.onnx"))
    said = b"\x42\x06stolen" + b"\x6a\x17\x0a\x08location\x12\x0b/etc/passwd"
    graph.write_bytes(graph.read_bytes() + _within_graph(said))


def elsewhere_in_more_bytes(version: Document, release: Document, folder: Path) -> None:
    """The length of a word is said in two bytes where one would do."""
    graph = next(folder.glob("search-text*.onnx"))
    graph.write_bytes(graph.read_bytes() + _tensor_elsewhere(b"\x0a\x88\x00location\x12\x0b/etc/passwd"))


def _tensor_elsewhere(said: bytes) -> bytes:
    """One more tensor of a model's graph, whose numbers lie elsewhere (ONNX's fields 13, 5 and 7)."""
    return _within_graph(bytes([13 << 3 | 2, len(said)]) + said)


def _within_graph(tensor: bytes) -> bytes:
    for field in (5, 7):
        tensor = bytes([field << 3 | 2, len(tensor)]) + tensor
    return tensor


REFUSED_BY_WHAT_THEY_SAY: dict[str, Harm] = {
    "a language that is no tag": set_in("release", "languages", to=["en", "not a tag!"]),
    "a language that is a path": set_in("release", "languages", to=["../../en"]),
    "languages that are no list": set_in("release", "languages", to="en"),
    "an architecture of a hub": set_in("version", "architecture", to="hf-hub:someone/something"),
    "an architecture that is a folder": set_in("version", "architecture", to="local-dir:/etc"),
    "an architecture with a path": set_in("version", "architecture", to="../../tmp/model"),
    "a name of a sentence model without one": set_in(
        "version", "architecture", to="sentence-transformers/x@0123456789ab"
    ),
    "a blueprint for an encoder without one": set_in(
        "version", "blueprint", to={"image": {"hidden_size": 1 << 40}}
    ),
    "huge dimensions": set_in("version", "dim", to=1 << 40),
    "negative dimensions": set_in("version", "dim", to=-1),
    "dimensions that are a text": set_in("version", "dim", to="192"),
    "pictures of a terabyte": set_in("version", "preprocessing", "size", to=1 << 20),
    "pictures of no size": set_in("version", "preprocessing", "size", to=-3),
    "a mean that is no number": set_in("version", "preprocessing", "mean", 0, to=float("nan")),
    "a deviation of zero": set_in("version", "preprocessing", "std", 0, to=0.0),
    "an unknown way of resizing": set_in("version", "preprocessing", "interpolation", to="__class__"),
    "a fingerprint that is not hex": set_in("version", "image_fingerprint", to="z" * 64),
    "a fingerprint with a NUL": set_in("version", "text_fingerprint", to="\0" * 64),
    "a file that lies above": set_in(
        "version", "files", "../../../etc/passwd", to={"bytes": 1, "sha256": "0" * 64}
    ),
    "a file that it does not bring": set_in(
        "version", "files", "weights-x.safetensors", to={"bytes": 1, "sha256": "0" * 64}
    ),
    "a file of negative size": set_in(
        "version", "files", "vocabulary.json", to={"bytes": -1, "sha256": "0" * 64}
    ),
    "files that are checksums alone": set_in("version", "files", "vocabulary.json", to="0" * 64),
    "an insert without a kind": set_in(
        "version", "inserts", to=[{"owner": ["language", "de"], "config": {}}]
    ),
    "an insert of a kind with a path": set_in(
        "version", "inserts", to=[{"kind": "../x", "owner": ["a", "b"], "config": {}}]
    ),
    "a seed that is infinite": set_in("release", "seed", to=float("inf")),
    "a seed below zero": set_in("release", "seed", to=-5),
    "a threshold that is no number": set_in("release", "integrity", to={"agreement": float("nan")}),
    "recall of a thousand percent": set_in("release", "slices", 0, "recalls", "t2i_r10", to=1000.0),
    "pictures below zero": set_in("release", "images_embedded", to=-1),
    "a chunk that is a path": set_in("release", "chunks", to=["../../../../x"]),
    "a chunk that is no id": set_in("release", "chunks", to=["g" * 12]),
    "a strategy that is a path": set_in("release", "strategy", to="../../evil"),
    "options without end": set_in("release", "options", to=deep()),
    "a text of two megabytes": set_in("release", "training", to={"note": "x" * (2 << 20)}),
    "half a character": set_in("release", "training", to={"note": "\ud800"}),
    "a number of 30 digits": set_in("version", "recall", to=10**30),
    "graphs that lie elsewhere": renamed_graph,
    "a graph with numbers elsewhere": elsewhere,
    "numbers in another file, in more bytes than needed": elsewhere_in_more_bytes,
    "numbers in another file, with a name": elsewhere_by_name,
}


@pytest.mark.parametrize("what", REFUSED_BY_WHAT_THEY_SAY)
def test_what_makes_no_sense_is_refused_before_anything_is_opened(
    sent: Path, settings: Settings, tmp_path: Path, what: str
) -> None:
    before = sorted(settings.home.glob("*/*"))
    code, said = brought(settings, forged(sent, tmp_path, REFUSED_BY_WHAT_THEY_SAY[what]))
    assert (code, "forged.perennial is refused" in said) == (1, True), said
    assert "tried apart" not in said
    assert "unexpected" not in said
    assert sorted(settings.home.glob("*/*")) == before


def swapped_rows(version: Document, release: Document, folder: Path) -> None:
    facts = json.loads((folder / "search.json").read_text())
    facts["tower_dim"] = 1 << 40
    (folder / "search.json").write_text(json.dumps(facts))


def other_vocabulary(version: Document, release: Document, folder: Path) -> None:
    (folder / "vocabulary.json").write_text('{"tables": {}, "context_length": 99999999999}')


def taken_architecture(version: Document, release: Document, folder: Path) -> None:
    version["architecture"] = "ViT-gopt-16-SigLIP2-384"  # of two billion numbers


REFUSED_BY_TRYING: dict[str, Harm] = {
    "dimensions of a terabyte": swapped_rows,
    "another vocabulary": other_vocabulary,
    "an encoder that it is not": taken_architecture,
    "profiles that unpack without end": lambda version, release, folder: bomb(folder),
    "profiles of a shape that is not there": lambda version, release, folder: lying_shape(folder),
}


@pytest.mark.parametrize("what", REFUSED_BY_TRYING)
def test_what_cannot_be_served_is_refused_by_a_process_that_tries_it(
    sent: Path, settings: Settings, tmp_path: Path, what: str
) -> None:
    before = sorted(settings.home.glob("*/*"))
    code, said = brought(settings, forged(sent, tmp_path, REFUSED_BY_TRYING[what]))
    assert (code, "It was tried apart; nothing of it was kept." in said) == (1, True), said
    assert sorted(settings.home.glob("*/*")) == before


@pytest.mark.parametrize("turn", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 20))])
def test_a_part_that_was_changed_at_random_is_taken_in_or_refused(
    sent: Path, settings: Settings, tmp_path: Path, turn: int
) -> None:
    """Weights, graphs, profiles, tables: each by turns, with checksums that fit."""
    chance = random.Random(turn)
    names = sorted(path.name for path in (sent / "version").iterdir() if path.name != "manifest.json")

    def change(version: Document, release: Document, folder: Path) -> None:
        path = folder / names[turn % len(names)]
        data = bytearray(path.read_bytes())
        for _ in range(8):  # mostly where a file says what is in it
            data[int(len(data) * chance.random() ** 8)] = chance.randrange(256)
        path.write_bytes(data)

    before = sorted(settings.home.glob("*/*"))
    code, said = brought(settings, forged(sent, tmp_path, change))
    assert code in (0, 1), said
    assert code == 0 or sorted(settings.home.glob("*/*")) == before, said


def test_an_honest_package_is_taken_in_and_promoted(sent: Path, settings: Settings, tmp_path: Path) -> None:
    code, said = brought(settings, forged(sent, tmp_path, lambda *_: None))
    assert code == 0, said
    release = re.search(r"r3-[0-9a-f]{8}", said)
    assert release is not None
    run = CliRunner().invoke(app, ["promote", release[0], "--home", str(settings.home)])
    assert run.exit_code == 0, run.output


def test_a_release_that_was_taken_in_untried_is_tried_before_it_goes_live(settings: Settings) -> None:
    """As an earlier program took one in: nothing of the commit log changes."""
    with Workspace.open(settings) as workspace:
        live = going_live.live_release(workspace)[1]
        said = live.manifest.successor(live.id, languages=("en", "not a tag!"))
        release = workspace.releases.publish_release(said, {ORIGIN: b"{}"})
    run = CliRunner().invoke(app, ["promote", release, "--home", str(settings.home)])
    assert (run.exit_code, "is refused" in run.output) == (1, True), run.output
    assert "unexpected" not in run.output
    with Workspace.open(settings) as workspace:
        assert going_live.live_release(workspace)[1].id == live.id
        assert workspace.releases.standing().highest == 2


def test_nobody_goes_back_to_a_release_that_was_taken_in_untried(settings: Settings) -> None:
    with Workspace.open(settings) as workspace:
        live = going_live.live_release(workspace)[1]
        said = live.manifest.successor(live.id, languages=("en", "not a tag!"))
        release = workspace.releases.publish_release(said, {ORIGIN: b"{}"})
        with pytest.raises(UsageProblem, match="was never live"):
            going_live.rollback(workspace, release, why="", by="test")
        assert going_live.live_release(workspace)[1].id == live.id


def test_code_of_the_working_directory_is_not_run(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "here" / "app" / "doctor"
    planted.mkdir(parents=True)
    for path in (planted.parent / "__init__.py", planted / "__init__.py"):
        path.touch()
    (planted / "trial.py").write_text("print('{}')")
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(PackageDamaged):
        try_release(settings, "r99-00000000", 0)


def test_profiles_take_no_more_memory_than_profiles_have(tmp_path: Path) -> None:
    for harm in (bomb, lying_shape):
        harm(tmp_path)
        with pytest.raises(ValueError, match="language profile"):
            from_bytes((tmp_path / "languages.npz").read_bytes())


@pytest.mark.parametrize("name", ["hf-hub:someone/something", "local-dir:/etc", "/etc", "../x"])
def test_no_architecture_is_asked_of_a_hub_or_read_from_a_folder(name: str) -> None:
    with pytest.raises(UnknownModel, match="there is no encoder"):
        build_model(name)


def test_doctor_loads_what_a_server_would_load(settings: Settings) -> None:
    """A release from before packages were tried may be live."""
    with Workspace.open(settings) as workspace:
        live = going_live.live_release(workspace)[1]
        said = live.manifest.successor(live.id, languages=("en", "not a tag!"))
        release = workspace.releases.publish_release(said)
        workspace.releases.commit(release, parent=2, reason="promote", why="test", by="test")
    (found,) = [one for one in examine(settings).found if one.check == "loading"]
    assert (found.level, "A server cannot load r3-" in found.sentence) == ("error", True), found
    run = CliRunner().invoke(app, ["search", "a boat", "--home", str(settings.home)])
    assert run.exit_code == 0, run.output
    assert "`perennial repair` mends it." in " ".join(run.output.split())
