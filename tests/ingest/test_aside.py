"""Claims about pairs that intake held or rejected: what is kept of them, and how a held one joins its chunk."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from ingest import aside, unsettled
from ingest.deciding import accept_pairs
from ingest.errors import BadOption, NoValidPair, UnknownImage, UnknownLanguage
from ingest.pair import ImageId, image_id_of
from ingest.records import AsidePair, ChunkRecord
from tests.ingest.conftest import Place
from tests.ingest.material import encoded, picture, zip_of

TABLE = """image,caption,language,domain
1.png,a red boat,en,photo
2.png,a green house,en,photo
3.png,12345,,photo
4.png,,en,photo
1.png,a boat in chalk,en,chalk
flat.png,nothing to see,en,photo
tiny.png,too small,en,photo
broken.png,no picture at all,en,photo
"""
FLAT = encoded(Image.new("RGB", (40, 40), "red"))
TINY = encoded(Image.linear_gradient("L").resize((8, 8)))
FILES: dict[str, bytes | str] = {
    **{f"{n}.png": picture(n) for n in range(1, 5)},
    "captions.csv": TABLE,
    "flat.png": FLAT,
    "tiny.png": TINY,
    "broken.png": picture(9)[:60],
}


@pytest.fixture
def chunk(place: Place, tmp_path: Path) -> ChunkRecord:
    return taken_in(place, tmp_path / "upload.zip", FILES)


def taken_in(place: Place, path: Path, files: dict[str, bytes | str]) -> ChunkRecord:
    report = place.ingest(zip_of(path, files), language=None)
    return place.catalog.chunk(report.chunk_id)


def held(place: Place, code: str) -> AsidePair:
    (found,) = [pair for pair in place.catalog.aside.pairs() if pair.code == code]
    return found


def accept(place: Place, chunk: ChunkRecord, *pairs: AsidePair, language: str | None = None) -> None:
    accept_pairs(place.catalog, place.blobs, chunk, pairs, language=language, by="ada", why="I looked at it")


def kept_keys(place: Place) -> set[bytes]:
    return {*place.store.keys(b"h"), *place.store.keys(b"k")}


def test_held_and_rejected_rows_are_kept_with_a_small_picture_and_their_reason(
    place: Place, chunk: ChunkRecord
) -> None:
    found = {pair.code: pair for pair in place.catalog.aside.pairs(chunk=chunk.id)}
    assert {code: pair.outcome for code, pair in found.items()} == {
        "language_missing": "held",
        "domain_conflict": "held",
        "caption_empty": "rejected",
        "image_flat": "rejected",
        "image_too_small": "rejected",
    }
    assert found["language_missing"].text == "12345"
    assert found["language_missing"].sentence.startswith("Its language is not given")
    assert (found["image_flat"].text, found["image_flat"].place) == ("nothing to see", "captions.csv line 7")
    for pair in found.values():
        small = Image.open(io.BytesIO(place.blobs.aside_thumbnail(pair.image_id)))
        assert (small.format, max(small.size) <= 256) == ("WEBP", True)
    assert place.blobs.aside_original(image_id_of(picture(3))) == picture(3)
    with pytest.raises(UnknownImage):  # of a rejected one nothing but the thumbnail
        place.blobs.aside_original(image_id_of(FLAT))
    assert place.catalog.aside.counts(chunk.id) == {"waiting": 2, "accepted": 0, "left_out": 0, "rejected": 3}


def test_what_was_put_aside_is_in_no_chunk_and_nobody_finds_it(place: Place, chunk: ChunkRecord) -> None:
    aside_ids = {image_id_of(data) for data in (picture(3), picture(4), FLAT, TINY)}
    assert not aside_ids & set(place.catalog.gallery_ids())
    assert not aside_ids & set(place.blobs.ids())
    assert place.catalog.images(aside_ids) == {}


def test_an_accepted_pair_joins_its_chunk_with_the_language_that_was_named(
    place: Place, chunk: ChunkRecord
) -> None:
    pair = held(place, "language_missing")
    accept(place, chunk, pair, language="de")
    joined = [one for one in place.catalog.pairs(chunk=chunk.id) if one.image_id == pair.image_id]
    assert [(one.text, one.language, one.domain) for one in joined] == [("12345", "de", "photo")]
    assert pair.image_id in place.catalog.gallery_ids()
    assert place.blobs.original(pair.image_id) == picture(3)
    (now,) = place.catalog.aside.named([pair.id])
    assert (now.decided, now.decided_by, now.decided_why) == ("accepted", "ada", "I looked at it")
    assert now.decided_at > chunk.created[:10]
    after = place.catalog.chunk(chunk.id)
    assert (after.pairs, after.new_pairs, after.new_images) == (3, chunk.new_pairs + 1, chunk.new_images + 1)
    assert after.report == chunk.report


def test_a_pair_held_for_its_domain_joins_in_the_domain_that_its_picture_has(
    place: Place, chunk: ChunkRecord
) -> None:
    accept(place, chunk, held(place, "domain_conflict"))
    assert ("a boat in chalk", "photo") in {
        (one.text, one.domain) for one in place.catalog.pairs(chunk=chunk.id)
    }


def test_a_pair_held_for_its_split_joins_in_the_split_that_its_picture_has(
    place: Place, tmp_path: Path
) -> None:
    first: dict[str, bytes | str] = {
        "1.png": picture(1),
        "a.csv": "image,caption,language,split\n1.png,a boat,en,test\n",
    }
    taken_in(place, tmp_path / "first.zip", first)
    rows = "1.png,ein Boot,de,train\n2.png,ein Haus,de,train\n"
    second: dict[str, bytes | str] = {
        "1.png": picture(1),
        "2.png": picture(2),
        "a.csv": f"image,caption,language,split\n{rows}",
    }
    chunk = taken_in(place, tmp_path / "second.zip", second)
    accept(place, chunk, held(place, "split_conflict"))
    assert {(one.text, one.split.value) for one in place.catalog.pairs(chunk=chunk.id)} == {
        ("ein Boot", "test"),
        ("ein Haus", "train"),
    }


def test_a_caption_that_stands_on_many_pictures_is_shown_and_can_be_accepted(
    place: Place, tmp_path: Path
) -> None:
    files: dict[str, bytes | str] = {f"{n}.png": picture(n) for n in range(1, 31)}
    lines = [f"{n}.png,{'the same words' if n < 26 else f'picture number {n}'},en" for n in range(1, 31)]
    files["a.csv"] = "image,caption,language\n" + "\n".join(lines)
    chunk = taken_in(place, tmp_path / "same.zip", files)
    waiting = place.catalog.aside.pairs(chunk=chunk.id, outcome="held")
    assert {pair.code for pair in waiting} == {"caption_repeated"}
    assert len(waiting) == 25
    accept(place, chunk, *waiting)
    assert place.catalog.chunk(chunk.id).pairs == 30


def test_nothing_is_accepted_when_one_of_them_cannot_be(place: Place, chunk: ChunkRecord) -> None:
    both = held(place, "domain_conflict"), held(place, "language_missing")
    before = place.catalog.pairs(), kept_keys(place), set(place.blobs.ids())
    with pytest.raises(BadOption, match=rf"Pair {both[1].id} states no language"):
        accept(place, chunk, *both)
    with pytest.raises(UnknownLanguage):
        accept(place, chunk, *both, language="klingonisch")
    assert (place.catalog.pairs(), kept_keys(place), set(place.blobs.ids())) == before
    assert {one.decided for one in place.catalog.aside.pairs()} == {""}


def test_the_same_upload_again_puts_nothing_aside_twice(
    place: Place, chunk: ChunkRecord, tmp_path: Path
) -> None:
    accept(place, chunk, held(place, "language_missing"), language="de")
    before = place.catalog.aside.pairs()
    again = taken_in(place, tmp_path / "again.zip", FILES)
    assert again.id == chunk.id
    assert place.catalog.aside.pairs() == before


def test_of_an_upload_no_more_is_kept_than_the_bounds_allow(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unsettled, "MOST_BYTES", len(picture(2)) + len(picture(3)))
    monkeypatch.setitem(unsettled._MOST, "rejected", 1)
    files: dict[str, bytes | str] = {f"{n}.png": picture(n) for n in range(1, 8)}
    lines = [f"{n}.png,{n * 1111},," for n in range(2, 6)] + ["6.png,,en", "7.png,,en"]
    files["a.csv"] = "image,caption,language\n1.png,a boat,en\n" + "\n".join(lines)
    chunk = taken_in(place, tmp_path / "many.zip", files)
    assert place.catalog.aside.counts(chunk.id) == {"waiting": 2, "accepted": 0, "left_out": 0, "rejected": 1}
    assert (chunk.report["held"], chunk.report["rejected"]) == (4, 2)
    assert len(kept_keys(place)) == 2 * 2 + 1


def test_a_refused_upload_leaves_nothing_behind(place: Place, tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {"1.png": picture(1), "a.csv": "image,caption\n1.png,12345\n"}
    with pytest.raises(NoValidPair):
        taken_in(place, tmp_path / "held.zip", files)
    assert kept_keys(place) == set()


def test_a_withdrawn_chunk_takes_its_pictures_with_it_and_keeps_who_decided(
    place: Place, chunk: ChunkRecord, tmp_path: Path
) -> None:
    left = held(place, "language_missing")
    place.catalog.aside.decide([left.id], "left_out", by="ada", why="a number")
    place.catalog.set_standing(chunk.id, "withdrawn", by="ada", why="wrong file")
    place.blobs.drop_aside(place.catalog.aside.clear(chunk.id))
    assert kept_keys(place) == set()
    assert [pair.decided_why for pair in place.catalog.aside.pairs(chunk=chunk.id)] == ["a number"]
    assert place.catalog.aside.pairs() == []
    taken_in(place, tmp_path / "again.zip", FILES)
    assert place.catalog.aside.counts(chunk.id) == {"waiting": 1, "accepted": 0, "left_out": 1, "rejected": 3}
    assert place.blobs.aside_thumbnail(left.image_id)


def test_a_picture_that_another_chunk_put_aside_too_stays(
    place: Place, chunk: ChunkRecord, tmp_path: Path
) -> None:
    more: dict[str, bytes | str] = {
        "20.png": picture(20),
        "captions.csv": f"{TABLE}20.png,a tree in spring,en,photo\n",
    }
    other = taken_in(place, tmp_path / "other.zip", FILES | more)
    assert other.id != chunk.id
    place.catalog.set_standing(chunk.id, "withdrawn", by="ada", why="wrong file")
    place.blobs.drop_aside(place.catalog.aside.clear(chunk.id))
    assert place.blobs.aside_original(image_id_of(picture(3))) == picture(3)


def test_a_decision_is_one_of_two_and_somebodys(place: Place, chunk: ChunkRecord) -> None:
    pair = held(place, "language_missing")
    with pytest.raises(BadOption, match="left_out"):
        place.catalog.aside.decide([pair.id], "perhaps", by="ada", why="")
    with pytest.raises(BadOption, match="whose"):
        place.catalog.aside.decide([pair.id], aside.DECISIONS[1], by=" ", why="")


def test_a_withdrawn_chunk_takes_no_pair_in(place: Place, chunk: ChunkRecord) -> None:
    pair: AsidePair = held(place, "language_missing")
    place.catalog.set_standing(chunk.id, "withdrawn", by="ada", why="wrong file")
    with pytest.raises(BadOption, match="withdrawn"):
        accept(place, chunk, pair, language="de")
    gone: ImageId = pair.image_id
    assert gone not in place.catalog.gallery_ids()


def test_a_pair_that_is_taken_out_counts_no_more_and_may_come_back(place: Place, chunk: ChunkRecord) -> None:
    boat = image_id_of(picture(1))
    ((named, number),) = place.catalog.pair_numbers(chunk.id, [boat]).items()
    assert named == (boat, "en", "a red boat")
    (aside_id,) = place.catalog.take_out(chunk.id, [number], by="ada", why="a ship")
    assert [pair.text for pair in place.catalog.pairs()] == ["a green house"]
    assert place.catalog.find_captions("boat") == []
    assert boat in place.catalog.gallery_ids()
    (pair,) = place.catalog.aside.named([aside_id])
    assert (pair.text, pair.decided, pair.decided_by, pair.decided_why) == (
        "a red boat",
        "left_out",
        "ada",
        "a ship",
    )
    accept(place, chunk, pair)
    assert {pair.text for pair in place.catalog.pairs(chunk=chunk.id)} == {"a red boat", "a green house"}
    (again,) = place.catalog.take_out(chunk.id, [number], by="bo", why="")
    assert again == aside_id


def test_the_last_pair_and_one_of_another_chunk_are_not_taken_out(place: Place, chunk: ChunkRecord) -> None:
    numbers = place.catalog.pair_numbers(chunk.id, [image_id_of(picture(n)) for n in (1, 2)])
    with pytest.raises(BadOption, match="No pair would be left"):
        place.catalog.take_out(chunk.id, numbers.values(), by="ada", why="")
    with pytest.raises(BadOption, match="no pair of number 99"):
        place.catalog.take_out(chunk.id, [99], by="ada", why="")
    assert len(place.catalog.pairs(chunk=chunk.id)) == 2


def test_a_pair_that_another_chunk_has_too_counts_on(
    place: Place, chunk: ChunkRecord, tmp_path: Path
) -> None:
    rows = "1.png,a red boat,en,photo\n5.png,a tree in spring,en,photo\n"
    files: dict[str, bytes | str] = {"1.png": picture(1), "5.png": picture(5)}
    other = taken_in(place, tmp_path / "o.zip", files | {"a.csv": f"image,caption,language,domain\n{rows}"})
    number = place.catalog.pair_numbers(chunk.id, [image_id_of(picture(1))]).popitem()[1]
    place.catalog.take_out(chunk.id, [number], by="ada", why="")
    assert "a red boat" in {pair.text for pair in place.catalog.pairs()}
    assert "a red boat" in {pair.text for pair in place.catalog.pairs(chunk=other.id)}
    assert "a red boat" not in {pair.text for pair in place.catalog.pairs(chunk=chunk.id)}


def test_what_was_taken_out_stays_out_when_the_same_upload_comes_again(
    place: Place, chunk: ChunkRecord, tmp_path: Path
) -> None:
    (number,) = place.catalog.pair_numbers(chunk.id, [image_id_of(picture(1))]).values()
    place.catalog.take_out(chunk.id, [number], by="ada", why="a ship")
    assert (place.catalog.chunk(chunk.id).new_pairs, place.catalog.chunk(chunk.id).pairs) == (1, 1)
    taken_in(place, tmp_path / "again.zip", FILES)
    assert [pair.text for pair in place.catalog.pairs()] == ["a green house"]
    place.catalog.set_standing(chunk.id, "withdrawn", by="ada", why="all of it")
    taken_in(place, tmp_path / "once-more.zip", FILES)
    assert [pair.text for pair in place.catalog.pairs()] == ["a green house"]


def test_a_chunk_that_is_about_to_teach_is_not_changed(place: Place, chunk: ChunkRecord) -> None:
    (number,) = place.catalog.pair_numbers(chunk.id, [image_id_of(picture(1))]).values()
    job = place.catalog.add_job("update", {"chunk": chunk.id})
    with pytest.raises(BadOption, match=f"Job {job.id} is learning from chunk {chunk.id}"):
        place.catalog.take_out(chunk.id, [number], by="ada", why="a ship")
    with pytest.raises(BadOption, match=f"Job {job.id} is learning"):
        accept(place, chunk, held(place, "language_missing"), language="de")
    assert len(place.catalog.pairs(chunk=chunk.id)) == 2


def test_the_number_of_a_pair_is_never_another_pairs(
    place: Place, chunk: ChunkRecord, tmp_path: Path
) -> None:
    before = {pair.id for pair in place.catalog.aside.pairs()}
    place.catalog.aside.clear(chunk.id)
    taken_in(place, tmp_path / "other.zip", {**FILES, "captions.csv": TABLE.replace("12345", "54321")})
    assert before
    assert not before & {pair.id for pair in place.catalog.aside.pairs()}
