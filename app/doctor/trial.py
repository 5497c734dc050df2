"""Loads a release as a server would, and asks it something, in a process of its own with little memory and time.

What another home made may make anything go wrong: a parser that never ends, an array of a terabyte, a name that is
asked of a hub. So it goes wrong here, before anything of it is kept. (`python -m app.doctor.trial`; see
`app.learning.apart`.)
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import sys
from pathlib import Path
from typing import Any

PICTURES = 6


def main() -> int:
    """Tries a package, or a release of a home, and prints what came of it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m app.doctor.trial")
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--package", type=Path)
    parser.add_argument("--release")
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (asked.bytes, asked.bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (asked.seconds, asked.seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    logging.disable(logging.CRITICAL)
    sys.stdout.write(json.dumps(_tried(asked)) + "\n")
    return 0


def _call_nobody(event: str, arguments: tuple[Any, ...]) -> None:
    if event in {"socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.exec", "os.posix_spawn"}:
        raise PermissionError(f"a release that is tried may not do this ({event})")


def _tried(asked: argparse.Namespace) -> dict[str, str]:
    from app.desk.troubles import explain
    from model_updates.errors import NeedsLearning

    try:
        if asked.package is not None:
            _try_package(asked.home, asked.package)
        else:
            _try_release(asked.home, asked.release)
    except NeedsLearning as error:
        return {"needs": str(error)}
    except MemoryError:
        return {"why": "it needs more memory than a release may"}
    except Exception as error:  # noqa: BLE001 - whatever it makes go wrong is why it is refused
        told = explain(error)
        return {"why": told.sentence if told else f"a server cannot load it ({error!r})"}
    return {}


def _try_package(place: Path, package: Path) -> None:
    """Makes a home of a few drawn pictures with the package as its first release."""
    from app.home.settings import Settings
    from app.home.workspace import Workspace
    from app.learning.transfer import take_in
    from ingest.intake import IntakeOptions, ingest_source
    from ingest.samples.chunks import write_chunk
    from ingest.samples.scenes import all_scenes

    with Workspace.create(Settings(home=place)) as workspace:
        drawn = place / "inbox" / "drawn.zip"
        some = list(all_scenes())[::601][:PICTURES]
        write_chunk(drawn, scenes=[(one, "flat", n) for n, one in enumerate(some)], languages=["en"])
        ingest_source(drawn, catalog=workspace.catalog, blobs=workspace.blobs, options=IntakeOptions())
        sys.addaudithook(_call_nobody)  # only now: our own pictures are decoded by a process of their own
        came = take_in(workspace, package)
        workspace.releases.commit(came.release, parent=None, reason="init", why="trial", by="trial")
        _ask(workspace, came.release)


def _try_release(home: Path, release: str) -> None:
    from app.home.settings import Settings
    from app.home.workspace import Workspace

    sys.addaudithook(_call_nobody)
    with Workspace.open(Settings(home=home), read_only=True) as workspace:
        _ask(workspace, release)


def _ask(workspace: Any, release: str) -> None:
    """Loads a release by what a server loads it, and looks a few things up in each language that it says to know."""
    from app.query.finder import Finder
    from app.query.question import Question
    from app.query.snapshot import Snapshot

    snapshot, finder = Snapshot.load(workspace, release), Finder(workspace)
    for language in (*snapshot.languages[:20], "auto"):
        finder.find(snapshot, Question.of("two red boats on a beach", 3, language=language))


if __name__ == "__main__":
    raise SystemExit(main())
