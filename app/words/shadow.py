"""What a candidate's shadow has shown, in words, the same for terminal and page."""

from __future__ import annotations

from collections.abc import Callable

from app.desk.opinions import DEPTH, FEWEST, ShadowLine, ShadowReport
from app.language.detection import UNDETERMINED
from ingest.sentence import phrase

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
    """Returns a line of the table under `HEADERS`."""
    called = {"all": phrase("all"), UNDETERMINED: phrase("cannot be told"), "": phrase("no words")}
    first = called.get(line.language) or name(line.language)
    if not line.queries:
        return first, "0", *["–"] * 5, str(line.refused)
    return (
        first,
        str(line.queries),
        f"{line.overlap:.0f} %",
        phrase("{count} to {high} %", count=f"{line.low:.0f}", high=f"{line.high:.0f}"),
        f"{line.same_first:.0f} %",
        f"{line.moved:.1f}",
        f"{line.stronger} / {line.weaker}",
        str(line.refused),
    )


def _standing(told: ShadowReport) -> str:
    if not told.started:
        return phrase(
            "{release} was never in the shadow. There it is asked a share of what people ask, in "
            "the background, and nobody sees its answers.",
            release=told.release,
        )
    since = told.started[:16].replace("T", " ")
    said = {"release": told.release, "since": since, "share": f"{100 * told.share:g}"}
    if told.is_active:
        return phrase(
            "{release} has been in the shadow since {since} UTC, put there by {name}, and is asked {share} % of the "
            "live queries.",
            name=told.by,
            **said,
        )
    said |= {"until": told.stopped[:16].replace("T", " "), "name": told.stopped_by}
    if not told.why:
        return phrase(
            "{release} was in the shadow from {since} to {until} UTC and asked {share} % of the live queries; {name} "
            "ended it.",
            **said,
        )
    return phrase(
        "{release} was in the shadow from {since} to {until} UTC and asked {share} % of the live queries; {name} ended "
        "it: {why}.",
        why=told.why,
        **said,
    )


def _found(told: ShadowReport) -> list[str]:
    if told.total is None:
        return [phrase("No query has come yet.")] if told.is_active else []
    total = told.total
    if not total.queries:
        return [phrase("It could answer none of {count} queries.", count=total.refused)]
    queries = (
        phrase("1 live query") if total.queries == 1 else phrase("{count} live queries", count=total.queries)
    )
    said = phrase(
        "Beside {against}, it shows {share} % of the first {count} pictures that live shows (95 "
        "% interval {low} to {high} %), over {queries}. The first picture is the same for "
        "{share2} %; a picture that both show stands {places} places apart on average.",
        against=told.against,
        share=f"{total.overlap:.0f}",
        count=DEPTH,
        low=f"{total.low:.0f}",
        high=f"{total.high:.0f}",
        queries=queries,
        share2=f"{total.same_first:.0f}",
        places=f"{total.moved:.1f}",
    )
    more = []
    if not told.is_enough:
        more.append(
            phrase("That is little: from {count} queries on the figures mean something.", count=FEWEST)
        )
    if told.dropped:
        more.append(
            phrase(
                "{count} of its share were not asked, because the server had no time for them.",
                count=told.dropped,
            )
        )
    return [said, *more]
