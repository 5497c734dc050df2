"""Claims about searches from the command line beside a server of the same home, which runs in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.commands import cli
from app.commands.beside import ROUTE
from app.desk.desk import Desk
from app.desk.operation import operations
from app.doctor.files import orphans
from app.home.folder import SOCKETS, Home
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.server.own_socket import own_socket
from app.server.security import password_line
from tests.app.server.served import make_home
from tests.forked_starts import COLD

pytestmark = pytest.mark.usefixtures("starts_at_once")

# What a search prints, how it ends, and what of the engine was loaded for it.
_ASK = """
import json, sys
from app.commands.cli import app
try:
    app(["search", *sys.argv[1:]])
finally:
    heavy = ("faiss", "lmdb", "numpy", "onnxruntime", "sqlalchemy", "torch")
    print(json.dumps([name for name in heavy if name in sys.modules]), file=sys.stderr)
"""
BOAT = ("a red boat", "-k", "3", "--explain")


@contextmanager
def serving(home: Path, **told: str) -> Iterator[None]:
    """A server that by itself would see nothing new for ten minutes."""
    command = [sys.executable, "-u", "-m", "perennial", "serve", "--home", str(home), "--port", "0"]
    environment = os.environ | {"PERENNIAL_POLL_SECONDS": "600"} | told
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        assert any("is ready" in line for line in server.stdout)
        try:
            yield
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=30)
    assert not list(home.glob(SOCKETS))


def _make_graphs(home: Path) -> None:
    """A process that loads torch to make the graphs that a version lacks does so here."""
    assert CliRunner().invoke(cli.app, ["search", *BOAT, "--home", str(home)]).exit_code == 0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a server that asks everybody for a password."""
    folder = tmp_path_factory.mktemp("beside")
    home = make_home(folder).home
    _make_graphs(home)
    passwords = folder / "passwords"
    passwords.write_text(password_line("ada", "admin", "correct horse battery"))
    with serving(home, PERENNIAL_PASSWORD_FILE=str(passwords)):
        yield home


def _ran(home: Path, *asked: str, **told: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """A search in a process of its own, and what of the engine that has loaded."""
    command = [COLD, "-c", _ASK, *asked, "--home", str(home)]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | told, check=False
    )
    return ran, json.loads(ran.stderr.splitlines()[-1])


def _answer(home: Path, *asked: str, **told: str) -> tuple[dict[str, Any], bool]:
    """What a search answers, without its times, and whether the home itself was asked."""
    ran, loaded = _ran(home, *asked, "--json", **told)
    assert ran.returncode == 0, ran.stderr
    # The last bits of some follow the order of a set, which differs between processes.
    answer = json.loads(ran.stdout, parse_float=lambda written: round(float(written), 9))
    del answer["timing"]
    return answer, bool(loaded)


def _both(home: Path, *asked: str) -> dict[str, Any]:
    """What a search answers with the server, which loads nothing and is no other than without."""
    alone = _answer(home, *asked, PERENNIAL_ASK_SERVER="0")
    # What hits are worth in a release that went live just now is measured while the server answers already.
    deadline = time.monotonic() + 30
    while (beside := _answer(home, *asked)) != (alone[0], False) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert (beside, alone[1]) == ((alone[0], False), True)
    return beside[0]


def _verb(home: Path, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "perennial", *arguments, "--home", str(home)], check=True, timeout=120
    )


@pytest.mark.parametrize(
    "asked", [BOAT, ("ein rotes Boot + a tree", "--captioned", "de", "--where", "width > 1")]
)
def test_a_server_answers_as_the_home_would_and_nothing_is_loaded(home: Path, asked: tuple[str, ...]) -> None:
    assert _both(home, *asked)["hits"]


def test_what_changed_a_moment_ago_is_seen(home: Path) -> None:
    before = _both(home, *BOAT)
    _verb(home, "promote", "r2")
    promoted = _both(home, *BOAT)
    assert (before["release"][:2], promoted["release"][:2], promoted["commit"]) == ("r1", "r2", 2)
    first = promoted["hits"][0]["id"]
    _verb(home, "pictures", first, "--take-out", "--why", "a test")
    assert first not in {hit["id"] for hit in _both(home, *BOAT)["hits"]}


def test_what_a_server_refuses_the_home_refuses_in_its_own_words(home: Path) -> None:
    beside, _ = _ran(home, "a red boat", "--release", "r9")
    alone, _ = _ran(home, "a red boat", "--release", "r9", PERENNIAL_ASK_SERVER="0")
    assert (beside.returncode, beside.stderr) == (alone.returncode, alone.stderr)
    assert "r9" in beside.stderr


def test_a_server_that_would_answer_otherwise_is_not_asked(home: Path) -> None:
    answer, is_loaded = _answer(home, "a red boat", PERENNIAL_DEFAULT_K="2")
    assert (len(answer["hits"]), is_loaded) == (2, True)


def test_only_its_own_user_can_open_the_socket(home: Path) -> None:
    (place,) = home.glob(SOCKETS)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_second_server_leaves_the_socket_to_the_first(home: Path) -> None:
    (place,) = home.glob(SOCKETS)
    before = place.stat().st_ino
    with own_socket(Home(home), Settings(home=home)) as own:
        assert own == []
    assert place.stat().st_ino == before
    assert not _answer(home, *BOAT)[1]


def test_what_a_killed_server_left_is_passed_over_and_replaced(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    _make_graphs(settings.home)
    home = Home(settings.home)
    place = home.socket(settings)
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(place))
    assert _answer(settings.home, *BOAT)[1]
    with own_socket(home, settings) as (own,), Workspace.open(settings) as workspace:
        own.listen()
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(place))
        assert [str(one.level) for one in orphans(workspace)] == ["ok"]
    assert not place.exists()


def test_a_stranger_at_the_socket_is_not_believed(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    _make_graphs(settings.home)
    alone, _ = _answer(settings.home, *BOAT)
    with own_socket(Home(settings.home), settings) as (own,):
        own.listen()
        threading.Thread(target=_talk, args=(own,), daemon=True).start()
        assert (alone, True) == _answer(settings.home, *BOAT)


def _talk(listener: socket.socket) -> None:
    with listener.accept()[0] as asking:
        asking.recv(65536)
        asking.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"hits":[]}')


def test_the_route_is_the_one_that_the_protocol_says() -> None:
    assert operations(Desk)["search"].path == ROUTE
