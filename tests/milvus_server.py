"""A Milvus that tests start by themselves, from a package; each process that asks has its own, which ends with it."""

from __future__ import annotations

import atexit
import gc
import shutil
import socket
import tempfile
import uuid
import warnings
from functools import cache


@cache
def _server() -> str:
    from milvus import MilvusServer

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server, folder = MilvusServer(), tempfile.mkdtemp(prefix="perennial-milvus-")
    server.set_base_dir(folder)
    server.listen_port = port
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ResourceWarning
        )  # it looks for free ports by sockets that it leaves open
        server.start()
        gc.collect()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.stop)
    return f"http://127.0.0.1:{port}"


def place() -> str:
    """Returns the address of a Milvus, with a name that nobody else has."""
    return f"{_server()}/of_{uuid.uuid4().hex[:8]}"
