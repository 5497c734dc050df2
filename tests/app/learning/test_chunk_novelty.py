from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.chunk_novelty import DOMAINS, GALLERY, LANGUAGES, WORDS, novelty_findings
from ingest.findings import Finding, Outcome, holds
from ingest.intake import IntakeOptions, ingest_source
from tests.app.server.served import make_home, sample_upload


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(make_home(tmp_path)) as workspace:
        yield workspace


def novel(workspace: Workspace, chunk: str) -> dict[str, Finding]:
    encoder = workspace.open_encoder(going_live.live_release(workspace)[1].version)
    found = novelty_findings(workspace, workspace.catalog.chunk(chunk), encoder)
    assert not holds(found)
    return {finding.check: finding for finding in found}


def test_a_new_language_brings_more_new_words_than_a_known_one(workspace: Workspace) -> None:
    found = novel(workspace, workspace.catalog.chunks()[0].id)
    shares = found[WORDS].figures
    german, english = shares["de"], shares["en"]
    assert isinstance(german, float)
    assert isinstance(english, float)
    assert german > 0.5 > english
    assert "spells in pieces" in found[WORDS].sentence


def test_what_the_captions_look_like_stands_beside_what_was_declared(
    workspace: Workspace, tmp_path: Path
) -> None:
    found = novel(workspace, workspace.catalog.chunks()[0].id)
    assert "Declared de, looks like de" in found[LANGUAGES].sentence
    german = found[LANGUAGES].figures["de"]
    assert isinstance(german, list)
    assert german[0].startswith("de ")
    assert DOMAINS not in found  # the base encoder has no router, so it cannot tell


def test_pictures_that_were_here_are_counted(workspace: Workspace, tmp_path: Path) -> None:
    first = workspace.catalog.chunks()[0]
    assert novel(workspace, first.id)[GALLERY].figures == {"pictures": 10, "known": 0, "near_copies": 0}
    again = sample_upload(tmp_path / "again.zip", count=5, languages=("fr",))
    report = ingest_source(again, catalog=workspace.catalog, blobs=workspace.blobs, options=IntakeOptions())
    found = novel(workspace, report.chunk_id)[GALLERY]
    assert found.outcome is Outcome.ACCEPT
    assert (found.figures["pictures"], found.figures["known"]) == (5, 5)
    assert "5 of 5 pictures were here already" in found.sentence
