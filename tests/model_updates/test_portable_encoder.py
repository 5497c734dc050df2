"""Searching without torch: the graphs of a version answer as its towers do, or are not there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import ModelProto

from model_updates import graph_skeletons, portable_writer
from model_updates.embedded import EMBEDDED
from model_updates.encoder import Encoder
from model_updates.errors import VersionDamaged
from model_updates.graph_skeletons import filled, skeleton_of
from model_updates.inserts import domain
from model_updates.opening import open_embedded, open_encoder
from model_updates.parts.adapters import FeatureHead
from model_updates.parts.low_rank import LowRank
from model_updates.parts.ridge_head import RidgeHead
from model_updates.parts.router import renew_router
from model_updates.photo.weights import NAME as PHOTO
from model_updates.portable_encoder import FACTS, PortableEncoder, is_portable
from model_updates.portable_writer import head_part, text_part, trunk_part
from model_updates.routes import BASE, quiet
from model_updates.search_encoder import SearchEncoder
from model_updates.strategies.ridge_heads import empty_head
from model_updates.version_files import SOUND, read_manifest, verify
from model_updates.versions import load_version, write_version
from tests.model_updates.photographs import drawn_pictures, photo_encoder
from tests.model_updates.tiny import draw, image_ids, make_strategy, teach, tiny_encoder, toy_pairs

TEXTS = ["a red circle", "zwei rote Boote auf einem See, vom Ufer aus gesehen", "", "一只狗", "a"]
PICTURES = [draw(name) for name in image_ids()[:3]]
NEW = "line"

ROOT = Path(__file__).parents[2]


def taught() -> Encoder:
    """`perennial-tiny` with a German table, a domain in its image tower, and a router."""
    encoder = open_embedded()
    teach(encoder, make_strategy("language-tables", epochs=1))
    deltas = LowRank.build(domain(NEW), LowRank.configuration(encoder.model, rank=2, alpha=4), encoder.model)
    with torch.no_grad():
        for up in deltas.up:
            up.copy_(0.1 * torch.randn(up.shape, generator=torch.Generator().manual_seed(0)))
    encoder.inserts.append(deltas.eval().requires_grad_(False))
    encoder.forget_fingerprints()
    near, far = (
        np.random.default_rng(n).normal(n, 1, (40, encoder.trunk_dim)).astype(np.float32) for n in (0, 3)
    )
    renew_router(encoder, {NEW: near, "noto": far})
    return encoder


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("versions") / "v1"
    write_version(folder, taught(), {}, portable=True)
    return folder


def assert_alike(ours: SearchEncoder, theirs: SearchEncoder, languages: list[str]) -> None:
    """Compares everything that searching asks of an encoder."""
    for tag in languages:
        np.testing.assert_allclose(
            ours.text_features(TEXTS, tag), theirs.text_features(TEXTS, tag), atol=1e-5, err_msg=tag
        )
        assert ours.text_fingerprint(tag) == theirs.text_fingerprint(tag), tag
        assert ours.text_route(tag) == theirs.text_route(tag), tag
    readings = ours.encode_readings(TEXTS[0], languages)
    np.testing.assert_allclose(readings, theirs.encode_readings(TEXTS[0], languages), atol=1e-5)
    for route in (BASE, *theirs.image_routes):
        np.testing.assert_allclose(
            ours.image_features(PICTURES, route), theirs.image_features(PICTURES, route), atol=1e-5
        )
        assert ours.image_fingerprint(route) == theirs.image_fingerprint(route)
        assert ours.trunk_fingerprint(route) == theirs.trunk_fingerprint(route)
    trunk = theirs.trunk_features(PICTURES)
    assert ours.guess_routes(trunk) == theirs.guess_routes(trunk)
    assert ours.nearest_routes(trunk) == theirs.nearest_routes(trunk)
    for what in ("image_routes", "dim", "tower_dim", "trunk_dim", "similarity_scale", "readable"):
        assert getattr(ours, what) == getattr(theirs, what), what
    assert (ours.can_guess_routes, ours.can_be_quiet) == (theirs.can_guess_routes, theirs.can_be_quiet)


def test_a_taught_version_answers_as_its_encoder_does(version: Path) -> None:
    assert_alike(PortableEncoder(version), load_version(version).encoder, ["en", "de", "fr", ""])


def test_photographs_two_spaces_and_a_corrected_language_are_read_alike(tmp_path: Path) -> None:
    encoder = photo_encoder().copy()
    pairs = toy_pairs("hi")
    teach(encoder, make_strategy("language-tables", epochs=1), pairs[:12], validation=pairs[12:])
    teach(encoder, make_strategy("ridge-heads"), toy_pairs("en"), languages=frozenset({"en", "hi"}))
    write_version(tmp_path / "v", encoder, {}, portable=True)
    ours = PortableEncoder(tmp_path / "v")
    assert_alike(ours, encoder, ["en", "de", "hi", "gl", "ko", "xx", ""])
    (route,) = encoder.image_routes
    low = quiet(route, 0.3)
    np.testing.assert_allclose(
        ours.image_features(drawn_pictures(), low), encoder.image_features(drawn_pictures(), low), atol=1e-5
    )
    assert ours.image_fingerprint(low) == encoder.image_fingerprint(low)
    # Without the second tower, and whole again.
    ours.spares_second = encoder.spares_second = True
    assert not ours.text_features(["two dogs"], "en")[0, ours.tower_dim :].any()
    assert ours.whole().text_features(["two dogs"], "en")[0, ours.tower_dim :].any()


def test_a_domain_may_have_a_head_where_the_base_has_none(tmp_path: Path) -> None:
    encoder = open_embedded()
    config = FeatureHead.configuration(encoder.trunk_dim, encoder.dim, hidden=8)
    head = FeatureHead.build(domain(NEW), config, encoder.model)
    torch.manual_seed(0)
    torch.nn.init.normal_(head.added.weight, std=0.01)
    encoder.inserts.append(head.eval().requires_grad_(False))
    write_version(tmp_path / "v", encoder, {}, portable=True)
    assert_alike(PortableEncoder(tmp_path / "v"), encoder, ["en"])


def test_a_graph_that_onnxruntime_cannot_run_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portable_writer, "lacking", lambda *_: (ModelProto(doc_string="none"), []))
    manifest = write_version(tmp_path / "v", open_embedded(), {}, portable=True)
    assert "onnxruntime cannot open search-text.onnx" in manifest["needs_torch"]
    assert not list((tmp_path / "v").glob("search*"))


def test_a_way_to_prepare_pictures_that_is_not_known_is_refused(version: Path, tmp_path: Path) -> None:
    folder = tmp_path / "v"
    shutil.copytree(version, folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["preprocessing"]["gamma"] = 2
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(VersionDamaged, match="prepares its pictures by gamma"):
        PortableEncoder(folder)


def test_graphs_of_what_did_not_change_are_those_of_the_version_before(version: Path, tmp_path: Path) -> None:
    encoder = load_version(version).encoder
    teach(encoder, make_strategy("language-tables", epochs=1), toy_pairs("fr"))
    prints = json.loads((version / FACTS).read_text(encoding="utf-8"))["prints"]
    before = tmp_path / "before"
    shutil.copytree(version, before)
    manifest = read_manifest(before)
    for name in prints:
        (before / name).write_bytes(b"of the version before")
        manifest["files"][name] = {
            "bytes": 21,
            "sha256": hashlib.sha256(b"of the version before").hexdigest(),
        }
    (before / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    names, why = portable_writer.write_portable(_folder(tmp_path / "after"), encoder, before)
    assert (sorted(names), why) == (sorted([FACTS, *prints]), "")
    assert {(tmp_path / "after" / name).read_bytes() for name in prints} == {b"of the version before"}
    (before / "search-text.onnx").write_bytes(b"what is damaged..... ")
    portable_writer.write_portable(_folder(tmp_path / "anew"), encoder, before)
    assert all(onnx.load(tmp_path / "anew" / name, load_external_data=False).graph.node for name in prints)


def test_a_graph_that_gives_other_numbers_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portable_writer, "CLOSEST", -1.0)
    manifest = write_version(tmp_path / "v", open_embedded(), {}, portable=True)
    assert "gives other numbers than torch" in manifest["needs_torch"]
    assert not is_portable(tmp_path / "v")
    assert not list((tmp_path / "v").glob("search*"))


def test_what_torch_alone_reads_is_said(tmp_path: Path) -> None:
    encoder = tiny_encoder(architecture="tiny")
    encoder.vocabulary, encoder.foreign_tokenizer = None, lambda texts: torch.zeros(len(texts), 3).long()
    names, why = portable_writer.write_portable(_folder(tmp_path / "v"), encoder, None)
    assert (names, why) == ([], f"{encoder.architecture} cuts texts by a tokenizer of its own")


@pytest.mark.parametrize("name", [FACTS, "search-trunk.onnx"])
def test_a_damaged_file_is_refused(version: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "v"
    shutil.copytree(version, folder)
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(VersionDamaged, match=name):
        PortableEncoder(folder)
    (folder / name).unlink()
    with pytest.raises(VersionDamaged, match=f"lacks {name}"):
        PortableEncoder(folder)


def test_a_graph_that_the_library_cannot_open_is_said(version: Path, tmp_path: Path) -> None:
    """As a library that is older than the graph says it: its numbers of format only grow."""
    folder = tmp_path / "v"
    shutil.copytree(version, folder)
    graph = onnx.load(folder / "search-text.onnx", load_external_data=False)
    graph.ir_version = 99
    onnx.save(graph, folder / "search-text.onnx")
    manifest = read_manifest(folder)
    data = (folder / "search-text.onnx").read_bytes()
    manifest["files"]["search-text.onnx"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    encoder = PortableEncoder(folder)
    with pytest.raises(VersionDamaged, match=r"cannot open search-text.onnx of v .*pip install --upgrade"):
        encoder.encode_texts(["a boat"])


def test_files_that_were_sound_are_read_again_once_they_change(version: Path, tmp_path: Path) -> None:
    folder = tmp_path / "v"
    shutil.copytree(version, folder)
    manifest = read_manifest(folder)
    old = {name: [facts["sha256"]] for name, facts in manifest["files"].items()}
    for name in old:
        os.utime(folder / name, ns=(0, 0))  # what was written just now is not trusted by its time
    verify(folder, manifest, list(old))
    lied = {name: facts | {"sha256": "0"} for name, facts in manifest["files"].items()}
    with pytest.raises(VersionDamaged, match="differs"):  # another manifest than the one that was compared
        verify(folder, manifest | {"files": lied}, list(old))
    data = bytearray((folder / FACTS).read_bytes())
    data[0] ^= 1
    (folder / FACTS).write_bytes(data)
    os.utime(folder / FACTS, ns=(0, 0))  # the time is as it was, but not the one that nobody can set
    with pytest.raises(VersionDamaged, match=FACTS):
        verify(folder, manifest, list(old))


def test_files_written_a_moment_ago_are_read_each_time(version: Path, tmp_path: Path) -> None:
    folder = tmp_path / "v"
    shutil.copytree(version, folder)
    (folder / SOUND).unlink(missing_ok=True)
    manifest = read_manifest(folder)
    for name in manifest["files"]:
        os.utime(folder / name)
    verify(folder, manifest, list(manifest["files"]))
    assert not (folder / SOUND).exists()


@pytest.mark.parametrize("model", EMBEDDED)
def test_the_graphs_that_come_with_the_package_fit_the_embedded_encoders(model: str) -> None:
    """Where one does not, `python -m model_updates.portable_writer` writes it anew."""
    encoder = open_encoder(model)
    parts = [text_part(encoder, []), trunk_part(encoder, [])]
    parts += [head_part(encoder, [])] if hasattr(encoder.model, "image_head") else []
    for part in parts:
        assert skeleton_of(part.name, part.tower) is not None, part.name


@pytest.mark.parametrize("model", EMBEDDED)
def test_the_shipped_graph_of_a_solved_head_fits_heads_of_any_size(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that an update that teaches a domain follows nothing."""

    def followed(*_: object) -> bytes:
        raise AssertionError("followed")

    encoder = photo_encoder() if model == PHOTO else open_embedded()
    config = empty_head(encoder, NEW).config
    chance = torch.Generator().manual_seed(0)
    monkeypatch.setattr(graph_skeletons, "_followed", followed)
    for axes, like in ((3, 4), (40, 70)):
        head = RidgeHead.build(domain(NEW), config | {"axes": axes, "like": like}, encoder.model)
        for buffer in head.buffers():
            buffer.copy_(torch.randn(buffer.shape, generator=chance) / 30)
        lacks = head_part(encoder, [head.requires_grad_(False)]).write(tmp_path / "head.onnx")  # and compares
        assert "registered.0.left" in lacks
    with pytest.raises(AssertionError, match="followed"):  # without a kernel it is another graph
        head_part(encoder, [RidgeHead.build(domain(NEW), config, encoder.model)]).graph()


