"""Claims about a server that starts: what it refuses at once, and what it answers until it is ready."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from app.commands.starting import starting
from app.desk.errors import AddressRefused, ClusterUnusable
from app.home.settings import Settings

# What `serve` had loaded when it refused.
_ASK = """
import sys
from app.commands.cli import app
try:
    app(["serve", *sys.argv[1:]])
except SystemExit as ended:
    print(ended.code, "torch" in sys.modules)
"""


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program has."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def _refused(*options: str) -> tuple[str, str]:
    asked = subprocess.run(
        [sys.executable, "-c", _ASK, *options], capture_output=True, text=True, check=True, timeout=60
    )
    return asked.stdout.strip(), " ".join(asked.stderr.split())


def test_a_port_in_use_is_an_error_said_before_anything_is_loaded(template: Path, taken: int) -> None:
    ended, said = _refused("--home", str(template), "--port", str(taken))
    assert ended == "1 False", said
    assert f"Port {taken} of 127.0.0.1 is in use" in said
    assert f"--port {taken + 1}" in said


def test_what_cannot_be_served_is_refused_before_anything_is_loaded(template: Path, tmp_path: Path) -> None:
    ended, said = _refused("--home", str(template), "--host", "0.0.0.0", "--port", "0")
    assert (ended, "password file" in said) == ("2 False", True)
    ended, said = _refused("--home", str(tmp_path / "none"), "--port", "0")
    assert (ended, "There is no home at" in said) == ("1 False", True)


def test_an_address_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    elsewhere = Settings(home=tmp_path, host="192.0.2.1", port=0, allow_open=True)  # of no machine: RFC 5737
    with pytest.raises(AddressRefused, match="cannot listen on 192.0.2.1"), starting(elsewhere):
        pass


def test_a_cluster_that_does_not_answer_is_refused_where_jobs_run(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
    lost = Settings(home=tmp_path, port=0).model_copy(update={"ray": address})
    with (
        pytest.raises(ClusterUnusable, match=f"No Ray cluster answers at {address}.* setting `ray`"),
        starting(lost),
    ):
        pass
    with starting(lost.model_copy(update={"jobs": "elsewhere"})):
        pass


def test_who_asks_too_early_is_told_to_wait_and_the_address_stays_taken(tmp_path: Path) -> None:
    with starting(Settings(home=tmp_path, port=0)) as server:
        answer = httpx.post(f"{server.url}/v1/search", json={"text": "a boat"})
        assert (answer.status_code, answer.json()["code"]) == (503, "starting")
        assert int(answer.headers["Retry-After"]) > 0
        page = httpx.get(server.url, headers={"Accept": "text/html", "Accept-Language": "de-AT"})
        assert page.status_code == 503
        assert '<html lang="de"' in page.text
        assert "Perennial startet." in page.text
        server.end()
        place = urlsplit(server.url)
        with socket.create_connection((place.hostname, place.port)) as waiting:
            waiting.settimeout(0.3)
            with pytest.raises(TimeoutError):  # nobody answers, and it is not refused either
                waiting.recv(1)


def test_a_server_says_where_it_is_at_once_and_answers_when_it_is_ready(template: Path) -> None:
    command = [sys.executable, "-u", "-m", "perennial", "serve", "--home", str(template), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().split("starting on ")[1].split()[0]
            assert httpx.get(f"{url}/readyz", timeout=60).status_code == 503
            assert f"pages on {url}/" in server.stdout.readline()
            answer = httpx.get(f"{url}/readyz", timeout=60)
            assert (answer.status_code, json.loads(answer.text)["status"]) == (200, "ready")
            server.send_signal(signal.SIGINT)
            assert "The server has ended" in server.stdout.readline()
            assert server.wait(60) == 130
        finally:  # else it would be waited for, for ever
            server.send_signal(signal.SIGINT)
