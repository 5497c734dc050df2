"""The report of a benchmark as one page: no script, no other file, readable on a telephone and in the dark."""

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from app.bench import charts
from app.bench.comparison import ZERO
from app.bench.figures import MAIN, curves_of, first_order, matrix_of
from app.bench.findings import SequenceFindings
from app.bench.material import HELD_OUT, KINDS, TRAINED
from app.bench.results import TOLD
from app.bench.tables import Table, explained, notes_of, tables_of

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
STYLE = Path(__file__).with_name("page.css")


def page_of(findings: SequenceFindings, facts: Sequence[tuple[str, str]]) -> str:
    """Returns the whole page; `facts` are names and texts of its head."""
    parts = [_head(findings, facts), *(_table(table) for table in tables_of(findings))]
    parts += _drawn(findings)
    style = STYLE.read_text(encoding="utf-8")
    title = escape(f"Benchmark: {findings.sequence}")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(filter(None, parts))
        + "\n</main>\n"
        "</body>\n</html>\n"
    )


def _head(findings: SequenceFindings, facts: Sequence[tuple[str, str]]) -> str:
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{_marked(text)}</dd>" for name, text in facts)
    about = f'<p class="about">{_marked(findings.about)}</p>' if findings.about else ""
    notes = "".join(f"<p>{_marked(note)}</p>" for note in [*notes_of(findings), explained(findings)])
    return f"<h1>Benchmark: {escape(findings.sequence)}</h1>{about}<dl>{listed}</dl>{notes}"


def _table(table: Table) -> str:
    groups = [f"<small>{escape(group)}</small>" if group else "" for group, _ in table.header]
    head = "".join(
        f"<th>{group}{escape(name)}</th>" for group, (_, name) in zip(groups, table.header, strict=True)
    )
    # A strategy may break where its options begin.
    labels = [re.sub(r"([,+=])", r"\1<wbr>", escape(row[0], quote=False)) for row in table.rows]
    rows = "".join(
        f"<tr><th>{label}</th>{''.join(f'<td>{_value(cell)}</td>' for cell in row[1:])}</tr>"
        for label, row in zip(labels, table.rows, strict=True)
    )
    return (
        f"<section><h2>{escape(table.title)}</h2><p>{_marked(table.note)}</p>"
        f'<div class="frame"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _value(cell: str) -> str:
    """A difference takes lines of its own for its interval and for what it means."""
    value, bracket, rest = cell.partition(" [")
    if not bracket:
        return escape(cell)
    interval, _, words = rest.partition("]")
    said = f"<small>{escape(ZERO)}</small>" if words.strip() else ""
    return f"{escape(value)}<small>[{escape(interval)}]</small>{said}"


def _marked(text: str) -> str:
    """Returns escaped text with Markdown's *words* and `code` marked up."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def _drawn(findings: SequenceFindings) -> list[str]:
    """Returns the sections that there are figures for; those of held-out captions are folded."""
    kinds = {
        run.kind for own in findings.cells.values() for cell in own for run in cell.slices if not run.unseen
    }
    sections = [_scatter(findings)]
    for title, drawn in (("What was kept, step by step", _curves), ("Recall matrices", _matrices)):
        parts = [_folded(kind, drawn(findings, kind)) for kind in KINDS if kind in kinds]
        if parts:
            sections.append(f"<section><h2>{title}</h2>{''.join(parts)}</section>")
    return [section for section in [*sections, _drift(findings)] if section]


def _folded(kind: str, drawn: str) -> str:
    opened = " open" if kind == TRAINED else ""
    return f"<details{opened}><summary>{KIND_WORDS[kind]}</summary>{drawn}</details>"


def _scatter(findings: SequenceFindings) -> str:
    points = {
        label: (figures["cpu_seconds"].mean, figures[MAIN].mean)
        for label, figures in findings.figures.items()
        if MAIN in figures
    }
    if not points:
        return ""
    said = "Average recall at the end over seconds of processor time, a point for each strategy"
    return (
        "<section><h2>Cost against recall</h2><p>R@1 of trained captions at the end, told, over seconds of processor "
        "time, mean over seeds; the axis is logarithmic.</p>"
        f'<figure><div class="broad">{charts.scatter(points, BROAD, said)}'
        f'</div><div class="narrow">{charts.scatter(points, charts.WIDE, said)}</div></figure></section>'
    )


def _curves(findings: SequenceFindings, kind: str) -> str:
    found = {
        label: one for label, own in findings.cells.items() if (one := curves_of(own, kind, TOLD)) is not None
    }
    highest = _rounded(value for one in found.values() for value in (*one.average, *one.first))
    name = f"all-{kind}"
    behind = charts.backdrop(name, list(found.values()), highest)
    figures = [
        _figure(
            label,
            charts.curves(one, name, highest, f"Recall after each step: {label}"),
            f"first: {escape(one.of)}",
        )
        for label, one in found.items()
    ]
    return (
        "<p>R@1 after each step, told, percent, mean over seeds. "
        '<span class="own-key">Line</span>: average of all slices known by then. '
        '<span class="first-key">Dashes</span>: what was known first alone. Grey: all strategies.</p>'
        f'{behind}<div class="grid">{"".join(figures)}</div>'
    )


def _matrices(findings: SequenceFindings, kind: str) -> str:
    found = {label: matrix_of(own, kind) for label, own in findings.cells.items()}
    highest = _rounded(value for _, rows in found.values() for row in rows for value in row)
    figures = []
    for label, (names, rows) in found.items():
        if names:
            said = f"Recall of each slice after each step: {label}"
            seeds = ", ".join(str(cell.seed) for cell in first_order(findings.cells[label]))
            figures.append(_figure(label, charts.heatmap(names, rows, highest, said), f"seeds: {seeds}"))
    return (
        "<p>A slice a line, a step a column (0: before the first); R@1, told, mean over the seeds that took the steps "
        f"in the first seed's order. Full colour: {highest:.0f} %.</p>"
        f'<div class="grid">{"".join(figures)}</div>'
    )


def _drift(findings: SequenceFindings) -> str:
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
        _figure(label, charts.bars(angles, highest, f"Drift of {label}")) for label, angles in rows.items()
    )
    return (
        "<section><h2>Drift</h2><p>How far a step turns the vectors of one tower (RAM), the angles within a tower "
        "(SAM) and those between a picture and its caption (ImAM); degrees, mean over steps and seeds.</p>"
        f'<div class="grid">{figures}</div></section>'
    )


def _figure(label: str, drawing: str, caption: str = "") -> str:
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f"<figure><h3>{escape(label)}</h3>{drawing}{below}</figure>"


def _rounded(values: Iterable[float | None]) -> float:
    """Returns the next ten above the highest."""
    return max(10.0, math.ceil(max((value for value in values if value is not None), default=0.0) / 10) * 10)
