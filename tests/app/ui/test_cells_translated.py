"""Claims about words of ours in tables and menus in other languages: of releases, chunks, feedback and strategies."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.desk.releases import Change, Difference, Node, Period, SliceChange
from app.home.commits import REASONS
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning.difference import difference_between
from app.local.at_home import AtHome
from app.ui import data_words, feedback_words, update_words, wording
from app.ui.two_releases import difference_view
from app.ui.words import Words
from app.words import strategies as strategy_words
from index.generation import MODES
from ingest.feedback import CHOICES, THUMBS, FeedbackRecord
from ingest.records import ChunkRecord, JobRecord
from ingest.standing import STANDINGS
from model_updates.gate.report import Verdict
from model_updates.strategy_pages import every_strategy
from tests.app.server.served import make_home
from tests.app.ui.seen import LANGUAGES, WHEN, Draw, left, table


def _chunk(standing: str, **facts: Any) -> ChunkRecord:
    """A chunk whose name and domain are words of ours, too."""
    usual = {"name": "held", "languages": {"de": 5}, "domains": {"live": 5}, "report": {}}
    counts = dict.fromkeys(("pairs", "images", "new_pairs", "new_images"), 5)
    return ChunkRecord(
        id="c1", created=WHEN, in_gallery=True, standing=standing, measures=True, **counts | usual | facts
    )


def _judged(verdict: str) -> JobRecord:
    return JobRecord(
        "j1", "update", "review", {"chunk": "c1"}, {}, {"verdict": verdict}, None, None, WHEN, None, WHEN
    )


CHUNKS = [_chunk(standing) for standing in STANDINGS]
UNNAMED = [_chunk(standing, name="c2", languages={}) for standing in STANDINGS]
FLAT = "The picture is one flat colour: it has no content to search for."
CODES = (("held", "language_missing"), ("rejected", "image_flat"), ("rejected", "image_missing"))
REPORT = {"rows": [{"where": "x", "outcome": what, "code": code, "sentence": FLAT} for what, code in CODES]}
PERIODS = tuple(Period(n, why, "Update", "Rejected", WHEN, None) for n, why in enumerate(REASONS))
LINE = Node("r1", None, "v1", None, None, (), WHEN, True, True, PERIODS, 0, (), (), False)
SAID = [FeedbackRecord(1, WHEN, "ada", "held", "de", "r1", "r2", "", word) for word in (*THUMBS, *CHOICES)]
CELLS: dict[str, tuple[Draw, tuple[str, ...]]] = {
    "chunks": (
        table(data_words.CHUNK_HEADERS, lambda say: data_words.chunk_rows(CHUNKS, ["c1"], say)),
        ("c1", "held", "live 5", "de 5"),
    ),
    "chunk menu": (
        lambda say: "\n".join(update_words.chunk_label(chunk, say) for chunk in UNNAMED),
        ("c1", "c2"),
    ),
    "past menu": (
        lambda say: "\n".join(update_words.past_label(_judged(verdict), say) for verdict in Verdict),
        ("j1", "c1"),
    ),
    "report": (table(update_words.REPORT_HEADERS, partial(update_words.report_rows, REPORT)), ()),
    "history": (
        table(wording.HISTORY_HEADERS, partial(wording.history_rows, [LINE])),
        ("r1", "Rejected", "Update"),
    ),
    "feedback": (table(feedback_words.HEADERS, partial(feedback_words.rows, SAID)), ("ada", "held", "de")),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("part", CELLS)
def test_words_in_cells_and_menus_are_in_the_browsers_language(part: str, language: str) -> None:
    draw, names = CELLS[part]
    assert left(language, draw, *names) == set()


def test_the_name_and_domains_of_a_chunk_stay_as_they_are() -> None:
    row = data_words.chunk_rows([_chunk("held")], [], Words("de"))[0]
    assert (row[1], row[2], row[7]) == ("held", "zurückgehalten, misst", "live 5")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_of_releases_is_in_the_browsers_language(tmp_path: Path, language: str) -> None:
    with AtHome(make_home(tmp_path), by="tests") as desk:
        records = desk.releases()
    ids = [record.id for record in records]
    draw = table(wording.RELEASE_HEADERS, lambda say: wording.release_rows(records, ids[0], say))
    assert left(language, draw, *ids, "language-tables", "en", "de") == set()
    assert {one.live for one in records} == {True, False}

    def menu(say: Words) -> str:
        return "\n".join(label for label, _ in wording.release_choices(records, say))

    assert left(language, menu, *ids, "language-tables") == set()
    assert {mode for mode in MODES if Words(language).said(mode) == mode} == set()


def _differences(settings: Settings) -> list[Difference]:
    with Workspace.open(settings) as workspace:
        found = [difference_between(workspace, a, b) for a, b in (("r1", "r2"), ("r2", "r3"))]
    many, one = Change(("de", "fr"), ("it", "pl")), Change(("de",), ("it",))
    views = tuple(SliceChange("de/x", view, 1.0, 2.0) for view in ("own", "mixed", "memory"))
    for changed, domains in ((many, ("", "x", "y")), (one, ("x",)), (one, ("",))):
        facts = (changed, changed, ("de",), ("en", "fr"), domains, (3, 4, 2), ("base", "teir"), views)
        found.append(Difference("r1", "r2", False, *facts))
    return found


@pytest.fixture(scope="module")
def differences(tmp_path_factory: pytest.TempPathFactory) -> list[Difference]:
    return _differences(make_home(tmp_path_factory.mktemp("differing")))


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_two_releases_differ_in_is_told_in_the_browsers_language(
    differences: list[Difference], language: str
) -> None:
    for found in differences:
        texts = left(language, partial(difference_view, found), found.a, found.b)
        assert {text for text in texts if not re.fullmatch(r"[a-z]{2}(/\w+)?", text)} == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_nearly_every_strategy_says_what_it_is_in_the_browsers_language(
    language: str, record_property: Callable[[str, object], None]
) -> None:
    # A new strategy is told in English until somebody translates it; the count stands in the report of the run.
    say = Words(language)
    told = {text for one in every_strategy().values() for part in strategy_words.said(one) for text in part}
    told |= {one.summary for one in every_strategy().values()}
    told |= {label for label, _ in strategy_words.menu(every_strategy(), recommended="evergreen")}
    assert len(told) > 100
    missing = [text for text in told if say.said(text) == text]
    record_property(f"texts of strategies that are in English in {language}", len(missing))
    assert len(missing) < len(told) / 10, missing
