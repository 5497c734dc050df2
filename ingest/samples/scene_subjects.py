"""The twelve subjects as outlines in a unit box (feet at y = 1).

Every style fills and outlines the same shapes in its own manner, so a subject is recognisable in all of them. They are
read from `scene_subjects.json`.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ingest.samples.scene_shapes import Shape, blob, box, oval, poly, stroke


@cache
def subject_shapes(subject: str) -> tuple[Shape, ...]:
    """The outlines of a subject, back to front.

    Raises:
        KeyError: the subject is not one of `SUBJECTS`.
    """
    return tuple(_shape(**outline) for outline in _OUTLINES[subject])


def _shape(draw: str, at: list[Any], tone: str, **drawn: Any) -> Shape:
    place = at if draw in ("box", "oval") else [at]  # four numbers, or one list of points
    return _DRAW[draw](*place, tone, **drawn)


_OUTLINES = json.loads(Path(__file__).with_name("scene_subjects.json").read_text(encoding="utf-8"))
_DRAW: dict[str, Callable[..., Shape]] = {draw.__name__: draw for draw in (box, oval, poly, blob, stroke)}
# These hang in the air; everything else stands on the ground.
FLOATING = frozenset({"balloon", "butterfly", "fish"})
