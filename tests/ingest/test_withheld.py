"""Claims about pictures that a person takes out by themselves and puts back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.catalog import Catalog
from ingest.errors import BadOption, NoValidPair, UnknownImage
from ingest.withheld import MOST_AT_ONCE
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


def test_a_picture_that_was_taken_out_is_nowhere_and_is_kept_with_who_and_why(catalog: Catalog) -> None:
    # 2 is in both chunks.
    assert catalog.withheld.take_out(ids(0, 2, 0), by=" ann ", why=" she asked ") == ids(0, 2)
    assert catalog.gallery_ids() == ids(1, 3, 4, 5)
    assert {pair.image_id for pair in catalog.pairs()} == set(ids(1, 3, 4, 5))
    # Also where chunks are asked for by name: an update is taught so.
    assert {pair.image_id for pair in catalog.pairs(chunk=A)} == set(ids(1, 3))
    assert (catalog.chunk(A).images, catalog.chunk(B).images) == (2, 3)
    # Both are new with the first, the second counts 4 and 5 alone.
    assert (catalog.chunk(A).new_images, catalog.chunk(A).new_pairs) == (2, 4)
    assert (catalog.chunk(B).new_images, catalog.chunk(B).new_pairs) == (2, 2)
    assert catalog.captions_of(image_id(2)) == []
    assert {found.image_id for found in catalog.find_captions("text")} == set(ids(1, 3, 4, 5))
    assert catalog.images(ids(2))[image_id(2)].withdrawn
    assert {(one.image_id, one.by, one.why) for one in catalog.withheld.all()} == {
        (image_id(n), "ann", "she asked") for n in (0, 2)
    }
    assert catalog.withheld.ids() == set(ids(0, 2))
    assert catalog.withheld.take_out(ids(2), by="bob", why="again") == []
    assert catalog.damage() == []


def test_a_picture_that_is_put_back_belongs_where_it_did(catalog: Catalog) -> None:
    before = (catalog.gallery_ids(), catalog.pairs(), catalog.pairs(chunk=A), catalog.chunks())
    catalog.withheld.take_out(ids(0, 2), by="ann", why="x")
    assert catalog.withheld.put_back(ids(0, 2)) == ids(0, 2)
    assert (catalog.gallery_ids(), catalog.pairs(), catalog.pairs(chunk=A), catalog.chunks()) == before
    assert catalog.withheld.all() == []


def test_what_was_taken_out_stays_out_when_it_is_uploaded_again(catalog: Catalog) -> None:
    catalog.withheld.take_out(ids(0, 2), by="ann", why="x")
    again = catalog.record_chunk(chunk_of(A, range(4), ("en", "de")))
    assert (again.withheld, again.new_images, again.new_pairs, again.known_chunk) == (2, 0, 0, True)
    other = catalog.record_chunk(chunk_of("ccc333ccc333", range(0, 8, 7), ("fr",)))
    assert (other.withheld, other.new_images, other.new_pairs) == (1, 1, 1)
    assert catalog.gallery_ids() == ids(1, 3, 4, 5, 7)
    catalog.set_standing(A, "accepted", by="ann", why="settles its pictures anew")
    assert catalog.gallery_ids() == ids(1, 3, 4, 5, 7)


def test_what_was_uploaded_again_meanwhile_is_shown_when_it_is_put_back(catalog: Catalog) -> None:
    catalog.withheld.take_out(ids(0, 2), by="ann", why="x")
    catalog.record_chunk(chunk_of("ccc333ccc333", range(0, 8, 7), ("fr",)))
    catalog.set_standing(A, "withdrawn", by="ann", why="x")
    catalog.set_standing(B, "withdrawn", by="ann", why="x")
    assert catalog.gallery_ids() == ids(7)
    catalog.withheld.put_back(ids(0, 2))
    assert set(catalog.gallery_ids()) == set(ids(0, 7))
    assert catalog.chunk("ccc333ccc333").images == 2
    catalog.set_standing("ccc333ccc333", "withdrawn", by="ann", why="x")
    assert catalog.gallery_ids() == []
    assert catalog.damage() == []


def test_a_chunk_withdrawn_meanwhile_keeps_its_picture_out(catalog: Catalog) -> None:
    catalog.withheld.take_out(ids(0, 2), by="ann", why="x")
    catalog.set_standing(A, "withdrawn", by="ann", why="x")
    catalog.withheld.put_back(ids(0, 2))
    assert catalog.gallery_ids() == ids(2, 3, 4, 5)


def test_what_cannot_be_taken_out_or_put_back_is_refused_and_changes_nothing(catalog: Catalog) -> None:
    table = catalog.withheld
    with pytest.raises(UnknownImage, match="no picture 'nothing"):
        table.take_out([image_id(1), "nothing of ours"], by="ann", why="x")
    with pytest.raises(BadOption, match="No picture"):
        table.take_out([], by="ann", why="x")
    with pytest.raises(BadOption, match="at most 500"):
        table.take_out([f"{n:064x}" for n in range(MOST_AT_ONCE + 1)], by="ann", why="x")
    for by, why in ((" ", "x"), ("ann", " ")):
        with pytest.raises(BadOption, match="say whose, and which"):
            table.take_out(ids(1), by=by, why=why)
    with pytest.raises(UnknownImage, match="not one that somebody took out"):
        table.put_back(ids(1))
    assert catalog.gallery_ids() == ids(0, 1, 2, 3, 4, 5)


def test_an_upload_of_nothing_else_is_refused_and_is_no_chunk(catalog: Catalog) -> None:
    catalog.withheld.take_out(ids(0), by="ann", why="x")
    with pytest.raises(NoValidPair, match="Nothing else is in this upload.*1 picture that a person took out"):
        catalog.record_chunk(chunk_of("ccc333ccc333", range(1), ("fr",)))
    assert [chunk.id for chunk in catalog.chunks()] == [A, B]


def test_what_is_out_still_says_of_which_split_its_like_are(catalog: Catalog) -> None:
    """Else a near-copy that came meanwhile could be trained on, and the picture put back be measured by."""
    chunk = chunk_of("ccc333ccc333", range(7, 8), ("en",))
    images = [replace(one, group="a thing", sketch=bytes(range(64))) for one in chunk.images]
    catalog.record_chunk(replace(chunk, images=images))
    before = (catalog.sketches(), catalog.known_groups(["a thing"]))
    assert all(before)
    catalog.withheld.take_out(ids(7), by="ann", why="x")
    assert (catalog.sketches(), catalog.known_groups(["a thing"])) == before
