from __future__ import annotations

import hashlib
import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from app.desk.errors import NewerFormat, PackageDamaged, UsageProblem
from app.home import package
from app.home.package import MANIFEST, place_of, read_package, write_package

Members = dict[str, bytes]


@pytest.fixture
def sent(tmp_path: Path) -> tuple[Path, str]:
    parts = {"version/weights.safetensors": b"w" * 5000, "release/manifest.json": b"{}"}
    files = {}
    for number, (name, data) in enumerate(parts.items()):
        files[name] = tmp_path / str(number)
        files[name].write_bytes(data)
    target = tmp_path / "r1.perennial"
    return target, write_package(target, files, {"release": "r1"})


def members_of(path: Path) -> Members:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path: Path, members: Members, *, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_what_was_written_comes_out_and_the_same_release_makes_the_same_bytes(
    sent: tuple[Path, str], tmp_path: Path
) -> None:
    path, sha256 = sent
    into = tmp_path / "into"
    into.mkdir()
    facts = read_package(path, into, sha256=sha256.upper())
    assert facts["release"] == "r1"
    assert (into / "version/weights.safetensors").read_bytes() == b"w" * 5000
    told = subprocess.run(["sha256sum", str(path)], capture_output=True, text=True, check=True).stdout
    assert told.split()[0] == sha256
    again = tmp_path / "again.perennial"
    files = {name: into / name for name in facts["files"]}
    assert write_package(again, files, {"release": "r1"}) == sha256
    assert again.read_bytes() == path.read_bytes()


def _changed_weights(members: Members) -> None:
    members["version/weights.safetensors"] = b"x" + members["version/weights.safetensors"][1:]


def _changed_manifest(members: Members) -> None:
    members[MANIFEST] = members[MANIFEST].replace(b'"r1"', b'"r2"')


def _left_out(members: Members) -> None:
    del members["release/manifest.json"]


def _climbing(members: Members) -> None:
    members["../../evil.json"] = b"{}"


def _pickle(members: Members) -> None:
    members["version/weights.pkl"] = b"x"


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (_changed_weights, "weights.safetensors is not what the manifest says"),
        (_changed_manifest, "fails its own checksum"),
        (_left_out, "other files than its manifest names"),
        (_climbing, "which no export has"),
        (_pickle, "which no export has"),
    ],
)
def test_what_was_tampered_with_is_refused(
    sent: tuple[Path, str], tmp_path: Path, tamper: Callable[[Members], None], words: str
) -> None:
    members = members_of(sent[0])
    tamper(members)
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(PackageDamaged, match=words):
        read_package(rewritten(sent[0], members), into)
    assert not (tmp_path / "evil.json").exists()


def test_a_package_whose_manifest_was_made_anew_is_refused_by_its_checksum(
    sent: tuple[Path, str], tmp_path: Path
) -> None:
    path, sha256 = sent
    other = tmp_path / "other"
    other.write_bytes(b"someone else's")
    forged = tmp_path / "forged.perennial"
    write_package(forged, {"version/weights.safetensors": other}, {"release": "r1"})
    (tmp_path / "a").mkdir()
    read_package(forged, tmp_path / "a")  # it is whole by itself
    (tmp_path / "b").mkdir()
    with pytest.raises(PackageDamaged, match="was expected"):
        read_package(forged, tmp_path / "b", sha256=sha256)


def test_the_checksum_that_earlier_exports_told_is_taken_too(sent: tuple[Path, str], tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()
    of_manifest = hashlib.sha256(members_of(sent[0])[MANIFEST]).hexdigest()
    assert read_package(sent[0], into, sha256=of_manifest)["release"] == "r1"


def test_an_export_goes_into_a_folder_or_into_a_file_that_is_named_as_one(tmp_path: Path) -> None:
    assert place_of("r3-1a", tmp_path) == tmp_path / "r3-1a.perennial"
    assert place_of("r3-1a", tmp_path / "exp") == tmp_path / "exp" / "r3-1a.perennial"
    assert place_of("r3-1a", tmp_path / "mine.perennial") == tmp_path / "mine.perennial"
    (tmp_path / "mine.perennial").write_bytes(b"x")
    (tmp_path / "notes.txt").write_bytes(b"x")
    for there in ("mine.perennial", "notes.txt"):
        with pytest.raises(UsageProblem, match="is there already"):
            place_of("r3-1a", tmp_path / there)
    for nowhere in ("none/exp", "none/mine.perennial"):
        with pytest.raises(UsageProblem, match="no folder that exists"):
            place_of("r3-1a", tmp_path / nowhere)


def test_packed_members_cut_files_and_other_zips_are_refused(sent: tuple[Path, str], tmp_path: Path) -> None:
    path, _ = sent
    into = tmp_path / "into"
    into.mkdir()
    cut = tmp_path / "cut.perennial"
    cut.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(PackageDamaged, match="cannot be read"):
        read_package(cut, into)
    with pytest.raises(PackageDamaged, match=r"has no export\.json"):
        read_package(rewritten(tmp_path / "other.zip", {"photo.jpg": b"x"}), into)
    with pytest.raises(PackageDamaged, match="packed"):
        read_package(rewritten(path, members_of(path), compression=zipfile.ZIP_DEFLATED), into)


def test_a_newer_format_is_refused(
    sent: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "FORMAT", 2)
    part = tmp_path / "part"
    part.write_bytes(b"x")
    newer = tmp_path / "newer.perennial"
    write_package(newer, {"version/weights.safetensors": part}, {})
    monkeypatch.undo()
    assert json.loads(members_of(newer)[MANIFEST])["format"] == 2
    with pytest.raises(NewerFormat, match="format 2"):
        read_package(newer, tmp_path / "nowhere")
