"""The one place where logging is set up."""

import logging
import logging.handlers
import re
import sys
import threading
import time
from collections.abc import Hashable
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
            root.removeHandler(handler)
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
        handler.addFilter(ration.lets_through)
        handler.perennial = True  # type: ignore[attr-defined]
        root.addHandler(handler)
    root.setLevel(level)
    # Pillow and PyTorch tell at INFO and below what only their own developers want.
    for name in ("PIL", "matplotlib", "httpx", "asyncio", "watchfiles"):
        logging.getLogger(name).setLevel(logging.WARNING)


class _LogFile(logging.handlers.RotatingFileHandler):
    """Loses what a full disk has no room for: who reads standard error has no use for a traceback of logging."""

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


class Ration:
    """Lets one line a second through of each message, which says how many others were like it."""

    def __init__(self, seconds: float = 1.0) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._free_at: dict[Hashable, float] = {}
        self._held: dict[Hashable, int] = {}

    def lets_through(self, record: logging.LogRecord) -> bool:
        """Returns whether a line is the first of its kind within the second; all handlers are told the same."""
        noted = vars(record)
        if _LET_THROUGH not in noted:
            noted[_LET_THROUGH] = self._is_first(record)
        return bool(noted[_LET_THROUGH])

    def _is_first(self, record: logging.LogRecord) -> bool:
        is_of_request = record.name.startswith(_OF_REQUESTS)
        kind = (record.name, record.msg if is_of_request else record.getMessage())
        now = time.monotonic()
        with self._lock:
            if self._free_at.get(kind, 0.0) <= now:
                self._free_at = {one: at for one, at in self._free_at.items() if at > now}
                self._free_at[kind] = now + self._seconds
                return True
            if kind not in self._held:
                teller = threading.Timer(self._free_at[kind] - now, self._tell, (kind, record))
                teller.daemon = True
                teller.start()
            self._held[kind] = self._held.get(kind, 0) + 1
            return False

    def _tell(self, kind: Hashable, record: logging.LogRecord) -> None:
        with self._lock:
            count = self._held.pop(kind)
            self._free_at[kind] = time.monotonic() + self._seconds
        said = record.getMessage()
        record = logging.makeLogRecord(vars(record) | {_LET_THROUGH: True, "args": (), "exc_info": None})
        record.msg = said if count == 1 else f"{said} ({count} like it within a second)"
        logging.getLogger(record.name).handle(record)


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
