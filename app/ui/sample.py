"""Pictures to try the search with: drawn scenes with captions in three languages, as an upload."""

from __future__ import annotations

import random
import tempfile
from functools import cache
from pathlib import Path

from ingest.samples import scenes
from ingest.samples.chunks import write_chunk

_PICTURES = 48
_STYLES = ("gouache", "flat")
_FIRST_SEED = 40_000  # pictures that are drawn nowhere else
_LANGUAGES = ("en", "de", "fr")


@cache
def sample() -> bytes:
    """Returns a zip of pictures and a table of their captions."""
    chosen = random.Random(_FIRST_SEED).sample(list(scenes.all_scenes()), _PICTURES)
    drawn = [(scene, _STYLES[n % len(_STYLES)], _FIRST_SEED + n) for n, scene in enumerate(chosen)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sample.zip"
        write_chunk(file, scenes=drawn, languages=list(_LANGUAGES))
        return file.read_bytes()
