from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ingest import named_pictures
from ingest.catalog import Catalog
from ingest.errors import BadOption, UnknownChunk
from ingest.findings import Finding, Outcome
from ingest.pair import SliceKey, Split
from ingest.records import NewChunk, NewImage
from tests.ingest.conftest import Place, rows_of
from tests.ingest.material import folder_of, picture
from tests.ingest.test_catalog import chunk_of, image_id

A, B = "aaa111aaa111", "bbb222bbb222"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(tmp_path / "catalog.sqlite") as opened:
        opened.record_chunk(chunk_of(A, range(4), ("en", "de")), lambda _: {"notes": ["first"]})
        opened.record_chunk(chunk_of(B, range(2, 6)))
        yield opened


def ids(*numbers: int) -> list[str]:
    return [image_id(n) for n in numbers]


def test_a_standing_tells_who_why_and_when(catalog: Catalog) -> None:
    assert catalog.chunk(A).standing == "new"
    record = catalog.set_standing("aaa", "accepted", by=" ann ", why="checked by hand", measures=True)
    assert (record.standing, record.measures, record.standing_by) == ("accepted", True, "ann")
    assert record.standing_why == "checked by hand"
    assert record.standing_since > record.created
    assert catalog.set_standing(A, "held", by="check", why="x").measures is True
    assert catalog.set_standing(A, "withdrawn", by="ann", why="x").measures is False
    assert catalog.chunk(B).standing == "new"


def test_values_that_mean_nothing_are_refused(catalog: Catalog) -> None:
    with pytest.raises(BadOption, match="new, held, accepted"):
        catalog.set_standing(A, "gone", by="ann", why="x")  # type: ignore[arg-type]
    with pytest.raises(BadOption, match="say whose"):
        catalog.set_standing(A, "held", by=" ", why="x")
    with pytest.raises(BadOption, match="say which"):
        catalog.set_standing(A, "accepted", by="ann", why="")
    with pytest.raises(BadOption, match="cannot be measuring"):
        catalog.set_standing(A, "withdrawn", by="ann", why="x", measures=True)
    with pytest.raises(UnknownChunk):
        catalog.set_standing("ccc", "held", by="ann", why="x")
    assert catalog.chunk(A).standing == "new"


def test_what_only_a_withdrawn_chunk_brought_is_nowhere(catalog: Catalog) -> None:
    catalog.set_standing(A, "withdrawn", by="ann", why="wrong captions")
    assert catalog.gallery_ids() == ids(2, 3, 4, 5)
    assert [pair.image_id for pair in catalog.pairs()] == ids(2, 3, 4, 5)
    assert (catalog.languages(), catalog.domains()) == ({"en": 4}, {"photo": 4})
    assert catalog.slices() == [SliceKey("en", "photo")]
    assert catalog.test_images("photo") == ids(3, 5)
    assert catalog.ids_where(languages=["de"]) == set()
    assert catalog.captions_in("de", ids(2, 3)) == {}
    assert catalog.captions_of(image_id(1)) == []
    assert [caption.language for caption in catalog.captions_of(image_id(2))] == ["en"]
    assert {found.image_id for found in catalog.find_captions("text")} == set(ids(2, 3, 4, 5))
    # Asked for by name, its pairs are still there, and its pictures can be shown.
    assert len(catalog.pairs(chunk=A)) == 8
    assert catalog.images(ids(1))[image_id(1)].withdrawn
    assert catalog.chunk(A).pairs == 8


def test_another_standing_puts_a_withdrawn_chunk_back(catalog: Catalog) -> None:
    gallery, pairs = catalog.gallery_ids(), catalog.pairs()
    catalog.set_standing(A, "withdrawn", by="ann", why="x")
    catalog.set_standing(A, "accepted", by="ann", why="I was wrong")
    assert (catalog.gallery_ids(), catalog.pairs()) == (gallery, pairs)


def test_a_withdrawn_chunk_that_was_not_for_the_gallery_stays_out_of_it_when_it_is_back(
    catalog: Catalog,
) -> None:
    catalog.record_chunk(chunk_of("ccc333ccc333", range(10, 12), in_gallery=False))
    catalog.set_standing("ccc", "withdrawn", by="ann", why="x")
    catalog.set_standing("ccc", "new", by="ann", why="")
    assert catalog.gallery_ids() == ids(0, 1, 2, 3, 4, 5)


