"""What one at a time may do, also where several machines share a home.

Of the processes of a machine one holds a kernel lock (`lock`), which ends with it. Where machines share a home, it
holds a lease in the catalog as well (`ingest.leases`), which runs out when its machine is not heard of.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from app.desk.errors import UpdateRunning
from app.home import engines, lock
from app.home.folder import Home
from app.home.lock import LockHolder
from ingest.errors import LeaseHeld
from ingest.leases import SECONDS, Holder, LeaseTable

UPDATER = "updater"
COMMITS = "commits"
INTAKE = "intake"
FILES = "files"
PRESENT = "machine-"
_say_again: dict[str, float] = {}
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def hold(home: Home, name: str, what: str) -> Iterator[None]:
    """Holds one of the home's locks while a block runs; `what` is being done, for others to read.

    Raises:
        UpdateRunning: somebody else holds it, here or on another machine; the sentence names who and since when.
        CatalogUnreachable: machines share the home, and the database does not answer.
    """
    with ExitStack() as stack:
        stack.enter_context(lock.hold(path_of(home, name), what))
        table = _leases(home)
        if table is not None:
            stack.enter_context(_leased(table, home, name, what))
        yield


@contextmanager
def _leased(table: LeaseTable, home: Home, name: str, what: str) -> Iterator[None]:
    end = time.monotonic() + lock.TIDYING_SECONDS
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(table.held(_lease(home, name), _holder(home, what)))
                break
            except LeaseHeld as error:
                found = table.holder(_lease(home, name))
                if found is None or found.what != lock.TIDYING or time.monotonic() > end:
                    raise UpdateRunning(lock.refusal(_as_here(found)) if found else str(error)) from error
                time.sleep(0.1)
        yield


@contextmanager
def briefly(home: Home, *, alone: bool) -> Iterator[None]:
    """Holds what decides over commits for a moment: with others like it, or alone; waits for it.

    Raises:
        LeaseHeld: another machine has it for too long.
    """
    if is_shared(home):
        with in_turn(home, COMMITS):
            yield
        return
    with lock.briefly(home.commits_lock, alone=alone):
        yield


@contextmanager
def in_turn(home: Home, name: str) -> Iterator[None]:
    """Has one process at a time of all machines do something, each in its turn; of a home that none share, nothing.

    Raises:
        LeaseHeld: another machine has it for too long.
    """
    table = _leases(home)
    if table is None:
        yield
        return
    path = path_of(home, name).with_suffix(".turn")
    path.parent.mkdir(exist_ok=True)
    # The lease goes over to whoever of the same machine asks for it.
    with (
        lock.briefly(path, alone=True),
        table.briefly(_lease(home, name), _holder(home, name)),
    ):
        yield


@contextmanager
def intake(
    home: Home, *, patience: float = SECONDS, waiting: Callable[[LockHolder], None] = lambda one: None
) -> Iterator[None]:
    """Has one process at a time take pictures in, of all machines, each in its turn.

    Two at once would judge the same pictures without each other, and one that takes none would remove files that the
    other relies on. `waiting` is told again and again which process of this machine one waits for.

    Raises:
        UpdateRunning, LeaseHeld: another process, or machine, has it for longer than is waited, in seconds.
    """
    path = path_of(home, INTAKE).with_suffix(".turn")
    path.parent.mkdir(exist_ok=True)
    end, table = time.monotonic() + patience, _leases(home)
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(lock.hold(path, "taking pictures in"))
                break
            except UpdateRunning:
                if time.monotonic() > end:
                    raise
                if (found := lock.holder(path)) is not None:
                    waiting(found)
                time.sleep(0.1)
        if table is not None:
            of_machines = table.briefly(_lease(home, INTAKE), _holder(home, INTAKE), patience=patience)
            stack.enter_context(of_machines)
        yield


def say_present(home: Home, what: str) -> None:
    """Says to other machines that this one is at work on the home; nothing where none share it."""
    table, name = _leases(home), f"{PRESENT}{machine(home)}"
    if table is not None and time.monotonic() > _say_again.get(name, 0.0):
        table.say(_lease(home, name), _holder(home, what))
        _say_again[name] = time.monotonic() + SECONDS / 6


def at_work_elsewhere(home: Home) -> list[str]:
    """Returns what other machines are at, in words."""
    table = _leases(home)
    found = {} if table is None else table.holders(_lease(home, ""))
    others = [one for one in found.values() if one.left > 0 and one.machine != machine(home)]
    return [f"{one.host} ({one.what})" for one in others]


def holder(home: Home, name: str) -> LockHolder | None:
    """Says who holds one of the home's locks, on whichever machine, or None when it is free."""
    here = lock.holder(path_of(home, name))
    if here is not None:
        return here
    table = _leases(home)
    found = None if table is None else table.holder(_lease(home, name))
    # What this machine holds by its lease alone was a process of it that died.
    if found is None or found.left < 0 or found.machine == machine(home):
        return None
    return _as_here(found)


def _as_here(found: Holder) -> LockHolder:
    return LockHolder(found.pid, found.host, found.since, found.what)


def held_elsewhere(home: Home, name: str) -> Holder | None:
    """Says which other machine held one of the home's locks last, and how long ago; None of this one."""
    table = _leases(home)
    found = None if table is None else table.holder(_lease(home, name))
    return None if found is None or found.machine == machine(home) else found


def is_shared(home: Home) -> bool:
    """Whether several machines may share the home."""
    return bool(engines.read(home.root).home)


def path_of(home: Home, name: str) -> Path:
    """Returns the file of a lock."""
    return home.lock if name == UPDATER else home.root / "workers" / f"{name}.lock"


def machine(home: Home) -> str:
    """Returns what other machines know this one by: this folder, of this disk, since this start of the system."""
    boot = _BOOT.read_text().strip() if _BOOT.exists() else ""
    return hashlib.sha256(f"{place(home)}\n{boot}".encode()).hexdigest()[:16]


def place(home: Home) -> str:
    """Returns what stays the same of a machine when its system starts again: this folder, of this disk."""
    facts = home.root.stat()
    said = f"{socket.gethostname()}\n{home.root.resolve()}\n{facts.st_dev}:{facts.st_ino}"
    return hashlib.sha256(os.fsencode(said)).hexdigest()[:16]


def _holder(home: Home, what: str) -> Holder:
    since = datetime.now(UTC).isoformat("T", "seconds")
    return Holder(machine(home), socket.gethostname(), os.getpid(), what, since, 0.0)


def _lease(home: Home, name: str) -> str:
    return f"{engines.read(home.root).home[:16]}:{name}"


def _leases(home: Home) -> LeaseTable | None:
    """Returns the leases of a home that machines share; None of any other."""
    return _table(home.catalog_place) if is_shared(home) else None


@lru_cache(maxsize=8)
def _table(place: Path | str) -> LeaseTable:
    from ingest.engines import open_engine

    engine = open_engine(place, read_only=False)
    table = LeaseTable(engine)
    weakref.finalize(table, engine.dispose)
    return table
