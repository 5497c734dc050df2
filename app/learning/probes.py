"""The probe slices that every home starts with: drawn English pairs, held out, not in the gallery.

They give the gate something to keep before the first upload has brought held-out pairs of its own.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from app.workspace import Workspace
from ingest.intake import IntakeOptions, ingest_source
from ingest.pair import BASE_LANGUAGE
from ingest.records import ChunkRecord
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk

DOMAIN = "probes"
NAME = "probe slices"
PICTURES = 160  # above the gate's minimum of 100 images, and drawn in a few seconds
STYLES = ("gouache", "flat")
FIRST_SEED = 9_000  # pictures nobody else draws


def is_probes(chunk: ChunkRecord) -> bool:
    """Whether a chunk is the one that making a home drew."""
    return chunk.name == NAME and not chunk.in_gallery and set(chunk.domains) <= {DOMAIN}


def write_probes(workspace: Workspace) -> None:
    """Draws the probe pictures and takes them in as held-out pairs outside the gallery."""
    unseen = [scene for scene in scenes.all_scenes() if scenes.held_out(scene)]
    every = max(1, len(unseen) // PICTURES)
    chosen = unseen[::every][:PICTURES]
    drawn = [(scene, STYLES[n % len(STYLES)], FIRST_SEED + n) for n, scene in enumerate(chosen)]
    with tempfile.TemporaryDirectory(dir=workspace.home.staging) as folder:
        source = Path(folder) / "probes.zip"
        write_chunk(source, scenes=drawn, languages=[BASE_LANGUAGE], domain=DOMAIN, split="test")
        options = IntakeOptions(name=NAME, in_gallery=False)
        ingest_source(source, catalog=workspace.catalog, blobs=workspace.blobs, options=options)
