"""The built-in checks that every home starts with: drawn English pairs, held out, not in the gallery.

They give the gate something to keep before the first upload has brought held-out pairs of its own. Pictures of other
scenes come with them, to train beside. They come drawn, and with what the image tower of `perennial-photo` sees in
them, which took half of the time of making a home; `probe_files.py` makes both files.
"""

from importlib import resources
from pathlib import Path

import numpy as np
from safetensors import safe_open

from app.desk.probes import NAME
from app.home.workspace import Workspace
from ingest.intake import IntakeOptions, ingest_source
from model_updates.features import IMAGE
from model_updates.search_encoder import SearchEncoder

UPLOAD, FEATURES = "probes.zip", "probes-perennial-photo.safetensors"


def write_probes(workspace: Workspace, encoder: SearchEncoder | None = None) -> None:
    """Takes the probe pictures in outside the gallery: held-out pairs, and some to train beside.

    What the image tower of `encoder` sees in them is kept where it is known.
    """
    options = IntakeOptions(name=NAME, in_gallery=False)
    ingest_source(probe_file(UPLOAD), catalog=workspace.catalog, blobs=workspace.blobs, options=options)
    if encoder is None:
        return
    with safe_open(probe_file(FEATURES), framework="numpy") as known:
        fingerprint = known.metadata()["trunk"]
        if fingerprint == encoder.trunk_fingerprint():
            ids = [bytes(one).hex() for one in np.asarray(known.get_tensor("ids"))]
            workspace.features.put(fingerprint, IMAGE, ids, known.get_tensor("features"))


def probe_file(name: str) -> Path:
    """Returns where one of the files lies that come with the program."""
    return Path(str(resources.files("app.learning") / name))
