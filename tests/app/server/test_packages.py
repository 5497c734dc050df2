"""A release fetched from one server and taken in by another, as a caller of REST does it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from app.home.durable import FileSystem
from app.home.settings import Settings, load_settings
from app.learning import transfer
from tests.app.server.served import Served, make_home, served
from tests.app.small_home import copy_of, new_home

pytestmark = pytest.mark.usefixtures("starts_at_once")


@pytest.fixture
def other(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Another home, with an encoder of its own and no picture."""
    home, gate = copy_of(new_home(tmp_path_factory), tmp_path, "other"), {"samples": 200, "cross_fit": False}
    return load_settings(home=home, gate=gate, poll_seconds=0.1, jobs="elsewhere")


def fetched(server: Served, release: str) -> tuple[bytes, str]:
    with server.client() as client:
        answer = client.get(f"/v1/releases/{release}/package")
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    return answer.content, answer.headers["x-perennial-sha256"]


def test_a_release_travels_from_one_server_to_another(tmp_path: Path, other: Settings) -> None:
    with served(make_home(tmp_path)) as here:
        package, sha256 = fetched(here, "r2")
        assert fetched(here, "r2") == (package, sha256)
    with served(other) as there, there.client() as client:
        files = {"file": ("r2.perennial", io.BytesIO(package))}
        job = client.post("/v1/packages", files=files, data={"sha256": sha256.upper()}).json()["job"]
        done = there.ended(job["id"])
        assert done.state == "succeeded", done.error
        assert (done.result["origin"][:3], done.result["verified"]) == ("r2-", True)
        listed = client.get("/v1/releases").json()["releases"]
        assert [one["live"] for one in listed if one["id"] == done.result["release"]] == [False]
        assert not list(other.home.glob("staging/*/*.perennial"))


@pytest.mark.parametrize("moment", ["while it is written", "before it is begun"])
def test_a_release_is_fetched_twice_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    others: list[tuple[bytes, str]] = []
    with served(make_home(tmp_path)) as here:
        place, name = (FileSystem, "fsync_file") if "written" in moment else (transfer, "place_of")
        known = getattr(place, name)

        def after_another(*given: Any) -> Any:
            monkeypatch.setattr(place, name, known)
            others.append(fetched(here, "r2"))
            return known(*given)

        monkeypatch.setattr(place, name, after_another)
        assert [fetched(here, "r2")] == others


def test_what_is_said_of_a_package_names_the_file_that_was_sent(other: Settings) -> None:
    with served(other) as there, there.client() as client:
        for name, called in (
            ("r2-a1.perennial", "r2-a1.perennial is refused"),
            ("../é.perennial", "is refused"),
        ):
            job = client.post("/v1/packages", files={"file": (name, b"no package")}).json()["job"]
            done = there.ended(job["id"])
            assert done.state == "failed"
            assert called in str(done.error)
        assert [one.name for one in other.home.glob("staging/*/*.perennial")] == []


@pytest.mark.parametrize(
    ("name", "sha256", "sentence"),
    [("r2.zip", "", "end in .perennial"), ("r2.perennial", "abc", "64 letters")],
)
def test_what_cannot_be_a_package_is_refused_before_a_job_is_queued(
    tmp_path: Path, name: str, sha256: str, sentence: str
) -> None:
    with served(make_home(tmp_path)) as here, here.client() as client:
        answer = client.post("/v1/packages", files={"file": (name, b"PK")}, data={"sha256": sha256})
        assert answer.status_code == 400
        assert sentence in answer.json()["error"]
        assert client.get("/v1/jobs").json()["jobs"] == []
        assert client.get("/v1/releases/r9/package").status_code == 404
