"""Put the words of a scene together: agreement of gender, number and case, counters, word order."""

from dataclasses import dataclass

from ingest.samples.scene_words import WORDS


@dataclass(frozen=True, slots=True)
class NamedThings:
    """What is to be named: a subject, with or without its colour and its number."""

    subject: str  # one of `SUBJECTS`
    count: int  # how many there are, for agreement
    colour: str | None = None  # one of `COLOURS`, or None when the caption leaves it out
    counted: bool = True  # whether the caption says the number

    @property
    def plural(self) -> bool:
        """More than one."""
        return self.count > 1


def _spaced(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _en(things: NamedThings) -> str:
    noun = WORDS["en"].nouns[things.subject][things.plural]
    named = _spaced(things.colour or "", noun)
    if things.plural:
        return _spaced(("", "two", "three")[things.count - 1] if things.counted else "", named)
    return f"{'an' if named[0] in 'aeiou' else 'a'} {named}"


def _de(things: NamedThings) -> str:
    gender, singular, plural = WORDS["de"].nouns[things.subject]
    form = 3 if things.plural else "mfn".index(gender)
    colour = WORDS["de"].colours[things.colour][form] if things.colour else ""
    if things.plural:
        return _spaced(("", "zwei", "drei")[things.count - 1] if things.counted else "", colour, plural)
    return _spaced("eine" if gender == "f" else "ein", colour, singular)


def _fr(things: NamedThings) -> str:
    gender, singular, plural = WORDS["fr"].nouns[things.subject]
    form = "mf".index(gender) + 2 * things.plural
    colour = WORDS["fr"].colours[things.colour][form] if things.colour else ""
    if things.plural:
        return _spaced(("", "deux", "trois")[things.count - 1] if things.counted else "des", plural, colour)
    return _spaced("une" if gender == "f" else "un", singular, colour)


def _ru(things: NamedThings) -> str:
    gender, singular, genitive, plural = WORDS["ru"].nouns[things.subject]
    forms = WORDS["ru"].colours[things.colour] if things.colour else [""] * 5
    place = "mfn".index(gender)
    if not things.plural:
        return _spaced(("один", "одна", "одно")[place] if things.counted else "", forms[place], singular)
    if not things.counted:
        return _spaced(forms[3], plural)
    number = "три" if things.count == 3 else "две" if gender == "f" else "два"
    return _spaced(number, forms[3] if gender == "f" else forms[4], genitive)


def _hi(things: NamedThings) -> str:
    gender, singular, plural = WORDS["hi"].nouns[things.subject]
    form = 2 if gender == "f" else int(things.plural)
    colour = WORDS["hi"].colours[things.colour][form] if things.colour else ""
    number = ("एक", "दो", "तीन")[things.count - 1] if things.counted else ""
    return _spaced(number, colour, plural if things.plural else singular)


def _ar(things: NamedThings) -> str:
    gender, singular, dual, plural = WORDS["ar"].nouns[things.subject]
    feminine = gender == "f"
    forms = WORDS["ar"].colours[things.colour] if things.colour else [""] * 4
    if not things.plural:
        return _spaced(singular, forms[feminine])
    if things.count == 2:  # the dual is a form of its own: two things are never a plural
        return _spaced(dual, forms[2 + feminine])
    # Three to ten take the gender opposite to the noun's; plurals of things and animals take
    # feminine singular adjectives.
    number = ("ثلاث" if feminine else "ثلاثة") if things.counted else ""
    return _spaced(number, plural, forms[1])


def _ja(things: NamedThings) -> str:
    noun, counter, _ = WORDS["ja"].nouns[things.subject]
    number = f"{'一二三'[things.count - 1]}{counter}の" if things.counted else ""
    return number + (WORDS["ja"].colours[things.colour][0] if things.colour else "") + noun


def _zh(things: NamedThings) -> str:
    noun, measure = WORDS["zh"].nouns[things.subject]
    number = f"{'一两三'[things.count - 1]}{measure}" if things.counted else ""
    return number + (WORDS["zh"].colours[things.colour][0] if things.colour else "") + noun


_NAMERS = {"en": _en, "de": _de, "fr": _fr, "ru": _ru, "hi": _hi, "ja": _ja, "ar": _ar, "zh": _zh}


def name(things: NamedThings, language: str) -> str:
    """The noun phrase, nominative: "two red boats", "два красных кота", "قاربان أحمران"."""
    return _NAMERS[language](things)


def ja_counted(things: NamedThings) -> str:
    """Japanese with the counter behind, as in an existential sentence: 赤い船が三隻."""
    noun, counter, _ = WORDS["ja"].nouns[things.subject]
    colour = WORDS["ja"].colours[things.colour][0] if things.colour else ""
    return f"{colour}{noun}が{'一二三'[things.count - 1]}{counter}"


def seen(things: NamedThings, language: str) -> str:
    """The words for "can be seen", agreeing with the things, for German, Russian and Hindi sentences."""
    if language == "de":
        return "sind" if things.plural else "ist"
    if language == "ru":
        gender = WORDS["ru"].nouns[things.subject][0]
        return "видны" if things.plural else {"m": "виден", "f": "видна", "n": "видно"}[gender]
    gender = WORDS["hi"].nouns[things.subject][0]
    verb = "रही" if gender == "f" else "रहे" if things.plural else "रहा"
    return f"दिख {verb} {'हैं' if things.plural else 'है'}"
