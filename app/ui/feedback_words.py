"""The words and drawings of the Feedback tab."""

from __future__ import annotations

from collections.abc import Sequence

from app.desk.opinions import Proposal, ProposedPair, Votes
from app.ui.compare_words import votes_view as one_votes_view
from app.ui.drawn import Markup, tag
from app.ui.grid import Picture
from app.ui.language_names import english_name, name_in
from app.ui.wording import escaped, moment, thumbnail_url
from app.ui.words import ENGLISH, Words
from ingest.feedback import FeedbackRecord
from ingest.records import Pin

HEADERS = ["number", "time (UTC)", "by", "said", "query", "language", "releases"]
PIN_HEADERS = ["query", "language", "picture"]
NOTHING = (
    "Nobody has said anything yet. People judge pictures on the Search tab and answers on the Compare tab."
)
NO_VOTES = "Nobody has voted between two releases yet."
CHOOSE = "Select a row to look at it. The right picture for a query can become a canary: updates must keep it first."
CHOOSE_CANARY = "Select a canary to take it away: updates need not keep its picture any more."
CHOOSE_PICTURE = "Choose the right picture below first."
NO_PAIRS = "No pair is proposed yet. A thumb up on a picture makes one of it and its query."
SHOWN_ROWS = 500
MOST_PAIRS = 200
_SAID = {
    "up": "👍 fits",
    "down": "👎 does not fit",
    "a": "the earlier release",
    "b": "the later release",
    "tie": "a tie",
    "both_bad": "both bad",
}


def rows(records: Sequence[FeedbackRecord], say: Words = ENGLISH) -> list[list[str]]:
    """Returns a row for each thing that was said, newest first."""
    return [
        [
            str(one.id),
            moment(one.created),
            one.by,
            say.said(_SAID[one.verdict]),
            one.query,
            one.language,
            say("or").join(filter(None, (one.release, one.other))),
        ]
        for one in records[:SHOWN_ROWS]
    ]


def said_line(count: int) -> str:
    """Says how many rows there are."""
    if not count:
        return NOTHING
    more = f" The newest {SHOWN_ROWS} of {count} are shown; REST has all." if count > SHOWN_ROWS else ""
    return f"{CHOOSE}{more}"


def votes_view(counted: Sequence[Votes], say: Words = ENGLISH) -> Markup:
    """Returns the votes of each pair of releases, with their intervals drawn."""
    if not counted:
        return tag("p", say.said(NO_VOTES))
    return tag("div", [one_votes_view(one, say) for one in counted])


def chosen_line(record: FeedbackRecord, say: Words = ENGLISH) -> str:
    """Says what was chosen, and what may become of it."""
    said = f"**“{escaped(record.query)}”** · {say.said(_SAID[record.verdict])} · {escaped(record.by)}"
    if record.verdict == "up":
        may = "The first picture is the one that was found right; choose another one if it is not."
    else:
        may = "Choose the right picture below, if it is there."
    return f"{said}  \n{say.said(may)}"


def candidates(
    record: FeedbackRecord, found: Sequence[str], captions: dict[str, str], base: str, say: Words = ENGLISH
) -> list[tuple[str, Picture]]:
    """Returns the pictures to choose the right one from: the one that was judged, then what live answers now."""
    ids = list(dict.fromkeys([*([record.image_id] if record.image_id else []), *found]))
    return [
        (
            image_id,
            Picture(
                thumbnail_url(base, image_id),
                captions.get(image_id) or say.said("A picture without a caption"),
                say.said(_SAID[record.verdict]) if image_id == record.image_id else str(place),
            ),
        )
        for place, image_id in enumerate(ids, start=1)
    ]


def pinned_line(pin: Pin) -> str:
    """Says what a canary asks of updates."""
    return (
        f"**“{escaped(pin.query)}” is a canary** in {escaped(english_name(pin.language))}. From the release on that "
        "shows this picture first, no update goes live that does not."
    )


def chosen_canary_line(query: str, language: str) -> str:
    """Says which canary was chosen, and what taking it away means."""
    return (
        f"**“{escaped(query)}”** in {escaped(english_name(language))}. Without it an update may go live that shows "
        "another picture first."
    )


def removed_canary_line(pin: Pin) -> str:
    """Says that a canary is gone."""
    return (
        f"**“{escaped(pin.query)}” is no canary any more** in {escaped(english_name(pin.language))}. A thumb up or a "
        "vote in the list above can make it one again."
    )


def pin_rows(pins: Sequence[Pin]) -> list[list[str]]:
    """Returns a row for each canary."""
    return [[one.query, one.language, one.image_id[:12]] for one in pins]


def proposal_line(found: Proposal) -> str:
    """Says how many pairs there are and what was left out."""
    left = [
        (found.known, "known already"),
        (found.disputed, "with as many thumbs down as up"),
        (found.unusable, "of no single text, no language that can be told, or no picture any more"),
    ]
    out = "; ".join(f"{count} {why}" for count, why in left if count)
    rest = f" Left out: {out}." if out else ""
    if not found.pairs:
        return f"{NO_PAIRS}{rest}"
    tests = sum(pair.split == "test" for pair in found.pairs)
    shown = f" The first {MOST_PAIRS} are shown." if len(found.pairs) > MOST_PAIRS else ""
    count = "1 pair" if len(found.pairs) == 1 else f"{len(found.pairs)} pairs"
    held_out = f"; {tests} with a held-out picture would measure, not teach" if tests else ""
    return (
        f"**{count} of a query and the picture that people found right for it**{held_out}. Leave out what is wrong."
        f"{shown}{rest}"
    )


def pair_label(pair: ProposedPair, number: int, say: Words = ENGLISH) -> str:
    """Returns how the list names a pair; the number is that on its picture."""
    people = f"{pair.up} 👍" if pair.up else say.said("canary")
    against = f", {pair.down} 👎" if pair.down else ""
    return (
        f"{number} · {pair.text} · {name_in(pair.language, say.language)} · {people}{against} · "
        f"{say.said(pair.split)}"
    )


def pair_pictures(pairs: Sequence[ProposedPair], base: str) -> list[Picture]:
    """Returns the pictures of the pairs, with their numbers."""
    return [
        Picture(thumbnail_url(base, pair.image_id), pair.text, str(number))
        for number, pair in enumerate(pairs, start=1)
    ]


def taken_line(job: str, count: int) -> str:
    """Says what becomes of the chunk."""
    return (
        f"**Job {job} takes {count} pairs in as a chunk.** It is checked, and held: look at it under Update, and "
        "accept it with a reason to let it teach."
    )