def test_a_shipped_graph_fits_whatever_else_the_encoder_has_and_no_tower_of_another_shape() -> None:
    encoder = open_embedded()
    encoder.model.register_parameter("beside", torch.nn.Parameter(torch.zeros(3)))
    part = trunk_part(encoder, [])
    assert skeleton_of(part.name, part.tower) is not None
    encoder.model.visual.proj = torch.nn.Parameter(torch.zeros(192, 100))  # type: ignore[union-attr]
    assert skeleton_of(part.name, part.tower) is None


def test_numbers_lie_in_the_weights_alone(version: Path) -> None:
    assert is_portable(version)
    assert "needs_torch" not in read_manifest(version)
    graphs = [path.stat().st_size for path in version.glob("search-*.onnx")]
    assert len(graphs) == 3
    assert max(graphs) < 100_000
    assert sum(path.stat().st_size for path in version.glob("weights-*")) > 10_000_000


def test_a_tensor_that_a_version_lacks_is_named(version: Path, tmp_path: Path) -> None:
    folder = tmp_path / "v"
    shutil.copytree(version, folder)
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    facts["tensors"]["search-text.onnx"].append("registered.7.up")
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(
        VersionDamaged, match=r"v lacks registered\.7\.up, which search-text\.onnx is to read"
    ):
        PortableEncoder(folder, checked=False).encode_texts(["a boat"])


