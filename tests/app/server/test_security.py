"""Claims about passwords, roles and what the guard refuses.

Row 2 of what fell once (SECURITY.md).
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from PIL import Image
from starlette.responses import PlainTextResponse

from app.desk.errors import NotAllowed, UsageProblem
from app.home.settings import Settings
from app.server.guard import Guard, Rules
from app.server.security import Attempts, Passwords, parted, password_line, required_passwords
from tests.app.server.served import Served, make_home, served

ADMIN = ("ada", "correct horse battery")
SEARCHER = ("sam", "seven quiet tortoises")


@pytest.fixture(scope="module")
def password_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("passwords") / "passwords"
    lines = [password_line(ADMIN[0], "admin", ADMIN[1]), password_line(SEARCHER[0], "searcher", SEARCHER[1])]
    path.write_text("# who may come in\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, password_file: Path) -> Iterator[Served]:
    settings = make_home(tmp_path_factory.mktemp("home")).model_copy(
        update={
            "password_file": password_file,
            "origins": ["https://friend.example"],
            "max_upload_bytes": 2_000_000,
        }
    )
    with served(settings, Passwords.load(password_file), with_pages=True) as running:
        yield running


def test_who_is_not_signed_in_is_asked_to(server: Served) -> None:
    with server.client() as client:
        answer = client.get("/")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic")
    assert answer.json()["code"] == "sign_in"


def test_a_searcher_may_search_and_an_admin_may_see_the_admin_page(server: Served) -> None:
    with server.client(auth=SEARCHER) as client:
        assert client.post("/v1/search", json={"text": "a red boat"}).status_code == 200
    with server.client(auth=ADMIN) as client:
        assert client.get("/admin/").status_code == 200
        assert client.post("/v1/rollback", json={"release": "r99"}).status_code == 404


def test_a_function_of_the_admin_screen_refuses_a_searcher_by_itself(password_file: Path) -> None:
    from types import SimpleNamespace
    from typing import Any, cast

    from app.ui.access import Access

    access = Access(cast(Any, None), Passwords.load(password_file))  # no desk is opened here
    asked: Any = SimpleNamespace(username=SEARCHER[0])
    with pytest.raises(NotAllowed, match="needs an admin"):
        access.admin(cast(Any, asked))
    with pytest.raises(NotAllowed, match="Sign in"):
        access.admin(cast(Any, SimpleNamespace(username="stranger")))
    assert access.admin(cast(Any, SimpleNamespace(username=ADMIN[0]))).name == "ada"


def test_a_few_tries_to_sign_in_are_free_and_then_address_and_name_must_wait() -> None:
    now = [0.0]
    attempts = Attempts(by_address=5, by_name=8, seconds=60, clock=lambda: now[0])
    assert [attempts.begin("10.0.0.1", "ada") for _ in range(6)] == [0] * 5 + [60]
    assert attempts.begin("10.0.0.1", "sam") == 60
    assert attempts.begin("10.0.0.2", "sam") == 0
    assert [attempts.begin(f"10.0.1.{n}", "ada") for n in range(4)] == [0] * 3 + [60]
    now[0] = 61
    assert attempts.begin("10.0.0.1", "ada") == 0


def test_a_right_password_takes_its_try_back_and_neighbours_in_ipv6_are_one() -> None:
    attempts = Attempts(by_address=2)
    for _ in range(9):
        assert attempts.begin("2001:db8::1", "ada") == 0
        attempts.forget("2001:db8::1", "ada")
    assert [attempts.begin(f"2001:db8::{n}", "ada") for n in range(1, 4)] == [0, 0, pytest.approx(60, abs=1)]
    assert attempts.begin("2001:db8:0:1::1", "ada") == 0


def test_of_three_hundred_wrong_passwords_at_once_a_few_are_hashed_and_nobody_else_waits(
    password_file: Path,
) -> None:
    guard = Guard(PlainTextResponse("in"), Rules(Passwords.load(password_file), (), None, 1000))

    async def rush() -> tuple[list[int], float]:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=guard), base_url="http://server"
        ) as client:
            assert (await client.get("/", auth=SEARCHER)).status_code == 200
            wrong = [client.get("/", auth=(ADMIN[0], f"guess {n}")) for n in range(300)]
            guesses = asyncio.ensure_future(asyncio.gather(*wrong))
            await asyncio.sleep(0)
            began = time.monotonic()
            assert (await client.get("/", auth=SEARCHER)).status_code == 200
            return [one.status_code for one in await guesses], time.monotonic() - began

    statuses, spent = asyncio.run(rush())
    told = Counter(statuses)
    assert told[429] == 295
    assert told[401] + told[503] == 5, "a busy machine has no time for all five"
    assert spent < 5


def test_a_browser_that_asks_for_six_things_at_once_has_tried_its_password_once(password_file: Path) -> None:
    guard = Guard(PlainTextResponse("in"), Rules(Passwords.load(password_file), (), None, 1000))

    async def ask() -> list[int]:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=guard), base_url="http://server"
        ) as client:
            return [
                one.status_code
                for one in await asyncio.gather(*(client.get("/", auth=ADMIN) for _ in range(10)))
            ]

    assert asyncio.run(ask()) == [200] * 10


def test_guessing_is_answered_with_429_even_when_the_sixth_guess_is_right(password_file: Path) -> None:
    async def inside(scope: object, receive: object, send: object) -> None:
        raise AssertionError("nothing may pass")

    rules = Rules(Passwords.load(password_file), (), None, 1000)
    transport = httpx.ASGITransport(app=Guard(inside, rules))

    async def guess() -> list[int]:
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            wrong = [(await client.get("/", auth=(ADMIN[0], f"guess {n}"))).status_code for n in range(5)]
            return [*wrong, (await client.get("/", auth=ADMIN)).status_code]

    assert asyncio.run(guess()) == [401] * 5 + [429]


def test_a_foreign_page_may_not_post(server: Served) -> None:
    with server.client(auth=ADMIN) as client:
        own = {"Origin": server.url}
        assert client.post("/v1/search", json={"text": "boat"}, headers=own).status_code == 200
        friend = {"Origin": "https://friend.example"}
        assert client.post("/v1/search", json={"text": "boat"}, headers=friend).status_code == 200
        for evil in ("https://evil.example", "null", "https://friend.example.evil.example"):
            answer = client.post("/v1/search", json={}, headers={"Origin": evil})
            assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")


@pytest.mark.parametrize("path", ["/v1/releases", "/config", "/admin/config"])
def test_cors_allows_friends_only(server: Served, path: str) -> None:
    with server.client(auth=ADMIN) as client:
        evil = client.get(path, headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in evil.headers
        asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        assert client.options(path, headers=asked).status_code == 400
        friend = client.get(path, headers={"Origin": "https://friend.example"})
        assert friend.headers["access-control-allow-origin"] == "https://friend.example"


def test_a_fault_of_ours_is_answered_with_the_security_headers_too(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is answered outside of what stands before requests; `test_every_route` looks at all other answers."""

    def fault() -> str:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(server.serving.metrics, "text", fault)
    with server.client(auth=ADMIN) as client:
        answer = client.get("/metrics")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_large_request_is_refused_before_it_is_read(server: Served) -> None:
    with server.client(auth=ADMIN) as client:
        text = client.post(
            "/v1/compare", content=b"x" * 1_100_000, headers={"Content-Type": "application/json"}
        )
        assert (text.status_code, text.json()["code"]) == (413, "too_large")
        pictures = client.post(
            "/v1/search", content=b"x" * 51_000_000, headers={"Content-Type": "application/json"}
        )
        assert (pictures.status_code, pictures.json()["code"]) == (413, "too_large")
        upload = client.post("/v1/chunks", files={"file": ("big.zip", b"x" * 2_100_000)})
        assert upload.status_code == 413
        assert "Split the chunk" in upload.json()["error"]
        accepted = client.post("/v1/chunks/a/accept", json={"why": "x" * 1_100_000})
        assert "1 MB this route takes" in accepted.json()["error"]
        endless = client.post("/v1/search", content=iter([b"{}"]))
        assert (endless.status_code, endless.json()["code"]) == (411, "length_required")


