"""Which languages a chunk's captions look like, to two witnesses: lingua, and the profiles that travel with an encoder.

lingua is asked about all languages it knows, in its small mode, since a wrong tag can hide any of them. The profiles
know languages that lingua does not, as soon as somebody has taught them.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from langcodes import Language as Tag
from numpy.typing import NDArray

from ingest.pair import BASE_LANGUAGE
from ingest.unstated_languages import detector
from model_updates.language_profiles import LanguageProfile, letters_of
from model_updates.trust.declared_language import SURE
from model_updates.trust.other_language import OtherLanguage, other_language

ASKED = 400  # captions of a language, spread over the upload
SEEN_NOW_AND_THEN = 0.03  # of those captions, surely in another language that is then looked for in all
# Names that lingua has for what a tag means, and languages that are one to it or to each other.
_LINGUA = {"no": ("nb", "nn"), "fil": ("tl",), "sh": ("hr", "bs", "sr")}
_ALIKE = ({"hr", "bs", "sr"}, {"id", "ms"}, {"nb", "nn"})


def confidences(texts: Sequence[str], declared: str) -> dict[str, NDArray[np.float64]]:
    """Returns by language lingua's (n,) confidences in captions; languages that are alike to it count for the declared.

    Captions without letters are left out before. `declared`, the tag of the upload, is a key only when lingua knows the
    language.
    """
    own = _names_of(declared)
    found: dict[str, NDArray[np.float64]] = {}
    for row, values in enumerate(detector().compute_language_confidence_values_in_parallel(list(texts))):
        for value in values:
            name = value.language.iso_code_639_1.name.lower()
            name = declared if name in own else name
            found.setdefault(name, np.zeros(len(texts)))[row] += value.value
    return found


def profile_fits(
    texts: Sequence[str], profiles: Mapping[str, LanguageProfile]
) -> dict[str, NDArray[np.float64]]:
    """Returns by learned language the (n,) log-likelihoods per letter that its profile gives captions, in nats."""
    letters = [letters_of(text) for text in texts]
    lengths = np.asarray([max(1, len(text) - 1) for text in letters])
    return {tag: profile.log_likelihoods(letters) / lengths for tag, profile in profiles.items()}


def in_another_language(
    texts: Sequence[str], declared: str, profiles: Mapping[str, LanguageProfile]
) -> OtherLanguage | None:
    """Returns the captions that read as another language than the rest, in English or one that lingua sees among them.

    None where there are few of them, or where no profile of that language was learned.
    """
    asked = [texts[at] for at in sample_of(texts)]
    found = confidences(asked, declared) if asked else {}
    seen = {
        tag
        for tag, values in found.items()
        if declared in found and np.mean(values >= SURE) >= SEEN_NOW_AND_THEN
    }
    own = Tag.get(declared).language
    rivals = {tag for tag in profiles if tag in seen | {BASE_LANGUAGE} and Tag.get(tag).language != own}
    return other_language(texts, {tag: profiles[tag] for tag in sorted(rivals)})


def sample_of(texts: Sequence[str]) -> list[int]:
    """Returns positions of up to `ASKED` captions with letters, evenly spread, one of those that read alike."""
    first: dict[str, int] = {}
    for at, text in enumerate(texts):
        first.setdefault(letters_of(text), at)
    different = [at for letters, at in first.items() if letters]
    return different[:: max(1, -(-len(different) // ASKED))]


def _names_of(declared: str) -> frozenset[str]:
    """Returns the names under which lingua may know a tag, with those of languages that it cannot tell from it."""
    code = Tag.get(declared).language or declared
    names = set(_LINGUA.get(code, (code,)))
    for alike in _ALIKE:
        if names & alike:
            names |= alike
    return frozenset(names)
