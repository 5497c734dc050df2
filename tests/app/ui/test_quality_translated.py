"""Claims about the Quality tab in other languages: nothing that can be seen or is read out stays English."""

from __future__ import annotations

import re

import pytest

from app.desk.opinions import AskedLanguage
from app.desk.verdicts import (
    AskedLanguages,
    Coverage,
    Measure,
    MovedCaption,
    QualityTable,
    SliceLine,
    SliceMoves,
    VersionColumn,
)
from app.ui import quality_plots, quality_words
from app.ui.wording import escaped
from app.ui.words import Words
from tests.app.ui.seen import LANGUAGES, WHEN, Draw, left

RELEASES = [f"r{n}-x" for n in range(1, 15)]
ASKED = AskedLanguages(30, tuple(AskedLanguage(tag, 5, 1, 0.5, tag == "de") for tag in ("de", "th", "und")))
COVERED = [
    Coverage("de", "x", 1, 2, 3, None, True, False),
    Coverage("th", "x", 1, 2, 3, 9, False, False),
    Coverage("en", "x", 1, 2, 3, 900, True, True),
]
CAPTION = "It went. Stopped. Done"  # reads like the engine
MOVED = MovedCaption("de/x", "own", CAPTION, "de", "a" * 64, 1, 34, "b" * 64)
SOME_MOVED = SliceMoves("de/x", "own", "r1-x", "r2-x", 12, 5, 7, (MOVED,), (MOVED,))


def _table(*, forgetting: float | None = 2.5, transfer: float | None = 1.5) -> QualityTable:
    """More versions and languages than are drawn, and a slice that begins among those that are."""
    last = len(RELEASES)
    columns = tuple(
        VersionColumn(f"v{n}", name, WHEN, "c-clip" if n > 3 else "", ("en",), n not in (4, 5), n == last)
        for n, name in enumerate(RELEASES, 1)
    )
    measures = (Measure(40.0, 9, 12), *(Measure(50.0 - n, 9, 12, -1.0, RELEASES[0]) for n in range(1, last)))
    tags = ("ar", "de", "es", "fr", "hi", "it", "ja", "ko", "zh")
    lines = tuple(SliceLine(tag, "x", measures) for tag in tags)
    begun = (*[None] * (last - 1), Measure(1.0, 9, 12))
    return QualityTable(
        "t2i_r10", "own", columns, (*lines, SliceLine("pl", "x", begun)), forgetting, transfer
    )


def _moves(say: Words) -> str:
    none = SliceMoves("de/x", "own", "r1-x", "r2-x", 12, 5, 5, (), ())
    views = (quality_words.moves_view(moves, "", say) for moves in (SOME_MOVED, none))
    return "\n".join([quality_words.moves_title(SOME_MOVED, say), *views])


def _around(say: Words) -> str:
    tables = (_table(), _table(transfer=None), _table(forgetting=None))
    menus = quality_words.menu([*quality_words.METRICS[-1:], *quality_words.VIEWS], say)
    constants = (quality_words.MEASURED_THEN, quality_words.NOT_MEASURED, quality_words.ASK_LOST)
    return "\n".join(
        [
            *(quality_words.summary_line(table, say) for table in tables),
            quality_words.advice_line(ASKED, say),
            *(label for label, _ in menus),
            *map(say.said, constants),
        ]
    )


PARTS: dict[str, Draw] = {
    "asked": lambda say: quality_plots.asked_table(ASKED, say),
    "nothing asked": lambda say: quality_plots.asked_table(AskedLanguages(30, ()), say),
    "coverage": lambda say: quality_plots.coverage_table(COVERED, say),
    "recall": lambda say: quality_plots.recall_table(_table(), say),
    "change": lambda say: quality_plots.change_table(_table(), say),
    "trend": lambda say: quality_plots.trend_plot(_table(), say) or "",
    "moves": _moves,
    "around": _around,
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("part", PARTS)
def test_nothing_of_the_quality_tab_stays_english(part: str, language: str) -> None:
    found = left(language, PARTS[part], "c-clip", CAPTION, *RELEASES)
    assert {text for text in found if not re.fullmatch(r"[a-z]{2}/x|r\d+", text)} == set()


def test_a_caption_that_reads_like_the_engine_stays_as_it_was_written() -> None:
    assert quality_words.moves_view(SOME_MOVED, "", Words("de")).count(f"“{escaped(CAPTION)}”") == 2