@pytest.mark.parametrize("mount", ["", "/admin"])
@pytest.mark.parametrize(
    "route",
    [
        "/gradio_api/file=http://169.254.169.254/latest",
        "/gradio_api/file=https://example.org/x",
        "/gradio_api/file=HTTP://127.0.0.1/",
        "/gradio_api/proxy=http://127.0.0.1/",
        "/gradio_api/runs",
    ],
)
def test_routes_that_fetch_from_elsewhere_are_off(server: Served, mount: str, route: str) -> None:
    with server.client(auth=ADMIN) as client:
        assert client.get(mount + route).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/file=/etc/passwd",
        "/gradio_api/file=../../../../etc/passwd",
        "/gradio_api/file=%2e%2e%2f%2e%2e%2fetc/passwd",
        "/gradio_api/file=/proc/self/environ",
        "/static/../../../../etc/passwd",
        "/assets/..%2f..%2f..%2f..%2fetc/passwd",
    ],
)
@pytest.mark.parametrize("mount", ["", "/admin"])
def test_files_of_the_machine_cannot_be_read(server: Served, mount: str, path: str) -> None:
    with server.client(auth=ADMIN) as client:
        answer = client.get(mount + path)
    assert answer.status_code in {400, 403, 404}
    assert "root:" not in answer.text


def test_the_password_file_and_the_catalog_cannot_be_read_through_the_screens(server: Served) -> None:
    paths = [
        server.settings.password_file,
        server.settings.home / "catalog.sqlite",
        server.settings.home / "FORMAT",
    ]
    with server.client(auth=ADMIN) as client:
        for path in paths:
            assert client.get(f"/gradio_api/file={path}").status_code in {403, 404}


