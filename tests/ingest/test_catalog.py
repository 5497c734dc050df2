from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from ingest.catalog import Catalog
from ingest.errors import BadOption, CatalogError, CatalogMissing, CatalogTooNew, UnknownChunk, UnknownJob
from ingest.pair import Caption, ImageId, Pair, SliceKey, Split
from ingest.records import NewChunk, NewImage


def image_id(number: int) -> ImageId:
    return f"{number:064x}"


def chunk_of(
    chunk_id: str,
    numbers: range,
    languages: tuple[str, ...] = ("en",),
    *,
    domain: str = "photo",
    in_gallery: bool = True,
) -> NewChunk:
    images = [
        NewImage(image_id(n), domain, Split.TEST if n % 2 else Split.TRAIN, 64, 48, "PNG") for n in numbers
    ]
    captions = [(image_id(n), language, f"{language} text {n}") for n in numbers for language in languages]
    return NewChunk(chunk_id, "a chunk", in_gallery, images, captions)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(tmp_path / "catalog.sqlite") as opened:
        yield opened


def test_a_chunk_is_recorded_once_and_counted(catalog: Catalog) -> None:
    first = catalog.record_chunk(
        chunk_of("aaa111aaa111", range(4), ("en", "de")), lambda new: {"new": new.new_pairs}
    )
    again = catalog.record_chunk(
        chunk_of("aaa111aaa111", range(4), ("en", "de")), lambda new: {"new": "changed"}
    )
    assert (first.new_images, first.new_pairs, first.known_chunk) == (4, 8, False)
    assert (again.new_images, again.new_pairs, again.known_chunk) == (0, 0, True)
    (record,) = catalog.chunks()
    assert (record.pairs, record.images, record.new_pairs, record.new_images) == (8, 4, 8, 4)
    assert (record.languages, record.domains, record.report) == ({"de": 4, "en": 4}, {"photo": 4}, {"new": 8})


