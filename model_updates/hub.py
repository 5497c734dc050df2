"""The hub that open_clip's pretrained weights come from: whether it answers, and what is here already.

Its address is `huggingface_hub`'s own (HF_ENDPOINT names another). Asked first, since a download without a network
tries for over a minute before it gives up.
"""

import threading
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

from huggingface_hub import constants

PATIENCE_SECONDS = 3.0


def hub_answers(endpoint: str | None = None, patience: float = PATIENCE_SECONDS) -> bool:
    """Says within `patience` seconds whether anything answers at the hub's address, through proxies too."""
    if constants.HF_HUB_OFFLINE:
        return False
    answered = threading.Event()

    def ask() -> None:
        try:
            request = urllib.request.Request(endpoint or constants.ENDPOINT, method="HEAD")
            urllib.request.urlopen(request, timeout=patience).close()
        except urllib.error.HTTPError as refusal:  # an answer all the same
            refusal.close()
        except (OSError, ValueError, HTTPException):
            return
        answered.set()

    # In a thread, because looking up a name has no timeout of its own.
    asking = threading.Thread(target=ask, name="hub", daemon=True)
    asking.start()
    asking.join(patience)
    return answered.is_set()


def is_cached(repository: str) -> bool:
    """Says whether files of a hub repository such as ``laion/CLIP-...`` were downloaded to this machine before."""
    snapshots = (
        Path(constants.HF_HUB_CACHE) / f"models--{repository.strip('/').replace('/', '--')}" / "snapshots"
    )
    return snapshots.is_dir() and any(snapshots.iterdir())
