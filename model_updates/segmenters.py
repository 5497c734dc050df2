"""Foreign segmentations by name: how texts become rows in towers whose tokenizer is not ours.

A vocabulary stores the name alone; what it stands for is an installed package's, and its fingerprint is part of each
text fingerprint that depends on it. Adding one is a class with these attributes and a line in `SEGMENTERS`.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Protocol

from tokenizers import Tokenizer

from model_updates.errors import WeightsMismatch


class Segmenter(Protocol):
    """Texts to rows of a token table, by rules that are not ours."""

    name: str  # under which `open_segmenter` finds it
    fingerprint: str  # of all that decides the rows
    rows: int  # rows of the token table that belong to it, from 0
    pad_row: int  # fills up shorter texts
    start_row: int  # before each text
    end_row: int  # after each text; `encode` never returns it

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns each text's rows, without start and end."""
        ...

    def portable(self) -> Tokenizer:
        """Returns the same segmentation as `tokenizers` writes it to a file; its ids are the rows."""
        ...


# Module and function, imported when asked for: most homes need none of them.
SEGMENTERS = {"use-multilingual-v3": ("model_updates.photo.tokenizer", "sentence_pieces")}


def open_segmenter(name: str) -> Segmenter:
    """Returns the segmentation of a name.

    Raises:
        WeightsMismatch: this version of Perennial knows none of that name, or its package has changed.
    """
    if name not in SEGMENTERS:
        raise WeightsMismatch(
            f"this version was made with the segmentation {name!r}, which this Perennial does not know; "
            f"it knows: {', '.join(sorted(SEGMENTERS))}"
        )
    module, function = SEGMENTERS[name]
    opened: Callable[[], Segmenter] = getattr(import_module(module), function)
    return opened()