def test_a_list_of_chunks_asks_as_little_as_one_does_and_says_the_same(catalog: Catalog) -> None:
    for n in range(6):
        said = chunk_of(
            f"{n:012x}", range(n, n + 3), ("en", "de")[: 1 + n % 2], domain=("photo", "line")[n // 3]
        )
        catalog.record_chunk(said, lambda new: {"new": new.new_pairs})
    catalog.set_standing(f"{1:012x}", "accepted", by="ann", why="looked at", measures=True)
    catalog.set_standing(f"{4:012x}", "withdrawn", by="ann", why="wrong")
    each = [catalog.chunk(f"{n:012x}") for n in range(6)]
    asked = list[str]()
    event.listen(catalog._engine, "before_cursor_execute", lambda *given: asked.append(given[2]))

    every = catalog.chunks()
    assert sum(one.startswith("SELECT") for one in asked) == 3
    assert every == each
    assert catalog.chunks(reports=False) == [replace(one, report={}) for one in each]
    asked.clear()
    standings = catalog.standings()
    assert sum(one.startswith("SELECT") for one in asked) == 1
    assert [
        (one.id, one.name, one.created, one.in_gallery, one.standing, one.measures) for one in standings
    ] == [(one.id, one.name, one.created, one.in_gallery, one.standing, one.measures) for one in each]
    assert [one.standing for one in standings] == ["new", "accepted", "new", "new", "withdrawn", "new"]


def test_a_chunk_keeps_pairs_that_an_earlier_chunk_brought(catalog: Catalog) -> None:
    catalog.record_chunk(chunk_of("aaa111aaa111", range(4)))
    recorded = catalog.record_chunk(chunk_of("bbb222bbb222", range(2, 6)))
    assert recorded.new_pairs == 2
    assert [pair.image_id for pair in catalog.pairs(chunk="bbb")] == [image_id(n) for n in range(2, 6)]
    assert catalog.chunk("bbb222bbb222").new_pairs == 2


def test_a_failure_while_recording_leaves_nothing(catalog: Catalog) -> None:
    def fail(_: object) -> dict[str, object]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        catalog.record_chunk(chunk_of("aaa111aaa111", range(4)), fail)
    assert (catalog.chunks(), catalog.gallery_ids(), catalog.pairs()) == ([], [], [])


def test_a_known_image_keeps_its_domain_and_split(catalog: Catalog) -> None:
    catalog.record_chunk(chunk_of("aaa111aaa111", range(1)))
    moved = NewImage(image_id(0), "sketch", Split.TEST, 64, 48, "PNG")
    catalog.record_chunk(NewChunk("bbb222bbb222", "b", True, [moved], [(image_id(0), "de", "x")]))
    record = catalog.image(image_id(0))
    assert record is not None
    assert (record.domain, record.split, record.chunk_id) == ("photo", Split.TRAIN, "aaa111aaa111")


def test_the_gallery_lists_images_in_the_order_they_came_and_only_those_meant_for_it(
    catalog: Catalog,
) -> None:
    catalog.record_chunk(chunk_of("aaa111aaa111", range(5, 8)))
    catalog.record_chunk(chunk_of("bbb222bbb222", range(2), in_gallery=False))
    assert catalog.gallery_ids() == [image_id(n) for n in (5, 6, 7)]
    catalog.record_chunk(chunk_of("ccc333ccc333", range(1)))
    assert set(catalog.gallery_ids()) == {image_id(n) for n in (0, 5, 6, 7)}


def test_pairs_are_filtered_by_every_condition(catalog: Catalog) -> None:
    catalog.record_chunk(chunk_of("aaa111aaa111", range(4), ("en", "de")))
    catalog.record_chunk(chunk_of("bbb222bbb222", range(4, 6), ("de",), domain="shop"))
    assert catalog.pairs(language="de", domain="shop", split=Split.TEST) == [
        Pair(image_id(5), "de text 5", "de", "shop", Split.TEST)
    ]
    assert len(catalog.pairs(language="de")) == 6
    assert len(catalog.pairs(chunk="aaa", split=Split.TRAIN)) == 4


def test_slices_are_those_with_enough_held_out_pictures(catalog: Catalog) -> None:
    catalog.record_chunk(chunk_of("aaa111aaa111", range(6), ("en", "de")))
    catalog.record_chunk(chunk_of("bbb222bbb222", range(6, 8), ("en",), domain="shop"))
    assert catalog.slices() == [SliceKey("de", "photo"), SliceKey("en", "photo"), SliceKey("en", "shop")]
    assert [str(key) for key in catalog.slices(minimum_images=2)] == ["de/photo", "en/photo"]
    assert catalog.test_images("photo") == [image_id(n) for n in (1, 3, 5)]


def test_captions_are_found_by_image_and_language(catalog: Catalog) -> None:
    catalog.record_chunk(chunk_of("aaa111aaa111", range(3), ("en", "de")))
    assert catalog.captions_of(image_id(1)) == [
        Caption(image_id(1), "de", "de text 1"),
        Caption(image_id(1), "en", "en text 1"),
    ]
    assert catalog.captions_in("en", [image_id(0), image_id(9)]) == {image_id(0): ["en text 0"]}
    assert catalog.ids_where(languages=["de"], domains=["photo"]) == {image_id(n) for n in range(3)}
    assert catalog.ids_where(domains=["none"]) == set()
    assert (catalog.languages(), catalog.domains()) == ({"de": 3, "en": 3}, {"photo": 3})


@pytest.mark.sqlite
def test_captions_of_a_few_pictures_are_found_without_reading_all_of_their_language(catalog: Catalog) -> None:
    catalog.record_chunk(chunk_of("aaa111aaa111", range(3)))
    asked: list[tuple[str, Any]] = []
    with catalog._engine.connect() as connection:
        event.listen(
            catalog._engine, "before_cursor_execute", lambda *given: asked.append((given[2], given[3]))
        )
        assert list(catalog.captions_in("en", [image_id(n) for n in (2, 0)])) == [image_id(0), image_id(2)]
        statement, values = next(one for one in asked if one[0].startswith("SELECT"))
        plan = str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all())
    assert "images USING COVERING INDEX" in plan
    assert "captions_by_language" not in plan


@pytest.mark.sqlite
def test_a_page_is_shown_by_one_statement_that_reads_its_pictures_alone(catalog: Catalog) -> None:
    catalog.record_chunk(chunk_of("aaa111aaa111", range(4), ("fr", "en", "de")))
    asked: list[tuple[str, Any]] = []
    event.listen(catalog._engine, "before_cursor_execute", lambda *given: asked.append((given[2], given[3])))

    shown = catalog.shown([image_id(n) for n in (2, 9, 0)], languages=["de", "en"], captions=2)

    ((statement, values),) = [one for one in asked if one[0] != "BEGIN"]
    assert list(shown) == [image_id(2), image_id(0)]
    facts = shown[image_id(2)]
    assert (facts.domain, facts.chunk_id, facts.width, facts.height) == ("photo", "aaa111aaa111", 64, 48)
    with catalog._engine.connect() as connection:
        plan = str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all())
    assert "SCAN images" not in plan
    assert "SCAN captions" not in plan
    assert "SCAN sources" not in plan


