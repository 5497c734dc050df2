"""Claims about the interface's languages."""

from __future__ import annotations

import asyncio
import re
import string
from typing import Any

import gradio as gr
import pytest

from app.home.workspace import Workspace
from app.server.serving import Serving
from app.ui import curves, drift_plot, forest, quality_plots, system_words
from app.ui.access import Access
from app.ui.pages import admin_page, search_page
from app.ui.tables import filled
from app.ui.words import BASE, HEADERS, LABELS, TABLES, Words, label, spoken
from app.words import difference as difference_words
from tests.app.server.served import make_home


def _places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", sorted(TABLES))
def test_a_language_says_everything_and_puts_the_same_values_in(language: str) -> None:
    assert TABLES[language].keys() == TABLES[BASE].keys()
    for key, text in TABLES[language].items():
        assert _places(text) == _places(TABLES[BASE][key]), key
        # A link that leads elsewhere in one language would be found by nobody who reads another.
        assert re.findall(r"\]\((.*?)\)", text) == re.findall(r"\]\((.*?)\)", TABLES[BASE][key]), key


def test_there_are_five_languages_beside_english_one_of_them_from_right_to_left() -> None:
    assert len(TABLES) > 5
    assert {"de", "fr", "es", "zh", "ar"} <= TABLES.keys()


@pytest.mark.parametrize("language", sorted(set(TABLES) - {BASE}))
def test_a_language_translates_the_same_labels_as_the_others(language: str) -> None:
    assert LABELS[language].keys() == LABELS["de"].keys()
    assert all(text.strip() for text in LABELS[language].values())


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("en-US,en;q=0.9", "en"),
        ("xx", "en"),
        ("xx,en;q=0.5", "en"),
        ("en;q=0", "en"),
        ("en;q=nonsense", "en"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("en;q=0.3, fr-CH;q=0.7", "fr"),
        ("zh-TW,zh;q=0.9", "zh"),
    ],
)
def test_a_browser_is_answered_in_the_first_of_its_languages_that_is_known(
    accepted: str, language: str
) -> None:
    assert spoken(accepted) == language


def test_words_have_their_values_and_unknown_keys_are_refused() -> None:
    assert Words()("pictures", count=3) == "3 pictures"
    with pytest.raises(KeyError):
        label("no such words")


DRAWN = {
    *(forest.AXIS, curves.AXIS, *curves.HEADERS, *drift_plot.HEADERS, *dict(drift_plot.ROWS)),
    *(quality_plots.SLICE, *filter(None, quality_plots.ASKED_HEADERS), *quality_plots.COVERAGE_HEADERS),
    *(*system_words.FOUND_HEADERS, *system_words.SETTING_HEADERS, *system_words.ARGUMENTS),
    *difference_words.SLICE_HEADERS,
}
"""What heads tables and axes that are drawn, which ask for it themselves."""


async def _pages(serving: Serving) -> tuple[gr.Blocks, gr.Blocks]:
    return search_page(serving), admin_page(serving, Access(None))


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Everything that stands on the pages."""
    with Workspace.open(make_home(tmp_path_factory.mktemp("home"))) as workspace:
        # In a loop, as the server builds them: outside of one Gradio makes loops that it never closes.
        pages = asyncio.run(_pages(Serving(workspace)))
    return [part for page in pages for part in page.blocks.values()]


@pytest.mark.parametrize("language", sorted(set(TABLES) - {BASE}))
def test_a_language_has_the_headers_of_every_table_each_another(language: str, parts: list[Any]) -> None:
    tables = [part.headers for part in parts if isinstance(part, gr.Dataframe)]
    assert len(tables) > 10
    # What "R@10 A" stands for is the same everywhere.
    told = [[one for one in headers if not one.startswith("R@")] for headers in tables]
    assert HEADERS[language].keys() == {one for headers in told for one in headers} | DRAWN
    for headers in told:
        said = filled(headers, [], Words(language))["headers"]
        assert all(one.strip() for one in said)
        assert len(set(said)) == len(headers)


def test_most_of_what_stands_on_the_pages_is_translated(parts: list[Any]) -> None:
    shown = {str(part.label) for part in parts if isinstance(part, (gr.Tab, gr.Accordion, gr.Dataframe))}
    shown |= {str(part.value) for part in parts if isinstance(part, gr.Button)}
    left = {text for text in shown if text.strip() and not text.startswith("__i18n__")}
    assert len(shown) > 40
    assert len(left) < 0.2 * len(shown), left
