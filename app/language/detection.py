"""Which learned language a query is in, and which token tables therefore read it.

Two witnesses are heard. The profiles that travel with the encoder (`model_updates.language_profiles`) say how likely
each language writes these letters; they know the words of the captions that taught it. lingua knows languages at large
and corrects what few captions cannot show. A language that one of them does not know is judged by the other alone, so
that versions from before there were profiles are read by lingua.

Scripts come first: a language is asked only when it writes these letters, kana leave no language without kana, and a
text in letters that no learned language writes is said to be in none of them (`UNDETERMINED`). Letters may be shared
and the language still be none of them: a text that surprises every profile (`unfamiliar`) may be in none. An encoder
that reads more languages than it was taught has lingua say which of all such a text is in (`widened`).
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lingua import IsoCode639_1, Language, LanguageDetector, LanguageDetectorBuilder

from model_updates.language_profiles import (
    LanguageProfile,
    letters_of,
    script_of,
    script_shares,
    table_of,
)

UNDETERMINED = "und"  # BCP 47's tag for it
ENOUGH = 0.95  # of the posterior that the tables searched must have together
MOST_TABLES = 6
# Neighbouring letters say the same thing twice: log-likelihoods are divided by 2.6 n^0.12 for n letters, and lingua's
# shares count with this exponent. Chosen by cross-validation on training names (benchmarks/languages.py).
FLATTENING, GROWTH, LINGUA_WEIGHT = 2.6, 0.12, 0.25
LINGUA_FLOOR = 1e-5
UNFAMILIAR = 2.5  # deviations from what is usual; calls fewer than 1 % of a language's own names so
SCRIPT_SHARE = 0.25  # of a query's letters that a language must write to be asked
LATIN = "LATIN"
SURE = 0.5  # of lingua's shares that a language must have to be named among all
# So many deviations, and so much of lingua's shares for languages nobody taught, let these read a text: of captions in
# sixteen learned languages none, of those in others three of four (docs/log.md).
STRANGE, STRANGERS = 1.5, 0.8
_WRITTEN_TOGETHER = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL"})
_OURS = {"nb": "no", "nn": "no", "tl": "fil"}  # lingua's codes that are other tags with us
_EVERY = frozenset(Language.all())

# A query's are asked for at several steps.
_letters, _scripts = lru_cache(maxsize=1024)(letters_of), lru_cache(maxsize=1024)(script_shares)

Guess = tuple[str, float]
Profiles = Mapping[str, LanguageProfile]


@dataclass(frozen=True)
class Reading:
    """One way to read a query: with the table that serves `language`, of posterior `share`."""

    language: str
    share: float


def detect(text: str, learned: Sequence[str], profiles: Profiles | None = None) -> tuple[Guess, ...]:
    """Returns the learned languages with their posterior, likeliest first; they add up to 1.

    A text without letters is in any language, and given to the first. Languages without a profile are judged by lingua
    alone. When no learned language is written in these letters the answer is `UNDETERMINED` with 1.0 alone.
    """
    return detect_all([text], learned, profiles)[0]


def detect_all(
    texts: Sequence[str], learned: Sequence[str], profiles: Profiles | None = None
) -> list[tuple[Guess, ...]]:
    """Returns what `detect` returns of each text; texts that ask the same profiles are read by them at once."""
    profiles = profiles or {}
    heard = [_hear(text, learned, profiles) for text in texts]
    letters = list(dict.fromkeys(one.letters for one in heard if isinstance(one, _Heard)))
    values = table_of(*profiles.values()).log_likelihoods(letters).T.tolist()
    fits = {text: dict(zip(profiles, row, strict=True)) for text, row in zip(letters, values, strict=True)}
    return [_posterior(one, learned, fits[one.letters]) if isinstance(one, _Heard) else one for one in heard]


@dataclass(frozen=True)
class _Heard:
    """What is known of a text that several languages may have written."""

    letters: str  # of the text
    asked: list[str]  # languages that write them
    unprofiled: bool  # whether one of them has no profile
    shares: Mapping[str, float]  # lingua's


def _hear(text: str, learned: Sequence[str], profiles: Profiles) -> _Heard | tuple[Guess, ...]:
    """Returns what letters and lingua say of a text, or the guesses where that decides it."""
    letters = _letters(text)
    if not letters or (len(learned) == 1 and learned[0] not in profiles):
        return ((learned[0], 1.0),)
    asked = _written_so(letters, learned, profiles)
    if not asked:
        return ((UNDETERMINED, 1.0),)
    unprofiled = [tag for tag in asked if tag not in profiles]
    if len(asked) == 1 and not unprofiled:  # nothing that lingua says could change it
        return ((asked[0], 1.0), *((tag, 0.0) for tag in learned if tag != asked[0]))
    shares = _lingua_shares(text, learned, accurate=bool(unprofiled))
    if unprofiled and not any(shares.get(tag) for tag in asked):
        # lingua rules out every language of another script.
        asked = [tag for tag in asked if tag in profiles or tag not in shares]
        if not asked:
            return ((UNDETERMINED, 1.0),)
    return _Heard(letters, asked, bool(unprofiled), shares)


def _posterior(heard: _Heard, learned: Sequence[str], read: Mapping[str, float]) -> tuple[Guess, ...]:
    """Returns the guesses after both witnesses; `read` are the log-likelihoods by profile."""
    flattening = FLATTENING * (len(heard.letters) - 1) ** GROWTH
    fits = {tag: read[tag] / flattening for tag in heard.asked if tag in read}
    # Without a profile nothing speaks against a language but lingua, whose word then counts in full.
    neutral = max(fits.values(), default=0.0)
    weight = 1.0 if heard.unprofiled else LINGUA_WEIGHT
    shares = heard.shares
    average = 1 / max(1, len(shares))
    scores = {
        tag: fits.get(tag, neutral) + weight * math.log(max(shares.get(tag, average), LINGUA_FLOOR))
        for tag in heard.asked
    }
    best = max(scores.values())
    odds = {tag: math.exp(score - best) for tag, score in scores.items()}
    total = sum(odds.values())
    guesses = [(tag, odds.get(tag, 0.0) / total) for tag in learned]
    return tuple(sorted(guesses, key=lambda guess: (-guess[1], learned.index(guess[0]))))


def guessed_of_all(text: str) -> str:
    """Returns which language of all that lingua knows a text is in; `UNDETERMINED` where it is not sure."""
    # Languages that no detector tells apart by few words share the confidence, and nobody is named.
    found = _shares_of_all(text)
    best = max(found, key=lambda tag: found[tag], default=UNDETERMINED)
    return best if found.get(best, 0.0) >= SURE else UNDETERMINED


def widened(
    text: str, guesses: tuple[Guess, ...], profiles: Profiles, readable: Mapping[str, Collection[str]]
) -> tuple[Guess, ...]:
    """Returns guesses that also name languages nobody taught, where the learned ones do not fit a text.

    Args:
        text: a query.
        guesses: what `detect` returns of it.
        profiles: of the learned languages.
        readable: every language that the encoder reads, and the scripts it is written in; empty where it reads only
            what it was taught.
    """
    is_foreign = guesses[0][0] == UNDETERMINED
    if not readable or not (is_foreign or unfamiliar(text, guesses, profiles, STRANGE)):
        return guesses
    learned = {tag for tag, _ in guesses}
    others = {
        tag: share
        for tag, share in _shares_of_all(text).items()
        if tag in readable and tag not in learned and share > 0
    }
    if is_foreign and not others:
        # lingua does not know some languages that have letters of their own.
        scripts = set(_scripts(_letters(text)))
        writers = [tag for tag in readable if scripts & set(readable[tag])]
        others = {tag: 1 / len(writers) for tag in writers}
    total = sum(others.values())
    if is_foreign and others:
        found = [(tag, share / total) for tag, share in others.items()]
    elif total >= STRANGERS:
        found = [*others.items(), *((tag, share * (1 - total)) for tag, share in guesses)]
    else:
        return guesses
    return tuple(sorted(found, key=lambda guess: -guess[1]))


def written_apart(text: str) -> list[tuple[str, float]]:
    """Returns a text's words by the script that they are written in, each with its share of the letters.

    Only scripts of a quarter of the letters count; where there is but one, the text is returned as it is.
    """
    letters = "" if text.isascii() else _letters(text)
    words: dict[str, list[str]] = {}
    for word in letters.split():
        script = next((script for letter in word if (script := script_of(letter))), "")
        words.setdefault("CJK" if script in _WRITTEN_TOGETHER else script, []).append(word)
    apart = {" ".join(own): sum(map(len, own)) for own in words.values()}
    many = {part: count for part, count in apart.items() if count >= SCRIPT_SHARE * sum(apart.values())}
    if len(many) < 2:
        return [(text, 1.0)]
    return [(part, count / sum(many.values())) for part, count in many.items()]


def added_up(parts: Sequence[tuple[tuple[Guess, ...], float]]) -> tuple[Guess, ...]:
    """Returns the guesses for a text of the guesses for its parts, each with its share of the text."""
    if len(parts) == 1:
        return parts[0][0]
    known = [(guesses, share) for guesses, share in parts if guesses[0][0] != UNDETERMINED] or parts[:1]
    total = sum(share for _, share in known)
    found: dict[str, float] = {}
    for guesses, share in known:
        for tag, chance in guesses:
            found[tag] = found.get(tag, 0.0) + chance * share / total
    return tuple(sorted(found.items(), key=lambda guess: -guess[1]))


def unfamiliar(text: str, guesses: Sequence[Guess], profiles: Profiles, beyond: float = UNFAMILIAR) -> bool:
    """Says whether a text looks as if none of the learned languages wrote it, though they write its letters.

    `guesses` are what `detect` returns; `beyond` how many deviations each profile has to be surprised by.
    Where a language that may have written it has no profile, or one of before
    surprise was measured, nobody knows what it looks like, and the answer is no.
    """
    letters = _letters(text)
    if not letters or guesses[0][0] == UNDETERMINED:
        return False
    read = dict(zip(profiles, table_of(*profiles.values()).of(letters).tolist(), strict=True))
    # Likeliest first: the first one who is not surprised ends it.
    for tag in _written_so(letters, [tag for tag, _ in guesses], profiles):
        if tag not in profiles:
            return False
        deviations = profiles[tag].surprise.deviations(len(letters) - 1, -read[tag])
        if deviations is None or deviations <= beyond:
            return False
    return True


def readings(guesses: Sequence[Guess], route: Callable[[str], str] = str) -> tuple[Reading, ...]:
    """Returns the fewest readings that have `ENOUGH` of the posterior together, likeliest first.

    `guesses` are what `detect` returns. Languages that share a `route`, the name of what reads them, are one reading,
    named by the likeliest.
    """
    by_route: dict[str, Reading] = {}
    for tag, share in guesses:
        known = by_route.get(route(tag))
        by_route[route(tag)] = (
            Reading(tag, share) if known is None else Reading(known.language, known.share + share)
        )
    ordered = sorted(by_route.values(), key=lambda reading: -reading.share)
    chosen, reached = list[Reading](), 0.0
    for reading in ordered[:MOST_TABLES]:
        if reached >= ENOUGH:
            break
        chosen.append(reading)
        reached += reading.share
    return tuple(chosen)


def handicaps(chosen: Sequence[Reading], scale: float) -> list[float]:
    """Returns what each reading's cosines are lowered by: log of its odds against the likeliest, over the scale.

    With the scale that the towers were trained with, exp(scale * cosine) weighs pictures and the posterior weighs
    languages, so the order is that of the chance that this picture and this language are meant.
    """
    return [math.log(reading.share / chosen[0].share) / scale for reading in chosen]


def warm_up(learned: Sequence[str], profiles: Profiles | None = None) -> None:
    """Makes everything ready that the first query would wait for: profiles and lingua's models."""
    table_of(*(profiles or {}).values())
    detect("warm up", list(learned), profiles)


