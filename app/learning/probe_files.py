"""Makes the files of the built-in checks: draws the pictures, and reads them by the image tower of `perennial-photo`.

`python -m app.learning.probe_files` writes them anew, which is needed when other pictures are wanted, or when that
tower changes. The same pictures come out as long as the library that encodes them is the same.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from app.desk.probes import DOMAIN
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning.probes import FEATURES, UPLOAD, probe_file, write_probes
from ingest.pair import BASE_LANGUAGE
from ingest.samples import scenes
from ingest.samples.chunks import Drawing, write_chunk
from ingest.samples.scenes import Scene
from model_updates.features import NoCache, trunk_features
from model_updates.opening import open_encoder

PICTURES = 160  # above the gate's minimum of 100 images
# Of other scenes, to train beside: what a base encoder has learned from is in no catalog, and new pictures that
# resemble it must have something to step aside for.
REHEARSED = 240
STYLES = ("gouache", "flat")
FIRST_SEED = 9_000  # pictures nobody else draws


def drawings() -> list[Drawing]:
    """Returns what is drawn: first what is held out."""
    everything = list(scenes.all_scenes())
    unseen = [scene for scene in everything if scenes.held_out(scene)]
    seen = [scene for scene in everything if not scenes.held_out(scene)]
    chosen = _spread(unseen, PICTURES) + _spread(seen, REHEARSED)
    return [(scene, STYLES[n % len(STYLES)], FIRST_SEED + n) for n, scene in enumerate(chosen)]


def write_upload(path: Path, some: Sequence[Drawing]) -> None:
    """Writes drawings with their English captions as an upload."""
    write_chunk(path, scenes=some, languages=[BASE_LANGUAGE], domain=DOMAIN, split=_split)


def _spread(found: Sequence[Scene], count: int) -> list[Scene]:
    return list(found[:: max(1, len(found) // count)][:count])


def _split(scene: Scene) -> str:
    return "test" if scenes.held_out(scene) else "train"


def main() -> None:
    """Writes both files."""
    write_upload(probe_file(UPLOAD), drawings())
    encoder = open_encoder("perennial-photo")
    with (
        tempfile.TemporaryDirectory() as folder,
        Workspace.create(Settings(home=Path(folder) / "home")) as workspace,
    ):
        write_probes(workspace)
        ids = sorted({pair.image_id for pair in workspace.catalog.pairs(domain=DOMAIN)})
        rows = trunk_features(encoder, ids, workspace.load_image, NoCache())
    names = np.frombuffer(b"".join(map(bytes.fromhex, ids)), dtype=np.uint8).reshape(len(ids), -1)
    facts = {"trunk": encoder.trunk_fingerprint()}
    save_file({"ids": names, "features": rows}, probe_file(FEATURES), metadata=facts)


if __name__ == "__main__":
    main()
