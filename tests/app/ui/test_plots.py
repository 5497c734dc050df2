"""Claims about plots: everything that decides is on it, in words too, and nothing from outside is markup."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from app.desk.releases import Node, Period
from app.desk.verdicts import ReleaseDrift
from app.ui.curves import curves_view
from app.ui.drift_plot import drift_view
from app.ui.forest import MOST_ROWS, forest_view
from app.ui.lineage_plot import MOST_NODES, lineage_view
from app.ui.plot import BROAD, LETTER, NARROW, short, wide
from app.ui.words import Words
from app.words import gate as gate_words
from model_updates.drift import Angles, Drift, Finds
from model_updates.gate.report import points
from tests.app.gate_reports import HOSTILE, gate_report


def drawings(markdown: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", markdown)]


def words_on(drawing: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in drawing.iter("text")]


def places(drawing: ElementTree.Element, kind: str) -> list[float]:
    return [float(dot.attrib["cx"]) for dot in drawing.iter("circle") if kind in dot.attrib["class"].split()]


@pytest.mark.parametrize("verdict", ["promote", "review", "reject"])
def test_every_slice_that_moved_is_on_the_plot_with_its_change(verdict: str) -> None:
    report = gate_report(verdict)
    for drawing in drawings(forest_view(report)):
        said = words_on(drawing)
        for row in report.rows:
            name = row.slice if row.view == "own" else f"{row.slice} · {row.view}"
            assert (name in said) is not gate_words.is_unchanged(row)
            if not gate_words.is_unchanged(row):
                assert any(points(row.difference) in text for text in said)


def test_a_gain_stands_right_of_a_loss_and_what_fails_is_marked() -> None:
    for drawing in drawings(forest_view(gate_report("reject"))):
        assert max(places(drawing, "fails")) < min(places(drawing, "passes"))


def test_a_long_report_draws_what_decides_and_says_how_many_are_left_out() -> None:
    report = gate_report("reject")
    many = [
        replace(row, slice=f"x{n}/icons", note="moved")
        for n in range(60)
        for row in report.rows
        if row.role == "kept"
    ]
    shown = forest_view(replace(report, rows=(*report.rows, *many)))
    assert len(places(drawings(shown)[0], "dot")) <= 2 * MOST_ROWS
    assert re.search(r"\d+ more slices and views", shown)


def test_nothing_is_drawn_of_a_report_in_which_nothing_moved() -> None:
    assert forest_view(replace(gate_report("promote"), rows=())) == ""


def test_names_from_outside_are_drawn_literally() -> None:
    report = gate_report("reject")
    hostile = replace(report, rows=tuple(replace(row, slice=f"de/{HOSTILE}") for row in report.rows))
    assert "<img" not in forest_view(hostile)
    assert any("de/<img" in text for text in words_on(drawings(forest_view(hostile))[0]))


def test_every_drawing_stays_inside_its_width() -> None:
    broad, narrow = drawings(forest_view(gate_report("review")))
    for drawing, width in ((broad, BROAD), (narrow, NARROW)):
        assert float(drawing.attrib["width"]) == width
        assert all(0 <= x <= width for x in places(drawing, "dot"))


def test_losses_are_curves_from_the_first_to_the_newest_with_a_table() -> None:
    curve = [{"at": n / 4, "terms": {"pull": 4.0 - n, "hold": 0.5}} for n in range(4)]
    shown = curves_view({"curve": curve})
    for drawing in drawings(shown):
        assert (
            sum("curve" in path.attrib["class"].split() for path in drawing.iter("path")) == 4
        )  # with the key
        assert {"pull", "hold", "epochs"} <= set(words_on(drawing))
    assert "| pull | 4.000 | 1.000 |" in shown


def test_one_point_is_no_curve() -> None:
    assert curves_view({}) == ""
    assert curves_view({"curve": [{"at": 1.0, "terms": {"pull": 1.0}}]}) == ""


def node(release: str, **facts: Any) -> Node:
    usual: dict[str, Any] = {
        "parent": None,
        "version": "v1",
        "strategy": None,
        "verdict": None,
        "languages": ("en",),
        "created": "2026-01-02T03:04:05",
        "is_new_version": True,
        "is_live": False,
        "periods": (),
        "lane": 0,
        "joins": (),
        "passes": (),
        "goes_on": False,
    }
    return Node(release, **usual | facts)


def test_a_lineage_says_who_made_a_release_live_when_and_why() -> None:
    period = Period(2, "promote", "ada", f"it knows German {HOSTILE}", "2026-11-21T10:00:00", None)
    shown = lineage_view(
        [
            node(
                "r2-1a",
                strategy="evergreen",
                verdict="promote",
                is_live=True,
                periods=(period,),
                goes_on=True,
            ),
            node("r1-0f", joins=(0,)),
        ]
    )
    broad, _ = drawings(shown)
    said = " ".join(words_on(broad))
    assert "r2 · evergreen · ✓ Passed" in said
    assert "live since 2026-11-21 10:00 · promoted by ada: it knows German" in said
    assert "never live · made 2026-01-02 03:04" in said
    assert "<img" not in shown
    assert len(places(broad, "live")) == 1


def test_a_long_lineage_shows_the_newest_and_says_how_many_are_older() -> None:
    shown = lineage_view([node(f"r{n}") for n in range(MOST_NODES + 7, 0, -1)])
    assert len(places(drawings(shown)[0], "node")) == MOST_NODES
    assert "7 older ones" in shown
    assert lineage_view([]) == ""


def plots(say: Words) -> list[str]:
    report = gate_report("reject")
    names = ("init", "promote", "rollback", "ingest")
    lived = [
        Period(n, why, "ada", "", "2026-11-21T10:00:00", "2026-11-22T10:00:00")
        for n, why in enumerate(names, 1)
    ]
    nodes = [
        node("r9", verdict="promote", is_live=True, periods=tuple(lived[:2])),
        *(node(f"s{n}", is_new_version=n % 2 == 0, periods=(one,)) for n, one in enumerate(lived)),
        *(node(f"r{n}", verdict="review") for n in range(MOST_NODES)),
    ]
    curve = [{"at": float(n), "terms": {"t1": 4.0 - n}} for n in range(3)]
    angles = Angles((5.0, 90.0), (50.0, 30.0, 20.0), 12.0, 100)
    turned = ReleaseDrift(
        "r1",
        "r2",
        ("zz",),
        12,
        Drift(angles, angles, angles, angles, angles, angles, Finds(40.0, 50.0, 10.0)),
    )
    return [
        forest_view(report, say),
        lineage_view(nodes, say),
        curves_view({"curve": curve}, say),
        drift_view(turned, say),
    ]


def test_plots_are_in_the_browsers_language() -> None:
    for english, german in zip(plots(Words()), plots(Words("de")), strict=True):
        seen = [
            set(re.findall(r"\b[a-z]{4,}\b", re.sub(r"<[^>]+>", " ", shown))) for shown in (english, german)
        ]
        names = {row.slice.split("/")[1] for row in gate_report("reject").rows}
        assert len(seen[0]) > 2
        assert seen[0] & seen[1] <= names | {"live"}


def test_words_are_shortened_by_how_wide_their_letters_are() -> None:
    assert (wide("ab"), wide("图片")) == (2 * LETTER, 4 * LETTER)
    assert short("a picture", 9 * LETTER) == "a picture"
    assert short("a picture", 5 * LETTER) == "a pi…"
    assert short("一张图片", 5 * LETTER) == "一张…"