def test_marks_change_with_whatever_leaves_the_gallery_or_comes_back(catalog: Catalog) -> None:
    before = catalog.outside_mark()
    marks = {before}
    catalog.set_standing(A, "withdrawn", by="ann", why="x")
    marks.add(catalog.outside_mark())
    catalog.set_standing(A, "new", by="ann", why="")
    assert catalog.outside_mark() == before
    for number in (1, 2):  # as many are out, others
        catalog.withheld.take_out(ids(number), by="ann", why="x")
        marks.add(catalog.outside_mark())
        catalog.withheld.put_back(ids(number))
    assert len(marks) == 4
    assert catalog.outside_mark() == before


def test_marks_change_whenever_pairs_come_or_come_back(catalog: Catalog) -> None:
    marks = [catalog.pairs_mark()]
    catalog.record_chunk(chunk_of("ccc333ccc333", range(4), ("fr",)))
    marks.append(catalog.pairs_mark())
    assert catalog.pairs_mark() == marks[-1]
    catalog.set_standing("ccc", "withdrawn", by="ann", why="x")
    marks.append(catalog.pairs_mark())
    catalog.set_standing("ccc", "new", by="ann", why="")
    marks.append(catalog.pairs_mark())
    catalog.withheld.take_out(ids(1), by="ann", why="x")
    marks.append(catalog.pairs_mark())
    catalog.withheld.put_back(ids(1))
    marks.append(catalog.pairs_mark())
    assert all(one != later for one, later in pairwise(marks))


def test_questions_are_about_the_chunks_they_name(catalog: Catalog) -> None:
    assert [pair.image_id for pair in catalog.pairs(chunks=[B])] == ids(2, 3, 4, 5)
    assert catalog.pairs(chunks=[A, B], language="en", split=Split.TEST) == catalog.pairs(
        language="en", split=Split.TEST
    )
    assert len(catalog.pairs(chunks=[A, B])) == 10  # those of both are there once
    assert catalog.pairs(chunks=[]) == catalog.pairs(chunks=["unknown"]) == []
    assert catalog.test_images("photo", chunks=[B]) == ids(3, 5)
    assert catalog.slices(chunks=[B]) == [SliceKey("en", "photo")]
    assert catalog.slices(chunks=[A], minimum_images=3) == []
    assert catalog.captions_in("de", ids(2, 5), chunks=[B]) == {}
    assert catalog.captions_in("de", ids(2, 5), chunks=[A]) == {image_id(2): ["de text 2"]}
    assert catalog.ids_where(languages=["en"], chunks=[B]) == set(ids(2, 3, 4, 5))


def test_a_chunk_that_comes_again_after_it_was_withdrawn_is_new_with_a_new_report(catalog: Catalog) -> None:
    catalog.set_standing(A, "withdrawn", by="ann", why="x")
    recorded = catalog.record_chunk(chunk_of(A, range(4), ("en", "de")), lambda _: {"notes": ["second"]})
    assert (recorded.returned, recorded.known_chunk) == (True, False)
    assert (recorded.new_images, recorded.new_pairs) == (2, 6)
    record = catalog.chunk(A)
    assert (record.standing, record.report, record.new_pairs) == ("new", {"notes": ["second"]}, 6)
    assert catalog.gallery_ids() == ids(0, 1, 2, 3, 4, 5)


def test_a_withdrawn_picture_is_settled_anew_and_one_that_another_chunk_has_is_not(catalog: Catalog) -> None:
    catalog.set_standing(A, "withdrawn", by="ann", why="x")
    moved = [NewImage(i, "shop", Split.VALIDATION, 64, 48, "PNG", "shoe") for i in ids(1, 3)]
    catalog.record_chunk(NewChunk("ccc333ccc333", "c", True, moved, [(i, "fr", "un") for i in ids(1, 3)]))
    found = catalog.images(ids(1, 3))
    assert [(r.domain, r.split, r.chunk_id) for r in (found[image_id(1)], found[image_id(3)])] == [
        ("shop", Split.VALIDATION, "ccc333ccc333"),
        ("photo", Split.TEST, A),
    ]
    assert not found[image_id(1)].withdrawn


