"""The server: FastAPI outside, the screens mounted inside; one process, and further ones that search."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app.desk.errors import AppError
from app.home import logs
from app.home.folder import Home
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.server.admission import LoadShedding
from app.server.api import create_api
from app.server.forwarding import Forwarded
from app.server.handing import HandedServer, server_options
from app.server.metrics import count_together
from app.server.own_socket import own_socket
from app.server.processes import FurtherProcesses
from app.server.security import Passwords
from app.server.serving import Serving
from app.ui.start import start_gradio


def create_app(serving: Serving, passwords: Passwords | None = None) -> FastAPI:
    """Builds the server around an opened workspace; its lifespan starts and stops `serving`.

    Args:
        serving: Made from an open workspace, which stays the caller's to close.
        passwords: Who may come in; None lets everybody in.
    """
    # Gradio takes seconds to load, and looks at what `start_gradio` says: only those who build a server load it.
    from app.ui.pages import mount_pages

    app = create_api(serving, passwords)
    mount_pages(app, serving, passwords)
    # The last one added is the outermost.
    app.add_middleware(LoadShedding, search=serving.searching, turned_away=serving.metrics.turned_away)
    return app


def serve(
    settings: Settings, passwords: Passwords | None, listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    """Serves until it is stopped.

    Args:
        settings: What the installation is told.
        passwords: Who may come in; None lets everybody in.
        listener: The address that is served, taken already; it is closed at the end.
        on_ready: Called once, when requests are answered.

    Raises:
        NoHome: there is no home to serve.
        AppError: it could not start; the log says why.
        KeyboardInterrupt: Ctrl-C has stopped it.
    """
    home = Home.open(settings.home)
    logs.configure(settings.log_level, home=home.root, to_stderr=True)
    with tempfile.TemporaryDirectory(prefix="screens-", dir=_upload_folder(home)) as uploads:
        start_gradio(Path(uploads))
        if settings.processes > 1:
            count_together(Path(uploads) / "counts")
        with Workspace.open(settings) as workspace:
            serving = Serving(workspace)
            serving.folders.start()  # their pictures are read while the pages load, which takes as long
            app = create_app(serving, passwords)
            server = _Server(server_options(app, settings), on_ready)
            if settings.processes > 1:
                forwarded = server_options(Forwarded(app, passwords), settings)
                server.further = FurtherProcesses(settings, server, listener, forwarded)
            with own_socket(home, settings) as own:
                server.run(own if server.further else [listener, *own])
            if server.is_interrupted:  # asyncio drops that when the server has ended before it was told
                raise KeyboardInterrupt


class _Server(HandedServer):
    """Says when it is ready, and why it is not in a sentence; with further processes, where there are to be some."""

    further: FurtherProcesses | None = None

    def __init__(self, options: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(options)
        self._on_ready = on_ready
        self.is_interrupted = False  # by Ctrl-C

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.is_interrupted |= sig == signal.SIGINT
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit as error:  # with a code that means something else here
            raise AppError(f"The server could not start; {logs.current_file()} says why.") from error
        if self.further is not None:
            self.further.begin()
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        further = [] if self.further is None else [self.further.end()]
        await asyncio.gather(super().shutdown(sockets), *further)


def _upload_folder(home: Home) -> Path:
    """An empty folder beside the inbox: the same disk, so that a large upload does not fill another one."""
    folder = home.root / "uploads"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
