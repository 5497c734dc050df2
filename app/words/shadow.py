"""What a candidate's shadow has shown, in words, the same for terminal and page."""

from __future__ import annotations

from collections.abc import Callable

from app.desk.opinions import DEPTH, FEWEST, ShadowLine, ShadowReport
from app.language.detection import UNDETERMINED

HEADERS = (
    "queries in",
    "answered",
    "in common",
    "95 % interval",
    "same first picture",
    "moved by",
    "better / worse match",
    "refused",
)


def shadow_sentences(told: ShadowReport) -> list[str]:
    """Returns where a release stands, and what the queries that it was asked have shown."""
    return [_standing(told), *_found(told)]


def line_cells(line: ShadowLine, name: Callable[[str], str] = str) -> tuple[str, ...]:
    """Returns a line of the table under `HEADERS`.

    Args:
        line: of a report.
        name: what a language is called, by its tag.
    """
    called = {"all": "all", UNDETERMINED: "cannot be told", "": "no words"}
    first = called.get(line.language) or name(line.language)
    if not line.queries:
        return first, "0", *["–"] * 5, str(line.refused)
    return (
        first,
        str(line.queries),
        f"{line.overlap:.0f} %",
        f"{line.low:.0f} to {line.high:.0f} %",
        f"{line.same_first:.0f} %",
        f"{line.moved:.1f}",
        f"{line.stronger} / {line.weaker}",
        str(line.refused),
    )


def _standing(told: ShadowReport) -> str:
    if not told.started:
        return (
            f"{told.release} was never in the shadow. There it is asked a share of what people ask, in the background, "
            "and nobody sees its answers."
        )
    since = told.started[:16].replace("T", " ")
    of = f"{100 * told.share:g} % of the live queries"
    if told.is_active:
        return f"{told.release} has been in the shadow since {since} UTC, put there by {told.by}, and is asked {of}."
    why = f": {told.why}" if told.why else ""
    until = told.stopped[:16].replace("T", " ")
    ended = f"{told.stopped_by} ended it{why}"
    return f"{told.release} was in the shadow from {since} to {until} UTC and asked {of}; {ended}."


def _found(told: ShadowReport) -> list[str]:
    if told.total is None:
        return ["No query has come yet."] if told.is_active else []
    total = told.total
    if not total.queries:
        return [f"It could answer none of {total.refused} queries."]
    queries = "1 live query" if total.queries == 1 else f"{total.queries} live queries"
    said = (
        f"Beside {told.against}, it shows {total.overlap:.0f} % of the first {DEPTH} pictures that live shows "
        f"(95 % interval {total.low:.0f} to {total.high:.0f} %), over {queries}. The first picture is the same for "
        f"{total.same_first:.0f} %; a picture that both show stands {total.moved:.1f} places apart on average."
    )
    more = []
    if not told.is_enough:
        more.append(f"That is little: from {FEWEST} queries on the figures mean something.")
    if told.dropped:
        more.append(f"{told.dropped} of its share were not asked, because the server had no time for them.")
    return [said, *more]
