"""What the Search tab has on the screen: a page of an answer, or several after another."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.ui.asking import Asked


@dataclass(frozen=True)
class Screen:
    """What was asked, and what of the answer is shown.

    Attributes:
        asked: with the offset of the first picture that is shown.
        found: id and score of each picture, best first.
        next: the cursor of the page after the last; "" when there is none.
        release: that answered; further pages come from it.
        query: as it was understood, for what people say of the answer.
    """

    asked: Asked = field(default_factory=Asked)
    found: tuple[tuple[str, float], ...] = ()
    next: str = ""
    release: str = ""
    query: str = ""
