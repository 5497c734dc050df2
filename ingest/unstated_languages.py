"""Detects the language of captions that come without one, from the caption itself and from the rest of the upload.

A caption of three words looks like many languages, an upload of a thousand captions like few. So lingua says for each
caption how likely each language is; the shares of languages that explain all captions best are estimated; and these
shares weigh what lingua says of each caption. This is the EM algorithm of Saerens, Latinne and Decaestecker (Neural
Computation 14(1), 2002, eq. 2.10), in which the shares become the mean of the posteriors; here of the other captions'.

Measured on flickr8k: all of 1,000 English captions are detected rightly, where lingua alone is right in 92.7 %; of
1,600 in eight languages 97.2 % are detected, all rightly. Of names of one or two words a third or more are left to a
person.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import langcodes
import numpy as np
from lingua import Language, LanguageDetector, LanguageDetectorBuilder
from numpy.typing import NDArray

from ingest.captions import UNDETERMINED, normalise_language
from ingest.plan import IntakePlan

SURE = 0.9  # posterior below which a person has to say
MAIN = 0.95  # of those that could be told: the rest that looks like a close relative is rather misread
CLOSE = 24  # CLDR's distance of Czech and Slovak; that of languages that merely share readers is larger
STRAY = 0.01  # of the upload: so few captions in a language are rather misread ones of another
ROUNDS = 30
# lingua says 0 where it has merely never seen a trigram; another script is 0 for certain.
FLOOR = 1e-3
# Han characters without kana are Chinese to lingua; beside captions with kana they are rather Japanese.
HAN_IN_JAPANESE = 0.3
AT_ONCE = 5_000
ASKED_CHARACTERS = 200  # a language shows in the beginning of a long caption
_LANGUAGES = tuple(sorted(Language.all(), key=str))
_JAPANESE, _CHINESE = _LANGUAGES.index(Language.JAPANESE), _LANGUAGES.index(Language.CHINESE)


def fill_in(plan: IntakePlan) -> None:
    """Gives rows without a language the one that is detected; a row that could be in several stays without.

    The plan keeps how many captions are in each language, and a note on them.
    """
    asked = [
        row
        for rows in plan.rows.values()
        for row in rows
        if row.caption and (row.language or "").strip().lower() in ("", UNDETERMINED)
    ]
    tags, relatives = _told([row.caption or "" for row in asked])
    found = {id(row): replace(row, language=tag) for row, tag in zip(asked, tags, strict=True) if tag}
    for rows in plan.rows.values():
        rows[:] = [found.get(id(row), row) for row in rows]
    plan.detected = dict(Counter(tag for tag in tags if tag).most_common())
    if not asked:
        return
    shares = [f"{tag} {_percent(count / len(asked))}" for tag, count in plan.detected.items()]
    looks = ", ".join(shares) or "none we can tell"
    said = f"{len(asked):,} captions state no language; they look like {looks}"
    unclear = len(asked) - len(found)
    plan.notes.append(f"{said}; {unclear:,} that could not be told are held" if unclear and shares else said)
    for tag, count in relatives.items():
        main = next(iter(plan.detected))
        plan.notes.append(
            f"{count:,} that may be {tag} are taken as {main}, which the rest is and which is close to it; where "
            "that is wrong, state their language in a column `language`"
        )


def caption_languages(texts: Sequence[str]) -> list[str | None]:
    """Returns for each caption its language as a BCP-47 tag, None where nobody can tell."""
    return _told(texts)[0]


def _told(texts: Sequence[str]) -> tuple[list[str | None], Counter[str]]:
    """Returns what `caption_languages` does, and how many captions were taken for those of a relative, by its tag."""
    unique = list(dict.fromkeys(texts))
    row_of = {text: row for row, text in enumerate(unique)}
    counts = np.zeros(len(unique))
    for text in texts:
        counts[row_of[text]] += 1
    posterior, shares = _posterior(_confidences(unique), counts)
    best = posterior.argmax(axis=1)
    is_sure = (posterior.max(axis=1) >= SURE) & (shares[best] >= STRAY)
    tags = [normalise_language(language.iso_code_639_1.name.lower()) for language in _LANGUAGES]
    main, folded = _main(best[is_sure], counts[is_sure]), Counter[str]()
    near = [] if main is None else _relatives(main, tags)
    if main is not None and near:
        group = [main, *near]
        is_told = (best == main) & is_sure
        is_near = ~is_told & np.isin(best, group) & (posterior[:, group].sum(axis=1) >= SURE)
        for row in np.flatnonzero(is_near):
            folded[tags[near[int(posterior[row, near].argmax())]]] += int(counts[row])
        best, is_sure = np.where(is_near, main, best), is_sure | is_near
    return [tags[best[row_of[text]]] if is_sure[row_of[text]] else None for text in texts], folded


def _main(told: NDArray[np.intp], counts: NDArray[np.float64]) -> int | None:
    """Returns the language that nearly all captions are in of which it could be told; None where there is none."""
    if not len(told):
        return None
    each = np.bincount(told, weights=counts, minlength=len(_LANGUAGES))
    return int(each.argmax()) if each.max() >= MAIN * each.sum() else None


def _relatives(main: int, tags: Sequence[str]) -> list[int]:
    """Returns the places of languages that CLDR calls close to one, either way: Slovak to Czech."""
    own = tags[main]
    return [
        place
        for place, tag in enumerate(tags)
        if place != main and min(langcodes.tag_distance(own, tag), langcodes.tag_distance(tag, own)) <= CLOSE
    ]


def _posterior(
    seen: NDArray[np.float64], counts: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns (n, languages) posteriors and (languages,) shares of an upload.

    `seen` (n, languages) is what lingua makes of each caption when all languages are as frequent; `counts` (n,) how
    often each caption stands in the upload.
    """
    smallest = np.finfo(np.float64).tiny
    weights = counts * (seen.sum(axis=1) > 0)  # digits and emoji are in no language
    posterior, total = seen, np.zeros(len(_LANGUAGES))
    for _ in range(ROUNDS if weights.any() else 0):
        # Its own answer is left out, else a caption that stands alone would confirm itself.
        rest = np.maximum(total - weights[:, None] * posterior, 0.0) + 1 / len(_LANGUAGES)
        posterior = seen * rest
        posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), smallest)
        total = weights @ posterior
    return posterior, total / max(weights.sum(), smallest)


def _confidences(texts: Sequence[str]) -> NDArray[np.float64]:
    """Returns (n, languages) lingua's confidences; zeros for a text without letters."""
    column = {language: position for position, language in enumerate(_LANGUAGES)}
    seen = np.zeros((len(texts), len(_LANGUAGES)))
    for start in range(0, len(texts), AT_ONCE):
        part = [text[:ASKED_CHARACTERS] for text in texts[start : start + AT_ONCE]]
        for row, values in enumerate(detector().compute_language_confidence_values_in_parallel(part), start):
            for value in values:
                seen[row, column[value.language]] = value.value
    seen = np.where(seen > 0, np.maximum(seen, FLOOR), 0.0)
    seen[:, _JAPANESE] = np.maximum(seen[:, _JAPANESE], HAN_IN_JAPANESE * seen[:, _CHINESE])
    return seen


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1f} %"


@lru_cache(maxsize=1)
def detector() -> LanguageDetector:
    """Returns lingua's detector of all languages it knows."""
    # The small mode needs a tenth of the memory and of the time.
    return LanguageDetectorBuilder.from_all_languages().with_low_accuracy_mode().build()
