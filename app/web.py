"""The server: FastAPI outside, the screens mounted inside, one process."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from app.desk.errors import UsageProblem
from app.home import logs
from app.home.folder import Home
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.server.api import create_api
from app.server.guard import LOOPBACK
from app.server.security import Passwords
from app.server.serving import Serving


def create_app(serving: Serving, passwords: Passwords | None = None) -> FastAPI:
    """Builds the server around an opened workspace; its lifespan starts and stops `serving`.

    Args:
        serving: Made from an open workspace, which stays the caller's to close.
        passwords: Who may come in; None lets everybody in.
    """
    # Gradio takes seconds to load, and looks at what `prepare_gradio` says: only those who build a server load it.
    from app.ui.pages import mount_pages

    app = create_api(serving, passwords)
    mount_pages(app, serving, passwords)
    return app


def serve(settings: Settings) -> None:
    """Serves until it is stopped.

    Raises:
        UsageProblem: it would be open to the network without passwords, or the password file cannot be read.
        NoHome: there is no home to serve.
    """
    passwords = require_protection(settings)
    home = Home.open(settings.home)
    logs.configure(settings.log_level, home=home.root, to_stderr=True)
    with tempfile.TemporaryDirectory(prefix="screens-", dir=_upload_folder(home)) as uploads:
        prepare_gradio(Path(uploads))
        with Workspace.open(settings) as workspace:
            app = create_app(Serving(workspace), passwords)
            options = server_options(app, settings.host, settings.port)
            # Who signs people in must be seen at its own address, not at the one that it forwards for.
            options.proxy_headers = settings.proxy_user_header is None
            uvicorn.Server(options).run()


def server_options(app: FastAPI, host: str, port: int) -> uvicorn.Config:
    """Returns how the application is run: one process, since the screens' queues and sessions live in it."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        workers=1,
        log_config=None,  # logs.py has set up logging
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )


def require_protection(settings: Settings) -> Passwords | None:
    """Returns the accounts, if there is a password file.

    Raises:
        UsageProblem: the server would be open to the network without one, and nobody said that it may.
    """
    if settings.password_file is not None:
        return Passwords.load(settings.password_file)
    if settings.proxy_user_header is not None:
        return None
    if settings.host not in LOOPBACK and not settings.allow_open:
        raise UsageProblem(
            f"Serving on {settings.host} would let everybody on the network upload and promote. Give a password "
            "file (PERENNIAL_PASSWORD_FILE; `perennial account USER ROLE` writes its lines), or say "
            "that this is meant (PERENNIAL_ALLOW_OPEN=1), or serve on 127.0.0.1."
        )
    return None


def prepare_gradio(uploads: Path) -> None:
    """Tells Gradio where files that people choose on the screens may lie, and that it must not call home."""
    os.environ["GRADIO_TEMP_DIR"] = str(uploads)
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"


def _upload_folder(home: Home) -> Path:
    """An empty folder beside the inbox: the same disk, so that a large upload does not fill another one."""
    folder = home.root / "uploads"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
