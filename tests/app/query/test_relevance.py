"""Claims about what cosines are said to mean."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event

from app.desk.errors import BadQuery
from app.desk.hits import Relevance, SearchAnswer, SearchRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.query import relevance, translation
from app.query.caption_scales import TURNS, are_told, common_words, nearest, read_as, scale_of, words_of
from app.query.finder import Finder
from app.query.gauges import Gauge, Gauges
from app.query.grammar import parse
from app.query.question import Question
from app.query.relevance import Calibration
from app.query.snapshot import Snapshot
from app.query.translation import Etas
from index.feature_store import FeatureStore
from ingest.pair import Split
from ingest.records import NewChunk
from ingest.storage import Store
from tests.app.small_home import copy_of, small_home


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=small_home(tmp_path_factory, pictures=200))) as opened:
        yield opened


@pytest.fixture(scope="module")
def snapshot(workspace: Workspace) -> Snapshot:
    return Snapshot.load(workspace)


def _find(workspace: Workspace, snapshot: Snapshot, query: str, k: int = 10, **asked: Any) -> SearchAnswer:
    question = Question(parse(query), asked=SearchRequest(**asked), k=k)
    return Finder(workspace).find(snapshot, question)


def test_a_home_that_may_only_be_read_measures_and_keeps_no_vector(
    workspace: Workspace, snapshot: Snapshot, tmp_path: Path
) -> None:
    # As one from a backup is tried, whose release nobody asked before.
    home = copy_of(workspace.home.root, tmp_path)
    for kept in (home / "captions").glob("relevance-*"):
        kept.unlink()
    shutil.rmtree(home / "vectors.lmdb")
    Store.open(home / "vectors.lmdb").close()
    with Workspace.open(load_settings(home=home), read_only=True) as reading:
        told = _find(reading, Snapshot.load(reading), "a red boat", language="en").hits
        assert [hit.relevance for hit in told] == [
            hit.relevance for hit in _find(workspace, snapshot, "a red boat", language="en").hits
        ]
        assert told[0].relevance
        assert reading.features.examine().rows == 0


def test_a_query_whose_captions_are_far_finds_only_what_is_as_near_as_the_nearest() -> None:
    word, caption = (np.array(row) for row in ([0.2, 0.4, 0.0, 0.2, 0.6], [0.4, 0.6, 0.2, 0.4, 0.8]))
    known = np.eye(8, dtype=np.float32)[:5]
    gauge = Gauge(known, word, caption, 5.0, "en")

    def said(text: str, near: float, cosine: float) -> str:
        query = np.full(8, 0, dtype=np.float32)
        query[:5] = near
        return gauge.levels(text, query).of(cosine)

    assert [said("boat", 0.1, cosine) for cosine in (0.5, 0.7)] == ["nothing", "weak"]
    assert [said("boat", 0.3, cosine) for cosine in (-0.1, 0.1, 0.9)] == ["nothing", "weak", "weak"]
    assert [said("boat", 0.5, cosine) for cosine in (0.1, 0.3)] == ["weak", "strong"]
    # A whole caption is expected to be nearer to captions and pictures, and three of five words halfway.
    assert [said("two red boats at sea", near, 0.3) for near in (0.3, 0.5, 0.7)] == [
        "nothing",
        "weak",
        "weak",
    ]
    assert [said("two red boats", 0.5, cosine) for cosine in (0.25, 0.35)] == ["weak", "strong"]


def test_a_query_finds_what_it_finds_in_the_domain_that_has_most_to_say() -> None:
    scale = np.array([0.4, 0.6, 0.2, 0.4, 0.8])
    known = np.eye(8, dtype=np.float32)
    photographs, drawn = (Gauge(known[a:b], scale, scale, 1.0, "en") for a, b in ((0, 3), (3, 6)))
    query = np.zeros(8, dtype=np.float32)
    query[3:5] = 0.5  # near to captions of what is drawn

    assert photographs.levels("skull", query).of(0.3) is Relevance.NOTHING
    assert Gauges((photographs,)).levels("skull", query).of(0.3) is Relevance.NOTHING
    assert Gauges((photographs, drawn)).levels("skull", query).of(0.3) is Relevance.WEAK

    # Pictures that stand aside say nothing of a query that their captions are far from.
    aside = replace(drawn, known=known[6:], word=np.array([0.4, 0.6, 0.0, 0.1, 0.2]), learned=False)
    assert (
        Gauges((photographs, replace(aside, learned=True))).levels("skull", query).of(0.3) is Relevance.WEAK
    )
    assert Gauges((photographs, aside)).levels("skull", query).of(0.3) is Relevance.NOTHING


def test_a_caption_is_read_as_a_language_reads_the_same_sentence() -> None:
    english = np.array([[0.6, 0.0, 0.8, 0.0]], dtype=np.float32)
    own = np.array([[0.0, 0.0, 0.8, 0.6]], dtype=np.float32)  # the first space does not know it
    read = read_as(english, english, own, 2)

    assert read.shape == (TURNS, 4)
    assert np.linalg.norm(read, axis=1) == pytest.approx(1)
    assert (read[:, :2] == 0).all()
    further = np.array([0.8, 1.6 * 0.6])
    assert read[0, 2:] == pytest.approx(further / np.linalg.norm(further))


def test_a_scale_lies_where_the_two_samples_say() -> None:
    captions, pictures = np.linspace(0, 1, 101), np.linspace(0, 0.5, 101, dtype=np.float32)

    assert scale_of(captions, pictures) == pytest.approx([0.04, 0.25, 0.005, 0.125, 0.375])
    assert nearest(np.array([[0, 6, 2, 4]], dtype=np.float32)).tolist() == [5.0]
    assert nearest(np.array([[3]], dtype=np.float32)).tolist() == [3.0]


def test_words_that_say_something_are_those_that_several_captions_have_but_not_all() -> None:
    texts = [f"a {color} boat {n}" for n, color in enumerate(["red"] * 3 + ["blue"] * 2 + ["grey"] * 15)]

    assert common_words(texts) == ["red"]
    near = np.array([[0.9, 0.8, 0.1], [0.9, 0.1, 0.8]], dtype=np.float32)
    assert are_told(["red", "has"], ["a red boat", "red has many", "a cat has"], near).tolist() == [
        True,
        False,
    ]
    assert words_of("Two RED boats") == ["two", "red", "boats"]
    assert words_of("两条狗 on 海滩") == ["两条", "条狗", "on", "海滩"]


def test_held_out_captions_find_strong_hits_and_what_is_not_there_does_not(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    captions = [
        pair.text
        for split in (Split.TEST, Split.VALIDATION)
        for pair in workspace.catalog.pairs(language="en", split=split)
        if snapshot.among([pair.image_id])
    ]
    found = [_find(workspace, snapshot, text, language="en").relevance for text in captions]
    absent = [
        _find(workspace, snapshot, text, language="en").relevance
        for text in (
            "the president gives a speech",
            "spaghetti with tomato sauce",
            "a long lecture on quantum field theory",
        )
    ]

    assert found.count("strong") >= 0.5 * len(found)
    assert found.count("nothing") <= 0.05 * len(found)
    assert absent == ["nothing"] * 3


def test_short_queries_for_what_is_here_find_something(workspace: Workspace, snapshot: Snapshot) -> None:
    found = {
        query: _find(workspace, snapshot, query, language="en").relevance
        for query in ("red boat", "yellow house", "a green tree", "cat", "beach", "night")
    }

    assert "nothing" not in found.values(), found


def test_a_least_relevance_cuts_the_answer_where_it_begins_to_be_less(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    whole = _find(workspace, snapshot, "two red boats on the beach at night", k=500)
    weak = [hit for hit in whole.hits if hit.relevance != "nothing"]

    cut = _find(
        workspace, snapshot, "two red boats on the beach at night", k=500, min_relevance=Relevance.WEAK
    )

    assert 0 < len(weak) < len(whole.hits)
    assert cut.hits == tuple(weak)


def test_what_nobody_measured_is_not_said(workspace: Workspace, snapshot: Snapshot) -> None:
    spanish = _find(workspace, snapshot, "dos barcos rojos", language="es")
    picture = _find(workspace, snapshot, f"#{snapshot.generation.ids[0]}")

    assert {hit.relevance for hit in (*spanish.hits, *picture.hits)} == {""}
    assert spanish.relevance == ""
    with pytest.raises(BadQuery, match="Search without"):
        _find(workspace, snapshot, "dos barcos rojos", language="es", min_relevance=Relevance.WEAK)


def test_what_was_measured_is_kept_with_its_release(
    workspace: Workspace, snapshot: Snapshot, caplog: pytest.LogCaptureFixture
) -> None:
    first = Calibration(workspace).gauge(snapshot, "en")
    place = workspace.home.captions / f"relevance-en-{snapshot.release.id}.npz"

    assert first is not None
    with np.load(place) as kept:
        changed = dict(kept) | {"words": np.array([77.0])}
    np.savez(place, **changed)
    again = Calibration(workspace).gauge(snapshot, "en")
    assert again is not None
    assert [one.words for one in again.each] == [77]  # read, not measured
    assert (again.each[0].known == first.each[0].known).all()

    whole = place.read_bytes()
    for damaged in (b"half a file", b"", whole[: len(whole) // 2]):
        place.write_bytes(damaged)
        caplog.clear()
        mended = Calibration(workspace).gauge(snapshot, "en")
        assert mended is not None
        assert mended.each[0].words == first.each[0].words
        assert f"{place.name} is damaged and is measured again" in caplog.text


def test_what_was_borrowed_is_kept_too_and_borrowed_again_from_other_scales(
    workspace: Workspace, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = Calibration(workspace).gauge(snapshot, "fr")
    assert measured is not None
    borrow = Calibration._borrowed
    monkeypatch.setattr(Calibration, "_borrowed", None)  # whoever measured would fail
    later = Calibration(workspace)
    again, base = later.gauge(snapshot, "fr"), later.gauge(snapshot, "en")
    assert again is not None
    assert base is not None
    for one, kept, lent in zip(measured.each, again.each, base.each, strict=True):
        assert (kept.language, kept.domain, kept.words) == ("en", one.domain, one.words)
        assert (kept.word == one.word).all()
        assert (kept.caption == one.caption).all()
        assert kept.known is lent.known

    monkeypatch.setattr(Calibration, "_borrowed", borrow)
    place = workspace.home.captions / f"relevance-en-{snapshot.release.id}.npz"
    with np.load(place) as english:
        raised = dict(english) | {"caption-0": english["caption-0"] + 0.01}
    try:
        np.savez(place, **raised)
        other = Calibration(workspace).gauge(snapshot, "fr")
        assert other is not None
        assert (other.each[0].caption != measured.each[0].caption).any()
    finally:
        place.unlink()


def test_files_of_the_newest_releases_stay_however_many_languages_they_have(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    folder = workspace.home.captions
    Calibration(workspace).prepare(snapshot)
    for number, release in enumerate(f"r{n}-0000000{n}" for n in (5, 6, 7, 8)):
        for language in (*(f"a{n}" for n in range(20)), "zh-TW"):
            file = folder / f"relevance-{language}-{release}.npz"
            file.write_bytes(b"")
            os.utime(file, (number, number))  # older than what is measured now
    (folder / f"relevance-fr-as-en-{snapshot.release.id}.npz").unlink(missing_ok=True)

    Calibration(workspace).gauge(snapshot, "fr")

    left = {file.stem.split("-", 2)[-1][-11:] for file in folder.glob("relevance-*")}
    assert left == {"r6-00000006", "r7-00000007", "r8-00000008", snapshot.release.id[-11:]}
    assert len(list(folder.glob("relevance-*-r6-*"))) == 21


def test_a_language_without_captions_borrows_from_english(workspace: Workspace, snapshot: Snapshot) -> None:
    calibration = Calibration(workspace)
    english, french = (calibration.gauge(snapshot, language) for language in ("en", "fr"))

    assert english is not None
    assert french is not None
    assert french.language == english.language == "en"
    for lowered, measured in zip(french.each, english.each, strict=True):
        assert (lowered.caption <= measured.caption).all()
        assert lowered.caption[0] < measured.caption[0]
    assert calibration.gauge(snapshot, "tlh") is None


def test_vectors_of_captions_are_read_once_for_all_that_borrow_and_no_more_than_are_compared(
    workspace: Workspace, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = copy_of(workspace.home.root, tmp_path)
    for kept in (home / "captions").glob("relevance-*"):
        kept.unlink()
    looked: list[int] = []
    get = FeatureStore.get

    def counted(store: FeatureStore, fingerprint: str, kind: str, ids: Sequence[str], dim: int) -> Any:
        looked.append(len(ids))
        return get(store, fingerprint, kind, ids, dim)

    monkeypatch.setattr(relevance, "MOST_KNOWN", 40)
    with Workspace.open(load_settings(home=home)) as opened:
        calibration, own = Calibration(opened), Snapshot.load(opened)
        english = {pair.text for pair in opened.catalog.pairs(language="en", split=Split.TRAIN)}
        assert len(english) > 100
        calibration.gauge(own, "en")  # whatever has no vector yet gets one
        monkeypatch.setattr(FeatureStore, "get", counted)
        reads = []
        for language in ("fr", "es"):
            looked.clear()
            assert calibration.gauge(own, language) is not None
            reads.append(list(looked))
    assert max(reads[0]) <= relevance.MOST_KNOWN
    assert len(reads[1]) < len(reads[0])


def test_gauges_of_the_newest_releases_alone_stay_in_memory(
    workspace: Workspace, snapshot: Snapshot, tmp_path: Path
) -> None:
    with Workspace.open(load_settings(home=copy_of(workspace.home.root, tmp_path))) as opened:
        calibration, known = Calibration(opened), []
        for n in range(5):
            later = replace(snapshot, release=replace(snapshot.release, id=f"r{n}-0000000{n}"))
            for language in ("fr", "tlh", "en"):
                if found := calibration.gauge(later, language):  # borrowed, none, and its own
                    known.append(weakref.ref(found.each[0].known))
        gc.collect()

        assert [one() is not None for one in known] == [False] * 4 + [True] * 6
        assert len(calibration._known) == 3


class _Waiting(Calibration):
    """One that waits before it measures French."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.began, self.may_go_on = threading.Event(), threading.Event()

    def _kept(self, snapshot: Snapshot, language: str) -> Gauges | None:
        if language == "fr":
            self.began.set()
            assert self.may_go_on.wait(60)
        return super()._kept(snapshot, language)


