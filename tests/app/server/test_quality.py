"""Claims about quality over REST."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.server.security import Passwords, password_line
from tests.app.server.served import Served, add_held_out, make_home, served

SEARCHER, ADMIN = ("sam", "four quiet otters"), ("ada", "correct horse battery")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("home")
    path = folder / "passwords"
    lines = [
        password_line(*SEARCHER[:1], "searcher", SEARCHER[1]),
        password_line(ADMIN[0], "admin", ADMIN[1]),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(0o600)
    with served(make_home(folder), Passwords.load(path)) as running:
        add_held_out(running.serving.workspace, Path(folder))
        yield running


@pytest.fixture
def admin(server: Served) -> Iterator[httpx.Client]:
    with server.client(auth=ADMIN) as client:
        yield client


def test_slices_coverage_and_what_is_asked_for_are_in_one_answer(server: Served, admin: httpx.Client) -> None:
    for _ in range(3):
        assert admin.post("/v1/search", json={"text": "เรือสีแดงสองลำ"}).status_code == 200
    server.serving.languages_asked.flush()
    found = admin.get("/v1/quality").json()
    assert [line["language"] for line in found["table"]["lines"]] == ["de", "en"]
    assert {one["language"] for one in found["coverage"]} == {"de", "en"}
    (thai,) = (one for one in found["asked"]["languages"] if one["language"] == "th")
    assert (thai["queries"], thai["is_learned"]) == (3, False)
    assert any(line.startswith("th is asked for and not learned") for line in found["asked"]["advice"])


def test_the_counts_are_written_by_the_server_itself(server: Served, admin: httpx.Client) -> None:
    admin.post("/v1/search", json={"text": "תמונה של סירה אדומה"})
    counted: set[str] = set()
    deadline = time.monotonic() + 60
    while "he" not in counted and time.monotonic() < deadline:
        time.sleep(0.5)
        asked = admin.get("/v1/quality").json()["asked"]["languages"]
        counted = {one["language"] for one in asked}
    assert "he" in counted


def test_what_moved_and_drift_are_for_admins(server: Served, admin: httpx.Client) -> None:
    moved: dict[str, str | int] = {"language": "en", "domain": "scenes", "before": "r1", "after": "r2"}
    turned: dict[str, str | int] = {"before": "r1", "after": "r2", "pairs": 20}
    assert admin.get("/v1/quality/moves", params=moved).json()["captions"] > 0
    drift = admin.get("/v1/drift", params=turned).json()["drift"]
    assert drift["ram_pictures"]["mean"] < 0.1 < drift["ram_texts"]["mean"]
    with server.client(auth=SEARCHER) as client:
        assert client.get("/v1/quality").status_code == 200
        assert client.get("/v1/quality/moves", params=moved).status_code == 403
        assert client.get("/v1/drift", params=turned).status_code == 403


def test_what_is_not_there_is_refused_with_a_sentence(admin: httpx.Client) -> None:
    moved: dict[str, str | int] = {"language": "en", "domain": "scenes", "before": "r1", "after": "r2"}
    refused: list[tuple[str, dict[str, str | int], int]] = [
        ("/v1/quality", {"metric": "map"}, 400),
        ("/v1/quality", {"view": "other"}, 400),
        ("/v1/quality/moves", moved | {"language": "ja"}, 400),
        ("/v1/quality/moves", moved | {"after": "r99"}, 404),
        ("/v1/drift", {"before": "r1"}, 422),
        ("/v1/drift", {"before": "r1", "after": "r2", "pairs": 1}, 422),
    ]
    for path, asked, status in refused:
        answer = admin.get(path, params=asked)
        assert answer.status_code == status, (path, asked, answer.text)
        assert answer.json()["error"]
