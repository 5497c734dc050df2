"""Circuit breakers: what has stopped answering is asked by one, and refused to all others at once, until it answers.

Without one, everybody who asks waits for the same time-out, and holds a thread meanwhile (Nygard, "Release It!", 2018,
"Circuit Breaker"). The one who tries is a thread for which nobody waits.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

_RECENT_SECONDS = 1.0


class Circuit:
    """The circuit breaker of one server elsewhere."""

    def __init__(self, probe: Callable[[], str]) -> None:
        """Begins closed; the probe asks the server, and returns why it does not answer, or nothing where it does."""
        self._probe = probe
        self._why = ""
        self._probing = threading.Lock()
        self._known = -math.inf  # when it was found out

    def open(self, why: str) -> None:
        """Refuses from now on, since somebody has waited in vain."""
        self._why, self._known = why, time.monotonic()

    def why_open(self) -> str:
        """Returns why nothing is to be asked; nothing where it may be. One that is open has it tried again by then."""
        if self._why and not self._probing.locked() and not self._is_recent():
            threading.Thread(target=self.answers, name="circuit", daemon=True).start()
        return self._why

    def answers(self) -> bool:
        """Has the server asked, unless somebody has just done so; opens or closes by what comes of it."""
        with self._probing:
            if not self._is_recent():
                self._why = self._probe()
                self._known = time.monotonic()
            return not self._why

    def _is_recent(self) -> bool:
        return time.monotonic() - self._known < _RECENT_SECONDS
