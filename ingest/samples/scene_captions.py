"""Captions of scenes in eight languages, whole or partial."""

from collections.abc import Collection

from ingest.samples.scene_grammar import NamedThings, ja_counted, name, seen
from ingest.samples.scene_grid import ATTRIBUTES, Scene
from ingest.samples.scene_words import WORDS

LANGUAGES: tuple[str, ...] = tuple(WORDS)
VARIANTS = 3


def caption(scene: Scene, language: str, *, variant: int = 0) -> str:
    """Name all five attributes of a scene.

    Variant 0 is a plain phrase, 1 has another word order, 2 is a whole sentence.

    Raises:
        ValueError: unknown language or variant.
    """
    _require_language(language)
    if not 0 <= variant < VARIANTS:
        raise ValueError(f"captions have variants 0 to {VARIANTS - 1}; {variant} was asked for")
    words, things = WORDS[language], NamedThings(scene.subject, scene.count, scene.colour)
    parts = {
        "N": name(things, language),
        "P": words.places[scene.place],
        "T": words.times[scene.time],
        "V": _verb(things, language),
        "C": ja_counted(things),
    }
    sentence = words.sentences[variant]
    if language == "ja":
        sentence = sentence.replace("いる", words.nouns[scene.subject][2])
    text = sentence.format(**parts)
    return text[0].upper() + text[1:] if variant else text


def partial_caption(scene: Scene, language: str, keep: Collection[str]) -> str:
    """Name only some attributes: "a red boat", "drei Boote am Strand", "at night".

    `keep` holds names out of `ATTRIBUTES`; colour and count need the subject they belong to. Without the count,
    several things are a plain plural ("red boats"; in Arabic two are the dual).

    Raises:
        ValueError: unknown language or attribute, nothing kept, or a colour or count without its subject.
    """
    _require_language(language)
    unknown = sorted(set(keep) - set(ATTRIBUTES))
    if unknown or not keep:
        raise ValueError(f"keep some of {', '.join(ATTRIBUTES)}; got {', '.join(unknown) or 'nothing'}")
    if "subject" not in keep and {"colour", "count"} & set(keep):
        raise ValueError("a colour or a count cannot be named without its subject; keep the subject as well")
    words, named = WORDS[language], ""
    if "subject" in keep:
        colour = scene.colour if "colour" in keep else None
        named = name(NamedThings(scene.subject, scene.count, colour, "count" in keep), language)
    place = words.places[scene.place] if "place" in keep else ""
    time = words.times[scene.time] if "time" in keep else ""
    if language == "ja":
        return "の".join(part for part in (time, place, named) if part)
    if language == "zh":
        setting = "的".join(part for part in (time, place) if part)
        return f"{setting}的{named}" if setting and named else setting + named
    order = (time, place, named) if language == "hi" else (named, place, time)
    return " ".join(part for part in order if part)


def _verb(things: NamedThings, language: str) -> str:
    if language == "en":
        return "are" if things.plural else "is"
    if language == "ja":
        return "います" if WORDS["ja"].nouns[things.subject][2] == "いる" else "あります"
    return seen(things, language) if language in {"de", "ru", "hi"} else ""


def _require_language(language: str) -> None:
    if language not in LANGUAGES:
        raise ValueError(f"scenes have no captions in {language!r}; choose one of {', '.join(LANGUAGES)}")
