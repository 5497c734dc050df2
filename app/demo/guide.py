"""The guided demo's state: which steps have been played, which one is at it, and what it says.

A step runs in a thread of the server; its update is a job in a process of its own, like every other.
"""

import logging
import threading
from dataclasses import dataclass, replace

from app.demo import homes
from app.demo.findings import Check, Findings
from app.demo.player import Cast, Learn, Player, learn_as_job
from app.demo.story import STEPS, Step
from app.desk.errors import UpdateRunning, UsageProblem
from app.desk.jobs import Stage
from app.server.security import Passwords
from app.server.serving import OWN_ERRORS, Serving

logger = logging.getLogger(__name__)

_EXPECTED: tuple[type[Exception], ...] = (*OWN_ERRORS, OSError)


@dataclass(frozen=True)
class Running:
    """The step at work, what it is doing, and the share done of that, when known."""

    step: Step
    message: str
    fraction: float | None


class Guide:
    """Plays the story step by step, as a visitor asks for it."""

    def __init__(self, serving: Serving, *, learn: Learn | None = None, cast: Cast | None = None) -> None:
        self.serving = serving
        self._home = serving.settings.home
        self._learn = learn or learn_as_job(serving.settings)
        self._cast = cast
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._running: Running | None = None

    @property
    def running(self) -> Running | None:
        """The step at work, if any."""
        return self._running

    def found(self) -> dict[str, Findings]:
        """What the steps played so far have found, by name."""
        return homes.found_so_far(self._home)

    def following(self) -> Step | None:
        """The step to play now; None when all have passed."""
        found = self.found()
        return next((step for step in STEPS if step.name not in found or not found[step.name].passed), None)

    def start(self, name: str) -> None:
        """Begins a step and returns at once.

        Raises:
            UpdateRunning: a step is at work.
            UsageProblem: another step comes first, or this one has passed.
        """
        with self._starting:
            if self._running is not None:
                raise UpdateRunning(f"“{self._running.step.title}” is at work; wait until it ends.")
            step = self.following()
            if step is None or step.name != name:
                which = "The story is told" if step is None else f"“{step.title}” comes next"
                raise UsageProblem(f"{which}; each step is played once, in order.")
            self._running = Running(step, "Starting", None)
            self._thread = threading.Thread(target=self._play, args=(step,), name=f"demo-{name}", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Waits until no step is at work."""
        if self._thread is not None:
            self._thread.join()

    def _play(self, step: Step) -> None:
        player = Player(self.serving.workspace, self._learn, self._tell, self._cast)
        try:
            findings = step.play(player)
            self._keep(step, findings)
        except _EXPECTED as error:
            logger.warning("demo step %s: %s", step.name, error)
            self._keep(step, Findings(checks=(Check(f"It could not be played: {error}", False),)))
        finally:
            self._running = None

    def _keep(self, step: Step, findings: Findings) -> None:
        self.serving.refresh()
        homes.mark(self._home, homes.GUIDED, self.found() | {step.name: findings})

    def _tell(self, stage: Stage) -> None:
        if self._running is not None:
            self._running = replace(self._running, message=stage.message, fraction=stage.fraction)


def guide_for(serving: Serving, passwords: Passwords | None) -> Guide | None:
    """Returns the guide of a demo's home that is open to its visitor; None elsewhere."""
    is_open = passwords is None and serving.settings.proxy_user_header is None
    return Guide(serving) if is_open and homes.is_guided(serving.settings.home) else None
