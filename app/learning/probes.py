"""The built-in checks that every home starts with: drawn English pairs, held out, not in the gallery.

They give the gate something to keep before the first upload has brought held-out pairs of its own. Pictures of other
scenes come with them, to train beside.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from app.desk.probes import DOMAIN, NAME
from app.home.workspace import Workspace
from ingest.intake import IntakeOptions, ingest_source
from ingest.pair import BASE_LANGUAGE
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import Scene

PICTURES = 160  # above the gate's minimum of 100 images, and drawn in a few seconds
# Of other scenes, to train beside: what a base encoder has learned from is in no catalog, and new pictures that
# resemble it must have something to step aside for.
REHEARSED = 240
STYLES = ("gouache", "flat")
FIRST_SEED = 9_000  # pictures nobody else draws


def write_probes(workspace: Workspace) -> None:
    """Draws the probe pictures and takes them in outside the gallery: held-out pairs, and some to train beside."""
    everything = list(scenes.all_scenes())
    unseen = [scene for scene in everything if scenes.held_out(scene)]
    seen = [scene for scene in everything if not scenes.held_out(scene)]
    chosen = _spread(unseen, PICTURES) + _spread(seen, REHEARSED)
    drawn = [(scene, STYLES[n % len(STYLES)], FIRST_SEED + n) for n, scene in enumerate(chosen)]
    with tempfile.TemporaryDirectory(dir=workspace.home.staging) as folder:
        source = Path(folder) / "probes.zip"
        write_chunk(source, scenes=drawn, languages=[BASE_LANGUAGE], domain=DOMAIN, split=_split)
        options = IntakeOptions(name=NAME, in_gallery=False)
        ingest_source(source, catalog=workspace.catalog, blobs=workspace.blobs, options=options)


def _spread(found: Sequence[Scene], count: int) -> list[Scene]:
    return list(found[:: max(1, len(found) // count)][:count])


def _split(scene: Scene) -> str:
    return "test" if scenes.held_out(scene) else "train"
