"""The one place where logging is set up."""

import fcntl
import logging
import logging.handlers
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LOG_FILE = "perennial.log"
_FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"
# Three files of this size hold weeks of one server.
_LOG_BYTES = 5_000_000
_LOG_FILES = 3
_TAIL_BYTES = 1 << 20
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]|\n(?! )")
_LET_THROUGH = "perennial_let_through"
# What strangers set off, thousands of times a second if they like: there the place in the code is what is counted, else
# the text.
_OF_REQUESTS = ("app.server", "uvicorn", "asyncio")


def log_file(home: Path) -> Path:
    """Where a home's log lies; the file may not exist yet."""
    return home / LOG_FILE


def current_file() -> Path | None:
    """Where log lines go now; None before `configure` or without a home."""
    for handler in logging.getLogger().handlers:
        if getattr(handler, "perennial", False) and isinstance(handler, logging.FileHandler):
            return Path(handler.baseFilename)
    return None


def configure(level: str = "INFO", *, home: Path | None = None, to_stderr: bool = False) -> None:
    """Sends log lines to the home's file, to standard error, or nowhere; calling it again replaces that.

    Commands do not write to standard error, as servers and workers do: what a person needs to know they say themselves.
    """
    root = logging.getLogger()
    for handler in list(root.handlers):
        if getattr(handler, "perennial", False):
            for ration in handler.filters:
                if isinstance(ration, Ration):
                    ration.end()
            root.removeHandler(handler)
            with suppress(ValueError):  # whoever gave it its stream has closed that
                handler.close()
    handlers: list[logging.Handler] = []
    if home is not None and home.is_dir():
        handlers.append(
            _LogFile(
                log_file(home), maxBytes=_LOG_BYTES, backupCount=_LOG_FILES - 1, encoding="utf-8", delay=True
            )
        )
    if to_stderr:
        handlers.append(logging.StreamHandler())
    ration = Ration()
    for handler in handlers or [logging.NullHandler()]:
        handler.setFormatter(_OneLine(_FORMAT))
        handler.addFilter(ration)
        handler.perennial = True  # type: ignore[attr-defined]
        root.addHandler(handler)
    root.setLevel(level)
    # Pillow and PyTorch tell at INFO and below what only their own developers want.
    for name in ("PIL", "matplotlib", "httpx", "asyncio", "watchfiles"):
        logging.getLogger(name).setLevel(logging.WARNING)


class _LogFile(logging.handlers.RotatingFileHandler):
    """A file that several processes write, of which each moves it away when it is full and the others follow.

    What a full disk has no room for is lost: who reads standard error has no use for a traceback of logging.
    """

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802  # logging's name
        """Returns whether the file is full, of what lies there now."""
        self._follow()
        return bool(super().shouldRollover(record))

    def doRollover(self) -> None:  # noqa: N802  # logging's name
        """Moves the full file away, unless another process just has."""
        folder = os.open(Path(self.baseFilename).parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            if not self._follow():
                super().doRollover()
        finally:
            os.close(folder)

    def _follow(self) -> bool:
        """Opens the file of this name where another process has moved away what was written to; returns whether."""
        if self.stream is None:
            return False
        there = Path(self.baseFilename)
        if there.exists() and os.path.samestat(there.stat(), os.fstat(self.stream.fileno())):
            return False
        self.stream.close()
        self.stream = self._open()
        return True

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        """Says nothing of a file that cannot be written."""
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)


class _OneLine(logging.Formatter):
    """Begins a line for each message and for nothing else: what somebody sends cannot look like a line of ours."""

    converter = staticmethod(time.gmtime)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        """Shows control characters as escapes."""
        return _CONTROL.sub(lambda one: ascii(one[0])[1:-1], super().formatMessage(record))


class Ration(logging.Filter):
    """Lets one line a second through of each message, which says how many others were like it."""

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__()
        self._seconds = seconds
        self._lock = threading.Lock()
        self._free_at: dict[Hashable, float] = {}
        self._held: dict[Hashable, _Held] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns whether a line is the first of its kind within the second; all handlers are told the same."""
        noted = vars(record)
        if _LET_THROUGH not in noted:
            noted[_LET_THROUGH] = self._is_first(record)
        return bool(noted[_LET_THROUGH])

    def _is_first(self, record: logging.LogRecord) -> bool:
        is_of_request = record.name.startswith(_OF_REQUESTS)
        kind = (record.name, record.msg if is_of_request else record.getMessage(), _raised(record))
        now = time.monotonic()
        with self._lock:
            if self._free_at.get(kind, 0.0) <= now:
                self._free_at = {one: at for one, at in self._free_at.items() if at > now}
                self._free_at[kind] = now + self._seconds
                return True
            if kind not in self._held:
                teller = threading.Timer(self._free_at[kind] - now, self._tell, (kind,))
                teller.daemon = True
                try:
                    teller.start()
                except RuntimeError:  # no thread can be started, and nobody would tell it later
                    return True
                self._held[kind] = _Held(record, teller)
            self._held[kind].count += 1
            return False

    def end(self) -> None:
        """Tells what is held, at once."""
        for kind in tuple(self._held):
            self._tell(kind)

    def _tell(self, kind: Hashable) -> None:
        with self._lock:
            held = self._held.pop(kind, None)
            if held is None:  # it was told at the end
                return
            self._free_at[kind] = time.monotonic() + self._seconds
        held.teller.cancel()
        said = held.first.getMessage()
        record = logging.makeLogRecord(vars(held.first) | {_LET_THROUGH: True, "args": ()})
        record.msg = said if held.count == 1 else f"{said} ({held.count} like it within a second)"
        logging.getLogger(record.name).handle(record)


@dataclass
class _Held:
    """Lines of one kind that wait for their second to end."""

    first: logging.LogRecord
    teller: threading.Timer
    count: int = 0


def _raised(record: logging.LogRecord) -> Hashable:
    """Returns what a line's exception is counted by: its type, and the place that raised it."""
    if not record.exc_info or record.exc_info[2] is None:
        return None
    *_, (frame, line) = traceback.walk_tb(record.exc_info[2])
    return record.exc_info[0], frame.f_code.co_filename, line


def last_lines(path: Path, count: int) -> list[str]:
    """Returns the last lines of a log, oldest first; none when there is no such file yet.

    They are looked for in its last megabyte.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    return lines[-count:]
