"""What was measured of a release in one language, what it says of a query, and the files that keep it.

A release pins its gallery, so a file under its name is of this gallery; what left it since stays measured.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from app.desk.hits import Relevance
from app.query.caption_scales import Scale, nearest, words_of
from app.query.snapshot import Vectors

logger = logging.getLogger(__name__)

RELEASES_KEPT = 4  # whose files are
_FACTS = {
    "words": "words",
    "domains": "domain",
    "learned": "learned",
}  # of gauges, under their names in a file
_NEVER = 2.0  # no cosine is as high


@dataclass(frozen=True)
class Levels:
    """The cosines from which on a hit of one query is strong, or weak, and the language that this was measured in."""

    strong: float
    weak: float
    language: str = ""

    def of(self, cosine: float) -> Relevance:
        """Returns what a hit with this cosine is worth."""
        if cosine >= self.strong:
            return Relevance.STRONG
        return Relevance.WEAK if cosine >= self.weak else Relevance.NOTHING

    def least(self, wanted: Relevance) -> float:
        """Returns the cosine that a hit worth this much has at least."""
        return {Relevance.STRONG: self.strong, Relevance.WEAK: self.weak}.get(wanted, -1.0)


@dataclass(frozen=True, eq=False)
class Gauge:
    """What was measured of one language in one domain of a release."""

    known: Vectors  # (m, dim) float32 unit rows: captions that the queries are compared with
    word: Scale  # of queries of one word
    caption: Scale  # of whole captions
    words: float  # of a whole caption
    language: str  # that it was measured in
    domain: str = ""  # of the pictures, the one that has most captions where several are taken together
    # whether anything was learned of them: of pictures that stand aside cosines tell nothing
    learned: bool = True

    def near(self, queries: Vectors) -> NDArray[np.float64]:
        """Returns (n,) how near the nearest captions are to (n, dim) unit queries: a mean of cosines."""
        return nearest(queries @ self.known.T)

    def scale(self, text: str) -> Scale:
        """Returns the scale of a query by its number of words, between that of a word and that of a caption."""
        long = float(np.clip((len(words_of(text)) - 1) / max(1.0, self.words - 1), 0, 1))
        return (1 - long) * self.word + long * self.caption

    def levels(self, text: str, query: Vectors) -> Levels:
        """Returns what the cosines of a query mean: its text, and its (dim,) unit vector."""
        few, much, low, high, best = self.scale(text).tolist()
        near = float(self.near(query[None])[0])
        if near < few:
            return Levels(_NEVER, best if self.learned else _NEVER, self.language)
        return Levels(high if near >= much else _NEVER, min(low, high), self.language)


@dataclass(frozen=True)
class Gauges:
    """What was measured of one language in a release, for each domain or what is like one."""

    each: tuple[Gauge, ...]

    @property
    def language(self) -> str:
        """The language that it was measured in."""
        return self.each[0].language

    def levels(self, text: str, query: Vectors) -> Levels:
        """Returns what the cosines of a query mean where it has most to say: its text, and its (dim,) unit vector."""
        found = [gauge.levels(text, query) for gauge in self.each]
        return Levels(min(one.strong for one in found), min(one.weak for one in found), self.language)


def read(place: Path, language: str, base: Gauges | None = None) -> Gauges | None:
    """Returns what `write` kept of a language; None where nothing is, or it was borrowed from another `base`."""
    try:
        with place.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return _gauges_of(kept, language, base)
    except FileNotFoundError:
        logger.info("%s is not there yet and is measured", place.name)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        logger.warning("%s is damaged and is measured again: %s", place.name, error)
    return None


def write(place: Path, found: Gauges, base: Gauges | None = None) -> None:
    """Keeps what was measured, or borrowed from `base`, and the files of the newest few releases.

    A home that cannot be written to is measured again.
    """
    staged = place.with_name(f"{uuid.uuid4().hex}.tmp")
    with suppress(OSError):
        place.parent.mkdir(exist_ok=True)
        with staged.open("wb") as file:
            np.savez(file, **_rows_of(found, base))
            file.flush()
            os.fsync(file.fileno())
        staged.replace(place)
        every = sorted(place.parent.glob("relevance-*.npz"), key=lambda path: path.stat().st_mtime)
        releases = list(dict.fromkeys(_release_of(path) for path in reversed(every)))
        for path in every:
            if _release_of(path) in releases[RELEASES_KEPT:]:
                path.unlink(missing_ok=True)


def _rows_of(found: Gauges, base: Gauges | None) -> dict[str, Any]:
    """Returns what a file keeps of gauges: of borrowed ones not the captions, but the scales that they come from."""
    rows: dict[str, Any] = {
        name: [getattr(one, field) for one in found.each] for name, field in _FACTS.items()
    }
    for n, gauge in enumerate(found.each):
        rows |= {f"word-{n}": gauge.word, f"caption-{n}": gauge.caption}
        if base is None:
            rows[f"known-{n}"] = gauge.known.astype(np.float16)
    return rows if base is None else rows | {"base": _scales(base)}


def _gauges_of(rows: Mapping[str, NDArray[Any]], language: str, base: Gauges | None) -> Gauges | None:
    """Returns the gauges that `_rows_of` wrote; None where they were borrowed from others than these."""
    if base is not None and not np.array_equal(rows["base"], _scales(base)):
        return None
    facts = zip(*(rows[name].tolist() for name in _FACTS), strict=True)
    return Gauges(
        tuple(
            Gauge(
                base.each[n].known if base else rows[f"known-{n}"].astype(np.float32),
                rows[f"word-{n}"],
                rows[f"caption-{n}"],
                words,
                base.language if base else language,
                domain,
                learned,
            )
            for n, (words, domain, learned) in enumerate(facts)
        )
    )


def _scales(found: Gauges) -> NDArray[np.float64]:
    return np.array([(one.word, one.caption) for one in found.each])


def _release_of(place: Path) -> str:
    return "-".join(place.stem.split("-")[-2:])