@pytest.mark.parametrize(
    ("languages", "most", "said"),
    [
        (("de", "en"), 2, ["de text 1", "en text 1"]),
        # Of a picture that has any of these, no other is shown.
        (("en", "de"), 3, ["en text 1", "de text 1"]),
        (("ja",), 2, ["de text 1", "en text 1"]),
        ((), -1, ["de text 1", "en text 1", "fr text 1"]),
        (("e", "f"), 1, ["de text 1"]),  # a part of a tag is no tag
    ],
)
def test_captions_in_the_languages_asked_for_are_shown_first(
    catalog: Catalog, languages: tuple[str, ...], most: int, said: list[str]
) -> None:
    catalog.record_chunk(chunk_of("aaa111aaa111", range(2), ("fr", "en", "de")))
    shown = catalog.shown([image_id(1)], languages=languages, captions=most)
    assert [one.text for one in shown[image_id(1)].captions] == said


def test_more_ids_than_sqlite_takes_in_one_statement_are_fine(catalog: Catalog) -> None:
    catalog.record_chunk(chunk_of("aaa111aaa111", range(3)))
    ids = [image_id(n) for n in range(40_000)]
    assert len(catalog.images(ids)) == 3
    assert len(catalog.captions_in("en", ids)) == 3


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("red boat", 1),
        ("RED bo", 1),
        ("boat red", 1),
        ("bo red", 0),
        ("cafe", 1),
        ("赤い", 1),
        ("船がある", 1),
        ("เรือ", 1),
        ("", 0),
        ("   ", 0),
        ('" OR 1 --', 0),
        ("red*", 1),
        ("NEAR(red boat)", 0),
        ("text:red", 0),
        ("100%", 1),
        ("%", 1),
        ("_", 0),
        ("-red", 1),
        ("red\0boat", 1),
        ("\ud800", 0),
    ],
)
def test_captions_are_found_by_words_or_by_substring_where_there_are_no_spaces(
    catalog: Catalog, query: str, found: int
) -> None:
    texts = ["a red boat at sea", "un café noir", "赤い船がある", "เรือสีแดง", "100% wool"]
    images = [NewImage(image_id(n), "photo", Split.TRAIN, 1, 1, "PNG") for n in range(5)]
    catalog.record_chunk(
        NewChunk(
            "aaa111aaa111", "a", True, images, [(image_id(n), "mul", text) for n, text in enumerate(texts)]
        )
    )
    assert len(catalog.find_captions(query)) == found


@pytest.mark.parametrize(
    ("query", "with_all", "with_any"),
    [
        ("빨간 배", [0], [0, 4]),
        ("배가 빨간", [0], [0]),
        ("빨간 고양이", [], [0, 1]),
        ("고양이 하얀 바다에", [1], [1, 0]),
        ("红色 汽车", [2], [2, 3]),
        ("红色汽车", [2], [2]),
        ("RED 배", [4], [4, 0]),
        ("红色　船 !", [3], [3, 2]),
        ("배" + " 배" * 1200, [0, 4], [0, 4]),
        ("배 " + " ".join(map(str, range(1200))), [], [0, 4]),
    ],
)
def test_words_in_scripts_without_spaces_are_found_each_by_itself(
    catalog: Catalog, query: str, with_all: list[int], with_any: list[int]
) -> None:
    texts = [
        "빨간 배가 바다에 떠 있다",
        "바다에 있는 하얀 고양이",
        "海边的红色汽车",
        "红色的船",
        "red 배, a boat",
    ]
    images = [NewImage(image_id(n), "photo", Split.TRAIN, 1, 1, "PNG") for n in range(5)]
    said = [(image_id(n), "mul", text) for n, text in enumerate(texts)]
    catalog.record_chunk(NewChunk("aaa111aaa111", "a", True, images, said))

    assert [one.image_id for one in catalog.find_captions(query)] == [image_id(n) for n in with_all]
    assert catalog.ids_where(caption=query) == {image_id(n) for n in with_all}
    assert [one for one, _ in catalog.captioned_like(query)] == [image_id(n) for n in with_any]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=30))
def test_any_query_text_is_safe(catalog: Catalog, query: str) -> None:
    assert catalog.find_captions(query) == []
    assert catalog.captioned_like(query) == []


def test_an_unknown_or_ambiguous_chunk_names_the_known_ones(catalog: Catalog) -> None:
    with pytest.raises(UnknownChunk, match="none yet"):
        catalog.chunk("abc")
    catalog.record_chunk(chunk_of("abc111abc111", range(1)))
    catalog.record_chunk(chunk_of("abc222abc222", range(2)))
    assert catalog.chunk("ABC1").id == "abc111abc111"
    for wrong in ("abc", "fff", "", "%"):
        with pytest.raises(UnknownChunk, match=r"abc111abc111 \(a chunk\), abc222abc222 \(a chunk\)"):
            catalog.chunk(wrong)


