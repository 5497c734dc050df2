from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import lmdb
import numpy as np
import pytest
from typer.testing import CliRunner

from app.commands.cli import app
from app.desk.health import Diagnosis, Level, worst
from app.doctor.examination import examine
from app.doctor.page import html_page
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.learning import going_live
from index import faiss_index
from index.manifest import files_of, read_manifest, write_manifest
from index.segment import INDEX_FILE
from model_updates.version_files import SOUND
from tests.app.small_home import copy_of, small_home
from tests.ingest.material import picture


@pytest.fixture
def settings(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))


def found(settings: Settings, check: str) -> list[Diagnosis]:
    return [one for one in examine(settings).found if one.check == check and one.level is not Level.OK]


def files(home: Path) -> list[Path]:
    """All files but those that SQLite and LMDB make and remove as they open and close, and notes of what was sound."""
    theirs = ("lmdb", "catalog.sqlite-", SOUND)
    return sorted(path for path in home.rglob("*") if not any(part in str(path) for part in theirs))


def test_a_sound_home_has_nothing_to_say(settings: Settings) -> None:
    before = files(settings.home)
    assert [one for one in examine(settings).found if one.level is not Level.OK] == []
    assert files(settings.home) == before


def test_a_changed_byte_is_found_and_quick_looks_at_sizes_alone(settings: Settings) -> None:
    weights = max(settings.home.glob("versions/*/weights-*.safetensors"))
    data = bytearray(weights.read_bytes())
    data[-5] ^= 1
    weights.write_bytes(data)
    levels = {
        one.check: one.level for one in examine(settings, every_byte=False).found if one.check == "checksums"
    }
    assert levels == {"checksums": Level.OK}
    said = found(settings, "checksums")
    assert [one.level for one in said] == [Level.ERROR, Level.ERROR]  # both releases have that version
    assert weights.name in said[0].sentence
    # What cannot be opened is said too, and the rest is looked at all the same.
    assert found(settings, "fingerprints")[0].level is Level.ERROR
    assert {one.check for one in examine(settings).found} >= {"disk", "pictures", "catalog"}


def test_pictures_lost_damaged_and_in_no_chunk_are_counted(settings: Settings) -> None:
    with Workspace.open(settings) as workspace:
        ids = workspace.catalog.gallery_ids()
        workspace.blobs.delete(ids[:2])
        other = picture(7)
        workspace.blobs.put([("ab" * 32, other, other)])
    with lmdb.open(str(settings.home / "blobs.lmdb"), max_dbs=16, map_size=1 << 30) as raw:
        data = raw.open_db(b"data", create=False)
        with raw.begin(write=True) as transaction:
            key = b"i" + bytes.fromhex(ids[5])
            value = bytearray(transaction.get(key, db=data) or b"")
            value[-1] ^= 1
            transaction.put(key, bytes(value), db=data)
    said = found(settings, "pictures")
    assert said[0].figures == {"stored": said[0].figures["stored"], "lost": 2, "damaged": 2, "unnamed": 1}
    assert [one.level for one in said] == [Level.ERROR, Level.ERROR, Level.WARN]


def test_features_that_are_not_finite_are_found(settings: Settings) -> None:
    with Workspace.open(settings) as workspace:
        store = workspace._features
        assert store is not None
        store.put_many([(b"x" * 16, np.array([1, np.nan], np.float32).tobytes()), (b"y" * 16, bytes(8))])
    said = found(settings, "features")
    assert (said[0].level, said[0].figures["non_finite"], said[0].figures["zero"]) == (Level.ERROR, 1, 1)


def test_pictures_that_the_live_index_lacks_are_an_error(settings: Settings) -> None:
    with Workspace.open(settings) as workspace:
        going_live.promote(workspace, "r1", why="test", by="test")
    said = found(settings, "coverage")
    assert said[0].level is Level.ERROR
    assert said[0].figures["missing"] == said[0].figures["gallery"]


@pytest.mark.parametrize(
    ("damage", "figure"),
    [
        (lambda rows: rows * 0, "zero"),
        (lambda rows: rows * 2, "unnormalised"),
        (lambda rows: rows * np.nan, "non_finite"),
    ],
)
def test_vectors_that_nothing_can_be_compared_with_are_found(
    settings: Settings, damage: object, figure: str
) -> None:
    assert callable(damage)
    with Workspace.open(settings) as workspace:
        live, record = going_live.live_release(workspace)
        generation = workspace.open_generation(record.generation)
        rows = generation.vectors(generation.ids)
        rows[:3] = damage(rows[:3])
        staged = Path(
            shutil.copytree(settings.home / "generations" / generation.id, settings.home / "staging/g")
        )
        faiss_index.write(faiss_index.build(rows, "Flat"), staged / INDEX_FILE)
        before = read_manifest(staged)
        facts = {k: v for k, v in before.items() if k not in ("files", "checksum")}
        write_manifest(staged, facts, files_of(staged, before))
        name = workspace.releases.publish_generation(staged)
        release = workspace.releases.publish_release(record.manifest.successor(record.id, generation=name))
        workspace.releases.commit(release, parent=live.number, reason="promote", why="test", by="test")
    said = found(settings, "vectors")
    assert (said[0].level, said[0].figures[figure]) == (Level.ERROR, 3)


def test_files_that_belong_to_nothing_are_listed(settings: Settings) -> None:
    (settings.home / "versions/v9-12345678").mkdir()
    (settings.home / "holiday.jpg").write_bytes(b"x")
    (settings.home / "staging/fresh").mkdir()
    old = settings.home / "inbox/old.zip"
    old.write_bytes(b"x")
    os.utime(old, (time.time() - 10**6,) * 2)
    said = found(settings, "orphan files")
    assert said[0].figures["files"] == 3
    assert all(name in said[0].sentence for name in ("holiday.jpg", "inbox/old.zip", "versions/v9-12345678"))


def test_a_catalog_that_has_gone_is_a_diagnosis(settings: Settings) -> None:
    (settings.home / "catalog.sqlite").unlink()
    said = examine(settings).found
    assert worst(said) is Level.ERROR
    assert "has gone" in next(one.sentence for one in said if one.check == "stores")


def test_the_verb_prints_json_writes_html_and_its_exit_code_is_of_the_level_asked_for(
    settings: Settings, tmp_path: Path
) -> None:
    (settings.home / "<b>strange").write_bytes(b"x")
    page = tmp_path / "page.html"
    home = ["--home", str(settings.home), "--quick", "--json"]
    result = CliRunner().invoke(app, ["doctor", *home, "--html", str(page)])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["level"] == "warn"
    assert {one["check"] for one in document["found"]} >= {"checksums", "coverage", "disk", "vectors"}
    html = page.read_text(encoding="utf-8")
    assert "&lt;b&gt;strange" in html
    assert "<b>strange" not in html
    assert CliRunner().invoke(app, ["doctor", *home, "--fail-on", "warn"]).exit_code == 1
    assert CliRunner().invoke(app, ["doctor", *home, "--fail-on", "never"]).exit_code == 0


def test_the_page_shows_the_worst_first() -> None:
    page = html_page(
        "home",
        [Diagnosis("a", Level.OK, "fine"), Diagnosis("b", Level.ERROR, "broken", "mend it")],
        "2030-01-01 00:00:00",
    )
    assert page.index("broken") < page.index("fine")
    assert "mend it" in page
