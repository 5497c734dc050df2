"""A Milvus that tests start by themselves, from a package; processes of a run share it, and who began it ends it."""

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
from functools import cache
from pathlib import Path

# Of the run. A second Milvus beside one does not start.
_FOLDER = Path(tempfile.gettempdir()) / f"perennial-milvus-{os.getuid()}"


@cache
def _server() -> str:
    _FOLDER.mkdir(exist_ok=True)
    with (_FOLDER / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        known = _FOLDER / "port"
        port = int(known.read_text()) if known.exists() else 0
        if not port or not _answers(port):
            port = _started()
            known.write_text(str(port))
    return f"http://127.0.0.1:{port}"


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def _started() -> int:
    from milvus import MilvusServer

    server, folder = MilvusServer(), tempfile.mkdtemp(dir=_FOLDER)
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
    return int(server.listen_port)


def place() -> str:
    """Returns the address of a Milvus, with a name that nobody else has."""
    return f"{_server()}/of_{uuid.uuid4().hex[:8]}"
