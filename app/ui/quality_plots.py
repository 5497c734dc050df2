"""The drawings of the Quality tab: matrices with coloured cells, and trends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.desk.verdicts import AskedLanguages, Coverage, Measure, QualityTable, SliceLine, VersionColumn
from app.ui.drawn import Markup, framed_table, tag
from app.ui.quality_words import BETWEEN, named
from app.ui.words import ENGLISH, Words
from ingest.captions import UNDETERMINED
from ingest.sentence import phrase
from model_updates.gate.report import points

ASKED_HEADERS = ("language", "queries", "", "share", "probably nothing found", "learned")
COVERAGE_HEADERS = (
    "slice", "learned", "training", "validation", "held out", "measured groups", "enough to decide",
)  # fmt: skip
SLICE = "slice"
"""Heads the rows of a matrix."""
COLUMNS_SHOWN = 12
_LINES = 8  # as many as there are colours
_Cell = Callable[[Measure], tuple[str, float, str]]


def asked_table(asked: AskedLanguages, say: Words = ENGLISH) -> Markup:
    """Returns how often each language was asked for."""
    if not asked.languages:
        return tag("p", say("No queries in the last {days} days.", days=asked.days))
    most = max(one.queries for one in asked.languages)
    rows = [
        tag(
            "tr",
            tag("th", named(one.language, say), scope="row"),
            tag("td", one.queries),
            tag(
                "td",
                tag("span", " ", class_="amount", style=f"width:{100 * one.queries / most:.0f}%"),
                class_="wide",
            ),
            tag("td", f"{100 * one.share:.0f} %"),
            tag("td", one.unanswered),
            tag("td", "–" if one.language == UNDETERMINED else _yes(one.is_learned, say)),
        )
        for one in asked.languages
    ]
    said = say(
        "Queries of the last {days} days by detected language. Only counts are kept, never the queries; a "
        "query of two words may be taken for another language.",
        days=asked.days,
    )
    header = [one and say.header(one) for one in ASKED_HEADERS]
    return tag("div", framed_table(header, rows, say=say), tag("p", said))


def recall_table(table: QualityTable, say: Words = ENGLISH) -> Markup:
    """Returns recall of each slice under each version, coloured by how much is found."""
    return _matrix(table, lambda one: (f"{one.recall:.1f}", one.recall / 100, "found"), say)


def change_table(table: QualityTable, say: Words = ENGLISH) -> Markup:
    """Returns what each version lost or won against the best before it; each cell is a button."""
    return _matrix(table, lambda one: _changed(one, say), say, is_pressed=True)


def trend_plot(table: QualityTable, say: Words = ENGLISH) -> Markup | None:
    """Draws recall of each language over the versions, by what all of them measured; None with less than two."""
    columns = table.columns[-COLUMNS_SHOWN:]
    trends, compared, measured = _by_language(table, len(columns))
    if len(columns) < 2 or not trends:
        return None
    width, height, left, right, top, bottom = 760, 260, 40, 150, 12, 28
    shown = trends[:_LINES]

    def at(place: int, value: float) -> tuple[float, float]:
        across = left + place * (width - left - right) / (len(columns) - 1)
        return round(across, 1), round(height - bottom - value / 100 * (height - top - bottom), 1)

    parts = [tag("title", say("Recall by language over {count} versions, in percent", count=len(columns)))]
    for mark in (0, 25, 50, 75, 100):
        y = at(0, mark)[1]
        parts.append(tag("line", x1=left, x2=width - right, y1=y, y2=y, class_="axis faint"))
        parts.append(tag("text", mark, x=left - 6, y=y + 4, text_anchor="end", class_="label"))
    for place, column in enumerate(columns):
        x = at(place, 0)[0]
        name = column.release.split("-")[0] + (" ●" if column.is_live else "")
        parts.append(tag("text", name, x=x, y=height - 8, text_anchor="middle", class_="label"))
    ends = _apart([at(0, values[-1][1])[1] for _, values in shown], 15)
    for number, ((language, values), end) in enumerate(zip(shown, ends, strict=True)):
        spots = [at(place, value) for place, value in values]
        way = " ".join(f"{x},{y}" for x, y in spots)
        parts.append(tag("polyline", points=way, class_=f"trend colour-{number}"))
        parts += [tag("circle", cx=x, cy=y, r=3, class_=f"dot colour-{number}") for x, y in spots]
        words = f"{named(language, say)} {values[-1][1]:.0f}"
        parts.append(
            tag("text", words, x=width - right + 10, y=end + 4, class_=f"label name colour-{number}")
        )
    more = (
        say(
            "The chart shows the first {count} of {all} languages; the table has all of them.",
            count=_LINES,
            all=len(trends),
        )
        if len(trends) > _LINES
        else ""
    )
    svg = tag("svg", parts, viewBox=f"0 0 {width} {height}", role="img", class_="plot wide-plot")
    frame = tag("div", svg, class_="scrolls", tabindex=0, role="group", aria_label=say("Chart"))
    alike = say(
        "Compared on the {count} of {all} slices that every version that knows the language has measured.",
        count=compared,
        all=measured,
    )
    return tag("div", frame, tag("p", f"{alike} {more}".rstrip()))


def coverage_table(found: Sequence[Coverage], say: Words = ENGLISH) -> Markup:
    """Returns what there is to learn from and to measure by."""
    rows = [
        tag(
            "tr",
            tag("th", f"{one.language}/{one.domain}", scope="row"),
            tag("td", _yes(one.is_learned, say)),
            *(tag("td", f"{count:,}") for count in (one.train, one.validation, one.held_out)),
            tag("td", "–" if one.images is None else f"{one.images:,}"),
            tag("td", say.said(_enough(one))),
        )
        for one in found
    ]
    return framed_table([say.header(one) for one in COVERAGE_HEADERS], rows, say=say)


def _matrix(table: QualityTable, cell: _Cell, say: Words, *, is_pressed: bool = False) -> Markup:
    hidden = max(0, len(table.columns) - COLUMNS_SHOWN)
    columns = table.columns[hidden:]
    rows = [
        tag(
            "tr",
            tag("th", f"{line.language}/{line.domain}", scope="row"),
            *(
                _filled(line, one, column, cell, say, is_pressed=is_pressed)
                for one, column in zip(line.measures[hidden:], columns, strict=True)
            ),
        )
        for line in table.lines
    ]
    header = [say.header(SLICE), *(_column(column, say) for column in columns)]
    earlier = say("The {count} oldest versions are not shown here; the REST API has them.", count=hidden)
    return tag("div", framed_table(header, rows, kind="heat", say=say), tag("p", earlier) if hidden else [])


def _filled(
    line: SliceLine, one: Measure | None, column: VersionColumn, cell: _Cell, say: Words, *, is_pressed: bool
) -> Markup:
    if one is None:
        return tag("td", "–", class_="none")
    words, strength, kind = cell(one)
    style = f"--strength:{max(0.0, min(1.0, strength)):.2f}"
    captions = say("{count} captions", count=one.captions)
    about = f"{line.language}/{line.domain} · {column.release}: {words} · {captions}"
    if not is_pressed or not one.best:
        return tag("td", words, class_=f"cell {kind}", style=style, title=about)
    picked = BETWEEN.join((line.language, line.domain, one.best, column.release))
    about = f"{about}. {say('Show captions that moved.')}"
    button = tag("button", words, type="button", data_pick=picked, aria_label=about)
    return tag("td", button, class_=f"cell {kind}", style=style)


def _changed(one: Measure, say: Words) -> tuple[str, float, str]:
    if one.change is None:
        return say("first"), 0.0, "none"
    strength = min(1.0, abs(one.change) / 20)  # 20 points are as red, or green, as it gets
    return points(one.change), strength, "lost" if one.change < 0 else "found"


def _column(column: VersionColumn, say: Words) -> Markup:
    state = say("live") if column.is_live else "" if column.was_live else say("never live")
    small = " · ".join(filter(None, (column.strategy or say("base"), state)))
    return tag("span", column.release, tag("br"), tag("small", small))


_Trend = list[tuple[int, float]]


def _by_language(table: QualityTable, last: int) -> tuple[list[tuple[str, _Trend]], int, int]:
    """Recall of each language at each of the last columns from where it was first measured.

    The mean is over captions of the slices that each of these columns measured: of others a version that has them
    differs from one that has not though it finds the same. Returns the trends, how many slices they are of, and how
    many there are.
    """
    found: dict[str, _Trend] = {}
    used = measured = 0
    for language in dict.fromkeys(line.language for line in table.lines):
        lines = [line.measures[-last:] for line in table.lines if line.language == language]
        lines = [line for line in lines if any(line)]
        places = [place for place in range(last) if any(line[place] for line in lines)]
        whole = [line for line in lines if all(line[place] for place in places)]
        measured, used = measured + len(lines), used + len(whole)
        for place in places if whole else ():
            present = [one for line in whole if (one := line[place]) is not None]
            captions = sum(one.captions for one in present)
            mean = sum(one.recall * one.captions for one in present) / max(1, captions)
            found.setdefault(language, []).append((place, mean))
    return sorted(found.items(), key=lambda item: -item[1][-1][1]), used, measured


def _apart(heights: Sequence[float], least: float) -> list[float]:
    """Heights for words, in their order, moved so far down that none covers another."""
    order = sorted(range(len(heights)), key=lambda n: heights[n])
    placed = list(heights)
    for before, after in zip(order, order[1:], strict=False):
        placed[after] = max(placed[after], placed[before] + least)
    over = max(placed, default=0.0) - 236
    return [height - over for height in placed] if over > 0 else placed


def _yes(is_so: bool, say: Words) -> str:
    return say("yes") if is_so else say("no")


def _enough(one: Coverage) -> str:
    if one.images is None:
        return phrase("not measured")
    return phrase("yes") if one.is_enough else phrase("no, a person decides")
