"""Whether work fits, asked before it starts: of the disk where it writes, and of the memory of this machine.

What is needed is estimated by whoever is about to work. What there is comes from the system: of memory what is free or
can be freed, the bounds of the control groups that this process is in, and its own.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from app.desk.errors import NoMemory, NoSpace
from app.home.durable import free_bytes
from ingest.sentence import phrase

_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")
_UNBOUNDED = 1 << 60  # what version 1 of control groups says where there is no bound


def require_room(what: str, place: Path, *, disk: int = 0, memory: int = 0) -> None:
    """Refuses work that would not fit; `what` is a sentence's beginning, such as `This update`.

    Bytes of memory count this whole process, and what it has already counts as there. A place need not be there yet.

    Raises:
        NoSpace: the disk has less room.
        NoMemory: this machine, or what this process may take of it, has less.
    """
    free = free_bytes(place)
    if free < disk:
        raise NoSpace(
            phrase(
                "{what} needs about {needed} of the disk at {path}, and {free} are free. Nothing has changed. Free "
                "some space, or move the home to a larger disk.",
                what=what,
                needed=_said(disk),
                path=place,
                free=_said(free),
            )
        )
    there = memory_left() if memory else None
    if there is not None and there + own_bytes() < memory:
        raise NoMemory(
            phrase(
                "{what} needs about {needed} of memory, and {free} are free. Nothing has changed. Close other "
                "programs, allow this one more, or use a machine with more.",
                what=what,
                needed=_said(memory),
                free=_said(there + own_bytes()),
            )
        )


def memory_left() -> int | None:
    """Returns how many bytes this process may still take; None where the system does not say."""
    return min((*_of_machine(), *_of_groups(), *_of_process()), default=None)


def own_bytes() -> int:
    """Returns how many bytes of memory this process has."""
    with suppress(OSError, ValueError, IndexError):
        return int((_PROC / "self" / "statm").read_text().split()[1]) * resource.getpagesize()
    return 0


def _of_machine() -> Iterator[int]:
    with suppress(OSError, ValueError):
        for line in (_PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024


def _of_process() -> Iterator[int]:
    for kind, column in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        bound = resource.getrlimit(kind)[0]
        with suppress(OSError, ValueError, IndexError):
            if bound != resource.RLIM_INFINITY:
                taken = int((_PROC / "self" / "statm").read_text().split()[column]) * resource.getpagesize()
                yield max(0, bound - taken)


def _of_groups() -> Iterator[int]:
    """Yields what is left in each control group with a bound that this process is in, however deep."""
    with suppress(OSError):
        for line in (_PROC / "self" / "cgroup").read_text().splitlines():
            number, kinds, path = line.split(":", 2)
            if number == "0":
                root, bound, taken, freed = _GROUPS, "memory.max", "memory.current", "inactive_file"
            elif "memory" in kinds.split(","):
                root, bound, taken = _GROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
                freed = "total_inactive_file"
            else:
                continue
            inside = Path(path.lstrip("/"))
            for folder in (root / one for one in (inside, *inside.parents)):
                yield from _left_in(folder, bound, taken, freed)


def _left_in(folder: Path, bound: str, taken: str, freed: str) -> Iterator[int]:
    with suppress(OSError, ValueError):  # no bound (`max`), or another file system
        most = int((folder / bound).read_text())
        if most >= _UNBOUNDED:
            return
        kept = int((folder / taken).read_text())
        said = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        yield max(0, most - kept + int(said.get(freed, 0)))


def _said(count: int) -> str:
    return f"{count / 1e6:,.0f} MB" if count < 1e9 else f"{count / 1e9:,.1f} GB"
