"""The words of the Search tab: what was found, how it was read, what is known of a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from app.desk.hits import AUTO, Choices, Found, Mode, Relevance, SearchAnswer, SearchRequest
from app.desk.pictures import Item
from app.language.detection import UNDETERMINED
from app.ui.address import address_of
from app.ui.grid import Picture
from app.ui.language_names import name_in, own_name
from app.ui.screen import Screen
from app.ui.wording import escaped, thumbnail_url
from app.ui.words import ENGLISH, Words
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


def language_choices(choices: Choices, say: Words = ENGLISH) -> list[tuple[str, str]]:
    """Returns the language menu: detection first, then each learned language with how well it is found."""
    learned = [(_badged(own_name(one.language), one.recall), one.language) for one in choices.learned]
    return [(say.said(ANY_LANGUAGE), AUTO), *learned]


def answer_line(answer: SearchAnswer, first: int, count: int, say: Words) -> str:
    """Returns the line above the results: how many, what they are worth, how the words were read, how fast.

    Args:
        answer: of the page shown last.
        first: number of the first picture on the screen, from 0.
        count: pictures on the screen.
        say: the words.
    """
    milliseconds = 1000 * (answer.timing.encode + answer.timing.index + answer.timing.rerank)
    parts = [
        _number(answer, first, count, say),
        *([say.said(RELEVANCE[Relevance(answer.relevance)])] if answer.relevance else []),
        *([f"**{readings(answer, say, answer.recalls)}**"] if answer.language else []),
        f"{say('release')} `{answer.release}`",
        f"{milliseconds:.0f} ms",
    ]
    return " · ".join(parts)


def links(screen: Screen, say: Words) -> str:
    """Returns the link to a search that an address can hold, and one to a new one."""
    address = "" if screen.files else address_of(screen.asked)
    fresh = f"[{say('New search')}](?)"
    return f"[{say('Link')}]({address}) · {fresh}" if address else fresh


def notes(answer: SearchAnswer, say: Words) -> str:
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


def found_captions(answer: SearchAnswer, say: Words) -> str:
    """Returns the captions that a picture found, each a search; "" where it found none."""
    lines = [_caption(one.language, one.text) for one in answer.captions]
    return "\n".join([f"## {say('Captions that fit')}", "", *lines]) if lines else ""


def hit_pictures(hits: Sequence[Found], base: str, say: Words = ENGLISH) -> list[Picture]:
    """Returns the pictures that were found, with the score on each."""
    return [hit_picture(hit, f"{hit.score:.3f}", base, say) for hit in hits]


def hit_picture(hit: Found, note: str, base: str, say: Words = ENGLISH) -> Picture:
    """Returns a picture with a note on it."""
    said = hit.captions[0].text if hit.captions else say("A picture without a caption")
    return Picture(thumbnail_url(base, hit.id), said, note)


def picture_details(
    hit: Found, rank: int, known: Item, learned: Sequence[str], base: str, say: Words
) -> tuple[str, str]:
    """Returns the larger picture and, below it, everything known of it; each caption is a search.

    Args:
        hit: the picture that was chosen.
        rank: of it among all.
        known: of it.
        learned: languages that the menu offers.
        base: begins addresses.
        say: the words.
    """
    facts = {
        say("Score"): f"{hit.score:.4f}",
        say("Rank"): str(rank),
        say("Domain"): escaped(known.domain),
        say("Split"): known.split,
        say("Size"): f"{known.width} × {known.height} {escaped(known.format)}",
        say("Chunk"): known.chunk,
        say("Id"): f"{hit.id[:20]}…",
    }
    if known.taken:
        facts |= {say("Taken"): escaped(known.taken.replace("T", " "))}
    if known.camera:
        facts |= {say("Camera"): escaped(known.camera)}
    told = "  \n".join(f"{name} **{value}**" for name, value in facts.items())
    spoken = "\n".join(
        _caption(one.language, one.text, is_learned=one.language in learned) for one in known.captions
    )
    address = f"{base}{hit.url}"
    picture = f"[![{say('Rank')} {rank}]({address})]({address})"
    parts = [f"## {say('Captions')}\n\n{spoken or say('This picture has none.')}"]
    if known.sources:
        parts.append(f"## {say('Where it was seen')}\n\n{_places(known, address, say)}")
    return picture, "\n\n".join([*parts, told])


def _places(known: Item, address: str, say: Words) -> str:
    """Returns the places of a picture, a line each, and a link to the file itself."""
    lines = []
    for one in known.sources:
        fields = [one.key, *(f"{name} = {value}" for name, value in one.fields.items())]
        more = "".join(f" · {escaped(field)}" for field in fields if field)
        lines.append(f"- {escaped(one.path)}{more}{' · ' + say('no longer there') if one.gone else ''}")
    lines.append(f"\n[{say('Open the original file')}]({address}/original)")
    return "\n".join(lines)


def _caption(language: str, text: str, *, is_learned: bool = True) -> str:
    # In quotation marks it is words, whatever it contains; it cannot contain some itself.
    words = '"{}"'.format(text.replace('"', " "))
    asked = SearchRequest(text=words, language=language if is_learned else AUTO)
    return f"- `{language}` [{escaped(text)}]({address_of(asked)})"


def _number(answer: SearchAnswer, first: int, count: int, say: Words) -> str:
    if first:
        return say(
            "pictures {first}–{last} of {all}", first=first + 1, last=first + count, all=answer.searched
        )
    return say("1 picture") if count == 1 else say("{count} pictures", count=count)


def readings(answer: SearchAnswer, say: Words, recalls: Mapping[str, float] = MappingProxyType({})) -> str:
    """Returns how the words of a query were read, each language with its recall where that is told."""
    shown = answer.language.split(" + ")
    names = {tag: _badged(name_in(tag, say.language), recalls.get(tag), ", ") for tag in shown}
    if len(answer.detected) == 1 and len(shown) == 1:
        return say("language: {language}", language=names[shown[0]])
    sure = dict(answer.detected)
    return say(
        "detected: {languages}",
        languages=say(" or ").join(f"{names[tag]} ({sure.get(tag, 0.0):.2f})" for tag in shown),
    )


def _badged(name: str, recall: float | None, between: str = " · ") -> str:
    return name if recall is None else f"{name}{between}R@10 {recall:.0f}"
