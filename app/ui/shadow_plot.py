"""What a release has shown in the shadow, drawn: a row a language, with how much it has in common with live."""

from __future__ import annotations

from app.desk.opinions import ShadowLine, ShadowReport
from app.ui.drawn import Markup, framed_table, tag
from app.ui.words import ENGLISH, Words
from app.words.language_names import name_in
from app.words.shadow import HEADERS, line_cells, shadow_sentences

_BAR = 3  # the column before which the bar stands


def shadow_view(told: ShadowReport, say: Words = ENGLISH) -> Markup:
    """Returns where a release stands and what live queries have shown."""
    lines = [*told.languages, *([told.total] if told.total and len(told.languages) > 1 else [])]
    headers = [say.said(one) for one in HEADERS]
    header = (*headers[:_BAR], "", *headers[_BAR:])
    table = [framed_table(header, [_row(line, say) for line in lines], say=say)] if lines else []
    said = [tag("p", say.said(one)) for one in shadow_sentences(told)]
    return tag("div", tag("h2", say("In the shadow")), said, table)


def _row(line: ShadowLine, say: Words) -> Markup:
    first, *cells = [say.said(cell) for cell in line_cells(line, lambda tag: name_in(tag, say.language))]
    bar = tag("span", " ", class_="amount", style=f"width:{line.overlap:.0f}%")
    return tag(
        "tr",
        tag("th", first, scope="row"),
        [tag("td", one) for one in cells[: _BAR - 1]],
        tag("td", bar, class_="wide"),
        [tag("td", one) for one in cells[_BAR - 1 :]],
    )
