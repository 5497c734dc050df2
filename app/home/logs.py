"""The one place where logging is set up."""

import logging
import logging.handlers
import time
from pathlib import Path

LOG_FILE = "perennial.log"
_FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"
# Three files of this size hold weeks of one server.
_LOG_BYTES = 5_000_000
_LOG_FILES = 3
_TAIL_BYTES = 1 << 20


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
            logging.handlers.RotatingFileHandler(
                log_file(home), maxBytes=_LOG_BYTES, backupCount=_LOG_FILES - 1, encoding="utf-8", delay=True
            )
        )
    if to_stderr:
        handlers.append(logging.StreamHandler())
    for handler in handlers or [logging.NullHandler()]:
        formatter = logging.Formatter(_FORMAT)
        formatter.converter = time.gmtime
        handler.setFormatter(formatter)
        handler.perennial = True  # type: ignore[attr-defined]
        root.addHandler(handler)
    root.setLevel(level)
    # Pillow and PyTorch tell at INFO and below what only their own developers want.
    for name in ("PIL", "matplotlib", "httpx", "asyncio", "watchfiles"):
        logging.getLogger(name).setLevel(logging.WARNING)


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
