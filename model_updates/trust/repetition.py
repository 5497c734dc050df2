"""The same again and again: one caption on many pictures, one picture many times, a held-out part of near copies.

Idea: a pair teaches, and a held-out pair measures, only as far as it differs from the others. So distinct things are
counted instead of rows: captions, and groups of pictures that show one thing.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

LARGEST_SHARE = 0.3  # of the pictures that one caption may stand on
FEWEST_DISTINCT = 0.5  # things to measure by, as a share of the held-out pictures
LEAST_PAIRS = 20
LEAST_THINGS = 3  # captions that a chunk must tell apart


@dataclass(frozen=True)
class Repetition:
    """Counts of what repeats.

    Attributes:
        one_caption: whether one caption stands on too many pictures to teach anything.
        few_things: whether the held-out pictures are mostly copies of each other.
    """

    caption: str  # the commonest caption
    caption_share: float  # share of the pictures it stands on
    captions: int  # distinct captions
    pictures: int  # distinct pictures
    things: int  # distinct groups of pictures
    held_out: int  # distinct held-out pictures
    held_out_things: int  # distinct groups among them

    @property
    def one_caption(self) -> bool:
        """Too many pictures share one caption, or there are not even three captions."""
        return self.pictures >= LEAST_PAIRS and (
            self.caption_share > LARGEST_SHARE or self.captions < LEAST_THINGS
        )

    @property
    def few_things(self) -> bool:
        """Held-out pictures mostly show the same few things."""
        return self.held_out >= LEAST_PAIRS and self.held_out_things < FEWEST_DISTINCT * self.held_out


def repetition(
    texts: Sequence[str], images: Sequence[str], groups: Sequence[Hashable], held_out: Sequence[bool]
) -> Repetition:
    """Counts what repeats among the pairs of one language and domain.

    All are (n,). Letter case and spaces around captions do not tell two apart; groups say which thing a picture shows.
    """
    said = {(image, " ".join(text.casefold().split())) for image, text in zip(images, texts, strict=True)}
    counts = Counter(text for _, text in said)
    caption, number = counts.most_common(1)[0] if counts else ("", 0)
    pictures = set(images)
    kept = [n for n, held in enumerate(held_out) if held]
    return Repetition(
        caption=caption,
        caption_share=number / max(1, len(pictures)),
        captions=len(counts),
        pictures=len(pictures),
        things=len(set(groups)),
        held_out=len({images[n] for n in kept}),
        held_out_things=len({groups[n] for n in kept}),
    )
