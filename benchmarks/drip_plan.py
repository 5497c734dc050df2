"""What drips into the home of `drip.py`: the order, size, language and domain of its chunks, and their rows.

| kind | what |
|---|---|
| language | names in a language that no chunk before was in, on pictures of `noto` |
| domain | English names on pictures of a domain that no chunk before was in |
| more | names in a language and on pictures of a domain that came before, each maybe not with the other |
| drifted | names in a language that came before; pictures of a domain that came before, each such chunk darker |
| repeated | half of an earlier chunk again, as many others beside |
| bad | captions exchanged, all captions one, or each slipped to the next picture |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance
from protocol_data import LANGUAGES, changed_rows, edges, negative, thermal
from real_input_data import SUFFIXES, UploadRow, emoji_rows, emoji_splits

CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "edges": edges,
    "thermal": thermal,
    "negative": negative,
}
DOMAINS = (*SUFFIXES, *CHANGES)
FIRST = "noto"
LANGUAGE, DOMAIN, MORE, DRIFTED, REPEATED, BAD = "language", "domain", "more", "drifted", "repeated", "bad"
OTHERS = {MORE: 25, DRIFTED: 12, REPEATED: 12, BAD: 11}
SIZES = {LANGUAGE: (100, 1_000), DOMAIN: (200, 1_000)}
SMALL = (40, 400)
DAMAGES = ("exchanged", "one caption", "slipped")
DARKEST = 0.45  # of the light of a picture that the last drifted chunk keeps


@dataclass(frozen=True)
class Drop:
    """One chunk."""

    number: int  # from 1
    kind: str
    language: str
    domain: str
    size: int  # pairs
    light: float = 1.0  # of its pictures
    damage: str = ""  # of a bad one
    again: int = 0  # number of the chunk of which half comes again

    @property
    def name(self) -> str:
        """What the chunk is called in the home."""
        return f"{self.number:03}-{self.kind}-{self.language}-{self.domain}"


def planned(seed: int = 0) -> list[Drop]:
    """Returns the hundred chunks of a seed in their order."""
    random = np.random.default_rng([seed, 36])
    languages = iter(random.permutation([tag for tag in LANGUAGES if tag != "en"]).tolist())
    domains = iter(random.permutation([domain for domain in DOMAINS if domain != FIRST]).tolist())
    cards = [LANGUAGE] * (len(LANGUAGES) - 1) + [DOMAIN] * (len(DOMAINS) - 1)
    cards += [kind for kind, count in OTHERS.items() for _ in range(count)]
    known, seen = ["en"], [FIRST]
    drops: list[Drop] = []
    for number, kind in enumerate([LANGUAGE, *_shuffled(cards, random)], start=1):
        low, high = SIZES.get(kind, SMALL)
        size = round(float(np.exp(random.uniform(np.log(low), np.log(high)))))
        drop = Drop(number, kind, str(random.choice(known)), str(random.choice(seen)), size)
        if kind == LANGUAGE:
            drop = replace(drop, language=next(languages), domain=FIRST)
            known.append(drop.language)
        elif kind == DOMAIN:
            drop = replace(drop, language="en", domain=next(domains))
            seen.append(drop.domain)
        elif kind == DRIFTED:
            drifted = sum(one.kind == DRIFTED for one in drops) + 1
            drop = replace(drop, light=round(1 - (1 - DARKEST) * drifted / OTHERS[DRIFTED], 3))
        elif kind == REPEATED:
            good = [one for one in drops if one.kind in {LANGUAGE, DOMAIN, MORE}]
            earlier = good[int(random.integers(len(good)))]
            drop = replace(drop, language=earlier.language, domain=earlier.domain, again=earlier.number)
        elif kind == BAD:
            drop = replace(drop, damage=str(random.choice(DAMAGES)))
        drops.append(drop)
    return drops


def _shuffled(cards: Sequence[str], random: np.random.Generator) -> list[str]:
    """Returns the cards but the first, a language, which opens the sequence."""
    order: list[str] = random.permutation(np.asarray(cards[1:])).tolist()
    return order


@dataclass(frozen=True)
class Material:
    """Where rows come from."""

    data: Path  # folder of the evaluation data
    made: Path  # where changed pictures are drawn
    drops: Sequence[Drop]
    seed: int = 0

    def rows(self, drop: Drop) -> list[UploadRow]:
        """Returns the rows of a chunk."""
        rows = list(self._chosen(drop))
        if drop.again:
            earlier = list(self._chosen(self.drops[drop.again - 1]))[: drop.size // 2]
            fresh = [row for row in rows if row not in earlier]
            rows = [*earlier, *fresh[: drop.size - len(earlier)]]
        return _damaged(rows, drop.damage)

    def _chosen(self, drop: Drop) -> Iterator[UploadRow]:
        """Yields as many rows as a chunk has, drawn by its number."""
        source = FIRST if drop.domain in CHANGES else drop.domain
        rows = emoji_rows(self.data, emoji_splits(self.data), drop.language, (source,))
        order = np.random.default_rng([self.seed, drop.number]).permutation(len(rows))
        rows = [rows[int(at)] for at in order[: drop.size]]
        if drop.domain in CHANGES:
            rows = changed_rows(rows, drop.domain, CHANGES[drop.domain], self.made / drop.domain)
        if drop.light < 1:
            rows = changed_rows(
                rows, drop.domain, partial(_darkened, light=drop.light), self.made / drop.name
            )
        yield from rows


def _darkened(picture: Image.Image, light: float) -> Image.Image:
    return ImageEnhance.Brightness(picture).enhance(light)


def _damaged(rows: list[UploadRow], damage: str) -> list[UploadRow]:
    said = [row.caption for row in rows]
    if damage == "one caption":
        said = said[:1] * len(said)
    elif damage == "slipped":
        said = [*said[1:], *said[:1]]
    elif damage == "exchanged":
        said = [said[int(at)] for at in np.random.default_rng(len(said)).permutation(len(said))]
    return [replace(row, caption=caption) for row, caption in zip(rows, said, strict=True)]
