"""The second text space of `perennial-photo`: multilingual-e5-small, each language centred on its own captions.

Vectors of one language lie together, whatever they say. The mean of 32 captions that say the same in every language is
taken away, so that all of them lie around one centre (docs/log.md: 4.5 points of R@10 in languages other than English).
A language without such captions is centred on the mean of all.

The first space reads Galician nearly as it reads Spanish, and Korean letters not at all where it was not taught them.
How far it reads a language that it does not know is measured on the same captions: the mean cosine of their centred
vectors with those that the captions have in the languages it knows. That is how long a vector of the first space is
beside those of its own languages (docs/log.md). Encoders of before that was measured do without.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_updates.language_profiles import letters_of, script_shares
from model_updates.photo.e5 import language_captions, sentence_e5
from model_updates.photo.e5_file import WIDTH
from model_updates.search_encoder import unit

SHARE = 0.8**0.5
"""Length of a text's vector in this space beside 1 in the first: a cosine here counts .8 of one there."""


class SecondSpace:
    """Texts to vectors (n, 384); nothing in it trains. Arrays may be numpy's or torch's.

    Attributes:
        dim: numbers of a vector.
        share: its length.
        first: languages that the first space knows, too.
        offsets: (languages, 384) float32, what texts of each language have in common, in the order of `readable`.
        trusts: (languages,) float32, how far the first space reads each language that it does not know, 0 … 1.
        first_offsets: (languages, 512) float32, what its texts have in common there beside those of known languages.
    """

    dim, share = WIDTH, SHARE
    first: frozenset[str]
    offsets: Any
    trusts: Any
    first_offsets: Any

    @property
    def written(self) -> dict[str, frozenset[str]]:
        """The languages it reads well, each with its scripts."""
        return _written()

    def trust(self, language: str) -> float:
        """Returns how far the first space is believed in a language that it does not know, 0 … 1."""
        place = readable().get(language)
        return 0.0 if place is None or self.trusts is None else float(self.trusts[place])

    def trusted(self, first: NDArray[np.float32], languages: Sequence[str]) -> NDArray[np.float32]:
        """Returns what the first space's vectors (n, 512) of texts in languages it does not know are worth."""
        if self.trusts is None or self.first_offsets is None or not len(languages):
            return np.zeros_like(first)
        places = [readable()[language] for language in languages]
        centred = unit(first - _array(self.first_offsets)[places])
        worth: NDArray[np.float32] = _array(self.trusts)[places, None] * centred
        return worth

    def features(self, texts: Sequence[str], languages: Sequence[str]) -> NDArray[np.float32]:
        """Returns (n, 384) float32 of n texts, each read in its own language; a text is run once.

        Raises:
            UnknownModel: the package is not installed.
            WeightsMismatch: its file is not the pinned one.
        """
        unique = list(dict.fromkeys(texts))
        place = {text: number for number, text in enumerate(unique)}
        vectors = sentence_e5().features(unique)[[place[text] for text in texts]]
        known, offsets = readable(), _array(self.offsets)
        own = [offsets[known[tag]] if tag in known else offsets.mean(axis=0) for tag in languages]
        return np.float32(SHARE) * unit(vectors - np.stack(own))


def _array(values: Any) -> NDArray[np.float32]:
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values)


@cache
def readable() -> dict[str, int]:
    """Returns the languages whose captions come with the package, about a hundred, and the place of each."""
    return {language: place for place, language in enumerate(language_captions())}


@cache
def _written() -> dict[str, frozenset[str]]:
    """Returns the scripts of each language's captions."""
    return {
        language: frozenset(script_shares(" ".join(map(letters_of, captions))))
        for language, captions in language_captions().items()
    }
