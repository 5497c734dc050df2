"""The words of the Search tab: what was found, how it was read, what is known of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.desk.hits import Mode, Relevance
from app.home.store import ReleaseRecord
from app.language.detection import UNDETERMINED
from app.query.question import QueryAnswer
from app.query.snapshot import AUTO
from app.ui import wording
from app.ui.address import address_of
from app.ui.asking import Asked
from app.ui.language_names import name_in
from app.ui.wording import escaped
from app.ui.words import ENGLISH, Words
from ingest.pair import Caption
from ingest.records import ChunkRecord, ImageRecord
from ingest.sentence import phrase

ANY_LANGUAGE = phrase("Any language")
MODES = {
    Mode.HYBRID: phrase("Pictures and captions"),
    Mode.VECTORS: phrase("How pictures look"),
    Mode.CAPTIONS: phrase("Words of captions"),
}
RELEVANCE = {
    Relevance.STRONG: phrase("a strong match"),
    Relevance.WEAK: phrase("weak matches"),
    Relevance.NOTHING: phrase("probably nothing here fits; these are the nearest"),
}


def modes(say: Words = ENGLISH) -> list[tuple[str, str]]:
    """Returns the menu of what a query is looked up in."""
    return [(say.said(words), mode.value) for mode, words in MODES.items()]


def language_choices(
    release: ReleaseRecord, languages: Sequence[str], say: Words = ENGLISH
) -> list[tuple[str, str]]:
    """Returns the language menu: detection first, then each learned language with how well it is found."""
    _, *learned = wording.language_choices(release, languages)
    return [(say("Any language"), AUTO), *learned]


def chunk_choices(chunks: Iterable[ChunkRecord]) -> list[tuple[str, str]]:
    """Returns the menu of chunks that have brought pictures, newest first."""
    named = [(f"{one.name} · {one.created[:10]}", one.id) for one in chunks if one.in_gallery]
    return named[::-1]


def answer_line(answer: QueryAnswer, release: ReleaseRecord, first: int, count: int, say: Words) -> str:
    """Returns the line above the results: how many, what they are worth, how the words were read, how fast.

    Args:
        answer: of the page shown last.
        release: that answered, for how well it knows the language.
        first: number of the first picture on the screen, from 0.
        count: pictures on the screen.
        say: the words.
    """
    milliseconds = 1000 * (answer.encode_seconds + answer.index_seconds + answer.rerank_seconds)
    parts = [
        _number(answer, first, count, say),
        *([say.said(RELEVANCE[Relevance(answer.relevance)])] if answer.relevance else []),
        *([f"**{_reading(answer, release, say)}**"] if answer.language else []),
        f"{say('release')} `{answer.release}`",
        f"{milliseconds:.0f} ms",
    ]
    return " · ".join(parts)


def links(asked: Asked, say: Words) -> str:
    """Returns the link to a search, and one to a new one."""
    address = address_of(asked)
    fresh = f"[{say('New search')}](?)"
    return f"[{say('Link')}]({address}) · {fresh}" if address else fresh


def notes(answer: QueryAnswer, say: Words) -> str:
    """Returns what has to be said about how words were read; for those in no learned language, what helps."""
    if not answer.unlearned:
        return escaped(say.said(answer.note))
    unknown = answer.unlearned == UNDETERMINED
    name = name_in(answer.unlearned, say.language)
    first = (
        say("These words are in no language that is learned.")
        if unknown
        else say("{language} is not learned yet.", language=f"**{escaped(name)}**")
    )
    helps = say(
        "What helps: write the same in English in the filter below the box; or [teach it](/admin/) with pairs in that "
        "language."
    )
    return f"{first} {helps}"


def missing(names: Sequence[str], say: Words) -> str:
    """Returns what an address asked for and no menu has; "" where it has all."""
    return (
        say(
            "Not here any more, and left out: {names}.",
            names=", ".join(f"**{escaped(name[:40])}**" for name in names),
        )
        if names
        else ""
    )


def found_captions(answer: QueryAnswer, say: Words) -> str:
    """Returns the captions that a picture found, each a search; "" where it found none."""
    lines = [_caption(one.language, one.text) for one in answer.captions]
    return "\n".join([f"## {say('Captions that fit')}", "", *lines]) if lines else ""


@dataclass(frozen=True)
class Chosen:
    """A picture that was chosen, and the languages that the release has learned."""

    image_id: str
    score: float
    rank: int
    learned: Sequence[str]


def picture_details(
    chosen: Chosen, record: ImageRecord | None, captions: Iterable[Caption], base: str, say: Words
) -> tuple[str, str]:
    """Returns the larger picture and, below it, everything known of it; each caption is a search."""
    facts = [(say("Score"), f"{chosen.score:.4f}"), (say("Rank"), str(chosen.rank))]
    if record is not None:
        facts += [
            (say("Domain"), escaped(record.domain)),
            (say("Split"), record.split.value),
            (say("Size"), f"{record.width} × {record.height} {escaped(record.format)}"),
            (say("Chunk"), record.chunk_id),
        ]
    facts.append((say("Id"), f"{chosen.image_id[:20]}…"))
    known = "  \n".join(f"{name} **{value}**" for name, value in facts)
    spoken = "\n".join(
        _caption(one.language, one.text, is_learned=one.language in chosen.learned) for one in captions
    )
    address = f"{base}/v1/images/{chosen.image_id}"
    picture = f"[![{say('Rank')} {chosen.rank}]({address})]({address})"
    return picture, f"## {say('Captions')}\n\n{spoken or say('This picture has none.')}\n\n{known}"


def _caption(language: str, text: str, *, is_learned: bool = True) -> str:
    # In quotation marks it is words, whatever it contains; it cannot contain some itself.
    asked = Asked(text='"{}"'.format(text.replace('"', " ")), language=language if is_learned else AUTO)
    return f"- `{language}` [{escaped(text)}]({address_of(asked)})"


def _number(answer: QueryAnswer, first: int, count: int, say: Words) -> str:
    if first:
        return say(
            "pictures {first}–{last} of {all}", first=first + 1, last=first + count, all=answer.searched
        )
    return say("1 picture") if count == 1 else say("{count} pictures", count=count)


def _reading(answer: QueryAnswer, release: ReleaseRecord, say: Words) -> str:
    shown = answer.language.split(" + ")
    names = {tag: _with_badge(tag, release, say) for tag in shown}
    if len(answer.detected) == 1 and len(shown) == 1:
        return say("language: {language}", language=names[shown[0]])
    sure = dict(answer.detected)
    return say(
        "detected: {languages}",
        languages=say(" or ").join(f"{names[tag]} ({sure.get(tag, 0.0):.2f})" for tag in shown),
    )


def _with_badge(tag: str, release: ReleaseRecord, say: Words) -> str:
    badge, name = wording.recall_badge(release, tag), name_in(tag, say.language)
    return f"{name}, {badge}" if badge else name