def test_a_chunk_is_found_by_a_name_that_means_no_other(catalog: Catalog) -> None:
    for n, (chunk_id, name) in enumerate([("abc111", "de.csv"), ("abc222", "abc1"), ("def333", "abc111")]):
        catalog.record_chunk(replace(chunk_of(chunk_id, range(n, n + 1)), name=name))
    assert catalog.chunk(" de.csv ").id == "abc111"
    assert (
        catalog.chunk("abc111").id == "abc111"
    )  # an id means the chunk that has it, whatever others are called
    for unclear in ("abc1", "ABC"):
        with pytest.raises(UnknownChunk, match=rf"Several .* '{unclear}'"):
            catalog.chunk(unclear)


def test_a_job_goes_through_its_states(catalog: Catalog) -> None:
    job = catalog.add_job("update", {"chunk": "abc"})
    assert (job.id, job.state, job.arguments, job.progress) == ("j1", "queued", {"chunk": "abc"}, {})
    assert catalog.update_job("j1", state="running", pid=7, only_from="queued")
    assert not catalog.update_job("j1", state="running", pid=8, only_from="queued")
    catalog.update_job("j1", progress={"step": 3})
    catalog.update_job("j1", state="rejected", result={"verdict": "reject"})
    done = catalog.job("j1")
    assert (done.pid, done.progress, done.result, done.state) == (
        7,
        {"step": 3},
        {"verdict": "reject"},
        "rejected",
    )
    assert done.started is not None
    assert done.finished is not None
    assert done.created <= done.started <= done.finished


def test_jobs_are_listed_newest_first(catalog: Catalog) -> None:
    for kind in ("a", "b", "c"):
        catalog.add_job(kind)
    catalog.update_job("j2", state="failed", error="no space")
    assert [job.kind for job in catalog.jobs()] == ["c", "b", "a"]
    assert [job.kind for job in catalog.jobs(state="queued", limit=1)] == ["c"]


def test_wrong_job_ids_fields_and_states_are_refused(catalog: Catalog) -> None:
    catalog.add_job("update")
    for wrong in ("j9", "x", "", "j-1", "j" + "9" * 40):
        with pytest.raises(UnknownJob, match="no job"):
            catalog.job(wrong)
    with pytest.raises(UnknownJob):
        catalog.update_job("j9", state="running")
    with pytest.raises(BadOption, match="no field 'kind'"):
        catalog.update_job("j1", kind="other")
    with pytest.raises(BadOption, match="no job state"):
        catalog.update_job("j1", state="done")


def test_a_pin_is_replaced_by_a_later_one_of_the_same_query(catalog: Catalog) -> None:
    catalog.set_pin("boat", "en", image_id(1))
    catalog.set_pin("boat", "en", image_id(2))
    catalog.set_pin("Boot", "de", image_id(1))
    assert [(pin.query, pin.image_id) for pin in catalog.pins()] == [
        ("Boot", image_id(1)),
        ("boat", image_id(2)),
    ]


def test_threads_share_a_catalog(catalog: Catalog) -> None:
    def work(start: int) -> None:
        for n in range(start, start + 5):
            catalog.record_chunk(chunk_of(f"{n:012x}", range(n, n + 1)))
            catalog.pairs()
            catalog.add_job("x")

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(catalog.chunks()), len(catalog.jobs())) == (20, 20)


def test_a_reader_of_its_own_sees_what_a_writer_committed(catalog: Catalog) -> None:
    with Catalog.open(catalog.place, read_only=True) as reader:
        assert reader.gallery_ids() == []
        catalog.record_chunk(chunk_of("aaa111aaa111", range(2)))
        assert len(reader.gallery_ids()) == 2
        with pytest.raises(CatalogError, match="opened for reading"):
            reader.add_job("x")


@pytest.mark.sqlite
def test_a_missing_newer_or_foreign_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CatalogMissing, match="init"):
        Catalog.open(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()
    (tmp_path / "text").write_text("not a database" * 100)
    for read_only in (True, False):
        with pytest.raises(CatalogError, match="not a database"):
            Catalog.open(tmp_path / "text", read_only=read_only)
    Catalog.open(tmp_path / "newer").close()
    connection = sqlite3.connect(tmp_path / "newer")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(CatalogTooNew, match="schema 99"):
        Catalog.open(tmp_path / "newer")


@pytest.mark.sqlite
def test_the_database_is_durable(catalog: Catalog) -> None:
    with catalog._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1
