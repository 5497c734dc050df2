"""What lies on the disk: leftovers, strangers, room; and whether the program is all ours."""

import importlib.metadata
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from packaging.requirements import Requirement

from app import DISTRIBUTION
from app.desk.health import Diagnosis, Level
from app.home import durable, garbage
from app.home.catalog_copy import ASIDE
from app.home.folder import SOCKETS, Home
from app.home.workspace import Workspace
from app.words.messages import size
from ingest.migration import BEFORE
from ingest.sentence import phrase

OWN = ("perennial", "app", "index", "ingest", "model_updates")
LEAST_FREE = 1 << 30  # an update checks its own need; below this even uploads soon fail
_AT_TOP = frozenset(
    (
        "FORMAT",
        "catalog.sqlite",
        "catalog.sqlite-wal",
        "catalog.sqlite-shm",
        "catalog-copy.sqlite",
        "engines.toml",
        "blobs.lmdb",
        "vectors.lmdb",
        "inbox",
    )
    + (
        "staging",
        "workers",
        "versions",
        "generations",
        "graphs",
        "captions",
        "releases",
        "commits",
        "pruned",
        "damaged",
        "updater.lock",
        "fetching.lock",
        "commits.lock",
        "exports",
        "uploads",
    )
)
SHOWN = 5


def installation() -> Iterator[Diagnosis]:
    """Looks whether another package has put files into one of our folders; pip does that without a word."""
    shared = _others()
    for name, others in shared.items():
        if others:
            said = phrase(
                "The package {package} also belongs to {others}, whose files may have replaced ours.",
                package=f"{name!r}",
                others=", ".join(others),
            )
            advice = phrase(
                "Uninstall {package} and install Perennial again, in an environment of its own.",
                package=others[0],
            )
            yield Diagnosis("installation", Level.ERROR, said, advice)
    unfit = list(_unfit())
    yield from unfit
    if not any(shared.values()) and not unfit:
        yield Diagnosis("installation", Level.OK, phrase("No other package owns any of our files."))


def _others() -> dict[str, list[str]]:
    """Returns the other packages that list something in a folder of ours, by folder.

    `packages_distributions` makes an object of each file of each package for that, which takes seven times as long.
    """
    ours = re.compile(rf"^({'|'.join(OWN)})(?:/|$)", re.MULTILINE)
    found: dict[str, set[str]] = {name: set() for name in OWN}
    for package in importlib.metadata.distributions():
        listed = package.read_text("top_level.txt") or package.read_text("RECORD") or ""
        for folder in ours.findall(listed):
            found[folder].add(package.metadata["Name"])
    return {name: sorted(packages - {DISTRIBUTION}) for name, packages in found.items()}


def _unfit() -> Iterator[Diagnosis]:
    """Compares the packages that are installed with those that Perennial asks for."""
    for asked in map(Requirement, importlib.metadata.requires(DISTRIBUTION) or ()):
        if asked.marker is not None and not asked.marker.evaluate({"extra": ""}):
            continue
        with suppress(importlib.metadata.PackageNotFoundError):  # of FAISS there is another build
            found = importlib.metadata.version(asked.name)
            if not asked.specifier.contains(found, prereleases=True):
                said = phrase(
                    "{package} {version} is installed; this Perennial needs {needed}.",
                    package=asked.name,
                    version=found,
                    needed=str(asked.specifier),
                )
                advice = phrase("To install it: {command}", command=f"pip install '{asked}'")
                yield Diagnosis("installation", Level.ERROR, said, advice)


def orphans(workspace: Workspace) -> Iterator[Diagnosis]:
    """Looks for folders that nothing names, work that nobody will finish, and files that are not ours."""
    home = workspace.home
    found = garbage.unneeded(workspace.releases)
    resumable = garbage.resumable(workspace.catalog.jobs())
    leftovers = [path for path in home.staging.iterdir() if path.name not in resumable]
    found += [path for path in (*leftovers, *home.inbox.iterdir()) if _age(path) > garbage.STAGING_SECONDS]
    aside = sorted(home.root.glob(f"{ASIDE}*"))
    if aside:
        said = phrase(
            "{names}, {size}: damaged catalogs that `perennial repair` put aside. They hold what was removed since; "
            "delete them once nothing of them is needed.",
            names=", ".join(path.name for path in aside[:SHOWN]),
            size=size(durable.room(*aside)),
        )
        yield Diagnosis("orphan files", Level.OK, said)
    found += [path for path in home.root.iterdir() if not _is_ours(path) and path not in aside]
    if not found:
        yield Diagnosis("orphan files", Level.OK, phrase("Every file belongs to something."))
        return
    used = durable.room(*found)
    listed = ", ".join(path.relative_to(home.root).as_posix() for path in sorted(found)[:SHOWN])
    if len(found) > SHOWN:
        listed = phrase("{names} and {count} more", names=listed, count=len(found) - SHOWN)
    said = phrase(
        "{count} files or folders belong to nothing any more, {size}: {names}.",
        count=len(found),
        size=size(used),
        names=listed,
    )
    advice = phrase(
        "Candidates that the gate rejected are among them; a server that starts removes old unfinished work."
    )
    yield Diagnosis("orphan files", Level.WARN, said, advice, {"files": len(found), "bytes": used})


def disk(home: Home) -> Iterator[Diagnosis]:
    """Says what takes how much room, and how much is left."""
    parts = {path.name: durable.room(path) for path in sorted(home.root.iterdir())}
    free = durable.free_bytes(home.root)
    largest = sorted(parts.items(), key=lambda part: -part[1])[:SHOWN]
    listed = ", ".join(f"{name} {size(used)}" for name, used in largest)
    said = phrase(
        "{used} used ({parts}), {free} free.", used=size(sum(parts.values())), parts=listed, free=size(free)
    )
    figures = {"used": parts, "free": free}
    if free < LEAST_FREE:
        yield Diagnosis(
            "disk", Level.WARN, said, phrase("Free some space: updates need more than that."), figures
        )
    else:
        yield Diagnosis("disk", Level.OK, said, figures=figures)


def _is_ours(path: Path) -> bool:
    named = path.name in _AT_TOP or path.match(SOCKETS) or path.match(BEFORE)
    return named or path.name.startswith((".", "perennial.log", "perennial.toml"))


def _age(path: Path) -> float:
    return time.time() - path.lstat().st_mtime
