"""The Ray cluster that the settings name: whether it answers, and being a part of it for some time."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from io import TextIOBase

from app.desk.errors import ClusterUnusable
from ingest.sentence import phrase

logger = logging.getLogger(__name__)

LOCAL = "local"
"""Names a Ray that is started for the work and ends with it."""
_ANSWER_SECONDS = 5.0
# Its makers are told nothing, and the terminal no more than by us.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}


def require_cluster(address: str) -> None:
    """Refuses a cluster that does not answer, where Ray itself would wait for minutes, and one without Ray here.

    Raises:
        ClusterUnusable: the sentence names the setting.
    """
    if address not in ("", LOCAL):
        _require_answer(address)
    if address and find_spec("ray") is None:
        raise ClusterUnusable(
            phrase(
                "Ray is not installed here, which the setting `ray` needs: `pip install 'perennial-search[ray]'`, or "
                "leave the setting empty."
            )
        )


def _require_answer(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()
    except (OSError, OverflowError, ValueError) as error:
        raise ClusterUnusable(
            phrase(
                "No Ray cluster answers at {address}, which the setting `ray` names ({why}). Start it (`ray start "
                "--head`), correct the setting, or leave it empty.",
                address=address,
                why=str(error),
            )
        ) from error


class _Log(TextIOBase):
    """Enters what is printed into the log."""

    def write(self, text: str) -> int:
        if text.strip():
            logger.info("Ray: %s", text.strip())
        return len(text)


@contextmanager
def joined(address: str) -> Iterator[None]:
    """Connects this process with a cluster; a signal that ends the process goes on ending it as before."""
    require_cluster(address)
    # Once, since something else may listen there.
    tries = {} if address == LOCAL else {"RAY_gcs_server_port_wait_time_s": "1"}
    os.environ.update(_QUIET | tries | os.environ)
    import ray

    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except (ray.exceptions.RayError, RuntimeError, ValueError, OSError) as error:
        raise ClusterUnusable(
            phrase(
                "This machine cannot use the Ray cluster at {address}, which the setting `ray` names ({why}). It has "
                "to be a node of it (`ray start --address={address}`), with the same versions of Python and Ray, and "
                "its token where it asks for one (`RAY_AUTH_MODE=token`).",
                address=address,
                why=last_line(str(error)),
            )
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
    # Else Ray prints there what it meets, also where JSON is asked for.
    with redirect_stdout(_Log()):
        try:
            yield
        finally:
            ray.shutdown()


def room(address: str, threads: int) -> int:
    """Returns how many actors of so many threads a cluster has room for."""
    import ray

    cores = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
    room = sum(int(count // threads) for count in cores)
    if not room:
        raise ClusterUnusable(
            phrase(
                "No machine of the Ray cluster at {address} has {count} cores, as many as this one computes with. Set "
                "`threads` to fewer.",
                address=address,
                count=threads,
            )
        )
    return room


def last_line(text: str) -> str:
    """Returns the last line of what Ray says of an error: why."""
    return text.strip().rpartition("\n")[2][:300].rstrip(".")
