"""What a terminal shows of a release that was trained again."""

from __future__ import annotations

from typing import Any

from app.desk.releases import Replayed
from app.words.messages import table

_SHOWN = 20


def replay_lines(found: Replayed) -> list[Any]:
    """Returns a sentence; where the result is another one, what differs and what else was recorded then."""
    name = f"{found.release} (version {found.version})"
    if found.is_identical:
        return [f"{name} was trained again: all {found.files} files are the same to the bit."]
    rows = [
        (one.name, "not alike" if one.most is None else f"{one.most:.2g}") for one in found.differing[:_SHOWN]
    ]
    more = len(found.differing) - len(rows)
    told: list[Any] = [f"{name} was trained again and came out otherwise."]
    told.append(table(("tensor or file", "largest difference"), rows))
    if more:
        told.append(f"And {more} more.")
    told += found.changed
    elsewhere = [(what, *both) for what, both in found.environment.items() if both[0] != both[1]]
    if elsewhere:
        told.append(table(("made with", "then", "now"), elsewhere))
    elif not found.changed:
        told.append("Machine, threads and libraries are those that were recorded, and so is the data.")
    return told
