"""Tries what another home made in a process of its own, before anything of it is kept (`app.doctor.trial`)."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from app.desk.errors import PackageDamaged
from app.home import cores
from app.home.settings import Settings
from model_updates.errors import NeedsLearning

_BYTES, _TIMES = 4 << 30, 6  # what opening any encoder takes, and how much of its own size one takes
_SECONDS, _BYTES_PER_SECOND = 120, 10_000_000


def try_package(settings: Settings, package: Path) -> None:
    """Takes a package into a home of its own, loads it as a server would, and asks it something.

    Raises:
        PackageDamaged: it cannot be served; the sentence says why.
        NeedsLearning: packages are missing for it.
    """
    with tempfile.TemporaryDirectory(dir=settings.home / "staging", prefix="trial-") as place:
        _try(
            settings,
            package.name,
            package.stat().st_size,
            "--home",
            place,
            "--package",
            str(package.resolve()),
        )


def try_release(settings: Settings, release: str, size: int) -> None:
    """Loads a release of so many bytes that another home made, and asks it something; errors as `try_package`."""
    _try(settings, release, size, "--home", str(settings.home), "--release", release)


def _try(settings: Settings, name: str, size: int, *asked: str) -> None:
    seconds = _SECONDS + size // _BYTES_PER_SECOND
    limits = ("--bytes", str(_BYTES + _TIMES * size), "--seconds", str(seconds))
    command, environment = cores.own_process("app.doctor.trial", settings.threads)
    try:
        ended = subprocess.run(
            [*command, *limits, *asked],
            capture_output=True,
            text=True,
            timeout=3 * seconds,
            check=False,
            env=environment,
        )
        told = json.loads(ended.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired as error:
        raise _refused(name, f"to load it takes more than {seconds} seconds") from error
    except (ValueError, IndexError) as error:  # it was killed, for memory or for time
        why = f"a process that loads it ends with {ended.returncode}, as it does without memory or time"
        raise _refused(name, why) from error
    if "needs" in told:
        raise NeedsLearning(told["needs"])
    if told:
        raise _refused(name, told["why"])


def _refused(name: str, why: str) -> PackageDamaged:
    return PackageDamaged(
        f"{name} is refused: {why.rstrip('.')}. It was tried apart; nothing of it was kept."
    )
