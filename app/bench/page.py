"""The report of a benchmark as one page: no script, no other file, readable on a telephone and in the dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from app.bench.comparison import ZERO
from app.bench.drawn import drawn_sections
from app.bench.findings import Findings
from app.bench.tables import Table, explained, notes_of, tables_of

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6575; --line: #dfe3ea; --paper: #fbfbfd; --panel: #fff;
  --accent: #1d5fbf; --on: #fff; --second: #b8560b; --other: #c9cfd9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b5; --line: #333a47; --paper: #14171d;
  --panel: #1b1f27; --accent: #78aef5; --on: #10141b; --second: #f0a35c; --other: #454e5e; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 1320px; margin: 0 auto; padding: 24px 16px 64px; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 8px; letter-spacing: -0.01em; }
h2 { font-size: 1.2rem; margin: 44px 0 6px; }
details { margin-top: 12px; } summary { cursor: pointer; color: var(--accent); padding: 6px 0; }
h3 { font-size: 0.92rem; margin: 0 0 6px; overflow-wrap: anywhere; }
p { margin: 0 0 12px; max-width: 78ch; color: var(--soft); }
p.about { color: var(--ink); }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 12px 0; font-size: 0.92rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.frame { overflow-x: auto; width: fit-content; max-width: 100%;
  border: 1px solid var(--line); border-radius: 8px; background: var(--panel); }
table { border-collapse: collapse; font-size: 0.88rem; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 9px; text-align: right; white-space: nowrap; border-top: 1px solid var(--line); }
thead th { border: 0; font-weight: 600; vertical-align: bottom; white-space: normal; min-width: 5.2rem; }
thead th small { display: block; color: var(--soft); font-weight: 400; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--panel); max-width: 13rem;
  min-width: 8rem; white-space: normal; overflow-wrap: break-word; border-right: 1px solid var(--line); }
tbody th { font-weight: 500; }
td small { display: block; color: var(--soft); }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(358px, 100%), 1fr)); gap: 12px; }
figure { margin: 0; padding: 12px; border: 1px solid var(--line); border-radius: 8px; background: var(--panel);
  overflow-x: auto; }
figcaption { color: var(--soft); font-size: 0.82rem; }
svg { display: block; }
figure svg { width: 100%; height: auto; min-width: 310px; }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); font-variant-numeric: tabular-nums; }
svg text.on { fill: var(--on); } svg text.in, svg text.name { fill: var(--ink); } svg text.name { font-weight: 600; }
svg .fill, svg .dot { fill: var(--accent); }
polyline { fill: none; stroke-width: 1.2; stroke: var(--other); }
polyline.own { stroke: var(--accent); stroke-width: 2.4; }
polyline.first { stroke: var(--second); stroke-width: 1.8; stroke-dasharray: 5 3; }
circle.own { fill: var(--accent); } circle.first { fill: var(--second); }
circle.other { fill: var(--other); }
svg .cells { stroke: var(--accent); } svg .grid { stroke: var(--line); } svg .lead { stroke: var(--other); fill: none; }
.own-key { color: var(--accent); font-weight: 600; } .first-key { color: var(--second); font-weight: 600; }
.narrow { display: none; }
@media (max-width: 800px) { .narrow { display: block; } .broad { display: none; } main { padding-inline: 10px; }
  th:first-child { max-width: 8.5rem; min-width: 6.6rem; }
  dl { grid-template-columns: 1fr; }
  dd { margin-bottom: 6px; } h2 { margin-top: 34px; } }
"""


def page_of(findings: Findings, facts: Sequence[tuple[str, str]]) -> str:
    """Returns the whole page.

    Args:
        findings: what the cells say.
        facts: of the head, name and text.
    """
    parts = [_head(findings, facts), *(_table(table) for table in tables_of(findings))]
    parts += drawn_sections(findings)
    title = escape(f"Benchmark: {findings.sequence}")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n" + "\n".join(filter(None, parts)) + "\n</main>\n"
        "</body>\n</html>\n"
    )


def _head(findings: Findings, facts: Sequence[tuple[str, str]]) -> str:
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{_marked(text)}</dd>" for name, text in facts)
    about = f'<p class="about">{_marked(findings.about)}</p>' if findings.about else ""
    notes = "".join(f"<p>{_marked(note)}</p>" for note in [*notes_of(findings), explained(findings)])
    return f"<h1>Benchmark: {escape(findings.sequence)}</h1>{about}<dl>{listed}</dl>{notes}"


def _table(table: Table) -> str:
    head = "".join(f"<th>{_group(group)}{escape(name)}</th>" for group, name in table.header)
    rows = "".join(
        f"<tr><th>{_label(row[0])}</th>{''.join(f'<td>{_value(cell)}</td>' for cell in row[1:])}</tr>"
        for row in table.rows
    )
    return (
        f"<section><h2>{escape(table.title)}</h2><p>{_marked(table.note)}</p>"
        f'<div class="frame"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _label(text: str) -> str:
    """A strategy may break where its options begin."""
    return re.sub(r"([,+=])", r"\1<wbr>", escape(text, quote=False))


def _group(name: str) -> str:
    return f"<small>{escape(name)}</small>" if name else ""


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
