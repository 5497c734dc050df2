"""Texts to the tokens of multilingual-e5-small: the likeliest sequence of its 250,002 pieces (a unigram model)."""

from collections.abc import Sequence
from functools import lru_cache

from model_updates.photo.e5_file import PackedFile

START, END, UNKNOWN = 0, 2, 3
SPACE = "\u2581"  # how pieces write the space before a word
CONTROL = frozenset({"<s>", "<pad>", "</s>", "<unk>", "<mask>"})  # no text can spell them
_BELOW = 10.0  # a character that no piece has counts as that much less likely than the least likely piece
_WORDS_KEPT = 20_000


class E5Pieces:
    """The package's own segmentation, as a library's would take 258 MB where this takes 45 (docs/log.md)."""

    def __init__(self, file: PackedFile) -> None:
        self._normal, self._scores = file.normal, file.scores
        self._ids = {piece: place for place, piece in enumerate(file.pieces) if piece not in CONTROL}
        self._longest = max(map(len, self._ids))
        self._unknown = min(file.scores) - _BELOW
        self._word = lru_cache(maxsize=_WORDS_KEPT)(self._cut)

    def encode(self, text: str, most: int) -> list[int]:
        """Returns the ids of a text, its start and end counted, at most `most` of them; what comes later is cut."""
        words = [word for word in text.translate(self._normal).split(" ") if word]
        found = [START]
        for word in words:
            if len(found) >= most:
                break
            found += self._word(SPACE + word)
        return [*found[: most - 1], END]

    def _cut(self, word: str) -> Sequence[int]:
        """Returns the likeliest pieces of a word (Viterbi)."""
        count = len(word)
        best = [0.0] + [float("-inf")] * count
        taken = [(0, UNKNOWN)] * (count + 1)  # by where a piece ends: where it starts, and its id
        for start in range(count):
            here = best[start]
            if here + self._unknown > best[start + 1]:
                best[start + 1], taken[start + 1] = here + self._unknown, (start, UNKNOWN)
            for end in range(start + 1, min(start + self._longest, count) + 1):
                piece = self._ids.get(word[start:end])
                if piece is not None and here + self._scores[piece] > best[end]:
                    best[end], taken[end] = here + self._scores[piece], (start, piece)
        ids: list[int] = []
        while count:
            count, piece = taken[count]
            ids.append(piece)
        return tuple(reversed(ids))
