"""Claims about tables for other programs: what is read back is what the home has, and no path goes out unasked."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from app.client import Refused, connect
from app.desk.slices import SliceSummary
from app.home.manifest import ReleaseManifest
from app.home.releases import ReleaseRecord
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.local.arrow_tables import measurements
from app.local.at_home import AtHome
from app.server.security import Passwords, password_line
from model_updates.gate.report import GateReport
from tests.app import small_home
from tests.app.commands.running import document, run
from tests.app.server.served import make_home, served


def test_vectors_read_back_are_those_of_the_index(template: Path, tmp_path: Path) -> None:
    said = run("export", "vectors", "--to", tmp_path / "v.parquet", home=template)
    assert said.exit_code == 0, said.output
    read = pyarrow.parquet.read_table(tmp_path / "v.parquet")
    with Workspace.open(load_settings(home=template), read_only=True) as workspace:
        live = workspace.releases.release(workspace.releases.current().release)  # type: ignore[union-attr]
        generation = workspace.open_generation(live.generation)
        ids = read["id"].to_pylist()
        assert ids == generation.ids
        assert len(ids) == small_home.PICTURES
        vectors = np.array(read["vector"].to_pylist(), dtype=np.float32)
        assert np.array_equal(vectors, generation.vectors(ids))
        records = workspace.catalog.images(ids)
    assert read["domain"].to_pylist() == [records[one].domain for one in ids]
    assert {name: set(read[name].to_pylist()) for name in ("release", "version", "fingerprint")} == {
        "release": {live.id},
        "version": {live.version},
        "fingerprint": {generation.fingerprint},
    }
    assert "paths" not in read.column_names


def test_paths_are_there_when_they_are_asked_for(home: Path, tmp_path: Path) -> None:
    assert run("export", "vectors", "--paths", "--to", tmp_path, home=home).exit_code == 0
    (file,) = tmp_path.glob("r2-*-vectors.parquet")
    paths = pyarrow.parquet.read_table(file)["paths"].to_pylist()
    assert all(one[0].endswith(".webp") and "german.zip!" in one[0] for one in paths)


def test_what_left_the_gallery_is_in_no_table(home: Path, tmp_path: Path) -> None:
    with AtHome(load_settings(home=home), by="test") as desk:
        before = _lines(desk.table("vectors", "jsonl").data)
        captions = _lines(desk.table("captions", "jsonl").data)
        gone = before[0]["id"]
        desk.take_out([gone], "a test")
        assert [one["id"] for one in _lines(desk.table("vectors", "jsonl").data)] == [
            one["id"] for one in before[1:]
        ]
        left = _lines(desk.table("captions", "jsonl").data)
    assert gone in {one["id"] for one in captions}
    assert left == [one for one in captions if one["id"] != gone]


def test_captions_are_the_same_in_every_form(template: Path, tmp_path: Path) -> None:
    for form in ("parquet", "csv", "jsonl"):
        assert run("export", "captions", "--to", tmp_path / f"c.{form}", home=template).exit_code == 0
    rows = pyarrow.parquet.read_table(tmp_path / "c.parquet").to_pylist()
    assert list(rows[0]) == ["id", "language", "text", "split", "domain"]
    assert rows == _lines((tmp_path / "c.jsonl").read_bytes())
    assert rows == list(csv.DictReader(io.StringIO((tmp_path / "c.csv").read_text(encoding="utf-8-sig"))))
    with Workspace.open(load_settings(home=template), read_only=True) as workspace:
        assert [(one["id"], one["text"]) for one in rows] == [
            (one.image_id, one.text) for one in workspace.catalog.pairs()
        ]


def test_measurements_have_an_interval_and_the_gates_bounds(reviewed: Path, tmp_path: Path) -> None:
    release = document("releases", home=reviewed)[0]["id"]
    assert (
        run(
            "export", "measurements", "--release", release, "--to", tmp_path / "m.csv", home=reviewed
        ).exit_code
        == 0
    )
    rows = list(csv.DictReader(io.StringIO((tmp_path / "m.csv").read_text(encoding="utf-8-sig"))))
    manifest = _manifest(reviewed, release)
    assert {(one["language"], one["domain"], one["view"]) for one in rows} == {
        (one.language, one.domain, one.view) for one in manifest.slices
    }
    for one in rows:
        assert float(one["low"]) <= float(one["percent"]) <= float(one["high"])
    (row,) = [
        one for one in GateReport.from_json(manifest.gate).rows if one.role == "new" and one.view == "own"
    ]
    (told,) = [
        one
        for one in rows
        if (f"{one['language']}/{one['domain']}", one["view"], one["metric"])
        == (row.slice, "own", "t2i_mean")
    ]
    assert (float(told["change"]), float(told["change_low"])) == (row.difference, row.low)
    assert float(told["percent"]) == pytest.approx(row.candidate, abs=1e-3)


def test_the_interval_of_a_share_is_wilsons(template: Path) -> None:
    # Half of 10 things: 23.7 to 76.3 percent.
    recalls = {"t2i_r1": 50.0, "t2i_r5": 50.0, "t2i_r10": 50.0}
    manifest = ReleaseManifest("v", "g", slices=(SliceSummary("de", "photo", 10, 40, recalls),))
    record = ReleaseRecord(id="r1", seq=1, folder=template, manifest=manifest, sha256="")
    rows = measurements(record).to_pylist()
    assert [one["metric"] for one in rows] == ["t2i_r1", "t2i_r5", "t2i_r10", "t2i_mean"]
    for one in rows:
        assert (round(one["low"], 1), round(one["high"], 1), one["change"]) == (23.7, 76.3, None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("vectors", "--to", "v.csv"), "not as CSV"),
        (("vectors", "--to", "v.npy"), "no file that ends in .parquet, .csv, .jsonl"),
        (("captions", "--release", "r2"), "leave the release out"),
        (("captions", "--paths"), "leave them out"),
        (("vectors", "--release", "r77"), "r77"),
        (("r2", "--paths"), "--paths are of a table"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run("export", *words, home=template)
    assert ended.exit_code in (1, 2)
    assert said in ended.stderr.replace("\n", " ")
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_stays(template: Path, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("mine", encoding="utf-8")
    assert "is there already" in run("export", "captions", "--to", tmp_path / "c.csv", home=template).stderr
    assert (tmp_path / "c.csv").read_text(encoding="utf-8") == "mine"


def test_a_server_tells_paths_to_those_alone_who_may_know_them(tmp_path: Path) -> None:
    accounts = tmp_path / "passwords"
    people = {name: (name, f"nine patient {name} herons") for name in ("searcher", "contributor", "admin")}
    accounts.write_text(
        "".join(password_line(name, name, word) + "\n" for name, word in people.values()), encoding="utf-8"
    )
    accounts.chmod(0o600)
    with served(make_home(tmp_path), Passwords.load(accounts)) as server:
        with (
            connect(server.url, auth=people["searcher"]) as desk,
            pytest.raises(Refused, match="contributor"),
        ):
            desk.table("captions", "jsonl")
        with connect(server.url, auth=people["contributor"]) as desk:
            assert "paths" not in _lines(desk.table("vectors", "jsonl").data)[0]
            with pytest.raises(Refused, match="places_for") as refused:
                desk.table("vectors", "jsonl", paths=True)
            assert refused.value.status == 403
        with connect(server.url, auth=people["admin"]) as desk:
            table = desk.table("vectors", "jsonl", paths=True)
            assert (table.name[:3], table.name.split("-", 2)[2]) == ("r1-", "vectors.jsonl")
            assert "scenes.zip!" in _lines(table.data)[0]["paths"][0]


def _lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.decode().splitlines()]


def _manifest(home: Path, release: str) -> Any:
    with Workspace.open(load_settings(home=home), read_only=True) as workspace:
        return workspace.releases.release(release).manifest
