"""The shared token table with replay: what er and der have in common.

From the second update on every batch is followed by as many pairs of the memory. The contrastive term runs over all
rows of the batch, as it did in CLL-CLIP's library (``replay_in_contrastive``), the cross-lingual one over the chunk's;
what holds the memory's rows is each strategy's own.
"""

from dataclasses import dataclass

from torch import Tensor

from model_updates.checked import Count, NotNegative
from model_updates.pairs import Batch
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.shared_table import SharedTableOptions


@dataclass(frozen=True)
class ReplayOptions(SharedTableOptions):
    """Adds the memory to the teaching options.

    Attributes:
        memory_size: pairs kept (8,000 in CLL-CLIP's experiments).
        alpha: weight of what holds the memory's features (1 in CLL-CLIP's experiments).
        replay_in_contrastive: let the memory's pairs join the contrastive term, as they did in the paper's tables.
    """

    memory_size: Count = 8_000
    alpha: NotNegative = 1.0
    replay_in_contrastive: bool = True


def replayed_terms(teaching: LanguageTeaching, text: Tensor, batch: Batch, held: Tensor) -> dict[str, Tensor]:
    """Returns CLL-CLIP's terms and what holds the memory.

    `text` (b, dim) are raw features of the batch's texts; `held` is what the memory's rows cost where they are not
    where they should be, unweighted.
    """
    options, current = teaching.options, ~batch.replayed
    if not isinstance(options, ReplayOptions):
        raise TypeError(f"{teaching.name} replays beside a token table, and its options know no replay")
    chosen = slice(None) if options.replay_in_contrastive else current
    contrasted = batch if options.replay_in_contrastive else batch.select(_positions(current))
    terms = {"cross-modal": teaching.cross_modal(text[chosen], contrasted)}
    if batch.has_english is not None:
        terms["cross-lingual"] = teaching.cross_lingual(text, batch, batch.has_english & current)
    return terms | {"replay": options.alpha * held}


def _positions(chosen: Tensor) -> list[int]:
    return [int(n) for n in chosen.nonzero()[:, 0]]
