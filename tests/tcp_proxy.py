"""A way to a server that tests can block: it passes everything on, hangs, or refuses whoever connects."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_LONGEST_SECONDS = 60.0


class TcpProxy:
    """Passes bytes between whoever connects and the server behind it."""

    def __init__(self, target: str | tuple[str, int]) -> None:
        """Listens; the target is the path of a socket, or a host and a port."""
        self._target = target
        self._flows = threading.Event()
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.accepted = 0
        self._accept()

    def hang(self) -> None:
        """Accepts whoever connects, and passes nothing on in either direction; a test that waits for that fails."""
        self._flows.clear()
        ending = threading.Timer(_LONGEST_SECONDS, self._flows.set)
        ending.daemon = True
        ending.start()

    def refuse(self) -> None:
        """Cuts everybody off, and lets nobody in."""
        with suppress(OSError):  # it wakes whoever accepts
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        ends, self._ends = self._ends, []
        for one in ends:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._flows.set()

    def restore(self) -> None:
        """Passes everything on again, what has waited first."""
        if self._listener.fileno() < 0:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self._accept()
        self._flows.set()

    def _accept(self) -> None:
        self._flows.set()
        threading.Thread(target=self._let_in, args=(self._listener,), daemon=True).start()

    def _let_in(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                self.accepted += 1
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        family = socket.AF_UNIX if isinstance(self._target, str) else socket.AF_INET
        with near, socket.socket(family) as far, suppress(OSError):
            far.connect(self._target)
            self._ends += [near, far]
            back = threading.Thread(target=self._pass_on, args=(far, near), daemon=True)
            back.start()
            self._pass_on(near, far)
            back.join()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                self._flows.wait()
                other.sendall(data)
        self._flows.wait()
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def through_proxy(target: str | tuple[str, int]) -> Iterator[TcpProxy]:
    """Gives a way to a server, which ends with the block."""
    proxy = TcpProxy(target)
    try:
        yield proxy
    finally:
        proxy.refuse()
