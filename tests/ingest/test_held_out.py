from __future__ import annotations

import re
from pathlib import Path

import pytest

from ingest.grouping import Claim, Settled, settle_splits
from ingest.held_out import grown, held_out, too_few_note
from ingest.pair import SliceKey, Split, image_id_of
from ingest.splits import TRAIN_SHARE, hash_key, hash_share
from tests.ingest.conftest import Place
from tests.ingest.material import folder_of, picture

SLICE = SliceKey("de", "photo")


def ids(count: int, first: int = 0) -> list[str]:
    return [image_id_of(str(n).encode()) for n in range(first, first + count)]


def settled(count: int, **stated: Split) -> dict[str, Settled]:
    return settle_splits([Claim(image_id) for image_id in ids(count)], {})


def splits(places: dict[str, Settled]) -> list[Split]:
    return [place.split for place in places.values()]


@pytest.mark.parametrize(("pictures", "expected"), [(400, 100), (500, 100), (399, None), (900, None)])
def test_from_400_things_on_a_hundred_are_held_out(pictures: int, expected: int | None) -> None:
    places = settled(pictures)
    before = splits(places).count(Split.TEST)
    after = splits(grown(places, {SLICE: ids(pictures)})).count(Split.TEST)
    assert after == (expected if expected is not None else before)
    assert before < 100 or pictures == 900


def test_those_nearest_below_the_held_out_part_move_and_validation_stays() -> None:
    places = settled(400)
    after = grown(places, {SLICE: ids(400)})
    moved = [image_id for image_id in places if places[image_id].split is not after[image_id].split]
    assert {places[image_id].split for image_id in moved} == {Split.TRAIN}
    lowest = min(hash_share(hash_key(image_id)) for image_id in moved)
    left = [hash_share(hash_key(i)) for i in after if after[i].split is Split.TRAIN]
    assert max(left) < lowest < TRAIN_SHARE
    assert grown(places, {SLICE: set(ids(400))}) == after  # whatever the order


def test_a_thing_moves_with_all_its_pictures() -> None:
    claims = [Claim(image_id, group=f"g{n % 420}") for n, image_id in enumerate(ids(840))]
    after = grown(settle_splits(claims, {}), {SLICE: ids(420)})
    assert len(held_out(after, ids(840))) == 100
    assert splits(after).count(Split.TEST) == 200


def test_what_is_stated_or_known_counts_and_does_not_move() -> None:
    claims = [Claim(i, stated=Split.TRAIN) for i in ids(400)] + [Claim(i) for i in ids(399, first=400)]
    places = settle_splits(claims, {})
    assert grown(places, {SLICE: ids(799)}) == places
    enough = [Claim(i, stated=Split.TEST) for i in ids(90, first=1000)] + [Claim(i) for i in ids(400)]
    places = settle_splits(enough, {})
    assert len(held_out(places, ids(400))) >= 10
    assert grown(places, {SLICE: [claim.image_id for claim in enough]}) == places


def test_every_slice_has_its_hundred() -> None:
    places = settled(1000)
    slices = {
        SLICE: ids(500),
        SliceKey("fr", "photo"): ids(500, first=500),
        SliceKey("en", "photo"): ids(1000),
    }
    after = grown(places, slices)
    assert [len(held_out(after, slices[key])) for key in (SLICE, SliceKey("fr", "photo"))] == [100, 100]


def test_an_upload_with_too_few_says_what_it_would_take(place: Place, tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {f"{n}.png": picture(n) for n in range(30)}
    files |= {f"{n}.txt": f"caption {n}" for n in range(30)}
    report = place.ingest(folder_of(tmp_path / "a", files), domain="photo")
    count = report.held_out["en/photo"]
    assert count == report.per_slice["en/photo"]["test"] > 0
    advice = f"{count} distinct in en/photo; the gate needs 100 to decide: upload this again together with"
    note = next(note for note in report.notes if advice in note)
    assert report.to_json()["held_out"] == report.held_out
    # Whoever does as it says has enough.
    (more,) = re.findall(r"with (\d+) more different pictures that have split=test", note)
    table = ["file_name,caption,split", *(f"{n}.png,caption {n}," for n in range(30))]
    table += [f"{n}.png,caption {n},test" for n in range(30, 30 + int(more))]
    images: dict[str, bytes | str] = {f"{n}.png": picture(n) for n in range(30 + int(more))}
    again = place.ingest(folder_of(tmp_path / "b", images | {"t.csv": "\n".join(table)}), domain="photo")
    assert again.held_out == {"en/photo": 100}
    assert not any("distinct in" in note for note in again.notes)


def test_who_has_400_pictures_is_not_told_that_400_would_be_enough(place: Place, tmp_path: Path) -> None:
    """Of 400 pictures of 100 things only the things count; more pictures of them would change nothing."""
    table = ["file_name,caption,group", *(f"{n}.png,caption {n},g{n % 100}" for n in range(400))]
    files: dict[str, bytes | str] = {f"{n}.png": picture(n) for n in range(400)}
    report = place.ingest(folder_of(tmp_path / "a", files | {"t.csv": "\n".join(table)}), domain="photo")
    (note,) = [note for note in report.notes if "distinct in" in note]
    assert "400" not in note


def test_the_note_names_a_few_slices_and_none_that_has_enough() -> None:
    few = {SliceKey(language, "photo"): 45 for language in ("de", "en", "fr", "it", "sv")}
    note = too_few_note(few)
    assert note is not None
    assert (
        "45 distinct in de/photo, 45 distinct in en/photo, 45 distinct in fr/photo and as few in 2 more"
        in note
    )
    assert too_few_note({SLICE: 100}) is None
    assert too_few_note({}) is None


def test_an_upload_of_400_is_grown_when_it_is_taken_in(place: Place, tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {f"{n}.png": picture(n) for n in range(410)}
    files |= {f"{n}.txt": f"caption {n}" for n in range(410)}
    report = place.ingest(folder_of(tmp_path / "a", files), domain="photo")
    assert report.held_out == {"en/photo": 100}
    assert len(place.catalog.test_images("photo")) == 100
    assert not any("distinct in" in note for note in report.notes)


def test_a_later_part_of_an_upload_makes_up_for_those_before_it() -> None:
    places = settled(400)
    first = {image_id: places[image_id] for image_id in ids(200)}
    second = {image_id: places[image_id] for image_id in ids(200, first=200)}
    after = grown(second, {SLICE: ids(400)}, first)
    assert after.keys() == second.keys()
    assert len(held_out({**first, **after}, ids(400))) == 100
