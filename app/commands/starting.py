"""A server that starts: what is cheap to check comes first, and its address answers while the rest loads."""

from __future__ import annotations

import errno
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import typer

from app.desk.errors import AddressRefused, UsageProblem
from app.home.cluster import require_cluster
from ingest.sentence import phrase

if TYPE_CHECKING:
    from app.home.settings import Settings
    from app.server.security import Passwords

RETRY_SECONDS = 3
"""After which a page that says so asks again."""
_INTERRUPTED = 130  # 128 + SIGINT, as shells count
_LOOK_SECONDS = 0.1  # how soon the answers of a starting server end once it is ready
_ANYWHERE = frozenset({"", "0.0.0.0", "::"})
_PAGE = """<!doctype html>
<html lang="{language}" dir="{direction}">
<meta charset="utf-8"><meta http-equiv="refresh" content="{seconds}"><title>Perennial</title>
<p style="font: 1.2em system-ui; margin: 3em">{sentence}</p>
</html>
"""


class StartingServer:
    """A server whose address is taken, and which tells everybody who asks that it is starting, until it is ready."""

    def __init__(self, settings: Settings, passwords: Passwords | None, listener: socket.socket) -> None:
        host, port = settings.host, listener.getsockname()[1]
        shown = "localhost" if host in _ANYWHERE else f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{port}"
        self._settings, self._passwords, self._listener = settings, passwords, listener
        self._answers = _Answers(listener)
        self._since = time.monotonic()

    def run(self) -> None:
        """Loads the server and serves until it is stopped."""
        from app.web import serve

        try:
            serve(self._settings, self._passwords, self._listener, self._ready)
        except KeyboardInterrupt:
            typer.echo("The server has ended. What is live stays live.")
            raise typer.Exit(_INTERRUPTED) from None

    def begin(self) -> None:
        """Answers from now on, and says where."""
        threading.Thread(target=self._answers.serve_forever, args=(_LOOK_SECONDS,), daemon=True).start()
        typer.echo(f"Perennial is starting on {self.url} (Ctrl-C ends it) ...")

    def end(self) -> None:
        """Leaves the address to the server that has started."""
        self._answers.shutdown()

    def _ready(self) -> None:
        self.end()
        seconds = time.monotonic() - self._since
        places = f"pages on {self.url}/ and {self.url}/admin, REST on {self.url}/v1"
        typer.echo(f"Perennial is ready after {seconds:.0f} s: {places}")


@contextmanager
def starting(settings: Settings) -> Iterator[StartingServer]:
    """Checks who may come in and takes the address of a server, before anything heavy is loaded.

    Raises:
        UsageProblem: it would be open to the network without passwords, the password file cannot be read, or several
            processes are asked of a system that has no way for them.
        ClusterUnusable: jobs are to run here, and the Ray cluster that is to embed for them does not answer.
        AddressRefused: another program has the address, or this machine cannot listen there.
    """
    from app.server.security import required_passwords

    passwords = required_passwords(settings)
    if settings.processes > 1 and not hasattr(socket, "send_fds"):
        raise UsageProblem(
            f"{settings.processes} processes are asked for, and on this system one process cannot hand a connection "
            "to another. Leave the setting `processes` at 1."
        )
    if settings.jobs == "here":
        require_cluster(settings.ray)
    with _listening(settings.host, settings.port) as listener:
        server = StartingServer(settings, passwords, listener)
        server.begin()
        try:
            yield server
        finally:
            server.end()


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressRefused(
                f"Port {port} of {host} is in use, perhaps by another server of Perennial. "
                f"Stop that one, or name another port: `perennial serve --port {port + 1}`."
            ) from error
        raise AddressRefused(
            f"This machine cannot listen on {host}, port {port}: {error.strerror}. "
            "Name another address with --host, or another port with --port."
        ) from error


class _Answers(ThreadingHTTPServer):
    """Answers everything on a socket that is listening already."""

    daemon_threads = True

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(listener.getsockname()[:2], _Wait, bind_and_activate=False)
        self.socket.close()
        self.socket = listener


class _Wait(BaseHTTPRequestHandler):
    """Asks to wait: a browser by a page that looks again by itself, in its language; everybody else by JSON."""

    timeout = 5.0

    def do_GET(self) -> None:
        said = phrase("Perennial is starting. This page opens by itself when it is ready.")
        if "text/html" in self.headers.get("Accept", ""):
            self._answer("text/html; charset=utf-8", _page(self.headers.get("Accept-Language", ""), said))
        else:
            refusal = {"error": "Perennial is starting. Ask again in a few seconds.", "code": "starting"}
            self._answer("application/json", json.dumps(refusal))

    do_POST = do_HEAD = do_OPTIONS = do_GET  # noqa: N815 - named by the library

    def _answer(self, media: str, text: str) -> None:
        data = text.encode()
        self.send_response(503)
        self.send_header("Retry-After", str(RETRY_SECONDS))
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Keeps standard error to the log."""


def _page(accepted: str, sentence: str) -> str:
    from app.words.catalogue import RIGHT_TO_LEFT, Words, spoken

    language = spoken(accepted)
    return _PAGE.format(
        language=language,
        direction="rtl" if language in RIGHT_TO_LEFT else "ltr",
        seconds=RETRY_SECONDS,
        sentence=Words(language).said(sentence),
    )
