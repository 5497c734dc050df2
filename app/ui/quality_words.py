"""The words of the Quality tab."""

from __future__ import annotations

from collections.abc import Sequence

from app.desk.verdicts import AskedLanguages, QualityTable, SliceMoves
from app.ui.report_words import moved_cards
from app.ui.wording import escaped
from app.ui.words import ENGLISH, Words
from app.words.language_names import name_in
from ingest.captions import UNDETERMINED
from ingest.sentence import phrase
from model_updates.gate.report import points
from model_updates.recalls import LABELS, MEAN

METRICS = [*((label, name) for name, label in LABELS.items()), (phrase("mean of the three"), MEAN)]
VIEWS = [
    (phrase("own gallery"), "own"),
    (phrase("among everything"), "mixed"),
    (phrase("what was trained on"), "memory"),
]
PICK = "quality-pick"
"""The field into which `pages.js` writes the cell that was pressed."""
BETWEEN = "|"
PICKED = ("language", "domain", "before", "after")
"""What stands in it, with `BETWEEN` between; a number behind # makes the same cell twice two inputs."""
MEASURED_THEN = phrase(
    "Measured when each version's newest release was made. If held-out pairs were added or removed in between, "
    "figures change with them, too. Select a cell of the second table to measure it again."
)
NOT_MEASURED = phrase(
    "No release has been measured in this view on your own pictures yet. That happens when an update is "
    "judged, on the captions held out of it."
)
PROBES_ARE = phrase(
    "Drawn pictures that every home starts with. They guard against losses and never appear in search."
)
ASK_LOST = phrase(
    "Select a cell of the table above to see which captions lost their picture, and which found it."
)


def menu(choices: Sequence[tuple[str, str]], say: Words) -> list[tuple[str, str]]:
    """Returns `METRICS` or `VIEWS` as a menu names them."""
    return [(say.said(label), name) for label, name in choices]


def advice_line(asked: AskedLanguages, say: Words = ENGLISH) -> str:
    """Returns what is asked for and not learned, as a list; "" when nothing is."""
    lines = asked.advised(lambda tag: name_in(tag, say.language))
    return "\n".join(f"- {escaped(say.said(line))}" for line in lines)


def summary_line(table: QualityTable, say: Words = ENGLISH) -> str:
    """Returns forgetting and transfer of the live version in a sentence."""
    live = next((column for column in table.columns if column.is_live), None)
    if live is None or table.forgetting is None:
        return say(
            "Each cell is recall minus the best of the earlier versions that were ever live, in points."
        )
    said = {"release": live.release, "points": points(-table.forgetting)}
    lies = (
        say("**{release}** is on average {points} points from the best version before it.", **said)
        if table.transfer is None
        else say(
            "**{release}** is on average {points} points from the best version before it, and {more} points "
            "from where each slice was when it was first measured.",
            more=points(table.transfer),
            **said,
        )
    )
    cells = say("Each cell is recall minus the best of the earlier versions that were ever live.")
    return f"{lies} {cells}"


def moves_title(moves: SliceMoves, say: Words = ENGLISH) -> str:
    """Says what was looked up and how it went."""
    change = points(100 * (moves.found_after - moves.found_before) / moves.captions)
    title = f"### {escaped(moves.slice)}: {escaped(moves.before)} → {escaped(moves.after)}"
    said = say(
        "Measured just now: of {count} held-out captions, {before} found {a} among the first ten and {after} "
        "found {b} ({change} points).",
        count=moves.captions,
        before=moves.before,
        a=moves.found_before,
        after=moves.after,
        b=moves.found_after,
        change=change,
    )
    return f"{title}\n\n{said}"


def moves_view(moves: SliceMoves, base: str, say: Words = ENGLISH) -> str:
    """Returns the captions that lost and won most, as cards with their pictures."""
    cards = moved_cards(moves.lost, moves.won, base, say, names_slice=False)
    return cards or say("Every caption finds its picture at the same place in both.")


def named(language: str, say: Words = ENGLISH) -> str:
    """Returns what a language is called."""
    return say("unclear") if language == UNDETERMINED else name_in(language, say.language)
