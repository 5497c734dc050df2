"""The words of the Quality tab."""

from __future__ import annotations

from collections.abc import Sequence

from app.desk.opinions import AskedLanguage
from app.desk.verdicts import QualityTable, SliceMoves
from app.feedback.asked import advice
from app.language.detection import UNDETERMINED
from app.ui.language_names import name_in
from app.ui.wording import escaped, thumbnail_url
from app.ui.words import ENGLISH, Words
from app.words import gate as gate_words
from model_updates.gate.report import QueryChange, points
from model_updates.recalls import LABELS, MEAN

METRICS = [*((label, name) for name, label in LABELS.items()), ("mean of the three", MEAN)]
VIEWS = [("own gallery", "own"), ("among everything", "mixed"), ("what was trained on", "memory")]
PICK = "quality-pick"
"""The field into which `pages.js` writes the cell that was pressed."""
BETWEEN = "|"
PICKED = ("language", "domain", "before", "after")
"""What stands in it, with `BETWEEN` between; a number behind # makes the same cell twice two inputs."""
MEASURED_THEN = (
    "As measured when each version's newest release was made. Where held-out pairs came or went in between, a change "
    "is also theirs; a cell of the second table is looked up anew when you choose it."
)
NOT_MEASURED = "No release was measured in this view yet. The gate measures when an update is judged."
ASK_LOST = (
    "Choose a cell of the table above to see which captions lost their picture there, and which found it."
)


def menu(choices: Sequence[tuple[str, str]], say: Words) -> list[tuple[str, str]]:
    """Returns `METRICS` or `VIEWS` as a menu names them."""
    return [(say.said(label), name) for label, name in choices]


def advice_line(asked: Sequence[AskedLanguage], say: Words = ENGLISH) -> str:
    """Returns what is asked for and not learned, as a list; "" when nothing is."""
    lines = advice(asked, lambda tag: name_in(tag, say.language))
    return "\n".join(say.said(f"- {escaped(line)}") for line in lines)


def summary_line(table: QualityTable, say: Words = ENGLISH) -> str:
    """Returns forgetting and transfer of the live version in a sentence."""
    live = next((column for column in table.columns if column.is_live), None)
    if live is None or table.forgetting is None:
        return say.said(
            "Each cell is recall minus the best of the versions before that were ever live, in points."
        )
    said = f"**{live.release}** lies on average {points(-table.forgetting)} points from the best version before it"
    if table.transfer is not None:
        said += (
            f", and {points(table.transfer)} points from where each slice stood when it was first measured"
        )
    return say.said(f"{said}. Each cell is recall minus the best of the versions before that were ever live.")


def moves_title(moves: SliceMoves, say: Words = ENGLISH) -> str:
    """Says what was looked up and how it went."""
    change = points(100 * (moves.found_after - moves.found_before) / moves.captions)
    said = (
        f"Looked up just now: of {moves.captions} held-out captions {moves.before} found {moves.found_before} "
        f"among the first ten, {moves.after} {moves.found_after} ({change} points)."
    )
    return f"### {escaped(moves.slice)}: {escaped(moves.before)} → {escaped(moves.after)}\n\n{say.said(said)}"


def moves_view(moves: SliceMoves, base: str, say: Words = ENGLISH) -> str:
    """Returns the captions that lost and won most, as cards with their pictures."""
    parts = []
    for title, moved in (("Lost most", moves.lost), ("Won most", moves.won)):
        if moved:
            cards = "\n".join(_card(one, base, say) for one in moved)
            parts.append(f"### {say.said(title)}\n\n{cards}")
    if not parts:
        return say.said("Every caption finds its picture at the same place under both.")
    told = "Left the picture that a caption belongs to, right the one that stands first now where that is another."
    return "\n\n".join([*parts, say.said(told)])


def named(language: str, say: Words = ENGLISH) -> str:
    """Returns what a language is called."""
    return say.said("cannot be told") if language == UNDETERMINED else name_in(language, say.language)


def _card(one: QueryChange, base: str, say: Words) -> str:
    pictures = [f"![{say.said('the picture of this caption')}]({thumbnail_url(base, one.image_id)})"]
    if one.first_image and one.first_image != one.image_id:
        pictures.append(f"![{say.said('what stands first now')}]({thumbnail_url(base, one.first_image)})")
    place = say.said(f"place **{gate_words.places(one)}**")
    return "- " + "  \n  ".join([" ".join(pictures), f"“{escaped(one.text)}”", place])
