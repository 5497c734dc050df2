"""Generations that grow by segments answer as one index does, bit by bit."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from index import faiss_index, kinds, writing
from index.errors import FingerprintMismatch, GenerationDamaged
from index.faiss_index import build
from index.faiss_index import write as write_index
from index.generation import Generation, load_generation
from index.manifest import write_manifest
from index.vectors import unit_rows
from index.writing import MOST_SEGMENTS, MOST_WAITING, contents_of, grow_generation, write_generation
from tests.index.test_generation import TOWER, image_ids, random_rows

Rows = NDArray[np.float32]


def grown(
    folder: Path,
    before: Generation | None,
    new: Mapping[str, Rows],
    taken_out: Collection[str] = (),
    factory: str = "Flat",
) -> Generation:
    rows = np.stack([*new.values()]) if new else np.empty((0, before.dim if before else 8), dtype=np.float32)
    grow_generation(
        folder,
        before,
        contents_of(list(new), rows, {}),
        fingerprints={"": TOWER},
        mode="delta",
        choice=kinds.Chosen(factory),
        taken_out=taken_out,
    )
    return load_generation(folder)


def alike(one: Generation, other: Generation, queries: Rows, allowed: Collection[str]) -> None:
    for asked in (queries[:1], queries):
        for some in (None, allowed):
            mine, theirs = (None if some is None else each.holding(some) for each in (one, other))
            for k in (1, 10, 1000):
                scores, ids = one.search(asked, k, allowed=mine)
                expected, right = other.search(asked, k, allowed=theirs)
                assert ids == right
                np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(one.vectors(other.ids), other.vectors(other.ids))


@pytest.mark.parametrize("factory", ["Flat", "SQfp16"])
@pytest.mark.parametrize("seed", range(4))
def test_a_grown_generation_answers_as_one_index_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factory: str, seed: int
) -> None:
    """Pictures come, go, come again with other vectors, and many are alike; what is asked meets all segments."""
    monkeypatch.setattr(kinds, "EXACT_BELOW", 0)
    rng = np.random.default_rng(seed)
    names = image_ids(2000)
    pool = random_rows(300, dim=24, seed=seed)
    held = {name: pool[rng.integers(len(pool))] for name in names[:200]}
    generation = grown(tmp_path / "0", None, held, factory=factory)
    for step in range(1, 20):
        came = names[200 + 40 * step : 200 + 40 * step + int(rng.integers(0, 40))]
        again = rng.choice([*held], size=int(rng.integers(0, 6)), replace=False).tolist()
        gone = set(rng.choice([*held], size=int(rng.integers(0, 25)), replace=False).tolist()) - {*again}
        new = {name: pool[rng.integers(len(pool))] for name in [*again, *came]}
        held = {name: row for name, row in held.items() if name not in gone and name not in new} | new
        generation = grown(tmp_path / str(step), generation, new, gone, factory)
        assert (len(generation), {*generation.ids}) == (len(held), {*held})
        assert len(generation.portions) <= MOST_SEGMENTS
    one = grown(tmp_path / "one", None, held, factory=factory)
    queries = np.concatenate([pool[:20], random_rows(30, dim=24, seed=seed + 9)])

    alike(generation, one, queries, set(rng.choice(names, 400, replace=False).tolist()))


def test_what_is_added_is_all_that_is_written(tmp_path: Path) -> None:
    names, rows = image_ids(5010), random_rows(5010)
    first = grown(tmp_path / "a", None, dict(zip(names[:5000], rows, strict=False)))
    second = grown(tmp_path / "b", first, dict(zip(names[5000:], rows[5000:], strict=True)), names[:3])

    shared = {path.name for path in (tmp_path / "b").iterdir() if path.stat().st_nlink == 2}
    own = sum(path.stat().st_size for path in (tmp_path / "b").iterdir() if path.stat().st_nlink == 1)
    assert shared == {"index.faiss", "ids.npy", "routes.npy"}
    assert own < 5000
    assert second.ids == names[3:]
    assert second.portions[0].segment is first.portions[0].segment, "what is held is not opened again"


def test_ids_keep_their_order_and_there_are_few_segments_however_many_come(tmp_path: Path) -> None:
    names, rows = image_ids(140), random_rows(140)
    generation = grown(tmp_path / "0", None, dict(zip(names[:100], rows, strict=False)))
    for n in range(100, 140):
        generation = grown(tmp_path / str(n), generation, {names[n]: rows[n]})
    assert generation.ids == names
    sizes = [len(portion) for portion in generation.portions]
    assert (len(sizes), sizes[0]) == (MOST_SEGMENTS, 100), "the large segment is left alone"
    np.testing.assert_array_equal(generation.vectors(names), unit_rows(rows))


def test_large_segments_wait_for_somebody_who_brings_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "JOINED_AT_ONCE", 20)
    names, rows = image_ids(800), random_rows(800)
    generation = grown(tmp_path / "0", None, dict(zip(names[:100], rows, strict=False)))
    most = 0
    for n in range(100, 800, 10):
        new = dict(zip(names[n : n + 10], rows[n : n + 10], strict=True))
        before, generation = generation, grown(tmp_path / str(n), generation, new)
        held = {portion.segment for portion in before.portions}
        written = sum(len(one.segment) for one in generation.portions if one.segment not in held)
        assert written <= 30 or len(before.portions) == MOST_WAITING, "only small ones are joined"
        most = max(most, len(generation.portions))
    assert most == MOST_WAITING
    tidy = grown(tmp_path / "tidy", generation, {})
    assert (len(tidy.portions), tidy.ids) == (MOST_SEGMENTS, names)
    alike(tidy, generation, random_rows(9, seed=4), names[:300])


def test_a_segment_of_which_little_is_left_is_written_again(tmp_path: Path) -> None:
    names, rows = image_ids(100), random_rows(100)
    first = grown(tmp_path / "a", None, dict(zip(names, rows, strict=True)))
    half = grown(tmp_path / "b", first, {}, names[:50])
    less = grown(tmp_path / "c", half, {}, names[50:51])
    none = grown(tmp_path / "d", less, {}, names)
    assert [len(one.portions[0].segment) for one in (half, less, none)] == [100, 49, 0]
    assert (less.ids, none.ids, len(none)) == (names[51:], [], 0)
    again = grown(tmp_path / "e", none, {names[0]: rows[0]})
    assert again.ids == names[:1]
    assert [len(portion) for portion in again.portions] == [1]


def test_only_a_segment_that_is_not_held_is_read(tmp_path: Path) -> None:
    names, rows = image_ids(20), random_rows(20)
    first = grown(tmp_path / "a", None, dict(zip(names[:10], rows, strict=False)))
    grown(tmp_path / "b", first, dict(zip(names[10:], rows[10:], strict=True)))
    shared = tmp_path / "b" / "index.faiss"
    damaged = bytearray(shared.read_bytes())
    damaged[-1] ^= 1
    shared.unlink()
    shared.write_bytes(damaged)

    assert load_generation(tmp_path / "b").ids == names
    del first
    with pytest.raises(GenerationDamaged, match=r"index\.faiss of generation b is damaged"):
        load_generation(tmp_path / "b")


def test_a_generation_outlives_the_one_that_it_grew_from(tmp_path: Path) -> None:
    names, rows = image_ids(20), random_rows(20)
    first = grown(tmp_path / "a", None, dict(zip(names[:10], rows, strict=False)))
    grown(tmp_path / "b", first, dict(zip(names[10:], rows[10:], strict=True)))
    del first
    shutil.rmtree(tmp_path / "a")
    np.testing.assert_array_equal(load_generation(tmp_path / "b").vectors(names), unit_rows(rows))


@pytest.mark.parametrize("name", ["index-2.faiss", "ids-2.npy", "routes-2.npy", "taken-out.npy"])
def test_a_lost_or_damaged_file_of_any_segment_is_named(tmp_path: Path, name: str) -> None:
    names, rows = image_ids(20), random_rows(20)
    first = grown(tmp_path / "a", None, dict(zip(names[:10], rows, strict=False)))
    grown(tmp_path / "b", first, dict(zip(names[10:], rows[10:], strict=True)), names[:1])
    path = tmp_path / "b" / name
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with pytest.raises(GenerationDamaged, match=f"{name} of generation b is damaged"):
        load_generation(tmp_path / "b")
    path.unlink()
    with pytest.raises(GenerationDamaged, match=f"{name} of generation b cannot be read"):
        load_generation(tmp_path / "b")


def test_a_generation_whose_files_have_gone_is_not_grown(tmp_path: Path) -> None:
    first = grown(tmp_path / "a", None, dict(zip(image_ids(9), random_rows(9), strict=True)))
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(GenerationDamaged, match=r"index\.faiss of generation a cannot be read"):
        grown(tmp_path / "b", first, {"x": random_rows(1)[0]})


def test_a_disk_without_hard_links_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError("no hard links")

    names, rows = image_ids(20), random_rows(20)
    first = grown(tmp_path / "a", None, dict(zip(names[:10], rows, strict=False)))
    monkeypatch.setattr(os, "link", refused)
    assert grown(tmp_path / "b", first, dict(zip(names[10:], rows[10:], strict=True))).ids == names


@pytest.mark.parametrize("factory", ["HNSW16", "IVF8,Flat", "SQ8"])
def test_what_was_taken_out_of_an_approximate_segment_is_never_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factory: str
) -> None:
    monkeypatch.setattr(kinds, "EXACT_BELOW", 100)
    monkeypatch.setattr(faiss_index, "IVF_LISTS_SHARE", 2)
    names, rows = image_ids(500), random_rows(500)
    first = grown(tmp_path / "a", None, dict(zip(names[:490], rows, strict=False)), factory=factory)
    out = names[:200]
    later = grown(tmp_path / "b", first, dict(zip(names[490:], rows[490:], strict=True)), out, factory)
    assert [portion.segment.facts["factory"] for portion in later.portions] == [factory, "Flat"]
    scores, found = later.search(rows[:200], 10)
    assert {len(row) for row in found} == {10}
    assert not {name for row in found for name in row} & {*out}
    exact = -np.sort(-(unit_rows(rows[:200]) @ later.vectors(later.ids).T), axis=1)[:, :10]
    assert (scores >= exact[:, -1:] - 1e-2).mean() > 0.9


def test_routes_stay_with_their_pictures_and_what_made_them_is_compared(tmp_path: Path) -> None:
    names, rows = image_ids(4), random_rows(4)
    prints = {"": TOWER, "ink": "1" * 64, "line": "2" * 64}
    flat = kinds.Chosen("Flat")
    first = contents_of(names[:3], rows[:3], {names[0]: "ink", names[1]: "line"})
    grow_generation(tmp_path / "a", None, first, fingerprints=prints, mode="delta", choice=flat)
    before = load_generation(tmp_path / "a")
    moved = contents_of([names[1], names[3]], rows[2:], {names[1]: "ink"})
    grow_generation(tmp_path / "b", before, moved, fingerprints=prints, mode="delta", choice=flat)
    after = load_generation(tmp_path / "b")
    assert after.routes == {names[0]: "ink", names[1]: "ink"}
    assert after.fingerprints == {"": TOWER, "ink": "1" * 64}, "nothing takes the other route any more"
    assert after.ids == [names[0], names[2], names[1], names[3]]
    prints["ink"] = "3" * 64
    with pytest.raises(
        FingerprintMismatch, match="'ink' pictures were made by 111111111111, not by 333333333333"
    ):
        grow_generation(tmp_path / "c", before, moved, fingerprints=prints, mode="delta", choice=flat)


def test_a_generation_from_before_there_were_segments_opens_as_it_is_and_grows(tmp_path: Path) -> None:
    """Three files and a manifest of schema 1, as the program wrote them until then."""
    names, rows = image_ids(30), unit_rows(random_rows(30))
    old = tmp_path / "g1"
    old.mkdir()
    write_index(build(rows[:20]), old / "index.faiss")
    np.save(old / "ids.npy", np.array([name.encode() for name in names[:20]], dtype="S64"))
    np.save(old / "routes.npy", np.array([1, *[0] * 19], dtype=np.uint16))
    facts = {
        "schema": 1,
        "kind": "generation",
        "fingerprint": TOWER,
        "routes": ["", "ink"],
        "count": 20,
        "dim": 8,
    }
    facts |= {
        "fingerprints": {"": TOWER, "ink": "1" * 64},
        "mode": "full",
        "factory": "Flat",
        "faiss": "1.15.1",
    }
    write_manifest(old, facts, ("index.faiss", "ids.npy", "routes.npy"))
    before = {path.name: path.read_bytes() for path in old.iterdir()}

    opened = load_generation(old)
    assert (opened.ids, opened.routes) == (names[:20], {names[0]: "ink"})
    prints = {"": TOWER, "ink": "1" * 64}
    new = contents_of(names[20:], rows[20:], {})
    out = names[1:3]
    grow_generation(
        tmp_path / "g2", opened, new, fingerprints=prints, mode="delta", choice=opened.choice, taken_out=out
    )
    later = load_generation(tmp_path / "g2")

    assert {path.name: path.read_bytes() for path in old.iterdir()} == before
    assert later.routes == opened.routes
    assert (tmp_path / "g2" / "index.faiss").samefile(old / "index.faiss")
    kept = [names[0], *names[3:]]
    write_generation(
        tmp_path / "one",
        fingerprint=TOWER,
        ids=kept,
        vectors=rows[[0, *range(3, 30)]],
        mode="full",
        routes=opened.routes,
        route_fingerprints=prints,
    )
    assert later.ids == kept
    alike(later, load_generation(tmp_path / "one"), random_rows(30, seed=3), kept[:9])
    assert json.loads((tmp_path / "g2" / "manifest.json").read_text())["count"] == 28


def test_ids_are_looked_up_in_all_segments_less_what_was_taken_out(tmp_path: Path) -> None:
    names, rows = image_ids(300), random_rows(300)
    first = grown(tmp_path / "a", None, dict(zip(names[:290], rows, strict=False)))
    later = grown(tmp_path / "b", first, dict(zip(names[290:], rows[290:], strict=True)), names[5:9])
    strange = "of another home, and longer than any id that is here " * 2
    for some in ([*names[:8], strange, names[295]], names[3:295], []):
        there = [one for one in some if one in {*later.ids}]
        mask = later.holding(some)
        assert later.among(some) == later.among(some, mask) == there
        assert later.among(some, ~mask) == []
        assert {*later.search(rows[:9], 300, allowed=mask)[1][0]} == {*there}
        others = later.search(rows[:9], 300, allowed=later.without(some))[1]
        assert [sorted(one) for one in others] == [sorted({*later.ids} - {*some})] * 9
        np.testing.assert_array_equal(np.flatnonzero(mask), np.sort(later.positions_of(there)))
    assert set(later.positions_of([names[5], strange]).tolist()) == {-1}


def test_ids_are_found_by_their_beginning(tmp_path: Path) -> None:
    names = [f"{n:03x}{'f' * 5}" for n in range(0x40)]
    rows = random_rows(len(names))
    first = grown(tmp_path / "a", None, dict(zip(names[:32], rows, strict=False)))
    later = grown(tmp_path / "b", first, dict(zip(names[32:], rows[32:], strict=True)), [names[1]])
    assert later.beginning("00", 100) == [names[0], *names[2:16]]
    assert later.beginning("0", 40) == [names[0], *names[2:41]]
    assert later.beginning("00", 2, ~later.holding(names[:4])) == names[4:6]
    assert later.beginning(names[40], 2) == [names[40]]
    for text in ("1", names[1], names[40] + "0", "\xff"):
        assert later.beginning(text, 2) == []


def test_a_sample_is_spread_over_all_segments(tmp_path: Path) -> None:
    names, rows = image_ids(300), random_rows(300)
    first = grown(tmp_path / "a", None, dict(zip(names[:290], rows, strict=False)))
    later = grown(tmp_path / "b", first, dict(zip(names[290:], rows[290:], strict=True)), names[5:9])
    assert later.spread(100) == later.ids[::3]
    assert later.spread(1000) == later.ids


@pytest.mark.parametrize(
    ("factory", "count", "kind"),
    [
        ("auto", 9_999, "Flat"),
        ("auto", 195_312, "Flat"),
        ("auto", 195_313, "SQfp16"),
        ("auto", 546_875, "SQfp16"),
        ("auto", 546_876, "IVF1024,SQfp16"),
        ("auto", 10**6, "IVF1024,SQfp16"),
        ("HNSW32", 9_999, "Flat"),
        ("HNSW32", 10_000, "HNSW32"),
        ("Flat", 10**7, "Flat"),
    ],
)
def test_the_kind_of_index_suits_the_number_of_vectors(factory: str, count: int, kind: str) -> None:
    assert kinds.fitting(factory, count, 512) == kind


@pytest.mark.parametrize(("count", "holds"), [(499, False), (500, True), (1_999, True), (2_000, False)])
def test_a_kind_is_chosen_again_when_vectors_have_doubled_or_halved(count: int, holds: bool) -> None:
    choice = kinds.Chosen("SQfp16", "auto", 1_000)
    assert choice.holds("auto", count) is holds
    assert not choice.holds("Flat", count)


def test_few_vectors_of_a_generation_in_lists_have_none() -> None:
    kind = "IVF1024,SQfp16"
    found = [kinds.of_segment(kind, count) for count in (9_999, 10_000, 39 * 1024 - 1, 39 * 1024)]
    assert found == ["Flat", "SQfp16", "SQfp16", kind]
    assert kinds.of_segment("HNSW32", 10_000) == "HNSW32"
