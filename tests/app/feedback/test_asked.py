"""Claims about the languages that people ask in: what is counted as what, and what is said of it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.desk.hits import AUTO, SearchRequest
from app.desk.opinions import AskedLanguage
from app.desk.verdicts import AskedLanguages
from app.feedback.asked import LanguageCounter, asked_languages
from app.home.workspace import Workspace
from app.query.finder import Finder
from app.query.grammar import parse
from app.query.question import Question
from app.query.snapshot import Snapshot
from ingest.errors import CatalogError
from tests.app.server.served import make_home


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(make_home(tmp_path_factory.mktemp("home"))) as workspace:
        yield workspace


def _ask(workspace: Workspace, counter: LanguageCounter, text: str, language: str = AUTO) -> None:
    snapshot = Snapshot.load(workspace)
    question = Question(parse(text), asked=SearchRequest(language=language), k=2)
    counter.note(question, Finder(workspace).find(snapshot, question), snapshot)


def test_queries_are_counted_by_the_language_they_look_like_and_told_ones_as_told(
    workspace: Workspace,
) -> None:
    counter = LanguageCounter(workspace.catalog)
    for text in ("two red boats", "a house at night", "เรือสีแดงสองลำ", "תמונה של סירה אדומה", "two red boats"):
        _ask(workspace, counter, text)
    _ask(workspace, counter, "barca", language="it")
    counter.flush()
    found = {one.language: one for one in asked_languages(workspace.catalog, ["en"])}
    assert {tag: one.queries for tag, one in found.items()} == {"en": 3, "th": 1, "he": 1, "it": 1}
    assert found["en"].share == pytest.approx(0.5)
    assert [tag for tag, one in found.items() if one.is_learned] == ["en"]
    counter.flush()
    assert sum(one.queries for one in asked_languages(workspace.catalog, [])) == 6


def test_later_pages_and_queries_without_words_are_not_counted_twice_or_at_all(
    workspace: Workspace,
) -> None:
    before = sum(one.queries for one in asked_languages(workspace.catalog, []))
    counter = LanguageCounter(workspace.catalog)
    snapshot = Snapshot.load(workspace)
    question = Question(parse("a red house"), k=2)
    first = Finder(workspace).find(snapshot, question)
    again = replace(question, asked=SearchRequest(cursor=first.next))
    assert first.next
    for one in (question, again):
        counter.note(one, Finder(workspace).find(snapshot, one), snapshot)
    _ask(workspace, counter, f"#{workspace.catalog.gallery_ids()[0]}")
    counter.flush()
    assert sum(one.queries for one in asked_languages(workspace.catalog, [])) == before + 1


def test_what_cannot_be_written_waits_and_is_written_later(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sum(one.queries for one in asked_languages(workspace.catalog, []))
    counter = LanguageCounter(workspace.catalog)
    _ask(workspace, counter, "a red house")

    def full(*_: object) -> None:
        raise CatalogError("locked")

    with monkeypatch.context() as patched:
        patched.setattr(workspace.catalog.asked, "add", full)
        counter.flush()
    counter.flush()
    assert sum(one.queries for one in asked_languages(workspace.catalog, [])) == before + 1


def test_a_rush_is_counted_in_small_steps_that_leave_the_processor_to_searches(workspace: Workspace) -> None:
    before = sum(one.queries for one in asked_languages(workspace.catalog, []))
    counter = LanguageCounter(workspace.catalog)
    for n in range(200):
        _ask(workspace, counter, f"a red house and {n} boats")
    began, worked = time.perf_counter(), time.thread_time()
    counter.flush(rests=4.0)
    assert time.thread_time() - worked < 0.5 * (time.perf_counter() - began)
    assert sum(one.queries for one in asked_languages(workspace.catalog, [])) == before + 200


def test_a_server_that_ends_waits_for_no_rest(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sum(one.queries for one in asked_languages(workspace.catalog, []))
    monkeypatch.setattr("app.feedback.asked._EVERY_SECONDS", 0.0)
    monkeypatch.setattr("app.feedback.asked._RESTS", 1e6)
    counter = LanguageCounter(workspace.catalog)
    for n in range(20):
        _ask(workspace, counter, f"a red house and {n} boats")
    counter.start()
    counter.stop()
    assert sum(one.queries for one in asked_languages(workspace.catalog, [])) == before + 20


@pytest.mark.sqlite
def test_nothing_of_what_was_asked_is_in_the_catalog(workspace: Workspace) -> None:
    counter = LanguageCounter(workspace.catalog)
    _ask(workspace, counter, "a most unusual zeppelin")
    counter.flush()
    connection = sqlite3.connect(workspace.catalog.place)
    dump = "\n".join(connection.iterdump())
    connection.close()
    assert "zeppelin" not in dump


def test_advice_names_what_is_asked_for_and_not_learned() -> None:
    asked = (
        AskedLanguage("en", 60, 0, 0.6, True),
        AskedLanguage("th", 30, 20, 0.3, False),
        AskedLanguage("und", 8, 0, 0.08, False),
        AskedLanguage("nl", 2, 0, 0.02, False),
    )
    (line,) = AskedLanguages(30, asked).advised({"th": "Thai"}.__getitem__)
    assert line.startswith("Thai is asked for and not learned: 30 queries")
    assert "30 % of all" in line
    assert line.endswith("Upload Thai pairs.")
