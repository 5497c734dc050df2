"""A Milvus that tests start by themselves, from a package; each process that asks has its own, which ends with it."""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import shutil
import socket
import tempfile
import uuid
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

TRIES, MILLISECONDS = 4, 45_000


@cache
def _server() -> str:
    turn = Path(tempfile.gettempdir()) / f"perennial-milvus-{os.getuid()}.lock"
    # One at a time: each looks for free ports, and two that did so together would take the same.
    with turn.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for _ in range(TRIES - 1):
            with suppress(TimeoutError):  # something else took one of its ports meanwhile
                return _started()
        return _started()


def _started() -> str:
    from milvus import MilvusServer

    server, folder = MilvusServer(wait_for_started=False), tempfile.mkdtemp(prefix="perennial-milvus-")
    server.set_base_dir(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server.listen_port = free.getsockname()[1]
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.stop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves the sockets open that it looks with
        server.start()
        gc.collect()
    try:
        server.wait_started(MILLISECONDS)
    except TimeoutError:
        server.stop()
        raise
    return f"http://127.0.0.1:{server.listen_port}"


def place() -> str:
    """Returns the address of a Milvus, with a name that nobody else has."""
    return f"{_server()}/of_{uuid.uuid4().hex[:8]}"
