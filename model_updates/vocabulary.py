"""The expandable byte-level BPE vocabulary: token strings, merges and the embedding rows they use.

A vocabulary holds one or more *token tables*. A table is a segmentation (merges) with the embedding row of
each of its tokens. The shared table (name ``""``) serves every language that has no table of its own;
`grow_shared` appends to it as CLL-CLIP does (AAAI 2024), `grow_table` gives a language rows of its own.
All tables index one embedding matrix, and the start, end and padding rows are common to all and never
reassigned.

The shared segmentation may also be a foreign one (`model_updates.segmenters`): that of a text tower whose tokenizer
is not ours to grow. Its rows then stay as they are and come first, and languages get tables of their own behind
them: the table is ours, the body is theirs.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from ingest.spans import span
from model_updates.byte_pairs import (
    Merge,
    byte_symbols,
    numbered_segmenter,
    segmenter_of,
    spelled,
    used_tokens,
)
from model_updates.errors import ForeignTokenizer
from model_updates.segmenters import Segmenter, open_segmenter

SHARED = ""
NUMBERS = ("size", "pad_row", "start_row", "end_row", "context_length")
_TABLES, _BEGINS = b'"tables": {', b'": {"merges": ['  # as `json.dumps` writes `to_json`


class TokenTable:
    """One segmentation and the embedding rows of its tokens, neither of which ever changes.

    A server holds one for each language and reads it when it makes a tokenizer of it, so it is kept as the JSON that
    the file has of it: objects take ten times the memory, and longer to read than a start may take.
    """

    def __init__(
        self, merges: Iterable[Merge], rows: Mapping[str, int], words: Mapping[str, int] | None = None
    ) -> None:
        said = {"merges": [list(merge) for merge in merges], "rows": dict(rows)}
        self._said = json.dumps(said | ({"words": dict(words)} if words else {}), ensure_ascii=False).encode()

    @classmethod
    def kept(cls, said: bytes) -> TokenTable:
        """Returns the table that an object of a file says; it is not read before somebody asks."""
        table = cls.__new__(cls)
        table._said = said
        return table

    def to_json(self) -> dict[str, Any]:
        """Returns merges, rows and, where there are any, words as plain values; each time they are read anew."""
        said: dict[str, Any] = json.loads(self._said)
        return said

    @property
    def merges(self) -> tuple[Merge, ...]:
        """Those of the BPE, in the order they are tried."""
        return tuple((first, second) for first, second in self.to_json()["merges"])

    @property
    def rows(self) -> dict[str, int]:
        """The row of each token."""
        rows: dict[str, int] = self.to_json()["rows"]
        return rows

    @property
    def words(self) -> dict[str, int]:
        """Whole words with a row of their own, appended after the table was made, as the pre-tokeniser writes them.

        A text without any of them is segmented as if there were none.
        """
        words: dict[str, int] = self.to_json().get("words", {})
        return words


class _Opened(NamedTuple):
    """Attributes: tokenizer; rows (t,) of its tokens by their ids; words that have rows of their own."""

    tokenizer: Tokenizer
    rows: NDArray[np.int64]
    words: Mapping[str, int]


@dataclass(frozen=True)
class Growth:
    """What growing a vocabulary did: the new rows, and for each the old row to start from (-1: none)."""

    new_rows: NDArray[np.int64]
    start_from: NDArray[np.int64]

    @classmethod
    def joined(cls, growths: Sequence[Growth]) -> Growth:
        """Returns what several growths did, one after another."""
        return cls(
            np.concatenate([growth.new_rows for growth in growths]),
            np.concatenate([growth.start_from for growth in growths]),
        )


@dataclass(eq=False)
class Vocabulary:
    """Texts in, embedding rows out; grows without ever moving a row."""

    # our own tables by name; without a shared one where the shared segmentation is foreign
    tables: dict[str, TokenTable]
    _: KW_ONLY
    size: int  # embedding rows in use
    pad_row: int  # row that fills up shorter texts
    start_row: int  # row before each text
    end_row: int  # row after each text; the text tower pools there
    context_length: int  # most rows a text may have, start and end included
    segmenter: Segmenter | None = None  # the foreign shared segmentation
    _tokenizers: dict[str, _Opened] = field(default_factory=dict, init=False)

    @classmethod
    def from_merges(cls, merges: Sequence[Merge], *, context_length: int) -> Vocabulary:
        """Makes a fresh vocabulary: padding, start and end first, then byte symbols, then merged tokens."""
        tokens = list(dict.fromkeys([*byte_symbols(), *(first + second for first, second in merges)]))
        rows = {token: row for row, token in enumerate(tokens, start=3)}
        table = TokenTable(tuple(merges), rows)
        return cls(
            {SHARED: table},
            size=3 + len(rows),
            pad_row=0,
            start_row=1,
            end_row=2,
            context_length=context_length,
        )

    @classmethod
    def clip(cls, merges_file: Path, *, context_length: int = 77) -> Vocabulary:
        """Reads the vocabulary of OpenAI's CLIP (49,408 rows) from the merges file of open_clip."""
        lines = gzip.decompress(merges_file.read_bytes()).decode("utf-8").split("\n")
        merges = []
        for line in lines[1 : 49152 - 256 - 2 + 1]:
            first, second = line.split()
            merges.append((first, second))
        tokens = [*byte_symbols(), *(first + second for first, second in merges)]
        rows = {token: row for row, token in enumerate(tokens)}
        start = len(tokens)
        return cls(
            {SHARED: TokenTable(tuple(merges), rows)},
            size=start + 2,
            pad_row=0,
            start_row=start,
            end_row=start + 1,
            context_length=context_length,
        )

    @classmethod
    def foreign(cls, segmenter: Segmenter, *, context_length: int) -> Vocabulary:
        """Makes the vocabulary of a text tower whose own segmentation serves every language without a table."""
        return cls(
            {},
            size=segmenter.rows,
            pad_row=segmenter.pad_row,
            start_row=segmenter.start_row,
            end_row=segmenter.end_row,
            context_length=context_length,
            segmenter=segmenter,
        )

    @property
    def special_rows(self) -> tuple[int, int]:
        """The rows that no strategy ever trains after the base encoder: start and end."""
        return (self.start_row, self.end_row)

    def table_name(self, language: str) -> str:
        """Returns the name of the table that serves a language: its own, or the shared one."""
        return language if language in self.tables else SHARED

    def encode(self, texts: Sequence[str], language: str = SHARED) -> list[list[int]]:
        """Returns each text's embedding rows, start and end included, cut to the context length."""
        with span("tokenise"):
            return self._encoded(texts, self.table_name(language))

    def _encoded(self, texts: Sequence[str], name: str) -> list[list[int]]:
        room = self.context_length - 2
        if name == SHARED and self.segmenter is not None:
            return [[self.start_row, *row[:room], self.end_row] for row in self.segmenter.encode(texts)]
        tokenizer, rows, whole = self._opened(name)
        if whole:
            encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
            sequences = [_with_words(item, rows, whole) for item in encoded]
        else:
            encoded = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
            sequences = [rows[item.ids].tolist() for item in encoded]
        return [[self.start_row, *sequence[:room], self.end_row] for sequence in sequences]

    def words(self, texts: Sequence[str], language: str = SHARED) -> dict[str, tuple[int, ...]]:
        """Returns each word of some texts as a table spells it, with the rows of its pieces in their order.

        A word that has a row of its own has that one alone. A foreign segmentation has pieces and no words.
        """
        name = self.table_name(language)
        if name == SHARED and self.segmenter is not None:
            return {}
        tokenizer, rows, whole = self._opened(name)
        found: dict[str, tuple[int, ...]] = {}
        for item in tokenizer.encode_batch(list(texts), add_special_tokens=False):
            for word, pieces in spelled(item):
                own = whole.get(word)
                found[word] = tuple(rows[pieces].tolist()) if own is None else (own,)
        return found

    def grow_words(self, language: str, words: Sequence[str]) -> Growth:
        """Gives whole words of a language's table rows of their own; a text without them keeps its rows.

        A language without a table uses the shared one. Words are as `words` spells them; those that have a row already
        are left out. The new rows come in the order of the words and start from no other row.
        """
        name = self.table_name(language)
        table = self.tables[name]
        known = table.words
        fresh = [word for word in dict.fromkeys(words) if word not in known]
        rows = {word: self.size + n for n, word in enumerate(fresh)}
        self.tables[name] = TokenTable(table.merges, table.rows, {**known, **rows})
        return self._grown(name, [-1] * len(fresh))

    def pad(self, sequences: Sequence[Sequence[int]]) -> NDArray[np.int64]:
        """Returns (n, longest) int64 rows, shorter texts filled with the padding row at the end."""
        longest = max((len(sequence) for sequence in sequences), default=2)
        padded = np.full((len(sequences), longest), self.pad_row, dtype=np.int64)
        for position, sequence in enumerate(sequences):
            padded[position, : len(sequence)] = sequence
        return padded

    @property
    def cannot_grow(self) -> str:
        """Why `grow_shared` refuses, where the shared segmentation is a foreign one."""
        name = "nobody" if self.segmenter is None else self.segmenter.name
        return (
            f"the shared words of this encoder are those of {name} and cannot grow; "
            "give the language a table of its own (language-tables)"
        )

    def grow_shared(self, merges: Sequence[Merge]) -> Growth:
        """Appends another BPE to the shared table, as CLL-CLIP merges vocabularies.

        Every old row keeps its token; unseen token strings are appended in their own order; the merges are
        the old ones, then the new ones that were not there. Later merges still fire on old-language text:
        measure that with `resegmented_share`.

        Raises:
            ForeignTokenizer: the shared segmentation is not ours.
        """
        if self.segmenter is not None:
            raise ForeignTokenizer(self.cannot_grow)
        old = self.tables[SHARED]
        known, rows = set(old.merges), old.rows
        appended = [merge for merge in merges if merge not in known]
        fresh = [t for t in dict.fromkeys(a + b for a, b in appended) if t not in rows]
        rows |= {token: self.size + n for n, token in enumerate(fresh)}
        self.tables[SHARED] = TokenTable((*old.merges, *appended), rows, old.words)
        return self._grown(SHARED, [-1] * len(fresh))

    def grow_table(self, language: str, merges: Sequence[Merge], texts: Sequence[str]) -> Growth:
        """Gives a language a table of its own (or more tokens in it); no other language's rows change.

        Every token that the texts use gets a row that belongs to this language, starting from the row it
        overlaps in the shared table (-1: none). Tokens the texts do not use keep pointing at the shared row
        when there is one, so that an unusual query can still be spelled.
        """
        shared = self.tables[SHARED].rows if SHARED in self.tables else {}
        old = self.tables.get(language, TokenTable((), {}))
        known, rows = set(old.merges), old.rows
        table_merges = (*old.merges, *(merge for merge in merges if merge not in known))
        tokens = list(dict.fromkeys([*byte_symbols(), *(a + b for a, b in table_merges)]))
        used = used_tokens(table_merges, tokens, texts)
        own = {token for token, row in rows.items() if shared.get(token) != row}
        start_from = list[int]()
        for token in tokens:
            if token not in own and (token in used or token not in shared):
                rows[token] = self.size + len(start_from)
                start_from.append(shared.get(token, -1))
            elif token not in rows:
                rows[token] = shared[token]
        self.tables[language] = TokenTable(table_merges, rows, old.words)
        return self._grown(language, start_from)

    def copy(self) -> Vocabulary:
        """Returns an independent copy, so that growing it leaves this one as it is."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return Vocabulary(dict(self.tables), **numbers, segmenter=self.segmenter)

    def to_json(self) -> dict[str, Any]:
        """Returns a plain description that `from_json` reads back without loss."""
        return {
            **{name: getattr(self, name) for name in NUMBERS},
            **({} if self.segmenter is None else {"segmenter": self.segmenter.name}),
            "tables": {name: table.to_json() for name, table in self.tables.items()},
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Vocabulary:
        """Reads what `to_json` wrote."""
        tables = (
            (name, TokenTable(said["merges"], said["rows"], said.get("words")))
            for name, said in data["tables"].items()
        )
        return cls._of(data, dict(tables))

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """Reads a file of what `to_json` returns; of its tables only where each begins and ends.

        Raises:
            ValueError: it is no such file.
        """
        data = path.read_bytes()
        facts, mark, said = data.partition(_TABLES)
        tables = _kept_tables(said.rstrip()) if mark else None
        if tables is None:  # JSON, but not as we write it
            return cls.from_json(json.loads(data))
        return cls._of(json.loads(facts + mark + b"}}"), tables)

    @classmethod
    def _of(cls, data: Mapping[str, Any], tables: dict[str, TokenTable]) -> Vocabulary:
        return cls(
            tables,
            **{name: data[name] for name in NUMBERS},
            segmenter=open_segmenter(data["segmenter"]) if "segmenter" in data else None,
        )

    def segmentation(self, name: str) -> tuple[bytes, NDArray[np.int64]]:
        """Returns what a table's segmentation is made of, and the rows that it can lead to, for fingerprints."""
        if name == SHARED and self.segmenter is not None:
            return self.segmenter.fingerprint.encode(), np.arange(self.segmenter.rows, dtype=np.int64)
        said = self.tables[name].to_json()
        row_of, own = said["rows"], said.get("words", {})
        tokens, words = sorted(row_of), sorted(own)
        described = json.dumps(said["merges"]).encode() + json.dumps(tokens).encode()
        if words:
            described += json.dumps(words).encode()
        rows = [row_of[token] for token in tokens] + [own[word] for word in words]
        return described, np.asarray([*rows, *self.special_rows], dtype=np.int64)

    def portable(self, name: str) -> Tokenizer:
        """Returns a table's segmentation as `tokenizers` writes it to a file, its ids the rows; words aside."""
        if name == SHARED and self.segmenter is not None:
            return self.segmenter.portable()
        return numbered_segmenter(self.tables[name].merges, self.tables[name].rows)

    def _grown(self, table: str, start_from: Sequence[int]) -> Growth:
        self._tokenizers.pop(table, None)
        first, self.size = self.size, self.size + len(start_from)
        return Growth(np.arange(first, self.size, dtype=np.int64), np.asarray(start_from, dtype=np.int64))

    def _opened(self, name: str) -> _Opened:
        if name not in self._tokenizers:
            said = self.tables[name].to_json()
            row_of = said["rows"]
            tokens = sorted(row_of, key=row_of.__getitem__)
            rows = np.asarray([row_of[token] for token in tokens], dtype=np.int64)
            merges = [(first, second) for first, second in said["merges"]]
            self._tokenizers[name] = _Opened(segmenter_of(merges, tokens), rows, said.get("words", {}))
        return self._tokenizers[name]


