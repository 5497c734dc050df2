"""Which languages a query is read in, and what is said of that."""

from __future__ import annotations

from collections.abc import Sequence

from app.desk.errors import BadQuery
from app.desk.hits import AUTO
from app.language.detection import UNDETERMINED, Guess, Reading, unfamiliar
from app.language.reading import read
from app.query.snapshot import Snapshot
from ingest.captions import normalise_caption, normalise_language
from ingest.errors import BadCaption
from ingest.sentence import Sentence, joined, phrase


def words(query: str) -> str:
    """Returns a query's text as the encoder reads it.

    Raises:
        BadQuery: it is empty or not a text.
    """
    try:
        return normalise_caption(query).text
    except BadCaption as error:
        if any(0xD800 <= ord(character) <= 0xDFFF for character in query):
            raise BadQuery("The query is not valid text; send it as UTF-8.") from error
        raise BadQuery(
            "There is nothing to look for. Type what the picture shows, such as: two red boats."
        ) from error


def read_query(
    snapshot: Snapshot, text: str, language: str
) -> tuple[tuple[Reading, ...], tuple[Guess, ...], str]:
    """Decides which token tables read the query; languages that share a table are read once."""
    language = AUTO if not language.strip() else language
    learned = ", ".join(snapshot.languages)
    if language != AUTO:
        language = normalise_language(language)
        told = (Reading(language, 1.0),), ((language, 1.0),)
        if language in snapshot.languages:
            return *told, ""
        known = _readable(snapshot, language)
        if known:
            note: str = "" if known in snapshot.languages else _untaught([known])
            return (Reading(known, 1.0),), ((known, 1.0),), note
        note = phrase(
            "{language} is not learned yet; the words are read as they are. Learned: {learned}.",
            language=language,
            learned=learned,
        )
        return *told, note
    chosen, guesses = read(text, snapshot.languages, snapshot.encoder)
    if guesses[0][0] == UNDETERMINED:
        note = phrase(
            "This is in none of the learned languages; the words are read as they are. Learned: {learned}.",
            learned=learned,
        )
        return chosen, guesses, note
    named = [reading.language for reading in chosen]
    notes: list[str] = []
    if len(named) > 1:
        notes = [
            phrase("unsure between {names}", names=_listed(named)),
            phrase("both were searched") if len(named) == 2 else phrase("all were searched"),
        ]
    untaught = [language for language in named if language not in snapshot.languages]
    if untaught:
        return chosen, guesses, joined([_untaught(untaught), joined(notes, "; ")])
    if unfamiliar(text, guesses, snapshot.encoder.profiles):
        notes.insert(0, phrase("This may be in none of the learned languages ({learned})", learned=learned))
    return chosen, guesses, joined(notes, "; ")


def _readable(snapshot: Snapshot, language: str) -> str:
    """Returns the tag under which the encoder reads a language that nobody taught by that tag; "" for none.

    Without a region, but for one that is written otherwise: `zh-HK` is read as `zh-TW`.
    """
    readable, base = {*snapshot.encoder.readable, *snapshot.languages}, language.partition("-")[0]
    if language in readable or base not in readable:
        return language if language in readable else ""
    written = _script(language)
    alike = (tag for tag in sorted(readable) if tag.startswith(f"{base}-") and _script(tag) == written)
    return base if written == _script(base) else next(alike, base)


def _script(language: str) -> str:
    """Returns the script that a language is most likely written in (Unicode's likely subtags)."""
    from langcodes import Language  # its tables take longer to load than most of what a search does

    return Language.get(language).maximize().script or ""


def _untaught(languages: Sequence[str]) -> Sentence:
    return phrase(
        "Nothing was taught in {languages} here; the words are read with what the encoder already knows.",
        languages=_listed(languages),
    )


def _listed(names: Sequence[str]) -> Sentence | str:
    return (
        phrase("{names} and {last}", names=", ".join(names[:-1]), last=names[-1]) if names[1:] else names[0]
    )
