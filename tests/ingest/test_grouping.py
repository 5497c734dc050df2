from __future__ import annotations

from pathlib import Path

import pytest

from ingest.grouping import Anchor, Claim, settle_splits
from ingest.pair import Split, image_id_of
from tests.ingest.conftest import Place, rows_of
from tests.ingest.material import folder_of, picture

TRAIN, TEST = Split.TRAIN, Split.TEST


def _upload(
    place: Place, folder: Path, rows: str, *, header: str = "image,caption,split,group", **options: str
) -> list[tuple[str, str, str]]:
    files: dict[str, bytes | str] = {f"{n}.png": picture(n) for n in range(10)}
    lines = "\n".join([header, *rows.split()])
    report = place.ingest(
        folder_of(folder, {**files, "t.csv": lines}) / "t.csv", language=options.get("language", "en")
    )
    return [(row.where, row.code, row.sentence) for row in rows_of(report, "held")]


def _split(place: Place, number: int) -> Split:
    record = place.catalog.image(image_id_of(picture(number)))
    assert record is not None
    return record.split


def test_what_is_known_of_a_group_comes_before_what_is_stated_and_that_before_the_hash() -> None:
    claims = [Claim("a", group="g"), Claim("b", stated=TEST, group="g"), Claim("c", stated=TRAIN, group="h")]
    settled = settle_splits(claims, {"h": Anchor("group:h", TEST)})
    assert {name: place.split for name, place in settled.items()} == {"a": TEST, "b": TEST, "c": TEST}
    assert "group 'h' is in test for good" in settled["c"].because
    known = settle_splits([*claims, Claim("d", known=Anchor("d", TRAIN), group="g")], {})
    assert (known["a"].split, known["a"].cluster) == (TRAIN, "d")
    assert [settled[name].hashed for name in "abc"] == [None, None, None]
    assert settle_splits([Claim("a", group="g")], {})["a"].hashed == "group:g"


def test_a_held_out_picture_decides_for_a_group_that_has_both() -> None:
    claims = [
        Claim("a", group="g"),
        Claim("b", known=Anchor("b", TRAIN), group="g"),
        Claim("c", known=Anchor("c", TEST), group="g"),
    ]
    settled = settle_splits(claims, {})
    assert [settled[name].split for name in "abc"] == [TEST, TRAIN, TEST]
    assert [settled[name].cluster for name in "abc"] == ["c", "b", "c"]


def test_near_copies_are_one_group_and_join_the_groups_they_are_in() -> None:
    claims = [Claim("a"), Claim("b", group="g"), Claim("c", group="g"), Claim("d", stated=TEST), Claim("e")]
    settled = settle_splits(claims, {}, [("a", "b"), ("c", "d")])
    assert {settled[name].cluster for name in "abcd"} == {"group:g"}
    assert [settled[name].split for name in "abcd"] == [TEST] * 4
    assert [settled[name].copied for name in "abcde"] == [True] * 4 + [False]
    assert settled["e"].cluster is None
    assert {place.cluster for place in settle_splits(claims, {}, [("a", "e")]).values()} >= {"a"}


def test_a_copy_of_known_pictures_is_in_the_strictest_of_their_splits() -> None:
    trained, held_out = Anchor("x", TRAIN, "the picture x"), Anchor("y", TEST, "the picture y")
    settled = settle_splits([Claim("a", copies=(trained, held_out)), Claim("b", copies=(trained,))], {})
    assert [(settled[name].split, settled[name].cluster) for name in "ab"] == [(TEST, "y"), (TRAIN, "x")]
    assert settled["a"].because == "it is a copy of the picture y, which is in test for good"


def test_later_pictures_of_a_group_are_in_its_split_and_say_so_when_they_are_stated_otherwise(
    place: Place, tmp_path: Path
) -> None:
    _upload(place, tmp_path / "a", "0.png,zero,test,shoe 1.png,one,train,")
    held = _upload(place, tmp_path / "b", "2.png,two,,shoe 3.png,three,train,shoe 4.png,four,test,shoe")
    assert [_split(place, n) for n in (2, 4)] == [TEST, TEST]
    assert [(where, code) for where, code, _ in held] == [("t.csv line 3", "split_conflict")]
    assert "The upload says train, but its group 'shoe' is in test for good." in held[0][2]
    names = place.catalog.groups([image_id_of(picture(n)) for n in (0, 2, 4, 1)])
    assert list(names.values()) == ["group:shoe"] * 3 + [image_id_of(picture(1))]


def test_rows_of_one_group_that_disagree_are_held(place: Place, tmp_path: Path) -> None:
    held = _upload(place, tmp_path / "a", "0.png,zero,,shoe 1.png,one,validation,shoe 2.png,two,test,shoe")
    assert [(where, code) for where, code, _ in held] == [("t.csv line 3", "split_conflict")]
    assert "as another of its rows says" in held[0][2]
    assert _split(place, 0) is TEST  # nothing is trained on beside a held-out picture of its group


def test_a_withdrawn_group_binds_nobody(place: Place, tmp_path: Path) -> None:
    _upload(place, tmp_path / "a", "0.png,zero,test,shoe")
    place.catalog.set_standing(place.catalog.chunks()[0].id, "withdrawn", by="ann", why="x")
    assert _upload(place, tmp_path / "b", "1.png,one,train,shoe") == []
    assert _split(place, 1) is TRAIN


def test_a_picture_that_is_known_elsewhere_keeps_its_split_and_stays_out_of_the_group(
    place: Place, tmp_path: Path
) -> None:
    _upload(place, tmp_path / "a", "0.png,zero,test,shoe 1.png,one,train,")
    assert _upload(place, tmp_path / "b", "1.png,uno,,shoe 2.png,two,,shoe", language="it") == []
    assert [_split(place, n) for n in (1, 2)] == [TRAIN, TEST]
    record = place.catalog.image(image_id_of(picture(1)))
    assert record is not None
    assert (record.group, record.cluster) == (None, record.id)


@pytest.mark.parametrize(("group", "stored"), [(" shoe ", "shoe"), ("cafe\u0301", "caf\u00e9"), ("", None)])
def test_a_group_is_stored_as_stated_without_spaces_around_it(
    place: Place, tmp_path: Path, group: str, stored: str | None
) -> None:
    table = f'image,caption,group\n0.png,zero,"{group}"\n'
    place.ingest(folder_of(tmp_path / "a", {"0.png": picture(0), "t.csv": table}))
    record = place.catalog.image(image_id_of(picture(0)))
    assert record is not None
    assert record.group == stored


def test_a_group_that_is_too_long_is_rejected(place: Place, tmp_path: Path) -> None:
    table = f"image,caption,group\n0.png,zero,{'x' * 201}\n1.png,one,{'x' * 200}\n"
    files: dict[str, bytes | str] = {"0.png": picture(0), "1.png": picture(1), "t.csv": table}
    report = place.ingest(folder_of(tmp_path / "a", files))
    assert [row.code for row in rows_of(report, "rejected")] == ["group_too_long"]
    assert report.new_pairs == 1
