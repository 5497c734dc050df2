"""The demo: the story of `app.demo.story` on a home of its own, told by a script or on a guided page."""

import sys
import time
from collections.abc import Callable

from app.demo import homes
from app.demo.findings import Findings
from app.demo.player import Cast, Learn, Player, learn_as_job
from app.demo.story import STEPS, prepare
from app.desk.errors import UsageProblem
from app.desk.jobs import Stage
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import beginning
from app.learning.outcomes import say_nothing


def run_script(settings: Settings) -> int:
    """Plays the whole story on a fresh home and prints each step with its numbers.

    `settings.home` is a new or empty folder, or what an earlier run left, which is replaced. The exit code is 0 when
    every claim holds, 1 at the first step that fails.

    Raises:
        UsageProblem: the folder holds something else.
    """
    settings = settings.model_copy(update={"home": homes.fresh_home(settings.home)})
    started = time.monotonic()
    _say(f"Perennial's story, on a fresh home in {settings.home}")
    beginning.initialise(settings)
    homes.mark(settings.home, homes.SCRIPTED)
    with Workspace.open(settings) as workspace:
        passed = tell_story(workspace, learn_as_job(settings), Cast(), _say)
    _say(
        f"\n{'Every step passed' if passed else 'The story ends here'}, after {time.monotonic() - started:.0f} s."
    )
    return 0 if passed else 1


def tell_story(workspace: Workspace, learn: Learn, cast: Cast, say: Callable[[str], None]) -> bool:
    """Plays the steps and says what each finds; returns whether all claims hold, ending at the first that fails."""
    player = Player(workspace, learn, say_nothing, cast)
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


def make_guided_home(settings: Settings, cast: Cast | None = None) -> None:
    """Makes the guided demo's home with its first pictures, or completes one that was begun."""
    home = settings.home
    if homes.is_free(home):
        _say(f"Making the demo's home in {home}: the encoder and its first pictures, in about a minute ...")
        beginning.initialise(settings)
        homes.mark(home, homes.GUIDED)
    elif not homes.is_guided(home):
        raise UsageProblem(f"{home} holds something else than a guided demo. Name a new folder with --home.")
    with Workspace.open(settings) as workspace:
        prepare(Player(workspace, learn_as_job(settings), _show_progress, cast))


def _say(line: str) -> None:
    print(line, flush=True)  # so that a pipe shows it at once too


def _show_progress(stage: Stage) -> None:
    if sys.stderr.isatty():
        done = "" if stage.fraction is None else f" {100 * stage.fraction:.0f} %"
        print(f"\r{stage.message}{done}\033[K", end="\r", file=sys.stderr, flush=True)
