"""Claims about a server of two processes: what each answers, what both know, and how they end."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from app.desk.desk import Desk
from app.desk.errors import UsageProblem
from app.desk.operation import operations
from app.server.further import OWN, answered_by_itself
from app.server.monotonic import COMMIT
from app.server.security import password_line
from tests.app.server.served import make_home, refusal, sample_upload, search

PASSWORD = "a long sentence"
SIGNED_IN = ("ada", PASSWORD)
PATIENCE = 60.0


class Running:
    """A server in processes of its own."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url, self.process = url, process

    def further(self) -> list[int]:
        """The processes that it has started, by number."""
        return [one.pid for one in psutil.Process(self.process.pid).children()]

    @contextmanager
    def of_each(self, **options: object) -> Iterator[tuple[httpx.Client, httpx.Client]]:
        """A client whose connection the first process has, and one whose connection the further one has."""
        found: dict[int, httpx.Client] = {}
        deadline = time.monotonic() + PATIENCE
        while len(found) < 2:
            assert time.monotonic() < deadline, "a process takes no connections"
            transport = httpx.HTTPTransport(local_address=str(options.get("address", "127.0.0.1")))
            client = httpx.Client(base_url=self.url, timeout=60, transport=transport, trust_env=False)
            with client.stream("GET", "/healthz") as answer:
                own = answer.extensions["network_stream"].get_extra_info("client_addr")
                answer.read()
            holder = next(pid for pid in (self.process.pid, *self.further()) if own in _connected(pid))
            if holder in found:
                client.close()
                time.sleep(0.1)
            else:
                found[holder] = client
        further = next(pid for pid in found if pid != self.process.pid)
        try:
            yield found[self.process.pid], found[further]
        finally:
            for client in found.values():
                client.close()


