"""Claims about the chunk that feedback proposes: which pairs are in it, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.errors import UsageProblem
from app.desk.opinions import Proposal
from app.feedback import votes as feedback
from app.feedback.proposal import chosen_pairs, propose, write_proposal
from app.home.workspace import Workspace
from ingest.intake import IntakeOptions, ingest_source
from tests.app.server.served import make_home


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(make_home(tmp_path)) as workspace:
        yield workspace


def _thumb(workspace: Workspace, query: str, place: int, verdict: str = "up", **said: str) -> None:
    image_id = workspace.catalog.gallery_ids()[place]
    facts = {"language": "en", "by": "ada"} | said
    feedback.thumb(workspace, query=query, release="r1", image_id=image_id, verdict=verdict, **facts)


def _proposed(workspace: Workspace) -> Proposal:
    return propose(workspace, lambda text: "th" if text == "เรือ" else "und")


def test_thumbs_up_make_pairs_and_those_of_more_people_come_first(workspace: Workspace) -> None:
    _thumb(workspace, "my red  boat ", 0)
    _thumb(workspace, "a hut by the sea", 1)
    _thumb(workspace, "a hut by the sea", 1, by="bo")
    found = _proposed(workspace)
    ids = workspace.catalog.gallery_ids()
    assert [(pair.text, pair.image_id, pair.up) for pair in found.pairs] == [
        ("a hut by the sea", ids[1], 2),
        ("my red boat", ids[0], 1),
    ]
    record = workspace.catalog.image(ids[1])
    assert record is not None
    assert (found.pairs[0].domain, found.pairs[0].split) == (record.domain, record.split.value)


def test_what_is_disputed_known_or_not_one_text_is_left_out_and_counted(workspace: Workspace) -> None:
    known = workspace.catalog.captions_of(workspace.catalog.gallery_ids()[0])
    english = next(caption.text for caption in known if caption.language == "en")
    _thumb(workspace, english, 0)
    _thumb(workspace, "a disputed boat", 1)
    _thumb(workspace, "a disputed boat", 1, "down", by="bo")
    _thumb(workspace, "2:red boat - fruit", 2)
    _thumb(workspace, "who knows", 3, language="auto")
    _thumb(workspace, "a wrong boat", 4, "down")
    found = _proposed(workspace)
    assert found == Proposal((), known=1, disputed=1, unusable=2)


def test_a_query_without_a_stated_language_is_told_and_a_canary_is_a_pair(workspace: Workspace) -> None:
    _thumb(workspace, "เรือ", 0, language="auto")
    workspace.catalog.set_pin("das Haus am Meer", "de", workspace.catalog.gallery_ids()[1])
    assert {(pair.text, pair.language, pair.up) for pair in _proposed(workspace).pairs} == {
        ("เรือ", "th", 1),
        ("das Haus am Meer", "de", 0),
    }


def test_a_person_leaves_pairs_out_and_nothing_else_is_taken(workspace: Workspace) -> None:
    _thumb(workspace, "my red boat", 0)
    _thumb(workspace, "my blue boat", 1)
    found = _proposed(workspace)
    kept = found.pairs[0].id
    assert [pair.id for pair in chosen_pairs(found, {kept})] == [kept]
    assert len(chosen_pairs(found, None)) == 2
    with pytest.raises(UsageProblem, match="No pair is left"):
        chosen_pairs(found, set())
    with pytest.raises(UsageProblem, match="not proposed"):
        chosen_pairs(found, {"0" * 16})


def test_the_file_is_taken_in_with_the_pictures_that_are_there_and_the_new_captions(
    workspace: Workspace, tmp_path: Path
) -> None:
    _thumb(workspace, "my red boat", 0)
    _thumb(workspace, "เรือ", 0, language="th")
    found = _proposed(workspace)
    file = write_proposal(workspace, found.pairs, tmp_path / "feedback.zip")
    again = write_proposal(workspace, found.pairs, tmp_path / "again.zip")
    assert file.read_bytes() == again.read_bytes()
    report = ingest_source(file, catalog=workspace.catalog, blobs=workspace.blobs, options=IntakeOptions())
    assert (report.new_images, report.new_pairs, report.held, report.rejected) == (0, 2, 0, 0)
    pairs = workspace.catalog.pairs(chunk=report.chunk_id)
    assert {(pair.image_id, pair.language, pair.text) for pair in pairs} == {
        (workspace.catalog.gallery_ids()[0], "en", "my red boat"),
        (workspace.catalog.gallery_ids()[0], "th", "เรือ"),
    }
    assert _proposed(workspace) == Proposal((), known=2, disputed=0, unusable=0)
