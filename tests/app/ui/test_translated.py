"""Claims about real reports in other languages: of the shadow, of held pairs, of canaries and of the gate."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from app.desk.errors import AppError, UsageProblem
from app.desk.hits import SearchRequest
from app.desk.jobs import Forecast
from app.desk.opinions import ShadowReport, Votes
from app.feedback import shadow
from app.home.workspace import Workspace
from app.learning import going_live, release_words, standing
from app.learning.held_pairs import decide
from app.learning.inventory import held_rows, put_aside
from app.query.filters import given
from app.query.parts import query_terms
from app.ui import (
    compare_words,
    data_words,
    feedback_words,
    held_words,
    report_words,
    travelling,
    update_words,
)
from app.ui.report_words import release_word_line
from app.ui.shadow_plot import shadow_view
from app.ui.wording import escaped
from app.ui.words import Words
from app.words import chunk as chunk_words
from app.words import gate as gate_words
from app.words.forecast import forecast_sentences
from app.words.shadow import HEADERS, shadow_sentences
from ingest.errors import BadOption, IngestError
from ingest.images import decode
from ingest.records import JobRecord, Pin
from ingest.release_words import ReleaseWord
from ingest.sentence import phrase
from ingest.shadows import ShadowCount
from tests.app.gate_reports import HOSTILE, gate_report
from tests.app.held_upload import put_in
from tests.app.server.served import make_home

GERMAN = Words("de")
NOTE = "It went. Stopped. Done"  # reads like the engine
SAME = {"live", "train", "test", "memory", "perennial", "shadow", "stop", "held"}
"""English words that a German sentence may have: names of commands, and words that German has, too."""


def _left(english: str, said: str, *values: str) -> set[str]:
    """Returns the English words that a translation still has; the given values may stay."""
    for value in values:
        english, said = english.replace(value, ""), said.replace(value, "")
    found = [set(re.findall(r"\b[a-z]{4,}\b", text.replace("\\", ""))) for text in (english, said)]
    return (found[0] & found[1]) - SAME


def _still_english(sentences: Iterable[str], *values: str) -> dict[str, set[str]]:
    """The sentences that are not all German, with the words left; an unknown one has changed in English alone."""
    found = {text: GERMAN.said(text) for text in sentences}
    left = {text: _left(text, said, *values) for text, said in found.items()}
    return {text: left[text] for text, said in found.items() if said == text or left[text]}


FORECAST = Forecast(
    "evergreen", 900, 3, {"features": 4.0, "train": 90.0, "measure": 7.0}, 2**30, 2**20,
    phrase("Measured in {count} updates by {name} in this home.", count=3, name="evergreen"),
)  # fmt: skip
WORDS = [
    *chunk_words.STANDINGS.values(),
    *chunk_words.OUTCOMES.values(),
    *gate_words.VERDICTS.values(),
    *gate_words.ROLES.values(),
    *gate_words.VIEWS.values(),
    *update_words.STAGES.values(),
    *forecast_sentences(FORECAST),
    compare_words.CHOOSE,
    compare_words.SAME,
    compare_words.BLIND,
    compare_words.NO_ROUND,
    compare_words.NO_ANSWER,
    compare_words.NO_QUERIES,
    *(compare_words.voted_line(choice, "r1", "r2") for choice in compare_words.CHOICES),
]


@pytest.mark.parametrize("language", ["de", "ar"])
def test_what_screens_and_engine_say_leaves_no_english_word(language: str) -> None:
    say = Words(language)
    refused = _refusals(
        lambda: query_terms("x" * 501, longest=500),
        lambda: query_terms('a "boat', longest=500),
        lambda: given(SearchRequest(since="2026-02-01", until="2026-01-01"), None),  # type: ignore[arg-type]
        lambda: decode(b"no picture"),
    )
    for english in [*WORDS, *refused]:
        assert _left(english, say.said(english), "evergreen") == set()
    for votes in (
        Votes("r1", "r2", 3, 5, 1, 2, 62.5, 30.0, 86.0),
        Votes("r1", "r2", 0, 0, 0, 0, None, None, None),
    ):
        assert _left(compare_words.votes_line(votes), compare_words.votes_line(votes, say)) == set()


@pytest.mark.parametrize("verdict", ["promote", "review", "reject"])
@pytest.mark.parametrize("language", ["de", "ar"])
def test_what_the_gate_says_of_an_update_leaves_no_english_word(verdict: str, language: str) -> None:
    report = gate_report(verdict, unchanged=3)
    say = Words(language)
    reasons = [reason for rule in report.rules for reason in rule.reasons]
    assert len(reasons) > 5
    for english in [*reasons, *report.next_steps]:
        assert _left(english, say.said(english)) <= {"evergreen", "merge", "clip", "split", "icons", "mixed"}


def _shadow_reports(workspace: Workspace) -> list[ShadowReport]:
    release, version = workspace.releases.release("r2").id, workspace.releases.release("r1").version
    reports = [shadow.report(workspace, "r2")]
    shadow.start(workspace, "r2", share=0.2, by="ada")
    reports.append(shadow.report(workspace, "r2"))
    record = workspace.catalog.shadows.active()
    assert record is not None
    for counts in (
        [ShadowCount(release, version, "th", refused=2)],
        [ShadowCount(release, version, "th", queries=1, overlap=0.5, same_first=1)],
        [ShadowCount(release, version, "und", queries=40, overlap=20.0, same_first=10)],
    ):
        workspace.catalog.shadows.add(counts, shadow=record.id, dropped=3)
        reports.append(shadow.report(workspace, "r2"))
    shadow.stop(workspace, "r2", by="bob")
    reports.append(shadow.report(workspace, "r2"))
    shadow.start(workspace, "r2", by="ada")
    shadow.stop(workspace, "r2", by="bob", why="it went live")
    return [*reports, shadow.report(workspace, "r2")]


def test_what_a_shadow_has_shown_is_said_in_german(tmp_path: Path) -> None:
    with Workspace.open(make_home(tmp_path)) as workspace:
        ids = [record.id for record in workspace.releases.releases()]
        reports = _shadow_reports(workspace)
        shadow.start(workspace, "r2", by="ada")
        refused = []
        for asked in ("r1", "r3"):
            with pytest.raises(UsageProblem) as error:
                shadow.start(workspace, asked, by="ada")
            refused.append(str(error.value))
    said = [sentence for told in reports for sentence in shadow_sentences(told)]
    assert len(set(said)) > 8
    assert _still_english([*said, *refused, *HEADERS, "In the shadow"], *ids) == {}
    for told in reports:
        english, german = (re.sub(r"<[^>]+>", " ", shadow_view(told, say)) for say in (Words(), GERMAN))
        assert _left(english, german, *ids) == set()


def test_what_is_said_of_held_pairs_is_said_in_german(tmp_path: Path) -> None:
    said = []
    with Workspace.open(make_home(tmp_path)) as workspace:
        chunk, waiting = put_in(workspace, tmp_path, seed=400, silent=("3333", "4444", "5555", "6666"))
        one, two, three, four = (pair.id for pair in waiting)
        rejected = put_aside(workspace, chunk).of("rejected")[0]
        _, rows = held_rows(workspace, limit=5)
        for accept in ((), (one,), (999,), (rejected.id,)):
            with pytest.raises((UsageProblem, BadOption)) as error:
                decide(workspace, chunk, by="ada", accept=accept)
            said.append(str(error.value))
        said.append(decide(workspace, chunk, by="ada", accept=[one], language="de").sentence)
        said.append(
            decide(workspace, chunk, by="ada", accept=[two], leave_out=[three, four], language="de").sentence
        )
        with pytest.raises(UsageProblem) as error:
            decide(workspace, chunk, by="ada", accept=[one])
        said.append(str(error.value))
        pairs = put_aside(workspace, chunk).pairs
    cells = [row[4:] for row in data_words.held_rows(rows, GERMAN)]
    assert all(
        text != english
        for row, seen in zip(rows, cells, strict=True)
        for english, text in zip((row.code, row.sentence), seen, strict=True)
    )
    assert (
        _still_english(
            [*said, *(pair.sentence for pair in pairs), *held_words.WHICH.values()], chunk, "language"
        )
        == {}
    )
    for which in held_words.WHICH:
        for shown in ((0, 0, 0), (14, 12, 2)):
            english, german = (held_words.line(which, *shown, say) for say in (Words(), GERMAN))
            assert _left(english, german) == set()
    english, german = held_words.cards(pairs, "http://here"), held_words.cards(pairs, "http://here", GERMAN)
    assert (
        _left(english, german, "http://here/v1/aside", "thumbnail", "captions", "line", "language") == set()
    )
    assert GERMAN.said(held_words.HELP) != held_words.HELP


def test_a_caption_or_note_that_reads_like_the_engine_stays_as_it_was_written(tmp_path: Path) -> None:
    text = NOTE
    with Workspace.open(make_home(tmp_path)) as workspace:
        _, waiting = put_in(workspace, tmp_path, seed=400)
    decided = replace(waiting[0], text=text, decided="left_out", decided_by="ada", decided_why=text)
    assert held_words.cards([decided], "http://here", GERMAN).count(escaped(text)) == 3
    moved = report_words.moved_view(gate_report("reject", texts=[text]), "http://here", GERMAN)
    assert f"“{escaped(text)}”" in moved


def test_canaries_and_what_people_said_are_said_in_german() -> None:
    def lines(say: Words) -> list[str]:
        found = [
            say.said(one) for one in (feedback_words.NO_PAIRS, feedback_words.NOTHING, feedback_words.CHOOSE)
        ]
        for query in ("rotes Boot", HOSTILE):
            pin = Pin(query, "th", "a" * 64)
            found += [feedback_words.pinned_line(pin, say), feedback_words.removed_canary_line(pin, say)]
            found.append(feedback_words.chosen_canary_line(query, "th", say))
        return [*found, feedback_words.said_line(900, say), feedback_words.taken_line("j7", 3, say)]

    for english, german in zip(lines(Words()), lines(GERMAN), strict=True):
        assert _left(english, german, escaped(HOSTILE), "rotes") == set()
    assert GERMAN.said(feedback_words.CHOOSE_CANARY) != feedback_words.CHOOSE_CANARY


@pytest.mark.parametrize("verdict", ["promote", "review", "reject"])
def test_the_tables_and_cards_of_a_gate_report_are_in_german(verdict: str) -> None:
    report = gate_report(verdict, unchanged=2)
    slices = report_words.slices_view(report, GERMAN)
    assert "✓ gelernt, sichtbar" in slices.replace("\\", "")
    assert _left(report_words.slices_view(report), slices, "icons") <= {"points"}
    assert "Platz **1 → 34**" in report_words.moved_view(report, "http://here", GERMAN)


@pytest.mark.parametrize("said", ["kept", "rejected", "pinned", "unpinned"])
def test_a_word_on_a_release_is_said_in_german_and_its_note_as_it_was_written(said: str) -> None:
    word = ReleaseWord(1, "2026-11-21T10:00:00", "r2", said, "ada", "")
    english = f"{said.capitalize()} by ada, 2026-11-21 10:00"
    assert release_word_line(word) == escaped(f"{english}.")
    assert _left(english, release_word_line(word, GERMAN)) == set()
    for note in (NOTE, HOSTILE):
        noted = replace(word, why=note)
        assert release_word_line(noted) == escaped(f"{english}: {note}.")
        assert _left(english, release_word_line(noted, GERMAN).replace(escaped(note), "")) == set()
        assert release_word_line(noted, GERMAN).endswith(escaped(f"{note}."))


def _refusals(*asked: Callable[[], object]) -> list[str]:
    refused = []
    for ask in asked:
        with pytest.raises((AppError, IngestError)) as error:
            ask()
        refused.append(str(error.value))
    return refused


def test_why_a_release_cannot_be_judged_or_pinned_is_said_in_german(tmp_path: Path) -> None:
    with Workspace.open(make_home(tmp_path)) as workspace:
        live, other = (workspace.releases.release(name).id for name in ("r1", "r2"))

        def pin() -> ReleaseWord:
            return release_words.pin(workspace, why="", by="ada")

        def unpin() -> ReleaseWord:
            return release_words.unpin(workspace, why="", by="ada")

        said = _refusals(
            unpin,
            lambda: going_live.promote(workspace, live, why="", by="ada"),
            lambda: going_live.rollback(workspace, live, why="", by="ada"),
            lambda: going_live.rollback(workspace, None, why="", by="ada"),
            *(
                partial(release_words.judge_release, workspace, one, "rejected", why=why, by="ada")
                for one, why in ((live, "slow"), (other, ""))
            ),
        )
        for why in ("", "slow"):
            release_words.pin(workspace, why=why, by="ada")
            said += _refusals(pin, lambda: going_live.promote(workspace, other, why="", by="ada", force=True))
            unpin()
    assert _still_english(said, live, other, "unpin", "slow") == {}


def test_a_persons_word_on_a_chunk_is_answered_in_german(tmp_path: Path) -> None:
    with Workspace.open(make_home(tmp_path)) as workspace:
        chunk, _ = put_in(workspace, tmp_path, seed=400)
        told = {"accept": "I looked at its captions", "withdraw": "its captions are wrong"}
        examples = [f'perennial {do} {chunk} --why "{why}"' for do, why in told.items()]
        said = _refusals(
            lambda: standing.accept(workspace, chunk, why="", by="ada"),
            lambda: standing.withdraw(workspace, chunk, why="", by="ada"),
        )
        said.append(standing.withdraw(workspace, chunk, why="typos", by="ada").sentence)
        said += _refusals(
            lambda: standing.accept(workspace, chunk, why="fine", by="ada"),
            lambda: standing.withdraw(workspace, chunk, why="typos", by="ada"),
        )
    assert _still_english(said, *examples, *map(escaped, examples), chunk, "typos") == {}


def test_what_became_of_an_update_and_of_an_import_is_said_in_german() -> None:
    result = {"release": "r3", "seconds": 12.0, "images_embedded": 4, "mode": "delta"}
    for one in (result, result | {"commit": 3}, {"seconds": 3}):
        english, german = (update_words.outcome_line(one, say) for say in (Words(), GERMAN))
        assert _left(english, german, "delta") == set()
    for is_verified in (True, False):
        came = {"origin": "r1", "release": "r5", "images_embedded": 4, "verified": is_verified}
        job = JobRecord("j1", "import", "succeeded", {}, {}, came, None, None, "", None, None)
        assert _left(travelling.came_line(job), travelling.came_line(job, GERMAN)) == set()