def test_the_search_page_reads_no_file_of_the_machine(server: Served, tmp_path: Path) -> None:
    """A program that speaks as the page does names a file of the machine; the page sends pictures, and no component
    of it takes files."""
    secret = tmp_path / "secret.png"
    Image.new("RGB", (64, 64), "red").save(secret)
    with server.client(auth=SEARCHER) as client:
        kinds = {one["type"] for one in client.get("/config").json()["components"]}
        assert kinds & {"file", "image", "multimodaltextbox", "uploadbutton", "gallery"} <= {"gallery"}
        assert "thumbnail" in client.post("/pictures", json={"address": "?text=a+red+boat"}).text
        for name in (str(secret), f"file://{secret}"):
            for wanted in ({"pictures": [name]}, {"address": f"?image={name}&text=./{name}"}):
                answer = client.post("/pictures", json=wanted)
                assert (answer.status_code, "thumbnail" in answer.text) == (400, False), wanted


def test_the_screens_neither_show_their_api_nor_call_home(server: Served) -> None:
    with server.client(auth=ADMIN) as client:
        for page in ("/config", "/admin/config"):
            config = client.get(page).json()
            assert not config["analytics_enabled"]
            assert not config["show_error"]
            assert config.get("footer_links") in ([], None)
        assert "googleapis" not in client.get("/").text


def test_loopback_without_passwords_answers_to_its_own_names_only(tmp_path: Path) -> None:
    """Else a web page whose name is pointed at this machine could drive the server from a browser."""
    with served(make_home(tmp_path), with_pages=True) as running, running.client() as client:
        port = running.url.rsplit(":", 1)[1]
        assert client.get("/v1/releases").status_code == 200
        assert client.get("/v1/releases", headers={"Host": f"localhost:{port}"}).status_code == 200
        rebound = client.get("/v1/releases", headers={"Host": f"evil.example:{port}"})
        assert (rebound.status_code, rebound.json()["code"]) == (400, "unknown_host")


def test_an_open_server_on_the_network_answers_to_addresses_and_to_names_it_was_told(tmp_path: Path) -> None:
    settings = make_home(tmp_path, host="0.0.0.0", allow_open=True, origins=["http://gallery.lan:7860"])
    with served(settings) as running, running.client() as client:
        for host, status in (
            ("192.168.1.10:7860", 200),
            ("[fe80::1]", 200),
            ("gallery.lan", 200),
            ("evil.example", 400),
        ):
            assert client.get("/v1/releases", headers={"Host": host}).status_code == status


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.10", "example.org"])
def test_the_network_is_not_served_by_accident(tmp_path: Path, host: str) -> None:
    with pytest.raises(UsageProblem, match="password file"):
        required_passwords(Settings(home=tmp_path, host=host))


def test_the_network_is_served_when_that_is_meant(tmp_path: Path, password_file: Path) -> None:
    assert required_passwords(Settings(home=tmp_path, host="0.0.0.0", allow_open=True)) is None
    accounts = required_passwords(Settings(home=tmp_path, host="0.0.0.0", password_file=password_file))
    assert accounts is not None
    assert required_passwords(Settings(home=tmp_path)) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no account"),
        ("ada:secret\n", "Line 1"),
        ("ada:boss:scrypt$AA==$AA==\n", "Line 1"),
        ("# fine\nada:admin:md5$AA==$AA==\n", "Line 2"),
        ("ada:admin:scrypt$!$AA==\n", "damaged"),
        ("ada:admin:scrypt$AA==$AA==\nada:admin:scrypt$AA==$AA==\n", "second time"),
    ],
)
def test_a_password_file_that_cannot_be_used_names_the_line(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "passwords"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageProblem, match=sentence):
        Passwords.load(path)


def test_a_missing_password_file_does_not_mean_an_open_server(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="cannot be read"):
        required_passwords(Settings(home=tmp_path, password_file=tmp_path / "none"))


def test_the_command_writes_a_line_that_signs_in(tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "perennial", "account", "kim", "admin"],
        input="a long enough password\n",
        capture_output=True,
        text=True,
        check=True,
    )
    path = tmp_path / "passwords"
    path.write_text(made.stdout, encoding="utf-8")
    import base64

    right, wrong = (
        base64.b64encode(f"kim:{word}".encode()).decode() for word in ("a long enough password", "no")
    )
    passwords = Passwords.load(path)
    account = passwords.check(*parted(right))
    assert account is not None
    assert (account.name, account.role) == ("kim", "admin")
    assert passwords.check(*parted(wrong)) is None
    assert passwords.check(*parted("not base64!")) is None
    passwords.remember(right, account)
    assert passwords.remembered(right) == account
    assert passwords.remembered(wrong) is None
    assert "long enough" not in made.stdout


@pytest.mark.parametrize(
    ("user", "role", "password"),
    [("a:b", "admin", "x" * 12), ("ann", "boss", "x" * 12), ("ann", "admin", "short")],
)
def test_a_line_is_refused_that_could_not_be_read_back(user: str, role: str, password: str) -> None:
    with pytest.raises(UsageProblem):
        password_line(user, role, password)
