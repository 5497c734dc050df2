"""Claims about writing the password file: through a script, at a terminal, and as compose.yaml has it."""

from __future__ import annotations

import os
import pty
import re
import shlex
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.commands import cli
from app.server.security import Passwords

ROOT = Path(__file__).parents[3]
PASSWORD = "nine patient herons"
OTHER = "ten patient herons"


def _run(*words: str, password: str = PASSWORD) -> Any:
    return CliRunner().invoke(cli.app, ["account", *words], input=f"{password}\n")


def _at_terminal(words: list[str], answers: list[str]) -> tuple[int, str]:
    """Runs a command at a terminal, answers its questions, and returns how it ended and what the terminal showed."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(words[0], words)
    shown = ""
    while True:
        try:
            data = os.read(terminal, 1024)
        except OSError:  # how Linux says that the other side has gone
            break
        if not data:
            break
        shown += data.decode()
        if answers and shown.endswith(": "):
            os.write(terminal, f"{answers.pop(0)}\n".encode())
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown


def _signs_in(path: Path, user: str, password: str) -> str | None:
    account = Passwords.load(path).check(user, password)
    return None if account is None else account.role


def test_the_recipe_of_compose_makes_a_file_that_a_server_takes(tmp_path: Path) -> None:
    recipe = re.findall(r"perennial (perennial account .*)", (ROOT / "compose.yaml").read_text("utf-8"))
    assert len(recipe) == 2
    for line in recipe:
        words = shlex.split(line.replace("/here/", f"{tmp_path}/"))
        ended, shown = _at_terminal([sys.executable, "-m", *words], [PASSWORD, PASSWORD])
        assert ended == 0, shown
    path = tmp_path / "passwords"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [_signs_in(path, name, PASSWORD) for name in ("ada", "prometheus")] == ["admin", "searcher"]
    assert [one.name for one in tmp_path.iterdir()] == ["passwords"]


def test_a_slip_of_the_finger_at_a_terminal_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    words = [sys.executable, "-m", "perennial", "account", "ada", "admin", "--to", str(path)]
    ended, shown = _at_terminal(words, [PASSWORD, OTHER])
    assert (ended, "two passwords" in shown) == (2, True)
    assert PASSWORD not in shown
    assert not path.exists()


def test_an_account_that_stands_there_is_replaced_only_when_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    path.write_text("# of the library\n", encoding="utf-8")
    path.chmod(0o640)
    for user in ("ada", "cora"):
        assert _run(user, "searcher", "--to", str(path)).exit_code == 0
    refused = _run("ada", "admin", "--to", str(path), password=OTHER)
    assert (refused.exit_code, "--replace" in refused.output) == (2, True)
    assert _signs_in(path, "ada", PASSWORD) == "searcher"
    assert _run("ada", "admin", "--to", str(path), "--replace", password=OTHER).exit_code == 0
    assert (_signs_in(path, "ada", PASSWORD), _signs_in(path, "ada", OTHER)) == (None, "admin")
    assert _signs_in(path, "cora", PASSWORD) == "searcher"
    assert path.read_text("utf-8").startswith("# of the library\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a:b", "admin"), "cannot be a user name"),
        (("ada", "boss"), "no role"),
        (("ada", "admin", "--replace"), "at least 10"),
    ],
)
def test_what_cannot_be_an_account_is_not_written(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    path = tmp_path / "passwords"
    refused = _run(*words, "--to", str(path), password="short")
    assert (refused.exit_code, said in refused.output) == (2, True), refused.output
    assert not path.exists()


def test_a_file_that_a_server_would_refuse_is_not_added_to(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    path.write_text("Password: \nada:admin:scrypt$AA==$AA==\n", encoding="utf-8")
    refused = _run("cora", "admin", "--to", str(path))
    assert (refused.exit_code, "Line 1" in refused.output) == (2, True)
    assert _run("cora", "admin", "--to", str(tmp_path / "none" / "passwords")).exit_code == 2