def _kept_tables(said: bytes) -> dict[str, TokenTable] | None:
    """Returns the tables of a file, from behind `_TABLES` to its end; None where it is not written as ours are.

    No token has a space, and quotation marks in tokens follow a backslash: what separates tables is never in one.
    """
    first, *rest = said.removesuffix(b"}}").split(_BEGINS)
    if not rest:
        return {} if said == b"}}" else None
    # Behind each table but the last follows the name of the next.
    cut = [part.rpartition(b', "') for part in rest[:-1]]
    names = [first.removeprefix(b'"'), *(name for _, _, name in cut)]
    tables = [*(table for table, _, _ in cut), rest[-1]]
    if not said.endswith(b"}}}}") or not all(table.endswith(b"}}") for table in tables):
        return None
    begin = _BEGINS.removeprefix(b'": ')
    return {name.decode(): TokenTable.kept(begin + table) for name, table in zip(names, tables, strict=True)}


def _with_words(item: Encoding, rows: NDArray[np.int64], whole: Mapping[str, int]) -> list[int]:
    """Returns the rows of an encoded text, one for each word that has a row of its own."""
    found: list[int] = []
    for word, pieces in spelled(item):
        found += [whole[word]] if word in whole else rows[pieces].tolist()
    return found


def resegmented_share(before: Vocabulary, after: Vocabulary, texts: Sequence[str], language: str) -> float:
    """Returns the share of texts that are segmented otherwise now: forgetting that no mask can stop."""
    if not texts:
        return 0.0
    pairs = zip(before.encode(texts, language), after.encode(texts, language), strict=True)
    return sum(old != new for old, new in pairs) / len(texts)
