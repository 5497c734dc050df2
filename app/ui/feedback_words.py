"""The words and drawings of the Feedback tab."""

from __future__ import annotations

from collections.abc import Sequence

from app.desk.opinions import Proposal, ProposedPair, Votes
from app.ui.compare_words import votes_view as one_votes_view
from app.ui.drawn import Markup, tag
from app.ui.grid import Picture
from app.ui.wording import escaped, moment, thumbnail_url
from app.ui.words import ENGLISH, Words
from app.words.language_names import name_in
from ingest.feedback import FeedbackRecord
from ingest.records import Pin
from ingest.sentence import phrase

HEADERS = ["number", "time (UTC)", "by", "said", "query", "language", "releases"]
PIN_HEADERS = ["query", "language", "picture"]
NOTHING = phrase("No feedback yet. People rate pictures on the Search tab and answers on the Compare tab.")
NO_VOTES = phrase("No votes between two releases yet.")
CHOOSE = phrase(
    "Select a row to look at it. The right picture for a query can become a canary: updates must "
    "keep it first."
)
CHOOSE_CANARY = phrase("Select a canary to remove it: updates no longer have to keep its picture.")
CHOOSE_PICTURE = phrase("Choose the right picture below first.")
NO_PAIRS = phrase(
    "No pairs are proposed yet. Rating a picture as fitting proposes it together with its query."
)
SHOWN_ROWS = 500
MOST_PAIRS = 200
_SAID = {
    "up": phrase("fits"),
    "down": phrase("does not fit"),
    "a": phrase("the earlier release"),
    "b": phrase("the later release"),
    "tie": phrase("a tie"),
    "both_bad": phrase("both bad"),
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
            say(" or ").join(filter(None, (one.release, one.other))),
        ]
        for one in records[:SHOWN_ROWS]
    ]


def said_line(count: int, say: Words = ENGLISH) -> str:
    """Says how many rows there are."""
    if not count:
        return say.said(NOTHING)
    if count <= SHOWN_ROWS:
        return say.said(CHOOSE)
    some = say(
        "Showing the newest {count} of {all}; the REST API has all of them.", count=SHOWN_ROWS, all=count
    )
    return f"{say.said(CHOOSE)} {some}"


def votes_view(counted: Sequence[Votes], say: Words = ENGLISH) -> Markup:
    """Returns the votes of each pair of releases, with their intervals drawn."""
    if not counted:
        return tag("p", say.said(NO_VOTES))
    return tag("div", [one_votes_view(one, say) for one in counted])


def chosen_line(record: FeedbackRecord, say: Words = ENGLISH) -> str:
    """Says what was chosen, and what may become of it."""
    said = f"**“{escaped(record.query)}”** · {say.said(_SAID[record.verdict])} · {escaped(record.by)}"
    if record.verdict == "up":
        may = say("The first picture is the one that was found right; choose another one if it is not.")
    else:
        may = say("Choose the right picture below, if it is there.")
    return f"{said}  \n{may}"


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
                captions.get(image_id) or say("A picture without a caption"),
                say.said(_SAID[record.verdict]) if image_id == record.image_id else str(place),
            ),
        )
        for place, image_id in enumerate(ids, start=1)
    ]


def pinned_line(pin: Pin, say: Words = ENGLISH) -> str:
    """Says what a canary asks of updates."""
    return say(
        "**“{query}” is a canary** in {language}. Once a release shows this picture first, no update goes live "
        "that does not.",
        query=escaped(pin.query),
        language=escaped(name_in(pin.language, say.language)),
    )


def chosen_canary_line(query: str, language: str, say: Words = ENGLISH) -> str:
    """Says which canary was chosen, and what taking it away means."""
    return say(
        "**“{query}”** in {language}. Without it an update may go live that shows another picture first.",
        query=escaped(query),
        language=escaped(name_in(language, say.language)),
    )


def removed_canary_line(pin: Pin, say: Words = ENGLISH) -> str:
    """Says that a canary is gone."""
    return say(
        "**“{query}” is no longer a canary** in {language}. A rating or a vote in the list above can make it "
        "one again.",
        query=escaped(pin.query),
        language=escaped(name_in(pin.language, say.language)),
    )


def pin_rows(pins: Sequence[Pin]) -> list[list[str]]:
    """Returns a row for each canary."""
    return [[one.query, one.language, one.image_id[:12]] for one in pins]


def proposal_line(found: Proposal, say: Words = ENGLISH) -> str:
    """Says how many pairs there are and what was left out."""
    left = []
    if found.known:
        left.append(say("{count} known already", count=found.known))
    if found.disputed:
        left.append(say("{count} rated down as often as up", count=found.disputed))
    if found.unusable:
        left.append(
            say(
                "{count} without a single text, a recognisable language or a picture that still exists",
                count=found.unusable,
            )
        )
    rest = [say("Left out: {why}.", why="; ".join(left))] if left else []
    count = len(found.pairs)
    if not count:
        return " ".join([say.said(NO_PAIRS), *rest])
    tests = sum(pair.split == "test" for pair in found.pairs)
    why = (
        phrase("; {count} with a held-out picture would be used for measuring, not for training", count=tests)
        if tests
        else ""
    )
    said = [
        say("**1 query with the picture that people found right for it**{why}.", why=why)
        if count == 1
        else say(
            "**{count} queries with the picture that people found right for each**{why}.",
            count=count,
            why=why,
        ),
        say("Leave out what is wrong."),
    ]
    if count > MOST_PAIRS:
        said.append(say("The first {count} are shown.", count=MOST_PAIRS))
    return " ".join([*said, *rest])


def pair_label(pair: ProposedPair, number: int, say: Words = ENGLISH) -> str:
    """Returns how the list names a pair; the number is that on its picture."""
    people = say("{count} × fits", count=pair.up) if pair.up else say("canary")
    against = f", {say('{count} × does not fit', count=pair.down)}" if pair.down else ""
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


def taken_line(job: str, count: int, say: Words = ENGLISH) -> str:
    """Says what becomes of the chunk."""
    return say(
        "**Job {job} is adding {count} pairs as a chunk.** It is checked and held: look at it under Update, "
        "and accept it with a reason to use it for training.",
        job=job,
        count=count,
    )