def test_a_wrong_upload_does_not_bind_the_right_one(place: Place, tmp_path: Path) -> None:
    table = "image,caption,split,domain\n1.png,one,test,wrong\n"
    first = place.ingest(folder_of(tmp_path / "a", {"1.png": picture(1), "t.csv": table}))
    place.catalog.set_standing(first.chunk_id, "withdrawn", by="ann", why="wrong domain")
    right = "image,caption,split,domain\n1.png,one,train,right\n"
    again = place.ingest(folder_of(tmp_path / "b", {"1.png": picture(1), "t.csv": right}))
    assert again.chunk_id == first.chunk_id
    assert any("was withdrawn" in note for note in again.notes)
    assert again.to_json() == place.catalog.chunk(first.chunk_id).report
    (pair,) = place.catalog.pairs()
    assert (pair.domain, pair.split, again.new_pairs) == ("right", Split.TRAIN, 1)


def test_what_was_trained_on_and_withdrawn_does_not_come_back_as_held_out(
    place: Place, tmp_path: Path
) -> None:
    table = "image,caption,split,domain\n1.png,one,train,wrong\n"
    first = place.ingest(folder_of(tmp_path / "a", {"1.png": picture(1), "t.csv": table}))
    place.catalog.set_standing(first.chunk_id, "withdrawn", by="ann", why="wrong domain")
    right = "image,caption,domain,split\n1.png,one,right,test\n1.png,two,right,\n"
    folder = folder_of(tmp_path / "b", {"1.png": picture(1), "t.csv": right})
    report = place.ingest(folder, learned=[first.chunk_id])
    (pair,) = place.catalog.pairs()
    assert (pair.text, pair.domain, pair.split) == ("two", "right", Split.TRAIN)
    (held,) = rows_of(report, "held")
    assert "this picture is in train for good" in held.sentence


def test_what_somebody_brings_who_may_not_let_it_teach_is_held_from_its_first_part(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_pictures, "FIRST_PORTION", 2)
    members = {f"{n}.png": picture(n) for n in range(5)} | {f"{n}.txt": f"boat {n}" for n in range(5)}
    folder = folder_of(tmp_path / "a", members)

    def stop(done: int, _total: int | None) -> None:
        if done == 3:
            raise KeyboardInterrupt

    by: dict[str, Any] = {"held_by": "bob", "held_why": "an admin looks at it"}
    with pytest.raises(KeyboardInterrupt):
        place.ingest(folder, progress=stop, **by)
    (begun,) = place.catalog.chunks()
    assert (begun.standing, begun.standing_by, begun.standing_why) == ("held", *by.values())
    place.catalog.set_standing(begun.id, "accepted", by="ann", why="I looked")
    rest = place.ingest(folder, **by)
    assert [one.standing for one in place.catalog.chunks()] == ["accepted", "held"]
    place.catalog.set_standing(rest.chunk_id, "withdrawn", by="ann", why="wrong")
    assert place.ingest(folder, **by).chunk_id == rest.chunk_id
    assert place.catalog.chunk(rest.chunk_id).standing == "held"


def test_what_no_check_and_nobody_said_anything_of_is_unjudged(catalog: Catalog) -> None:
    parts = ["ccc333ccc333", "ddd444ddd444"]
    for number, part in enumerate(parts, start=3):
        chunk = chunk_of(part, range(2 * number, 2 * number + 2))
        catalog.record_chunk(replace(chunk, name="a folder"), lambda _: {"notes": []})
    assert catalog.unjudged(parts[1]) == catalog.unjudged(parts[0]) == parts
    assert catalog.unjudged(parts[0], learned=[parts[0]]) == parts[1:]
    catalog.set_standing(parts[0], "held", by="checks", why="stopped before its findings were kept")
    assert catalog.unjudged(parts[1]) == parts
    catalog.set_findings(parts[0], [])  # checked, and nothing found
    assert catalog.unjudged(parts[0]) == parts[1:]
    catalog.set_standing(parts[1], "accepted", by="ann", why="I looked")
    assert catalog.unjudged(parts[0]) == []


def test_the_findings_of_the_last_checks_are_kept(catalog: Catalog) -> None:
    first, second = Finding("a", Outcome.ACCEPT, "Fine."), Finding("b", Outcome.UNKNOWN, "No telling.")
    catalog.set_findings(A, [first, second])
    record = catalog.set_findings("aaa", [Finding("a", Outcome.HOLD, "Not so fine.")])
    kept = [Finding.from_json(values) for values in record.report["findings"]]
    assert [(finding.check, finding.outcome) for finding in kept] == [("a", Outcome.HOLD)]
    assert record.report["notes"] == ["first"]
