"""The words of the Search tab: what was found, how it was read, and the pictures themselves, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from babel.numbers import format_decimal

from app.desk.hits import AUTO, Choices, Found, Mode, SearchAnswer, SearchRequest, Sort
from app.desk.pictures import PictureSide
from app.language.detection import UNDETERMINED
from app.query.grammar import literal, quoted
from app.ui.address import address_of
from app.ui.drawn import Markup, tag
from app.ui.grid import Picture
from app.ui.wording import thumbnail_url
from app.ui.words import ENGLISH, Words
from app.words.language_names import name_in, own_name
from app.words.messages import duration
from ingest.records import JobRecord
from ingest.sentence import phrase

ANY_LANGUAGE = phrase("Any language")
MODES = {
    Mode.HYBRID: phrase("Pictures and captions"),
    Mode.VECTORS: phrase("Pictures"),
    Mode.CAPTIONS: phrase("Captions"),
}
_READING, _ADDING = phrase("Reading your pictures"), phrase("Adding pictures")
_EMBEDDING = phrase("Making them searchable")
_FEW_LANGUAGES = 3  # that are named; of more the number is
_NARROWEST, _WIDEST = (
    0.5,
    3.0,
)  # width beside height of a picture in the grid; beyond that its ends are cut off
_ROW = 220  # pixels of a row's height, for browsers that do not look themselves how large a picture is drawn
_SIGN = tag(
    "svg",
    tag("circle", cx=12, cy=12, r=9),
    tag("path", d="M12 11v6M12 7v.5"),
    viewBox="0 0 24 24",
    class_="icon",
    aria_hidden="true",
)


def modes(say: Words = ENGLISH) -> list[tuple[str, str]]:
    """Returns the menu of what a query is looked up in."""
    return [(say.said(words), mode.value) for mode, words in MODES.items()]


def language_choices(choices: Choices, say: Words = ENGLISH) -> list[tuple[str, str]]:
    """Returns the language menu: detection, each learned language with how well it is found, then others by name."""
    learned = [(_badged(own_name(one.language), one.recall), one.language) for one in choices.learned]
    others = sorted((own_name(tag), tag) for tag in choices.readable)
    return [(say.said(ANY_LANGUAGE), AUTO), *learned, *others]


def above(
    answer: SearchAnswer, asked: SearchRequest, choices: Choices, say: Words, notes: Sequence[str]
) -> Markup:
    """Returns what is said above the pictures: what they are, words to begin with, and the facts behind one sign.

    Args:
        answer: with its first pictures.
        asked: what it answers.
        choices: what there is.
        say: the words.
        notes: more that has to be said of it; empty ones are not.
    """
    is_browsed = not answer.parts
    lines = [tag("p", _counted(answer, choices, say), class_="count")]
    if is_browsed and choices.examples and not address_of(asked):
        lines.append(tag("p", tag("span", say("Try")), _tries(choices), class_="tries"))
    if is_browsed and (asked.sort is Sort.TAKEN or any(hit.taken for hit in answer.hits)):
        lines.append(tag("p", _order(asked, say), class_="order"))
    for note in [*_unlearned(answer, say), *notes]:
        lines += [tag("p", note, class_="note")] if note else []
    if answer.captions:
        lines.append(_captions_found(answer, say))
    return tag("div", [lines[0], _about(answer, choices, say), *lines[1:]], class_="said")


def coming(job: JobRecord | None, say: Words, *, is_first: bool) -> tuple[str, float | None]:
    """Returns how far the work of taking pictures in is: a line, empty where none come, and the part that is done.

    `is_first` says that there are no pictures yet.
    """
    stage = job.progress.get("name", "start") if job else "check"
    if job is None or stage == "check":  # what is checked can be searched
        return "", None
    is_read = stage in ("start", "ingest")
    what = (_READING if is_first else _ADDING) if is_read else _EMBEDDING
    details = job.progress.get("details") or {}
    if not details.get("total"):
        return f"{say.said(what)} …", None
    counts = {"some": _number(details["done"], say), "all": _number(details["total"], say)}
    progress = phrase("{some} of {all}", **counts)
    if (left := details.get("seconds_left") or 0) >= 1:
        progress = phrase("{some} of {all}, about {time} left", **counts, time=duration(left))
    return say("{what}: {progress}", what=what, progress=progress), job.progress.get("fraction")


def _counted(answer: SearchAnswer, choices: Choices, say: Words) -> list[str | Markup]:
    shown = _number(answer.searched, say)
    if answer.searched < choices.pictures and not answer.parts:
        shown = say("{some} of {all}", some=shown, all=_number(choices.pictures, say))
    count = say("1 picture") if shown == "1" else say("{count} pictures", count=shown)
    if answer.parts:
        read = [name_in(one, say.language) for one in answer.language.split(" + ") if one]
        told = say("read as {languages}", languages=", ".join(read)) if read else ""
        more = " · ".join(["", say("best matches first"), *([told] if told else [])])
        return [tag("b", count), tag("span", more, class_="more-said")]
    names = [name_in(one.language, say.language) for one in choices.learned]
    told = ", ".join(names) if len(names) <= _FEW_LANGUAGES else say("{count} languages", count=len(names))
    title = say("Search in {languages}", languages=", ".join(names))
    return [tag("b", count), tag("span", f" · {told}", title=title, class_="more-said")]


def _tries(choices: Choices) -> list[Markup]:
    return [
        tag("a", one, href=address_of(SearchRequest(text=literal(one))), class_="chip", dir="auto", title=one)
        for one in choices.examples
    ]


def _order(asked: SearchRequest, say: Words) -> Markup:
    """Returns the link to the other order of what is browsed."""
    is_taken = asked.sort is Sort.TAKEN
    other = asked.model_copy(update={"sort": Sort.ADDED if is_taken else Sort.TAKEN, "offset": 0})
    name = say("By date added") if is_taken else say("By date taken")
    return tag("a", name, href=address_of(other) or "?")


def _unlearned(answer: SearchAnswer, say: Words) -> list[str]:
    """Returns what has to be said about how words were read; for those in no learned language, what helps."""
    if not answer.unlearned:
        return [say.said(answer.note)]
    name = name_in(answer.unlearned, say.language)
    first = (
        say("These words are in no language that is learned.")
        if answer.unlearned == UNDETERMINED
        else say("{language} is not learned yet.", language=name)
    )
    return [
        f"{first} {say('Write the same in English in the filters; or teach the language with pairs in it.')}"
    ]


def _captions_found(answer: SearchAnswer, say: Words) -> Markup:
    items = [tag("li", caption_link(one.language, one.text)) for one in answer.captions]
    return tag("details", tag("summary", say("Captions that fit")), tag("ul", items), class_="captions-found")


def caption_link(language: str, text: str) -> Markup:
    """Returns a caption as a search for exactly its words."""
    asked = SearchRequest(text=quoted(text), language=language)
    return tag("a", text, href=address_of(asked), dir="auto", lang=language)


def _about(answer: SearchAnswer, choices: Choices, say: Words) -> Markup:
    """Returns the facts of an answer, and what can be done with its pictures, behind a sign."""
    milliseconds = 1000 * (answer.timing.encode + answer.timing.index + answer.timing.rerank)
    facts = {
        say("Release"): answer.release,
        say("Language"): readings(answer, say, answer.recalls) if answer.language else "",
        say("Time"): f"{milliseconds:.0f} ms",
        say("Pictures"): say(
            "{some} of {all}",
            some=_number(answer.searched, say),
            all=_number(choices.pictures, say),
        ),
        say("Relevance"): _measured_in(answer, say),
    }
    told = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items() if value]
    files = [
        tag("button", name, type="button", data_file=kind)
        for kind, name in (("csv", say("Table (CSV)")), ("zip", say("Pictures (ZIP)")))
        if answer.hits
    ]
    inside = [tag("dl", told), *([tag("p", say("Save what is shown")), tag("div", files)] if files else [])]
    return tag(
        "details",
        tag("summary", _SIGN, aria_label=say("About this answer")),
        tag("div", inside),
        class_="about",
    )


def _measured_in(answer: SearchAnswer, say: Words) -> str:
    """Says whose captions tell what a hit is worth, where that is known."""
    if not answer.measured_in:
        return ""
    return say("measured on captions in {language}", language=name_in(answer.measured_in, say.language))


def missing(names: Sequence[str], say: Words) -> str:
    """Returns what an address asked for and no menu has; "" where it has all."""
    if not names:
        return ""
    return say("Not here any more, and left out: {names}.", names=", ".join(name[:40] for name in names))


def without_filters(asked: SearchRequest) -> str:
    """Returns the address of the same search among all pictures."""
    return address_of(SearchRequest(text=asked.text, items=asked.items, language=asked.language)) or "?"


def tiles(hits: Sequence[Found], address: str, say: Words) -> list[Markup]:
    """Returns the pictures, each a link to itself in its search, as wide as it is beside its height."""
    return [_tile(hit, address, say) for hit in hits]


def _tile(hit: Found, address: str, say: Words) -> Markup:
    width, height = (hit.width, hit.height) if hit.width and hit.height else (1, 1)
    ratio = min(max(width / height, _NARROWEST), _WIDEST)
    base = hit.thumb_url.lstrip("/")
    widths = {_width(width, height, side): f"{base}?size={side}" for side in reversed(PictureSide)}
    widths[_width(width, height, PictureSide.SMALL)] = base
    several = len(widths) > 1
    picture = tag(
        "img",
        src=base,
        srcset=", ".join(f"{place} {wide}w" for wide, place in sorted(widths.items())) if several else None,
        sizes=f"auto, {round(_ROW * ratio)}px" if several else None,
        width=width,
        height=height,
        alt=_named(hit, say),
        loading="lazy",
        decoding="async",
    )
    opens = f"{address.partition('#')[0] or '?'}&picture={hit.id}".replace("?&", "?")
    link = tag("a", picture, href=opens, data_id=hit.id, tabindex=-1)
    return tag("li", link, class_="tile", style=f"--ratio:{ratio:.4f}")


def _named(hit: Found, say: Words) -> str:
    """Returns what a picture is called for who cannot see it: its caption, or its file's name."""
    if hit.captions:
        return hit.captions[0].text
    return next((one.label for one in hit.sources), "") or say("A picture without a caption")


def _width(width: int, height: int, side: int) -> int:
    """Returns how wide a picture is whose longer side has so many pixels at most."""
    return max(1, round(width * min(1, side / max(width, height))))


def hit_picture(hit: Found, note: str, base: str, say: Words = ENGLISH) -> Picture:
    """Returns a picture with a note on it."""
    said = hit.captions[0].text if hit.captions else say("A picture without a caption")
    return Picture(thumbnail_url(base, hit.id), said, note)


def _number(count: int, say: Words) -> str:
    return str(format_decimal(count, locale=say.language))


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
