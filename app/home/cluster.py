"""Whether the Ray cluster that the settings name answers."""

import socket

from app.desk.errors import ClusterUnusable
from ingest.sentence import phrase

LOCAL = "local"
"""Names a Ray that is started for the work and ends with it."""
_ANSWER_SECONDS = 5.0


def require_cluster(address: str) -> None:
    """Refuses a cluster that does not answer; Ray itself would wait for minutes.

    Raises:
        ClusterUnusable: the sentence names the setting.
    """
    if address in ("", LOCAL):
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterUnusable(
            phrase(
                "No Ray cluster answers at {address}, which the setting `ray` names ({why}). Start it (`ray start "
                "--head`), correct the setting, or leave it empty.",
                address=address,
                why=str(error),
            )
        ) from error
