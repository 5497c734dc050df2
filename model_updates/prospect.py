"""What is known of an update before it is queued, and how a strategy says that it has nothing to do there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingest.sentence import joined, phrase

if TYPE_CHECKING:
    from model_updates.encoder import Encoder


@dataclass(frozen=True)
class Prospect:
    """What a chunk brings to the live encoder; `Strategy.fits` looks at it before anything runs."""

    encoder: Encoder  # the live one, only to be looked at
    languages: frozenset[str]  # of the chunk's training captions
    domains: frozenset[str]  # of their pictures
    learned_languages: frozenset[str]  # languages that the live encoder has learned, the base's included
    learned_domains: frozenset[str]  # domains that it has an insert for


def listed(names: Iterable[str]) -> str:
    """Returns names in order, as a sentence lists them: "de", "de and fr", "de, fr and hi"."""
    *first, last = sorted(names)
    return phrase("{names} and {last}", names=joined(first, ", "), last=last) if first else last
