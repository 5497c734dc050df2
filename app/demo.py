"""The demo: the story of `app.demo_story` on a home of its own, told by a script or on a guided page."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app import durable, update_cycle
from app.demo_player import Cast, Learn, Player, learn_as_job
from app.demo_story import STEPS, Findings, Step, prepare
from app.errors import UsageProblem
from app.home import Home
from app.settings import Settings
from app.workspace import Workspace

logger = logging.getLogger(__name__)

MARK = "demo.json"
"""Lies in a home that the demo made; says who plays there and what each step found."""
GUIDED, SCRIPTED = "guided", "scripted"


def run_script(settings: Settings) -> int:
    """Plays the whole story on a fresh home and prints each step with its numbers.

    Args:
        settings: `home` is where it plays: a new or empty folder, or the home of an earlier run, which is
            replaced. Where a guided demo lives, the script plays beside it.

    Returns:
        The exit code: 0 when every claim holds, 1 at the first step that fails.

    Raises:
        UsageProblem: the folder holds something else.
    """
    settings = settings.model_copy(update={"home": _fresh(settings.home)})
    started = time.monotonic()
    _say(f"Perennial's story, on a fresh home in {settings.home}")
    update_cycle.initialise(settings)
    _write_mark(settings.home, SCRIPTED, {})
    with Workspace.open(settings) as workspace:
        passed = tell_story(workspace, learn_as_job(settings), Cast(), _say)
    print(
        f"\n{'All steps passed' if passed else 'The story ends here'} after {time.monotonic() - started:.0f} s."
    )
    return 0 if passed else 1


def tell_story(workspace: Workspace, learn: Learn, cast: Cast, say: Callable[[str], None]) -> bool:
    """Plays every step and says what it finds; returns whether all claims hold, ending at the first that fails."""
    player = Player(workspace, learn, lambda message, _fraction: None, cast)
    for number, step in enumerate(STEPS, start=1):
        say(f"\n{number}. {step.title}")
        findings = step.play(player)
        for line in report(findings):
            say(f"   {line}")
        if not findings.passed:
            return False
    return True


def report(findings: Findings) -> list[str]:
    """Returns a step's numbers and claims as lines."""
    claims = [f"{'ok  ' if check.holds else 'FAIL'} {check.claim}" for check in findings.checks]
    return [*findings.lines, *claims, f"({findings.seconds:.1f} s)"]


def serve_demo(settings: Settings) -> None:
    """Serves the guided demo; the first start draws its pictures before it answers.

    Raises:
        UsageProblem: the folder holds something else than a guided demo.
    """
    from app.api import serve

    _prepare_guided(settings)
    print(f"Perennial's guided demo is on http://{settings.host}:{settings.port}", flush=True)
    serve(settings)


def is_guided(home: Path) -> bool:
    """Whether a home is a guided demo's, so that its pages show the guide."""
    return _mark(home).get("kind") == GUIDED


def found_so_far(home: Path) -> dict[str, Findings]:
    """Returns what the guided demo's steps have found, by step."""
    return {name: Findings.from_json(one) for name, one in _mark(home).get("found", {}).items()}


def keep(home: Path, step: Step, findings: Findings) -> None:
    """Remembers what a step of the guided demo found."""
    found = found_so_far(home) | {step.name: findings}
    _write_mark(home, GUIDED, found)


def _prepare_guided(settings: Settings) -> None:
    home = settings.home
    if not (_is_free(home) or is_guided(home)):
        raise UsageProblem(f"{home} is no guided demo; name a new folder for it with --home.")
    if _is_free(home) or not Home(home).format_file.exists():
        print(
            f"Making the demo's home in {home}: the encoder, and its first pictures (under a minute) ...",
            flush=True,
        )
        update_cycle.initialise(settings)
        _write_mark(home, GUIDED, {})
    with Workspace.open(settings) as workspace:
        prepare(Player(workspace, learn_as_job(settings), _print_progress))


def _say(line: str) -> None:
    print(line, flush=True)  # a pipe shows it at once too


def _print_progress(message: str, fraction: float | None) -> None:
    if sys.stderr.isatty():
        done = "" if fraction is None else f" {100 * fraction:.0f} %"
        print(f"\r{message}{done}\033[K", end="", file=sys.stderr, flush=True)


def _fresh(home: Path) -> Path:
    """Returns a folder in which nothing is yet; what an earlier script left there is removed."""
    if is_guided(home):
        beside = home.with_name(f"{home.name}-script")
        print(f"{home} is the guided demo's; this run plays in {beside}.")
        return _fresh(beside)
    if _mark(home).get("kind") == SCRIPTED:
        shutil.rmtree(home)
    elif not _is_free(home):
        raise UsageProblem(
            f"{home} is not empty and was not made by the demo; name a new folder with --home."
        )
    return home


def _is_free(home: Path) -> bool:
    return not home.exists() or (home.is_dir() and not any(home.iterdir()))


def _mark(home: Path) -> dict[str, Any]:
    try:
        document = json.loads((home / MARK).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return {}
    return document if isinstance(document, dict) else {}


def _write_mark(home: Path, kind: str, found: dict[str, Findings]) -> None:
    document = {"kind": kind, "found": {name: one.to_json() for name, one in found.items()}}
    durable.replace_file(home / MARK, json.dumps(document, ensure_ascii=False, indent=1).encode())