def _connected(pid: int) -> set[tuple[str, int]]:
    """Whom a process is connected with."""
    try:
        return {tuple(one.raddr) for one in psutil.Process(pid).net_connections("tcp") if one.raddr}
    except psutil.NoSuchProcess:
        return set()


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    """Starts a server of two processes that asks for passwords."""
    home = make_home(folder).home
    accounts = folder / "accounts"
    accounts.write_text(password_line("ada", "admin", PASSWORD) + "\n", encoding="utf-8")
    accounts.chmod(0o600)
    told = {"PASSWORD_FILE": str(accounts), "POLL_SECONDS": "0.1", "JOBS": "elsewhere"}
    environment = os.environ | {f"PERENNIAL_{name}": value for name, value in told.items()}
    words = ["-u", "-m", "perennial", "serve", "--home", str(home), "--port", "0", "--processes", "2"]
    with subprocess.Popen(
        [sys.executable, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split("starting on ")[1].split()[0]
            assert "is ready" in process.stdout.readline()
            yield Running(url, process)
        finally:  # else it would be waited for, for ever
            process.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("processes")) as found:
        yield found


def _eventually(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_both_processes_answer_alike_and_are_counted_together(server: Running) -> None:
    with server.of_each() as both:
        first, further = both
        for client in both:
            assert refusal(client.post("/v1/search", json={"text": "a red boat"})) == (401, "sign_in")
            client.auth = SIGNED_IN
        asked = {
            "/v1/status": 0,
            "/": 0,
            "/admin/": 0,
            "/gradio_api/info": 0,
            "/v1/releases": 0,
            "/v1/nothing": 0,
        }
        for path in asked:
            told = [client.get(path) for client in both]
            assert told[0].status_code == told[1].status_code, path
            assert told[0].headers["content-type"] == told[1].headers["content-type"], path
            assert len(told[0].headers.get_list("date")) == len(told[1].headers.get_list("date")) == 1
            own = [name for name in told[1].headers if name.startswith("x-perennial")]
            assert own == [COMMIT.lower()], "what the processes tell one another stays between them"
        hits = [search(client, k=3)["hits"] for client in (first, further, further)]
        assert hits[0] == hits[1] == hits[2]
        assert hits[0]
        thumbnails = [client.get(hits[0][0]["thumb_url"]).content for client in both]
        assert thumbnails[0] == thumbnails[1]
        for client in both:
            counted = [line for line in client.get("/metrics").text.splitlines() if not line.startswith("#")]
            searches = sum(
                float(line.split()[1]) for line in counted if line.startswith("perennial_searches_total")
            )
            assert searches == 3
            assert any(line.startswith("perennial_gallery_pictures ") for line in counted)
            assert any(line.startswith("process_resident_memory_bytes ") for line in counted)


def test_a_release_that_goes_live_through_one_process_is_answered_from_by_both(server: Running) -> None:
    with server.of_each() as both:
        for client in both:
            client.auth = SIGNED_IN
        releases = {one["id"][:2]: one["id"] for one in both[0].get("/v1/releases").json()["releases"]}
        for wanted, client in (("r2", both[1]), ("r1", both[0])):
            said = {"why": "test", "force": True}
            told = client.post(f"/v1/releases/{releases[wanted]}/promote", json=said).raise_for_status()
            for one in both:
                seen = {COMMIT: told.headers[COMMIT]}
                answer = one.post("/v1/search", json={"text": "a red boat"}, headers=seen)
                assert answer.json()["release"] == releases[wanted]
            assert [search(one)["release"] for one in both] == [releases[wanted]] * 2


def test_uploads_and_streams_pass_through_a_further_process(server: Running, tmp_path: Path) -> None:
    with server.of_each() as (_, further):
        further.auth = SIGNED_IN
        upload = sample_upload(tmp_path / "more.zip", first=50)
        with upload.open("rb") as file:
            job = further.post("/v1/chunks", files={"file": file}).raise_for_status().json()["job"]
        received = next((_home_of(server) / "staging" / job["id"]).glob("*.zip"))
        assert received.read_bytes() == upload.read_bytes()
        with further.stream("GET", f"/v1/jobs/{job['id']}/events") as events:  # of a job that nobody takes up
            seen = next(line for line in events.iter_lines() if line.startswith("data:"))
        assert json.loads(seen.removeprefix("data:"))["id"] == job["id"]
        assert search(further)["hits"]  # whoever left a stream has left nothing behind


def _home_of(server: Running) -> Path:
    words = psutil.Process(server.process.pid).cmdline()
    return Path(words[words.index("--home") + 1])


def test_wrong_passwords_are_counted_over_all_processes_and_by_the_address_they_come_from(
    server: Running,
) -> None:
    wrong = {"Authorization": "Basic " + base64.b64encode(b"ada:guessed wrongly").decode()}
    forged = wrong | {"X-Perennial-Asked": json.dumps(["http", ["127.0.0.9", 1], ["127.0.0.1", 1]])}
    with server.of_each(address="127.0.0.2") as both:
        for client in (both[0], both[1], both[1], both[0], both[1]):
            assert refusal(client.post("/v1/search", json={"text": "x"}, headers=wrong)) == (401, "sign_in")
        for client in both:
            for headers in (wrong, forged):
                answer = client.post("/v1/search", json={"text": "x"}, headers=headers)
                assert refusal(answer) == (429, "too_many_attempts")
    with server.of_each() as both:
        for client in both:
            assert client.get("/v1/choices", auth=SIGNED_IN).status_code == 200


def test_a_killed_process_is_started_again(server: Running) -> None:
    killed, *_ = server.further()
    os.kill(killed, signal.SIGKILL)
    _eventually(lambda: server.further() not in ([], [killed]), "it was not started again")
    with server.of_each() as (_, further):
        further.auth = SIGNED_IN
        assert search(further)["hits"]
    assert f"process 2 of the server ended with {-signal.SIGKILL}" in (
        _home_of(server) / "perennial.log"
    ).read_text(encoding="utf-8")


def test_ctrl_c_ends_all_processes(server: Running) -> None:
    further = server.further()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(PATIENCE) == 130
    assert further
    assert not any(map(psutil.pid_exists, further))


def test_a_further_process_ends_when_the_first_was_killed(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        _eventually(server.further, "there is one process")
        further = server.further()
        server.process.kill()
        _eventually(lambda: not any(map(psutil.pid_exists, further)), "it goes on")


def test_a_further_process_answers_what_changes_nothing_and_anybody_may_ask() -> None:
    known = operations(Desk)
    assert {known[name].role for name in OWN} == {"anyone"}
    is_own = answered_by_itself()
    asked = {
        ("POST", "/v1/search"): True,
        ("GET", "/v1/search"): False,
        ("GET", "/v1/images/1a2b/thumbnail"): True,
        ("GET", "/v1/items/1a2b"): True,
        ("POST", "/v1/items/delete"): False,
        ("GET", "/v1/images/1a2b/thumbnail/more"): False,
        ("GET", "/readyz"): True,
        ("GET", "/metrics"): False,
        ("POST", "/v1/chunks"): False,
        ("GET", "/"): False,
    }
    assert {one: is_own({"method": one[0], "path": one[1]}) for one in asked} == asked


def test_several_processes_are_refused_where_connections_cannot_be_handed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from app.commands.starting import starting
    from app.home.settings import Settings

    monkeypatch.delattr(socket, "send_fds")
    with (
        pytest.raises(UsageProblem, match="2 processes"),
        starting(Settings(home=tmp_path, port=0, processes=2)),
    ):
        pass
