"""The sections of a benchmark's page that are drawn: cost, curves, matrices and drift."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from app.bench import charts
from app.bench.figures import MAIN, Curves, curves_of, first_order, matrix_of
from app.bench.findings import Findings
from app.bench.material import HELD_OUT, KINDS, TRAINED
from app.bench.matrix import TOLD

KIND_WORDS = {TRAINED: "Trained captions: memory", HELD_OUT: "Held-out captions: generalisation"}
DRIFTS_SAID = {
    "drift/sam_pictures": "SAM pictures",
    "drift/sam_texts": "SAM texts",
    "drift/ram_pictures": "RAM pictures",
    "drift/ram_texts": "RAM texts",
    "drift/imam_text_to_image": "ImAM",
}
BROAD = 1180
"""Width of a drawing on a broad screen, in pixels."""


def drawn_sections(findings: Findings) -> list[str]:
    """Returns the sections that there are figures for; those of held-out captions fold."""
    kinds = {
        run.kind for own in findings.cells.values() for cell in own for run in cell.slices if not run.unseen
    }
    sections = [_scatter(findings)]
    for title, drawn in (("What was kept, step by step", _curves), ("Recall matrices", _matrices)):
        parts = [_unfolded(kind, drawn(findings, kind)) for kind in KINDS if kind in kinds]
        if parts:
            sections.append(f"<section><h2>{title}</h2>{''.join(parts)}</section>")
    return [section for section in [*sections, _drift(findings)] if section]


def _unfolded(kind: str, drawn: str) -> str:
    """What memory looks like is open; generalisation is one step away."""
    opened = " open" if kind == TRAINED else ""
    return f"<details{opened}><summary>{KIND_WORDS[kind]}</summary>{drawn}</details>"


def _scatter(findings: Findings) -> str:
    points = [
        charts.Point(label, figures["cpu_seconds"].mean, figures[MAIN].mean)
        for label, figures in findings.figures.items()
        if MAIN in figures
    ]
    if not points:
        return ""
    said = "Average recall at the end over seconds of processor time, a point for each strategy"
    return (
        "<section><h2>Cost against recall</h2><p>R@1 of trained captions at the end, told, over seconds of processor "
        "time, mean over seeds; the axis is logarithmic.</p>"
        f'<figure><div class="broad">{charts.scatter(points, BROAD, said)}'
        f'</div><div class="narrow">{charts.scatter(points, charts.WIDE, said)}</div></figure></section>'
    )


def _curves(findings: Findings, kind: str) -> str:
    found = {
        label: one for label, own in findings.cells.items() if (one := curves_of(own, kind, TOLD)) is not None
    }
    highest = _rounded(
        value for one in found.values() for value in (*one.average, *one.first) if value is not None
    )
    name = f"all-{kind}"
    behind = charts.backdrop(name, list(found.values()), highest)
    figures = [_curve(label, one, name, highest) for label, one in found.items()]
    return (
        "<p>R@1 after each step, told, percent, mean over seeds. "
        '<span class="own-key">Line</span>: average of all slices known by then. '
        '<span class="first-key">Dashes</span>: what was known first alone. Grey: all strategies.</p>'
        f'{behind}<div class="grid">{"".join(figures)}</div>'
    )


def _curve(label: str, own: Curves, behind: str, highest: float) -> str:
    said = f"Recall after each step: {label}"
    return (
        f"<figure><h3>{escape(label)}</h3>{charts.curves(own, behind, highest, said)}"
        f"<figcaption>first: {escape(own.of)}</figcaption></figure>"
    )


def _matrices(findings: Findings, kind: str) -> str:
    found = {label: matrix_of(own, kind) for label, own in findings.cells.items()}
    highest = _rounded(
        value for _, rows in found.values() for row in rows for value in row if value is not None
    )
    figures = []
    for label, (names, rows) in found.items():
        if not names:
            continue
        drawing = charts.heatmap(
            charts.Heat(names, rows, highest), f"Recall of each slice after each step: {label}"
        )
        seeds = ", ".join(str(cell.seed) for cell in first_order(findings.cells[label]))
        figures.append(
            f"<figure><h3>{escape(label)}</h3>{drawing}<figcaption>seeds: {seeds}</figcaption></figure>"
        )
    return (
        "<p>A slice a line, a step a column (0: before the first); R@1, told, mean over the seeds that took the steps "
        f"in the first seed's order. Full colour: {highest:.0f} %.</p>"
        f'<div class="grid">{"".join(figures)}</div>'
    )


def _drift(findings: Findings) -> str:
    rows = {
        label: {
            DRIFTS_SAID.get(name, name.removeprefix("drift/")): spread.mean
            for name, spread in figures.items()
            if name.startswith("drift/")
        }
        for label, figures in findings.figures.items()
    }
    rows = {label: angles for label, angles in rows.items() if angles}
    if not rows:
        return ""
    highest = max(degrees for angles in rows.values() for degrees in angles.values())
    figures = "".join(
        f"<figure><h3>{escape(label)}</h3>{charts.bars(angles, highest, f'Drift of {label}')}</figure>"
        for label, angles in rows.items()
    )
    return (
        "<section><h2>Drift</h2><p>How far a step turns the vectors of one tower (RAM), the angles within a tower "
        "(SAM) and those between a picture and its caption (ImAM); degrees, mean over steps and seeds.</p>"
        f'<div class="grid">{figures}</div></section>'
    )


def _rounded(values: Iterable[float]) -> float:
    """Returns the next ten above the highest."""
    return max(10.0, math.ceil(max(values, default=0.0) / 10) * 10)
