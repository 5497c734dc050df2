"""The socket in a home by which commands of its owner ask the server that runs on it.

Nobody signs in there: the file system lets in who may open the socket, and that is the server's own user alone, who can
read the home anyway. A process that was killed leaves a file behind at which nobody answers.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from app.home.folder import SOCKETS, Home, is_answered
from app.home.settings import Settings

logger = logging.getLogger(__name__)


@contextmanager
def own_socket(home: Home, settings: Settings) -> Iterator[list[socket.socket]]:
    """Yields the socket, bound but not listening, so that who asks too early is refused at once; removed at the end.

    None is yielded where another server of the home has it, or where the file system has no sockets or not under so
    long a name: commands do without.
    """
    for left in home.root.glob(SOCKETS):
        if not is_answered(left):
            left.unlink(missing_ok=True)
    place = home.socket(settings)
    own = socket.socket(socket.AF_UNIX)
    try:
        own.bind(str(place))
        place.chmod(0o600)
    except OSError as error:
        own.close()
        logger.info("commands cannot ask this server by %s: %s", place, error)
        yield []
        return
    number = place.stat().st_ino
    try:
        yield [own]
    finally:
        own.close()
        with suppress(OSError):
            if place.stat().st_ino == number:
                place.unlink()
