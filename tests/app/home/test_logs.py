"""Claims about the log: a message is a line, and a flood is a line a second.

Row 6 of what fell once (SECURITY.md).
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.home import logs


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    yield
    logs.configure()


def _lines(home: Path) -> list[str]:
    return logs.log_file(home).read_text(encoding="utf-8").splitlines()


def test_what_a_stranger_sends_cannot_begin_a_line(tmp_path: Path) -> None:
    logs.configure(home=tmp_path)
    logging.getLogger("app.server.guard").info(
        "refused %s %s", "GET", "/a\n2026-01-01 00:00:00,000 ERROR 1 app: all is lost\r\x1b[2J\u2028b"
    )
    (line,) = _lines(tmp_path)
    assert line.endswith(r"refused GET /a\n2026-01-01 00:00:00,000 ERROR 1 app: all is lost\r\x1b[2J\u2028b")


def test_a_traceback_keeps_its_lines(tmp_path: Path) -> None:
    logs.configure(home=tmp_path)
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("app").exception("it failed")
    assert [line.startswith(("Traceback", "  ", "ValueError")) for line in _lines(tmp_path)[1:]].count(
        False
    ) == 0
    assert len(_lines(tmp_path)) > 3


def test_a_flood_is_a_line_a_second_with_a_count(tmp_path: Path) -> None:
    logs.configure(home=tmp_path)
    door, started = logging.getLogger("app.server.guard"), time.monotonic()
    for number in range(10_000):
        door.info("refused %s %s", "GET", f"/{number}")
    logging.getLogger("app.jobs").warning("job %s failed", "a")
    logging.getLogger("app.jobs").warning("job %s failed", "b")
    took = time.monotonic() - started
    deadline = started + took + 10
    while _told(tmp_path) < 10_000 and time.monotonic() < deadline:
        time.sleep(0.05)
    said = [line.split(": ", 1)[1] for line in _lines(tmp_path)]
    flood = [line for line in said if line.startswith("refused")]
    assert flood[0] == "refused GET /0"
    assert flood[1].startswith("refused GET /1 (")
    assert "like it within a second" in flood[1]
    assert _told(tmp_path) == 10_000
    assert len(flood) <= 2 + took
    assert [line for line in said if line not in flood] == ["job a failed", "job b failed"]


def _told(home: Path) -> int:
    """How many refusals the log tells of, by its lines and their counts."""
    counts = [re.search(r"refused .*?(?:\((\d+) like it|$)", line) for line in _lines(home)]
    return sum(int(found[1] or 1) for found in counts if found)


def test_other_exceptions_of_one_message_are_told_with_their_tracebacks(tmp_path: Path) -> None:
    logs.configure(home=tmp_path)
    for number in (1, 2, 3, 3):
        try:
            if number == 1:
                raise KeyError("first")
            if number == 2:
                raise ZeroDivisionError("second")
            raise KeyError("third")
        except (KeyError, ZeroDivisionError):
            logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
    assert sum(line.startswith("Traceback") for line in _lines(tmp_path)) == 3
    logs.configure()
    assert [line for line in _lines(tmp_path) if "Error: " in line] == [
        "KeyError: 'first'",
        "ZeroDivisionError: second",
        "KeyError: 'third'",
        "KeyError: 'third'",
    ]


def test_what_is_held_is_told_before_the_log_ends_and_not_after(tmp_path: Path) -> None:
    logs.configure(home=tmp_path)
    for _ in range(3):
        logging.getLogger("app.jobs").warning("full")
    logs.configure()
    assert [line.split(": ", 1)[1] for line in _lines(tmp_path)] == [
        "full",
        "full (2 like it within a second)",
    ]
    logs.log_file(tmp_path).unlink()
    time.sleep(1.2)
    assert not logs.log_file(tmp_path).exists()


def test_where_no_thread_can_be_started_a_line_is_let_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    logs.configure(home=tmp_path)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(3):
        logging.getLogger("app.jobs").warning("full")
    assert len(_lines(tmp_path)) == 3


def test_several_writers_of_one_file_throw_no_line_away(tmp_path: Path) -> None:
    file = logs.log_file(tmp_path)
    writers = [logs._LogFile(file, maxBytes=1000, backupCount=2, delay=True) for _ in range(4)]
    for number in range(24):
        said = logging.makeLogRecord({"msg": f"line {number}".ljust(99)})
        writers[number % 4].handle(said)
    for one in writers:
        one.close()
    kept = "".join(one.read_text(encoding="utf-8") for one in tmp_path.glob(f"{logs.LOG_FILE}*"))
    assert kept.count("line ") == 24
    assert all(one.stat().st_size <= 1000 for one in tmp_path.iterdir())


def test_two_handlers_are_told_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(home=tmp_path, to_stderr=True)
    for _ in range(3):
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert len(_lines(tmp_path)) == 1
    assert capsys.readouterr().err.count("Invalid HTTP request") == 1
    logs.configure()  # which tells the others, while standard error is still there
    assert "(2 like it within a second)" in capsys.readouterr().err
