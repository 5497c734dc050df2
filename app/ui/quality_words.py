"""The words of the Quality tab."""

from __future__ import annotations

from collections.abc import Sequence

from app import gate_words
from app.asked import AskedLanguage, advice
from app.languages import UNDETERMINED
from app.learning.lost import SliceMoves
from app.quality import QualityTable
from app.ui.language_names import english_name
from app.ui.wording import escaped, thumbnail_url
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


def advice_line(asked: Sequence[AskedLanguage]) -> str:
    """Returns what is asked for and not learned, as a list; "" when nothing is."""
    return "\n".join(f"- {escaped(line)}" for line in advice(asked, english_name))


def summary_line(table: QualityTable) -> str:
    """Returns forgetting and transfer of the live version in a sentence."""
    live = next((column for column in table.columns if column.is_live), None)
    if live is None or table.forgetting is None:
        return "Each cell is recall minus the best of the versions before that were ever live, in points."
    said = f"**{live.release}** lies on average {points(-table.forgetting)} points from the best version before it"
    if table.transfer is not None:
        said += (
            f", and {points(table.transfer)} points from where each slice stood when it was first measured"
        )
    return f"{said}. Each cell is recall minus the best of the versions before that were ever live."


def moves_title(moves: SliceMoves) -> str:
    """Says what was looked up and how it went."""
    change = points(100 * (moves.found_after - moves.found_before) / moves.captions)
    return (
        f"### {escaped(moves.slice)}: {escaped(moves.before)} → {escaped(moves.after)}\n\n"
        f"Looked up just now: of {moves.captions} held-out captions {moves.before} found {moves.found_before} "
        f"among the first ten, {moves.after} {moves.found_after} ({change} points)."
    )


def moves_view(moves: SliceMoves, base: str) -> str:
    """Returns the captions that lost and won most, as cards with their pictures."""
    parts = []
    for title, moved in (("Lost most", moves.lost), ("Won most", moves.won)):
        if moved:
            parts.append(f"### {title}\n\n" + "\n".join(_card(one, base) for one in moved))
    if not parts:
        return "Every caption finds its picture at the same place under both."
    told = "Left the picture that a caption belongs to, right the one that stands first now where that is another."
    return "\n\n".join([*parts, told])


def named(language: str) -> str:
    """Returns what a language is called."""
    return "cannot be told" if language == UNDETERMINED else english_name(language)


def _card(one: QueryChange, base: str) -> str:
    pictures = [f"![the picture of this caption]({thumbnail_url(base, one.image_id)})"]
    if one.first_image and one.first_image != one.image_id:
        pictures.append(f"![what stands first now]({thumbnail_url(base, one.first_image)})")
    return "- " + "  \n  ".join(
        [" ".join(pictures), f"“{escaped(one.text)}”", f"place **{gate_words.places(one)}**"]
    )
