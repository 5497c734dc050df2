"""A web server on loopback that has pictures, and everything that servers do instead of sending one."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from tests.ingest.material import picture

OPENED = (ip_network("127.0.0.1/32"),)
"""What lets pictures be fetched from the server."""


@dataclass
class Web:
    """A running server."""

    url: str  # without a slash at its end
    asked: list[tuple[str, str]] = field(default_factory=list)  # path and Host of each request
    most_at_once: int = 0
    pictures: dict[str, bytes] = field(default_factory=dict)  # by path
    under_way: int = 0
    lock: Any = field(default_factory=threading.Lock)

    @property
    def paths(self) -> list[str]:
        """What was asked for, in order."""
        return [path for path, _ in self.asked]

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: Web

    def do_GET(self) -> None:
        web = self.web
        with web.lock:
            web.asked.append((self.path, self.headers["Host"]))
            web.under_way += 1
            web.most_at_once = max(web.most_at_once, web.under_way)
        try:
            self._answer()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with web.lock:
                web.under_way -= 1

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        if path in self.web.pictures:
            self._send(200, self.web.pictures[path])
        elif (odd := getattr(self, f"_{path[1:]}", None)) is not None:
            odd(query)
        else:
            self._send(404, b"no such picture")

    def _to(self, address: str) -> None:
        self._send(302, b"", Location=address)

    def _round(self, turn: str) -> None:
        self._send(302, b"", Location=f"/round?{int(turn or 0) + 1}")

    def _large(self, _: str) -> None:
        self._send(200, bytes(100), Content_Length=str(2**40))

    def _endless(self, _: str) -> None:
        """Says nothing of its size."""
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(bytes(2**16))

    def _half(self, _: str) -> None:
        self._send(200, picture(1)[:50], Content_Length="5000")
        self.close_connection = True

    def _slow(self, seconds: str) -> None:
        time.sleep(float(seconds))
        self._send(200, picture(int(float(seconds) * 1000)))

    def _drip(self, query: str) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(200):
            self.wfile.write(b".")
            self.wfile.flush()
            time.sleep(0.02)

    def _send(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"Content_Length": str(len(data))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing: callers leave in the middle of answers."""


@contextmanager
def web_server(*, pictures: int = 0, certificate: Path | None = None) -> Iterator[Web]:
    """Runs a server with `/0.png`, `/1.png` and so on; with a certificate over TLS."""
    web = Web("", pictures={f"/{n}.png": picture(n) for n in range(pictures)})
    handler = type("Answers", (_Answers,), {"web": web})
    with _Server(("127.0.0.1", 0), handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https" if certificate else "http"
        web.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield web
        server.shutdown()
        thread.join()
