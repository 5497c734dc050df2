"""The words of eight languages for drawn scenes, read from `scene_words.json`.

Every inflected form is written out, because rules that guess endings are wrong exactly where a native speaker
looks; `scene_grammar` puts the forms together. `sentences` are a noun phrase, one with the time first, and a
whole sentence, in which T is the time, P the place, N the things, V the verb and C Japanese things followed by
their counter. Places and times carry their preposition or case. The forms of each noun and colour are:

    en   noun: singular, plural
    de   noun: gender, singular, plural
         colour, nominative after "ein": m, f, n; plural without article
    fr   noun: gender, singular, plural
         colour: m singular, f singular, m plural, f plural
    ru   noun: gender, nominative singular, genitive singular (after two, three), nominative plural
         colour: m, f, n, nominative plural (also after two, three with feminines), genitive plural (with the others)
    hi   noun: gender, singular, plural
         colour: m singular, m plural, feminine
    ja   noun, counter, verb of being (living things: いる)
    ar   noun: gender, singular, dual, plural
         colour: m singular, f singular (also for all plurals of things and animals), m dual, f dual
    zh   noun, measure word
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

Forms = list[str]


@dataclass(frozen=True, slots=True)
class SceneWords:
    """The words of one language, by the English names of what a scene shows."""

    sentences: Forms
    places: dict[str, str]
    times: dict[str, str]
    nouns: dict[str, Forms]
    colours: dict[str, Forms] = field(default_factory=dict)


WORDS: dict[str, SceneWords] = {
    language: SceneWords(**words)
    for language, words in json.loads(
        Path(__file__).with_name("scene_words.json").read_text(encoding="utf-8")
    ).items()
}
