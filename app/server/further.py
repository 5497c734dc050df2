"""A further process of a server: answers searches and pictures by itself, and has the first answer everything else.

It opens the same home and the same live release, whose mapped files all processes share, and looks for a newer one as
the first does. It tidies nothing, takes up no jobs and watches no folders. It ends when the first process has gone.
(`python -m app.server.further CHANNEL`, the settings come through the channel; `processes.py` starts it.)
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable

import uvicorn
from starlette.routing import compile_path
from starlette.types import Scope

from app.desk.desk import Desk
from app.desk.operation import operations
from app.home import logs
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.server.api import create_api
from app.server.forwarding import Forwarding
from app.server.guard import UNGUARDED
from app.server.handing import READY, HandedServer, listen, server_options
from app.server.security import Passwords
from app.server.serving import Serving

OWN = (
    *("search", "searches", "results_table", "choices", "facets", "embed", "captions"),
    *("picture", "original", "thumbnail", "item_thumbnail", "item"),
)
"""The operations that a further process answers by itself: they change nothing and hear of no job."""


class _Further(HandedServer):
    """Serves the connections that come through the channel, until it is closed at the other end."""

    def __init__(self, options: uvicorn.Config, channel: socket.socket) -> None:
        super().__init__(options)
        self._channel = channel

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        listen(self._channel, self._hear)
        self._channel.send(READY)

    def _hear(self, said: bytes, connection: socket.socket | None) -> None:
        if connection is not None:
            self.take(connection)
        elif not said:
            self.should_exit = True


def main() -> None:
    """Serves until the first process ends."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    with channel.makefile("rb", buffering=0) as told:
        settings = Settings.model_validate_json(told.readline())
    logs.configure(settings.log_level, home=settings.home, to_stderr=True)
    # It knows nobody's password: the first process says whose were right.
    passwords = Passwords({}) if settings.password_file is not None else None
    with Workspace.open(settings) as workspace:
        app = create_api(Serving(workspace, is_first=False), passwords)
        forwarding = Forwarding(app, channel, passwords, answered_by_itself())
        _Further(server_options(forwarding, settings), channel).run([])


def answered_by_itself() -> Callable[[Scope], bool]:
    """Returns what says whether a request is one for a further process itself."""
    own = [(one.verb, compile_path(one.path)[0]) for one in map(operations(Desk).__getitem__, OWN)]

    def is_own(scope: Scope) -> bool:
        path, method = scope["path"], scope["method"]
        return path in UNGUARDED or any(method == verb and route.match(path) for verb, route in own)

    return is_own


if __name__ == "__main__":
    main()