def _written_so(letters: str, learned: Sequence[str], profiles: Profiles) -> list[str]:
    """Returns the languages that may be written in these letters; those without a profile are never ruled out.

    Latin letters stand in texts of every script, others hardly in Latin texts: where there are such, they decide.
    """
    shares = _scripts(letters)
    written = {tag: profiles[tag].scripts for tag in learned if tag in profiles}
    beyond = {s: v for s, v in shares.items() if s != LATIN and any(s in own for own in written.values())}
    covered = {
        tag: sum((beyond or shares).get(script, 0.0) for script in own) for tag, own in written.items()
    }
    # Kana beside Han characters: only Japanese writes both.
    least = max(covered.values(), default=0.0) - 1e-9 if beyond else SCRIPT_SHARE
    return [tag for tag in learned if covered.get(tag, 1.0) >= least]


def _shares_of_all(text: str) -> dict[str, float]:
    """Returns the share of each language that lingua knows; it is loaded by the first who asks."""
    shares: dict[str, float] = {}
    for found in _detector(_EVERY, accurate=False).compute_language_confidence_values(text):
        code = found.language.iso_code_639_1.name.lower()
        shares[_OURS.get(code, code)] = shares.get(_OURS.get(code, code), 0.0) + found.value
    return shares


def _lingua_shares(text: str, learned: Sequence[str], *, accurate: bool) -> dict[str, float]:
    """Returns lingua's shares of the languages it knows; nothing where it has no choice to make.

    Two things it cannot know: Han characters alone may be Chinese or Japanese, and tags of one language are one to it.
    """
    known: dict[Language, list[str]] = {}
    for tag in learned:
        language = _lingua(tag)
        if language is not None:
            known.setdefault(language, []).append(tag)
    if not known:
        return {}
    if len(known) == 1:
        return {tag: 1.0 for tags in known.values() for tag in tags}
    values = _detector(frozenset(known), accurate=accurate).compute_language_confidence_values(text)
    shares = {tag: value.value for value in values for tag in known[value.language]}
    if set(_scripts(_letters(text))) == {"CJK"}:
        shared = [tag for tag in shares if tag.partition("-")[0] in {"zh", "ja"}]
        return {tag: (1 / len(shared) if tag in shared else 0.0) for tag in shares} if shared else shares
    return shares


@lru_cache(maxsize=64)
def _lingua(tag: str) -> Language | None:
    code = tag.partition("-")[0]
    if code in {"no", "fil"}:
        code = {"no": "nb", "fil": "tl"}[code]
    iso = getattr(IsoCode639_1, code.upper(), None) if len(code) == 2 else None
    return None if iso is None else Language.from_iso_code_639_1(iso)


@lru_cache(maxsize=8)
def _detector(languages: frozenset[Language], *, accurate: bool) -> LanguageDetector:
    """Builds lingua's detector; the quick one, of a tenth of the memory, is enough beside profiles."""
    builder = LanguageDetectorBuilder.from_languages(*sorted(languages, key=str))
    return (builder if accurate else builder.with_low_accuracy_mode()).build()