def test_graphs_that_hold_their_own_numbers_answer_as_before(
    version: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As all did that versions brought along at first."""

    def whole(*part: Any) -> tuple[ModelProto, list[str]]:
        return filled(*part), []

    monkeypatch.setattr(portable_writer, "lacking", whole)
    encoder = load_version(version).encoder
    write_version(tmp_path / "v", encoder, {}, portable=True)
    facts = json.loads((tmp_path / "v" / FACTS).read_text(encoding="utf-8"))
    del facts["tensors"]
    (tmp_path / "v" / FACTS).write_text(json.dumps(facts), encoding="utf-8")
    before, now = PortableEncoder(tmp_path / "v", checked=False), PortableEncoder(version)
    for language in ("en", "de"):
        np.testing.assert_array_equal(
            before.text_features(TEXTS, language), now.text_features(TEXTS, language)
        )
    for route in (BASE, NEW):
        np.testing.assert_array_equal(
            before.image_features(PICTURES, route), now.image_features(PICTURES, route)
        )


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_onnxruntime_keeps_no_number_of_the_machine_and_calls_nobody(version: Path, tmp_path: Path) -> None:
    """It does by itself, but where tests run: it looks for their variables."""
    script = (
        "import sys; from pathlib import Path; from model_updates.portable_encoder import PortableEncoder; "
        "print(PortableEncoder(Path(sys.argv[1])).encode_texts(['a boat']).shape)"
    )
    told = {
        name: value for name, value in os.environ.items() if not name.startswith(("CI", "ORT_", "GITHUB"))
    }
    told |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / ".cache")}
    command = [sys.executable, "-c", script, str(version)]
    ran = subprocess.run(command, env=told, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert not list(tmp_path.rglob("deviceid*"))
    assert not list(tmp_path.rglob("onnxruntime.db*"))
