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
        self._trying: threading.Thread | None = None

    def open(self, why: str) -> None:
        """Refuses from now on, since somebody has waited in vain, until the server answers."""
        self._why, self._known = why, time.monotonic()
        self.doubt()

    def doubt(self) -> None:
        """Has the server asked by a thread for which nobody waits, since somebody has waited in vain."""
        trying = self._trying
        if trying is None or not trying.is_alive():  # a process that was forked has no thread of its parent's
            self._trying = threading.Thread(target=self._until_it_answers, name="circuit", daemon=True)
            self._trying.start()

    def why_open(self) -> str:
        """Returns why nothing is to be asked; nothing where it may be."""
        if self._why:
            self.doubt()
        return self._why

    def answers(self) -> bool:
        """Has the server asked, unless somebody has just done so; opens or closes by what comes of it."""
        with self._probing:
            if time.monotonic() - self._known >= _RECENT_SECONDS:
                self._why = self._probe()
                self._known = time.monotonic()
            why = self._why
        if why:
            self.doubt()
        return not why

    def _until_it_answers(self) -> None:
        while not self.answers():
            time.sleep(_RECENT_SECONDS)
