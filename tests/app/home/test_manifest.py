from __future__ import annotations

import json

import pytest

from app.desk.slices import SliceSummary
from app.home.manifest import ReleaseManifest

GERMAN = SliceSummary("de", "photo", 120, 240, {"t2i_r1": 31.5, "t2i_r10": 77.0})
RELEASE = ReleaseManifest(
    "v2-1a2b3c4d",
    "g2-1a2b3c4d",
    languages=("en", "de"),
    chunks=("c1",),
    strategy="language-tables",
    options={"epochs": 5},
    judged_against=3,
    gate={"verdict": "promote", "rows": []},
    slices=(GERMAN,),
    version_sha256="0" * 64,
    files={"report.md": {"bytes": 1, "sha256": "0" * 64}},
)


def test_what_is_written_is_read_again() -> None:
    assert ReleaseManifest.from_json(json.loads(json.dumps(RELEASE.to_json()))) == RELEASE


def test_the_manifest_of_an_older_home_takes_defaults_and_that_of_a_newer_one_loses_what_is_unknown() -> None:
    old = {"version": "v1-1a2b3c4d", "generation": "g1-1a2b3c4d", "languages": ["en"], "strategy": None}
    read = ReleaseManifest.from_json(old | {"invented_later": [1, 2]})
    assert read == ReleaseManifest("v1-1a2b3c4d", "g1-1a2b3c4d", languages=("en",))
    assert read.verdict is None


def test_what_names_no_version_is_no_manifest() -> None:
    with pytest.raises(TypeError):
        ReleaseManifest.from_json({"generation": "g1-1a2b3c4d"})


def test_a_successor_keeps_everything_but_what_belongs_to_one_publishing() -> None:
    later = RELEASE.successor("r2-1a2b3c4d", generation="g3-1a2b3c4d", mode="delta")
    assert (later.parent, later.generation, later.mode) == ("r2-1a2b3c4d", "g3-1a2b3c4d", "delta")
    assert (later.judged_against, later.version_sha256, dict(later.files)) == (None, "", {})
    assert (later.gate, later.slices, later.languages) == (RELEASE.gate, RELEASE.slices, RELEASE.languages)
