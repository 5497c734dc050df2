from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from app.bench.report import write_report
from app.bench.results import write_cell
from app.bench.sequence import BenchSequence, StrategyRun
from app.words import messages
from tests.app.bench.cells import cell_for, slice_run, step

CHROMIUM = Path("/usr/bin/chromium")
EVIL = "<script>alert('&')</script>"


@pytest.fixture
def sequence() -> BenchSequence:
    return BenchSequence.model_validate(
        {
            "name": "made-up",
            "about": "Two *languages* one after another.",
            "seeds": 2,
            "steps": [{"name": "one"}, {"name": "two"}],
            "strategies": [{"name": "finetune"}, {"name": "evergreen", "options": {"pool": EVIL}}],
        }
    )


def _write(
    folder: Path, sequence: BenchSequence, compared: StrategyRun, seed: int, right: int, other: str = ""
) -> None:
    bits = [1] * right + [0] * (8 - right)
    learned = slice_run([90, right * 12.5], language=EVIL, learned=[1] * 8, last=bits)
    slices = [learned, slice_run([50], language="fr", since=2, last=[1, 0] * 4, digest=other)]
    write_cell(folder, cell_for(sequence, compared, seed, slices))


def _write_all(folder: Path, sequence: BenchSequence) -> None:
    for compared, right in zip(sequence.strategies, (2, 8), strict=True):
        for seed in sequence.seeds:
            _write(folder, sequence, compared, seed, right)


class _Tags(HTMLParser):
    """Counts what a browser would see."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_stands_alone_and_escapes_what_is_said_in_labels(
    tmp_path: Path, sequence: BenchSequence
) -> None:
    _write_all(tmp_path, sequence)
    written = write_report(tmp_path, sequence, tmp_path)
    seen = _Tags(written.html.read_text(encoding="utf-8"))
    assert "script" not in seen.tags
    assert all(load.startswith("#") for load in seen.loads)
    assert f"evergreen,pool={EVIL}" in seen.text
    assert seen.tags.count("svg") > 4


def test_the_document_has_figures_differences_and_their_words(
    tmp_path: Path, sequence: BenchSequence
) -> None:
    _write_all(tmp_path, sequence)
    written = write_report(tmp_path, sequence, tmp_path)
    document = json.loads((tmp_path / "made-up.json").read_text(encoding="utf-8"))
    assert document == json.loads(json.dumps(written.document))
    best, other = document["strategies"]
    assert best["label"].startswith("evergreen")
    assert other["figures"]["trained/told/r1"] == {
        "mean": 37.5,
        "half_range": 0.0,
        "by_seed": {"0": 37.5, "1": 37.5},
    }
    first = next(found for found in document["differences"] if found["measure"] == "trained/told/bwt")
    assert (first["strategy"], first["mean"], first["words"]) == ("finetune", -75.0, "lower")
    assert document["not_run"] == document["left_out"] == []


def test_markdown_and_terminal_show_the_same_figures(
    tmp_path: Path, sequence: BenchSequence, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_all(tmp_path, sequence)
    written = write_report(tmp_path, sequence, tmp_path)
    text = (tmp_path / "made-up.md").read_text(encoding="utf-8")
    assert "| finetune | 37.5 | 37.5 |" in text
    assert "perennial bench made-up.toml" in text
    messages.console().print(written.table)
    assert "37.5" in capsys.readouterr().out


def test_cells_of_another_version_are_left_out_and_missing_ones_named(
    tmp_path: Path, sequence: BenchSequence
) -> None:
    changed, (finetune, evergreen) = sequence.model_copy(update={"epochs": 7}), sequence.strategies
    _write(tmp_path, changed, finetune, 1, 2)
    for seed in sequence.seeds:
        _write(tmp_path, sequence, evergreen, seed, 8)
    written = write_report(tmp_path, sequence, tmp_path)
    assert written.document["left_out"] == ["finetune (seed 1)"]
    assert written.document["not_run"] == ["finetune (seeds 0, 1)"]
    assert [one["label"] for one in written.document["strategies"]] == [evergreen.label]
    assert "Left out, since they are of another version" in written.html.read_text(encoding="utf-8")


def test_a_report_without_a_cell_says_so(tmp_path: Path, sequence: BenchSequence) -> None:
    written = write_report(tmp_path, sequence, tmp_path)
    assert "No cell has been run." in written.html.read_text(encoding="utf-8")
    assert written.document["strategies"] == []


def test_one_seed_draws_things_alone_and_says_so(tmp_path: Path, sequence: BenchSequence) -> None:
    single = sequence.model_copy(update={"seeds": (0,)})
    _write_all(tmp_path, single)
    write_report(tmp_path, single, tmp_path)
    assert "things alone, since there is one seed" in (tmp_path / "made-up.md").read_text(encoding="utf-8")


def test_drift_is_drawn_where_there_is_any(tmp_path: Path, sequence: BenchSequence) -> None:
    _write_all(tmp_path, sequence)
    written = write_report(tmp_path, sequence, tmp_path)
    assert "<h2>Drift</h2>" not in written.html.read_text(encoding="utf-8")
    turned = cell_for(sequence, sequence.strategies[0], 0, [slice_run([50, 40], last=[1, 0])])
    drifted = (step("one"), step("two", drift={"ram_texts": 12.0}))
    write_cell(tmp_path, replace(turned, steps=drifted))
    written = write_report(tmp_path, sequence, tmp_path)
    assert "RAM texts" in written.html.read_text(encoding="utf-8")


def test_a_strategy_that_answered_other_captions_is_named_and_not_compared(
    tmp_path: Path, sequence: BenchSequence
) -> None:
    _write_all(tmp_path, sequence)
    for seed in sequence.seeds:
        _write(tmp_path, sequence, sequence.strategies[0], seed, 2, "of another home")
    document = write_report(tmp_path, sequence, tmp_path).document
    assert document["differences"] == []
    (sentence,) = document["not_compared"]
    assert "were not asked the same captions (1 of 2 and 2 slices agree)" in sentence
    assert sentence in (tmp_path / "made-up.md").read_text(encoding="utf-8")


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing; install Debian's chromium")
def test_nothing_hangs_over_the_edge_of_a_telephone(tmp_path: Path, sequence: BenchSequence) -> None:
    _write_all(tmp_path, sequence)
    written = write_report(tmp_path, sequence, tmp_path)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        for width in (390, 1440):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.goto(written.html.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == width
            outside = "[...document.querySelectorAll('figure svg')].some(e => e.clientWidth > e.parentNode.clientWidth)"
            assert not page.evaluate(outside)
        browser.close()