def test_while_one_language_is_measured_queries_in_others_do_not_wait_and_its_own_not_for_long(
    workspace: Workspace, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relevance, "_PATIENCE", 0.1)
    calibration = _Waiting(workspace)
    with ThreadPoolExecutor() as pool:
        measuring = pool.submit(calibration.gauge, snapshot, "fr")
        assert calibration.began.wait(60)
        try:
            assert calibration.gauge(snapshot, "en") is not None
            assert calibration.gauge(snapshot, "fr") is None
            assert not measuring.done()
        finally:
            calibration.may_go_on.set()
        assert measuring.result() is calibration.gauge(snapshot, "fr") is not None


def test_captions_that_come_after_their_pictures_are_measured_by(
    workspace: Workspace, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "FEWEST", 5)
    with Workspace.open(load_settings(home=copy_of(workspace.home.root, tmp_path))) as opened:
        catalog, calibration, asked = opened.catalog, Calibration(opened), list[str]()
        etas = Etas(catalog, opened.features)
        assert calibration.gauge(snapshot, "tlh") is None
        monkeypatch.setattr(relevance, "LOOK_AGAIN_SECONDS", 3600.0)
        event.listen(catalog._engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
        assert calibration.gauge(snapshot, "tlh") is None
        assert asked == [], "one query after another looks for captions where there are none"
        monkeypatch.setattr(relevance, "LOOK_AGAIN_SECONDS", 0.0)
        assert etas.of(snapshot, "tlh").pairs == 0

        pairs = catalog.pairs(language="en")
        pictures = list(catalog.images({one.image_id for one in pairs}).values())
        captions = [(one.image_id, "tlh", f"{one.text}.") for one in pairs]
        catalog.record_chunk(NewChunk("abcdef123456", "captions", True, pictures, captions))

        found = calibration.gauge(snapshot, "tlh")
        assert found is not None
        assert found.language == "tlh"
        assert etas.of(snapshot, "tlh").pairs >= 5
