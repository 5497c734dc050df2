"""Writing the password file: an account is added or gets a new line, and everything else in it stays."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from app.desk.errors import UsageProblem
from app.server.security import Passwords

_MODE = 0o600


def require_place(path: Path, user: str, *, replace: bool) -> None:
    """Refuses a file in which an account could not be written, before anybody is asked for a password.

    Raises:
        UsageProblem: a line of it cannot be read, the account stands there already, or there is no such folder.
    """
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageProblem(f"{path} cannot be a password file; name a file in a folder that exists.")
    if user in _names(path) and not replace:
        raise UsageProblem(
            f"{path} has an account {user} already. Say --replace to give it this role and a new password."
        )


def write_account(path: Path, line: str) -> int:
    """Writes the line of an account, in place of one that it has; returns how many accounts there are.

    A new file is for its owner alone; an old one keeps owner and mode. A power cut leaves the old file or the new one.
    """
    user = line.partition(":")[0]
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [one for one in lines if one.strip().partition(":")[0] != user]
    _replace(path, "".join(f"{one}\n" for one in [*kept, line]))
    return len(_names(path))


def _names(path: Path) -> set[str]:
    if not path.exists() or not any(_is_account(line) for line in path.read_text("utf-8").splitlines()):
        return set()
    return Passwords.load(path).names()


def _is_account(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _replace(path: Path, text: str) -> None:
    descriptor, fresh = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            before = path.stat() if path.exists() else None
            if before is not None:
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), _MODE if before is None else before.st_mode & 0o777)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(fresh).replace(path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
