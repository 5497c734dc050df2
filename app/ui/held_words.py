"""The words of held and rejected pairs: a card for each with its picture, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.ui.wording import escaped, moment, thumbnail_url
from app.ui.words import ENGLISH, Words
from ingest.records import AsidePair, QuestionedPair
from ingest.sentence import phrase

WHICH = {
    "waiting": phrase("Waiting for your decision"),
    "questioned": phrase("Flagged by the checks"),
    "decided": phrase("Decided"),
    "rejected": phrase("Rejected"),
}
"""Which pairs of a chunk's upload are shown."""
HELP = phrase(
    "Until something has been taught from this chunk, you can decide pair by pair on what was **held**, and "
    "leave out what the checks flag. Pairs that were **rejected** have to be corrected and uploaded again."
)
_CAPTION_SHOWN = 48
_NOBODY = {
    "waiting": phrase("No pairs of this chunk are waiting for your decision."),
    "questioned": phrase("No check flags a pair of this chunk."),
    "decided": phrase("No decisions on pairs of this chunk yet."),
    "rejected": phrase("No rejected pairs can be shown."),
}


def choices(counts: Mapping[str, int], questioned: int, say: Words = ENGLISH) -> list[tuple[str, str]]:
    """Returns the menu of what is shown, with how many there are."""
    found = {
        "waiting": counts["waiting"],
        "questioned": questioned,
        "decided": counts["accepted"] + counts["left_out"],
        "rejected": counts["rejected"],
    }
    return [(f"{say.said(label)} ({found[which]})", which) for which, label in WHICH.items()]


def line(which: str, total: int, first: int, shown: int, say: Words = ENGLISH) -> str:
    """Says which pairs are shown."""
    if not total:
        return say.said(_NOBODY[which])
    if shown == total:
        return ""
    return say("{count} to {last} of {all}", count=first + 1, last=first + shown, all=total)


def cards(pairs: Sequence[AsidePair], base: str, say: Words = ENGLISH) -> str:
    """Returns a card for each pair: picture, number, caption, why it was not taken in, and who decided what."""
    return "\n".join(_card(pair, base, say) for pair in pairs)


def labels(pairs: Sequence[AsidePair], say: Words = ENGLISH) -> list[tuple[str, str]]:
    """Returns the boxes to tick, a pair each."""
    return [(f"{pair.id} · {_beginning(pair.text) or say('no caption')}", str(pair.id)) for pair in pairs]


def questioned_cards(pairs: Sequence[QuestionedPair], base: str, say: Words = ENGLISH) -> str:
    """Returns a card for each pair that a check names."""
    return "\n".join(
        "- "
        + "  \n  ".join(
            [
                f"![{escaped(pair.text)}]({thumbnail_url(base, pair.image_id)})",
                f"“{escaped(pair.text)}” {escaped(pair.language)}",
                escaped(say.said(pair.why)),
                f"*{escaped(say.said(pair.check.replace('_', ' ')))}*",
            ]
        )
        for pair in pairs
    )


def questioned_labels(pairs: Sequence[QuestionedPair]) -> list[tuple[str, str]]:
    """Returns the boxes to tick, a pair each."""
    return [(f"{pair.language} · {_beginning(pair.text)}", str(pair.number)) for pair in pairs]


def _card(pair: AsidePair, base: str, say: Words) -> str:
    says = escaped(pair.text) or say("a picture without a caption")
    text = f"“{escaped(pair.text)}”" if pair.text else say("no caption")
    language = f" {escaped(pair.language)}" if pair.language else ""
    lines = [
        f"![{says}]({base}/v1/aside/{pair.id}/thumbnail)",
        f"**{pair.id}** {text}{language}",
        escaped(say.said(pair.sentence)),
        f"*{escaped(pair.place)}*",
    ]
    if pair.decided:
        note = f": {escaped(pair.decided_why)}" if pair.decided_why else ""
        who = {"name": escaped(pair.decided_by), "time": moment(pair.decided_at)}
        is_in = pair.decided == "accepted"
        decided = say("**accepted** by {name}, {time} UTC", **who)
        lines.append((decided if is_in else say("**left out** by {name}, {time} UTC", **who)) + note)
    return "- " + "  \n  ".join(lines)


def _beginning(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _CAPTION_SHOWN else f"{flat[: _CAPTION_SHOWN - 1]}…"
