"""Texts to the likeliest sequence of a unigram model's pieces; the pieces are mapped from a file and not read.

Both sentence encoders bring hundreds of thousands of pieces, which took a second and 60 MB in every process. Their trie
is made once for a machine, in its cache, under the SHA-256 of the package's file; where that cannot be written it is
made in memory.

Source: Kudo, *Subword Regularization*, ACL 2018 (the unigram model); marisa-trie's documentation.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import marisa_trie
import numpy as np
from numpy.typing import NDArray

_LONGEST = 32  # letters that a piece has at most
_BELOW = 10.0  # a character that no piece has counts as that much less likely than the least likely piece
_ENTRY = np.dtype([("row", "<i4"), ("score", "<f4")])
_TRIE, _ENTRIES, _RULES, _SUM = "pieces.marisa", "pieces.npy", "rules", "sha256"
log = logging.getLogger(__name__)


class PieceList(NamedTuple):
    """What a package's file holds."""

    rows: Sequence[int]  # of each piece
    pieces: Sequence[str]
    scores: Sequence[float]  # logarithms of how likely each is
    rules: bytes = b""  # how texts are made even before


class Unigram:
    """The pieces of a model, opened.

    Attributes:
        rules: how texts are made even before they are cut, as the package's file has it.
    """

    def __init__(self, name: str, read: Callable[[], PieceList], unknown: int) -> None:
        """Opens pieces; `read` is asked for them where this machine has not seen them.

        Args:
            name: of the file that they come from, its SHA-256 in it.
            read: reads that.
            unknown: row of a character that no piece has.
        """
        self._unknown = unknown
        self._trie, self._entries, self.rules = _kept(name, read)
        self._met: dict[str, tuple[int, float]] = {}  # pieces of texts so far: row and score
        self._lowest = float(self._entries["score"].min()) - _BELOW

    def cut(self, text: str) -> list[int]:
        """Returns the rows of a text's likeliest pieces (Viterbi); of equal ones those that begin first."""
        count = len(text)
        best = [0.0] + [float("-inf")] * count
        taken = [(0, self._unknown)] * (count + 1)  # by where a piece ends: where it starts, and its row
        met, prefixes = self._met, self._trie.prefixes
        for start in range(count):
            here = best[start]
            if here + self._lowest > best[start + 1]:
                best[start + 1], taken[start + 1] = here + self._lowest, (start, self._unknown)
            for piece in prefixes(text[start : start + _LONGEST]):
                if piece not in met:
                    met[piece] = self._entries[self._trie[piece]].item()
                row, score = met[piece]
                end = start + len(piece)
                if here + score > best[end]:
                    best[end], taken[end] = here + score, (start, row)
        rows: list[int] = []
        while count:
            count, row = taken[count]
            rows.append(row)
        return rows[::-1]


def _kept(name: str, read: Callable[[], PieceList]) -> tuple[marisa_trie.Trie, NDArray[np.void], bytes]:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "perennial" / name
    if not _is_whole(folder):
        found = read()
        trie, entries = _made(found)
        try:
            _keep(folder, trie, entries, found.rules)
        except OSError as error:
            log.info("The pieces of %s stay in memory: %s", name, error)
            return trie, entries, found.rules
    mapped = marisa_trie.Trie()
    mapped.mmap(str(folder / _TRIE))
    return mapped, np.load(folder / _ENTRIES, mmap_mode="r"), (folder / _RULES).read_bytes()


def _is_whole(folder: Path) -> bool:
    """Says whether the files are there as they were written; what is damaged is taken away, to be made again."""
    if not folder.exists():
        return False
    try:
        whole = (folder / _SUM).read_text(encoding="ascii") == _sum(folder)
    except (OSError, ValueError):
        whole = False
    if not whole:
        log.warning("%s is damaged and is made again", folder)
        shutil.rmtree(folder, ignore_errors=True)
    return whole


def _sum(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in (_TRIE, _ENTRIES, _RULES):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def _made(found: PieceList) -> tuple[marisa_trie.Trie, NDArray[np.void]]:
    trie = marisa_trie.Trie(found.pieces)
    entries = np.zeros(len(found.pieces), dtype=_ENTRY)
    for row, piece, score in zip(found.rows, found.pieces, found.scores, strict=True):
        entries[trie[piece]] = row, score
    return trie, entries


def _keep(folder: Path, trie: marisa_trie.Trie, entries: NDArray[np.void], rules: bytes) -> None:
    """Writes the pieces so that a folder is there whole or not at all, whoever else writes it just then."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        trie.save(str(Path(place) / _TRIE))
        np.save(Path(place) / _ENTRIES, entries)
        (Path(place) / _RULES).write_bytes(rules)
        (Path(place) / _SUM).write_text(_sum(Path(place)), encoding="ascii")
        if not folder.exists():
            Path(place).rename(folder)
            Path(place).mkdir()
