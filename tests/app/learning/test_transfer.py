from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path

import onnx
import pytest
import torch
from typer.testing import CliRunner

from app.commands.cli import app
from app.desk.errors import PackageDamaged, UsageProblem
from app.desk.jobs import Stage
from app.home.package import write_package
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.jobs import job_runner, requests
from app.learning import adding, going_live
from app.learning.gallery import embed_gallery
from app.learning.judged import judged_release
from app.learning.transfer import begin_with, export_release, import_release
from app.query.finder import Finder
from app.query.question import Question
from app.query.snapshot import Snapshot
from ingest.intake import IntakeOptions
from model_updates.versions import write_version
from tests.app.small_home import copy_of, new_home, sample_chunk, small_home

pytestmark = pytest.mark.usefixtures("starts_at_once")


@pytest.fixture
def there(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A home whose live encoder no other home has."""
    settings = load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))
    with Workspace.open(settings) as workspace:
        record = going_live.live_release(workspace)[1]
        encoder = workspace.open_encoder(record.version)
        with torch.no_grad():
            next(encoder.model.parameters()).mul_(1.01)
        folder = settings.home / "staging/version"
        facts = {"strategy": "test", "root": "v1-00000000", "languages": ["en", "de"]}
        write_version(folder, encoder, facts, portable=True)
        version = workspace.releases.publish_version(folder)
    with Workspace.open(settings) as workspace:
        generation = embed_gallery(workspace, workspace.open_encoder(version), previous=None).generation
        workspace.releases.publish_release(
            record.manifest.successor(record.id, version=version, generation=generation, chunks=("0" * 12,))
        )
    return settings


@pytest.fixture
def here(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Another home, with other pictures."""
    home = shutil.copytree(new_home(tmp_path_factory), tmp_path / "here")
    settings = load_settings(home=home, gate={"samples": 200, "cross_fit": False})
    with Workspace.open(settings) as workspace:
        chunk = sample_chunk(tmp_path / "own.zip", pictures=20, first=7)
        adding.add_chunk(workspace, chunk, IntakeOptions(), by="test")
    return settings


def test_a_release_goes_to_another_home_and_searches_its_pictures(
    there: Settings, here: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.open(there) as workspace:
        sent = export_release(workspace, "r3", tmp_path)
        version = workspace.releases.release("r3").version
        fingerprint = workspace.open_encoder(version).text_fingerprint()
    assert sent.path == tmp_path / f"{sent.release}.perennial"
    with Workspace.open(here) as workspace:
        live = going_live.live_release(workspace)[1].id
        came = import_release(workspace, sent.path, sha256=sent.sha256)
        assert going_live.live_release(workspace)[1].id == live
        assert came.images_embedded == 0  # only its text tower differs from the live one's
        assert "came from another home" in judged_release(workspace.releases, came.release).sentence
        generation = workspace.open_generation(workspace.releases.release(came.release).generation)
        assert list(generation.ids) == workspace.catalog.gallery_ids()
        record = workspace.releases.verify_release(came.release)
        # Chunks that this home does not have cannot be asked for pairs; a line that began elsewhere begins here.
        assert record.manifest.chunks == ()
        assert workspace.root_of(came.version) == came.version
        assert record.manifest.slices
        assert workspace.open_encoder(came.version).text_fingerprint() == fingerprint
        answer = Finder(workspace).find(
            Snapshot.load(workspace, came.release), Question.of("a red boat", 5, language="en")
        )
        assert len(answer.hits) == 5
        going_live.promote(workspace, came.release, why="test", by="test")
        assert list(here.home.glob("staging/*")) == []
        # Before a process is started that tries it.
        monkeypatch.setattr("app.learning.transfer.try_package", pytest.fail)
        with pytest.raises(UsageProblem, match="has the encoder"):
            import_release(workspace, sent.path)


def test_an_import_whose_worker_died_right_after_it_ends_well(
    there: Settings, here: Settings, tmp_path: Path
) -> None:
    with Workspace.open(there) as workspace:
        sent = export_release(workspace, "r3", tmp_path)
    received = here.home / "inbox" / sent.path.name
    shutil.copyfile(sent.path, received)
    job = requests.import_job(here, received, name=sent.path.name, sha256=sent.sha256, by="test")
    told: list[Stage] = []
    with Workspace.open(here) as workspace:
        came = import_release(workspace, sent.path, sha256=sent.sha256, progress=told.append)
        workspace.catalog.update_job(job.id, state="interrupted", progress=told[-1].to_json())
    assert job_runner.run_job(here, job.id) == 0
    with Workspace.open(here) as workspace:
        ended = workspace.catalog.job(job.id)
        assert (ended.state, ended.error) == ("succeeded", None)
        assert ended.result == {**json.loads(json.dumps(asdict(came))), "verified": True}
    assert not list(here.home.glob("staging/*/*.perennial"))


def test_a_package_that_was_changed_leaves_nothing_behind(
    there: Settings, here: Settings, tmp_path: Path
) -> None:
    with Workspace.open(there) as workspace:
        sent = export_release(workspace, "r3", tmp_path / "r3.perennial")
        with pytest.raises(UsageProblem, match="is there already"):
            export_release(workspace, "r3", sent.path)
    data = bytearray(sent.path.read_bytes())
    data[len(data) // 2] ^= 1
    sent.path.write_bytes(data)
    before = sorted(here.home.glob("*/*"))
    with Workspace.open(here) as workspace, pytest.raises(PackageDamaged, match="refused"):
        import_release(workspace, sent.path)
    assert sorted(here.home.glob("*/*")) == before


def test_graphs_that_give_other_vectors_than_the_weights_are_refused(
    there: Settings, here: Settings, tmp_path: Path
) -> None:
    """Whoever packs them anew can make every checksum fit, but not the vectors."""
    with Workspace.open(there) as workspace:
        record = workspace.releases.release("r3")
        staged = Path(shutil.copytree(workspace.home.versions / record.version, tmp_path / "staged"))
        graph = onnx.load(staged / "search-text.onnx", load_external_data=False)
        last = graph.graph.output[0].name
        graph.graph.node.append(onnx.helper.make_node("Neg", [last], ["forged"]))
        graph.graph.output[0].name = "forged"
        (staged / "search-text.onnx").write_bytes(graph.SerializeToString())
        manifest = json.loads((staged / "manifest.json").read_bytes())
        data = (staged / "search-text.onnx").read_bytes()
        said = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        manifest["files"]["search-text.onnx"] = said
        (staged / "manifest.json").write_text(json.dumps(manifest))
        files = {f"version/{name}": staged / name for name in ["manifest.json", *manifest["files"]]}
        files |= {
            f"release/{name}": record.folder / name for name in ("manifest.json", *record.manifest.files)
        }
        write_package(tmp_path / "forged.perennial", files, {"release": record.id})
    with (
        Workspace.open(here) as workspace,
        pytest.raises(PackageDamaged, match=r"search-text.onnx gives other numbers than torch"),
    ):
        import_release(workspace, tmp_path / "forged.perennial")


def test_a_home_can_begin_with_a_release_of_another(there: Settings, tmp_path: Path) -> None:
    with Workspace.open(there) as workspace:
        sent = export_release(workspace, "r3", tmp_path)
        fingerprint = workspace.open_searcher(workspace.releases.release("r3").version).text_fingerprint()
    new = load_settings(home=tmp_path / "new")
    begun = begin_with(new, sent.path, sha256=sent.sha256)
    with Workspace.open(new) as workspace:
        live = going_live.live_release(workspace)[1]
        assert (begun.release, begun.reason) == (live.id, "init")
        assert workspace.open_searcher(live.version).text_fingerprint() == fingerprint
        assert [one.domain for one in live.manifest.slices]
    with pytest.raises(UsageProblem, match="already has releases"):
        begin_with(new, sent.path)


def test_the_verbs_say_what_to_do_next(there: Settings, tmp_path: Path) -> None:
    run = CliRunner().invoke(
        app, ["export", "r3", "--to", str(tmp_path / "exp"), "--home", str(there.home), "--json"]
    )
    assert run.exit_code == 0, run.output
    sent = json.loads(run.stdout)
    assert [path.name for path in (tmp_path / "exp").iterdir()] == [f"{sent['release']}.perennial"]
    assert hashlib.sha256(Path(sent["path"]).read_bytes()).hexdigest() == sent["sha256"]
    wrong = ["import", sent["path"], "--sha256", "0" * 64, "--home", str(there.home)]
    run = CliRunner().invoke(app, wrong)
    assert run.exit_code == 1
    assert "was expected" in run.output
    run = CliRunner().invoke(app, ["import", str(tmp_path / "none"), "--home", str(there.home)])
    assert (run.exit_code, "There is no file" in run.output) == (2, True)
