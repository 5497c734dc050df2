"""Claims about what an admin sees of a server: the doctor, logs, settings, held rows, near-copies."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

from PIL import Image
from sqlalchemy import update
from typer.testing import CliRunner

from app.client import connect
from app.commands import cli
from app.home import logs
from app.home.settings import Settings, described
from app.home.workspace import Workspace
from app.learning.inventory import things
from app.server.security import Passwords, password_line
from ingest.intake import IntakeOptions
from ingest.schema import images
from model_updates.gate.report import Policy
from tests.app.server.served import Served, make_home, served

ADMINS_ONLY = ("/v1/log", "/v1/settings", "/v1/held", "/v1/jobs/j1/log")


def _examined(server: Served, *options: str) -> tuple[int, Any]:
    asked = ["doctor", "--server", server.url, "--json", *options]
    result = CliRunner().invoke(cli.app, asked)
    return result.exit_code, json.loads(result.stdout)


def test_the_doctor_looks_at_a_server_as_at_a_home(server: Served, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code, said = _examined(server, "--fail-on", "warn", "--html", str(page))
    assert (code, said["level"]) == (0, "ok"), said
    home = ["doctor", "--home", str(server.settings.home), "--json"]
    here = json.loads(CliRunner().invoke(cli.app, home).stdout)
    assert [one["check"] for one in said["found"]] == [one["check"] for one in here["found"]]
    assert server.url in page.read_text(encoding="utf-8")

    (server.settings.home / "stray").write_bytes(b"x")
    code, said = _examined(server, "--quick", "--fail-on", "warn")
    orphans = next(one for one in said["found"] if one["check"] == "orphan files")
    assert (code, orphans["level"], "stray" in orphans["sentence"]) == (1, "warn", True)
    (server.settings.home / "stray").unlink()


def test_one_examination_at_a_time(tmp_path: Path) -> None:
    with served(make_home(tmp_path, jobs="here")) as server:
        with server.client() as client:
            first, again = (
                client.post("/v1/doctor", json={"every_byte": every}).json() for every in (False, True)
            )
        assert again["id"] == first["id"]
        with connect(server.url) as desk:
            done = desk.follow(first["id"], lambda _: None)
            assert (done.state, done.result["sentence"]) == ("succeeded", "Nothing is wrong.")
            assert len(desk.job_log(done.id, 3)) == 3
            assert done.id in " ".join(desk.job_log(done.id))


def test_settings_and_the_end_of_the_log_are_told(server: Served) -> None:
    logs.log_file(server.settings.home).write_text("one\ntwo\nthree\n", encoding="utf-8")
    with connect(server.url) as desk:
        assert desk.log(2) == ["two", "three"]
        told = {one.name: one for one in desk.settings()}
        assert (told["port"].value, told["port"].default) == ("7860", "7860")
        assert told["poll_seconds"].value == "0.1"
        assert told["gate.slice_drop"].value == "5.0"


def test_every_setting_is_described_by_its_own_sentence() -> None:
    told = described(Settings())
    names = [*(name for name in Settings.model_fields if name != "gate")]
    names += [f"gate.{one.name}" for one in fields(Policy)]
    assert [one.name for one in told] == names
    assert all(one.says for one in told)
    own = [one.says for one in told if not one.name.startswith("gate.")]
    assert len(set(own)) == len(own)


def test_rows_that_intake_held_and_near_copies_are_listed(server: Served, tmp_path: Path) -> None:
    upload = tmp_path / "held.zip"
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(("image", "caption", "language", "domain"))
    with zipfile.ZipFile(upload, "w") as archive:
        for n in range(2):
            picture = io.BytesIO()
            Image.effect_noise((64, 64), 60 + n).save(picture, "PNG")
            archive.writestr(f"{n}.png", picture.getvalue())
        writer.writerow(("0.png", "grey noise", "en", "noise"))
        writer.writerow(("0.png", "graues Rauschen", "de", "fog"))
        writer.writerow(("1.png", "more grey noise", "en", "noise"))
        archive.writestr("pairs.csv", table.getvalue())
    with connect(server.url) as desk:
        added = desk.add_chunk(upload, IntakeOptions(), lambda _: None)
        held = desk.held()
        (row,) = held.rows
        assert (held.total, row.chunk) == (1, added.chunk.id)
        assert (row.code, bool(row.sentence)) == ("domain_conflict", True)
        assert desk.held(limit=1, offset=1).rows == ()
        with Workspace.open(server.settings) as workspace:
            ids = workspace.catalog.gallery_ids()
            _one_thing(workspace, "a", ids[:2])
            _one_thing(workspace, "b", ids[2:5])
            assert things(workspace, limit=1)[1][0].images == tuple(ids[2:5])
        copies = desk.copies()
        assert (copies.total, [one.id for one in copies.things]) == (2, ["b", "a"])
        assert desk.copies(limit=1, offset=1).things[0].images == tuple(ids[:2])


def _one_thing(workspace: Workspace, name: str, ids: list[str]) -> None:
    with workspace.catalog._engine.begin() as connection:
        connection.execute(update(images).where(images.c.id.in_(ids)).values(cluster=name))


def test_only_admins_look_after_a_server(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    path.write_text(password_line("sue", "searcher", "correct horse battery") + "\n", encoding="utf-8")
    path.chmod(0o600)
    with (
        served(make_home(tmp_path), Passwords.load(path)) as guarded,
        guarded.client(auth=("sue", "correct horse battery")) as searcher,
    ):
        told = {route: searcher.get(route).status_code for route in ADMINS_ONLY}
        assert told == dict.fromkeys(ADMINS_ONLY, 403)
        assert searcher.post("/v1/doctor", json={}).status_code == 403
