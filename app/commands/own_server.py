"""A connection to the server of a home on this machine, by its socket."""

import http.client
import socket


class OwnServer(http.client.HTTPConnection):
    """A connection to a socket of this machine."""

    def __init__(self, place: str, *, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._place = place

    def connect(self) -> None:
        """Opens the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._place)
