"""Claims about roles: what contributors may do, and whom a reverse proxy may name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.home.settings import Settings, load_settings
from app.server.security import ROLES, Account, Passwords, ProxySignIn, password_line, required_passwords
from tests.app.server.served import Served, make_home, sample_upload, served

CONTRIBUTOR = ("cora", "nine patient herons")
PROXY = {
    "proxy_user_header": "X-Forwarded-User",
    "proxy_admins": ["ada@example.org", "librarians"],
    "proxy_contributors": ["curators"],
}


@pytest.fixture(scope="module")
def behind_passwords(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("passwords") / "passwords"
    path.write_text(password_line(CONTRIBUTOR[0], "contributor", CONTRIBUTOR[1]) + "\n", encoding="utf-8")
    path.chmod(0o600)
    with served(make_home(tmp_path_factory.mktemp("home")), Passwords.load(path), with_pages=True) as running:
        yield running


@pytest.fixture(scope="module")
def behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(
        make_home(tmp_path_factory.mktemp("home")).model_copy(update=PROXY), with_pages=True
    ) as running:
        yield running


def _status(client: httpx.Client, method: str, path: str) -> int:
    return client.request(method, path, json={} if method == "POST" else None).status_code


def test_roles_contain_one_another() -> None:
    for n, role in enumerate(ROLES):
        assert [Account("x", role).may(other) for other in ROLES] == [m <= n for m in range(len(ROLES))]


def test_a_contributor_uploads_but_neither_trains_nor_accepts(
    behind_passwords: Served, tmp_path: Path
) -> None:
    upload = sample_upload(tmp_path / "scenes.zip", first=60, count=3).read_bytes()
    with behind_passwords.client(auth=CONTRIBUTOR) as client:
        files = {"file": ("scenes.zip", upload)}
        refused = client.post("/v1/chunks", files=files, data={"update": "true"})
        assert refused.status_code == 403
        assert "cora may search, compare and upload; this needs an admin" in refused.json()["error"]
        taken = client.post("/v1/chunks", files=files)
    assert taken.status_code == 202
    job = behind_passwords.serving.workspace.catalog.job(taken.json()["job"]["id"])
    assert job.arguments["held"] is True
    assert job.arguments["by"] == "cora"


@pytest.mark.parametrize(
    ("headers", "role"),
    [
        ({"X-Forwarded-User": "ada@example.org"}, "admin"),
        ({"X-Forwarded-User": "bo", "X-Forwarded-Groups": "staff, librarians"}, "admin"),
        ({"X-Forwarded-User": "bo", "X-Forwarded-Groups": "curators"}, "contributor"),
        ({"X-Forwarded-User": "bo"}, "searcher"),
    ],
)
def test_a_proxy_names_who_is_asking_and_their_groups(
    behind_proxy: Served, headers: dict[str, str], role: str
) -> None:
    with behind_proxy.client(headers=headers) as client:
        assert client.post("/v1/search", json={"text": "a red boat"}).status_code == 200
        # 422: let in, and told that the request is empty.
        assert (_status(client, "POST", "/v1/chunks") == 422) is (role != "searcher")
        assert (_status(client, "POST", "/v1/updates") == 422) is (role == "admin")
        assert (client.get("/admin/").status_code == 200) is (role == "admin")


@pytest.mark.parametrize(
    "headers",
    [{}, {"X-Forwarded-User": ""}, {"X-Forwarded-User": "a b\tc"}, {"X-Forwarded-User": "a:b"}]
    + [{"X-Forwarded-Groups": "librarians"}],
)
def test_whom_the_proxy_does_not_name_is_refused(behind_proxy: Served, headers: dict[str, str]) -> None:
    with behind_proxy.client(headers=headers) as client:
        for path in ("/", "/v1/releases", "/metrics", "/admin/"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["code"]) == (401, "sign_in")
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("name", ["ada+work@example.org", "o'hara", "Ada Lovelace", "Zoë", "李娜"])
def test_people_are_let_in_by_whatever_name_the_proxy_has_for_them(behind_proxy: Served, name: str) -> None:
    with behind_proxy.client(headers=[(b"X-Forwarded-User", name.encode())]) as client:
        assert client.get("/v1/releases").status_code == 200
    proxy = ProxySignIn.of(Settings(**{**PROXY, "proxy_admins": [name]}))  # type: ignore[arg-type]
    assert proxy is not None
    assert proxy.account({"X-Forwarded-User": name.encode().decode("latin-1")}, "127.0.0.1") == Account(
        name, "admin"
    )


def test_a_name_that_cannot_be_one_is_repeated(behind_proxy: Served) -> None:
    with behind_proxy.client(headers={"X-Forwarded-User": "ada:work"}) as client:
        assert "'ada:work'" in client.get("/v1/releases").json()["error"]


def test_nobody_has_the_role_of_a_group_by_being_called_like_it() -> None:
    proxy = ProxySignIn.of(Settings(**{**PROXY, "proxy_admins": ["group:librarians"]}))  # type: ignore[arg-type]
    assert proxy is not None
    asked = {"X-Forwarded-User": "librarians", "X-Forwarded-Groups": "staff"}
    assert proxy.account(asked, "127.0.0.1") == Account("librarians", "searcher")
    member = {"X-Forwarded-User": "bo", "X-Forwarded-Groups": "staff, librarians"}
    assert proxy.account(member, "127.0.0.1") == Account("bo", "admin")


def test_the_header_is_believed_from_the_proxys_address_alone() -> None:
    proxy = ProxySignIn.of(Settings(**PROXY))  # type: ignore[arg-type]
    assert proxy is not None
    named = {"X-Forwarded-User": "ada@example.org"}
    assert proxy.account(named, "127.0.0.1") == Account("ada@example.org", "admin")
    assert proxy.account(named, "10.0.0.7") is None


def test_a_function_of_the_admin_screen_acts_for_the_proxys_admin(behind_proxy: Served) -> None:
    """Run through Gradio, as the button does, so that what the guard noted has to survive it."""
    with behind_proxy.client(headers={"X-Forwarded-User": "ada@example.org"}) as client:
        assert client.post("/v1/releases/r2/promote", json={"why": "tests"}).status_code == 200
        page = client.get("/admin/config").json()
        button = next(
            part["id"] for part in page["components"] if part["props"].get("elem_id") == "roll-back"
        )
        function = next(one["id"] for one in page["dependencies"] if [button, "click"] in one["targets"])
        asked = {
            "fn_index": function,
            "data": [None, "from a test"],
            "session_hash": "abc",
            "event_data": None,
        }
        assert client.post("/admin/gradio_api/run/predict", json=asked).status_code == 200
    commit = behind_proxy.serving.workspace.releases.current()
    assert commit is not None
    assert (commit.release[:3], commit.by, commit.why) == ("r1-", "ada@example.org", "from a test")


def test_a_proxy_that_signs_in_is_protection_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERENNIAL_PROXY_USER_HEADER", "X-Forwarded-User")
    monkeypatch.setenv("PERENNIAL_PROXY_ADDRESSES", "10.0.0.2, 10.0.0.3")
    settings = load_settings(host="0.0.0.0")
    assert settings.proxy_addresses == ["10.0.0.2", "10.0.0.3"]
    assert required_passwords(settings) is None
