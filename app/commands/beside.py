"""The desk of a home on this machine, whose searches a server answers that runs on it: that one has everything loaded.

The answer is the one that the home itself would give. Where nobody answers, or not with a good answer, the home is
asked: it has the better sentence for what is wrong, and waits for what a server does not.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

from app.home.folder import Home

if TYPE_CHECKING:
    from app.desk.hits import SearchAnswer, SearchRequest
    from app.home.settings import Settings
    from app.local.at_home import AtHome

ROUTE = "/v1/search"
_SECONDS = 10.0  # the home itself would have answered by then, even on a machine that is busy


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keeps the collector of garbage away: it would go through all that is loaded, many times, and find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Beside:
    """What `AtHome` is, but for searches; a context manager. Nothing heavy is loaded until the home itself is asked."""

    def __init__(self, settings: Settings, *, by: str) -> None:
        """Opens nothing yet.

        Raises:
            NoHome, NewerFormat: there is no home here that this program can open.
        """
        self._settings, self._by = settings, by
        self._home = Home.open(settings.home)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._at_home, name)

    @cached_property
    def _at_home(self) -> AtHome:
        from app.local.at_home import AtHome

        return AtHome(self._settings, by=self._by)

    def search(self, asked: SearchRequest) -> SearchAnswer:
        """Returns the server's answer, or that of the home where there is none."""
        with _uncollected():
            answer = self._served(asked) if self._settings.ask_server else None
            return self._at_home.search(asked) if answer is None else answer

    def _served(self, asked: SearchRequest) -> SearchAnswer | None:
        place = self._home.socket(self._settings)
        if not place.exists():
            return None
        from http.client import HTTPException

        from app.commands.own_server import OwnServer
        from app.desk.hits import SearchAnswer
        from app.desk.operation import adapter

        server = OwnServer(str(place), timeout=_SECONDS)
        try:
            told = asked.model_dump_json(exclude_unset=True)
            server.request("POST", ROUTE, told, {"Content-Type": "application/json"})
            answer = server.getresponse()
            data = answer.read()
            return (
                cast(SearchAnswer, adapter(SearchAnswer).validate_json(data))
                if answer.status == 200
                else None
            )
        except (OSError, HTTPException, ValueError):  # no text as JSON, or no answer of ours
            return None
        finally:
            server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_at_home" in self.__dict__:
            self._at_home.close()
