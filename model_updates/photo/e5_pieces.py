"""Texts to the tokens of multilingual-e5-small: the likeliest sequence of its 250,002 pieces (a unigram model)."""

from functools import lru_cache

from model_updates.photo.e5_file import PackedFile
from model_updates.photo.packages import SENTENCES
from model_updates.photo.unigram import PieceList, Unigram

START, END, UNKNOWN = 0, 2, 3
SPACE = "\u2581"  # how pieces write the space before a word
CONTROL = frozenset({"<s>", "<pad>", "</s>", "<unk>", "<mask>"})  # no text can spell them
_WORDS_KEPT = 20_000


class E5Pieces:
    """The package's own segmentation, as a library's would take 258 MB (docs/log.md)."""

    def __init__(self, file: PackedFile) -> None:
        def read() -> PieceList:
            said = [place for place, piece in enumerate(file.pieces) if piece not in CONTROL]
            return PieceList(
                said, [file.pieces[place] for place in said], [file.scores[place] for place in said]
            )

        self._normal = file.normal
        pieces = Unigram(f"e5-pieces-{SENTENCES[3][:16]}", read, UNKNOWN)
        self._word = lru_cache(maxsize=_WORDS_KEPT)(pieces.cut)

    def encode(self, text: str, most: int) -> list[int]:
        """Returns the ids of a text, its start and end counted, at most `most` of them; what comes later is cut."""
        words = [word for word in text.translate(self._normal).split(" ") if word]
        found = [START]
        for word in words:
            if len(found) >= most:
                break
            found += self._word(SPACE + word)
        return [*found[: most - 1], END]
