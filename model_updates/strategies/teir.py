"""TEIR: CLL-CLIP with token rows that start alike and move less the more languages share them.

Idea: start new rows from the distribution of the trained table; let a row move and decay by ``lambda_j = 1 /
(c_j + 1)`` when its token occurs in this chunk, and not at all when it does not, where c_j counts the earlier
updates whose texts contained it (the base vocabulary counts once). Start and end never move.

Formula: ``theta_j <- (1 - lr * beta * lambda_j) * theta_j - lr * lambda_j * grad_j``. Source: CLL-CLIP with
TEIR (AAAI 2024), eq. 5 and 6: tasks are counted, not occurrences; overlap is judged by occurrence after
segmentation; mean and deviation are scalars. Where we differ: under AdamW the scaled gradient hardly shortens
a step, so ``apply_to=update`` (not the default) scales the finished step instead.

Kept between updates: the counts c, one per row. They count the updates of `teir` alone: rows that another
strategy taught in between start at 0, so do not alternate it with `cll-clip` on one line of versions. Every strategy
that trains the shared table has a `teir+` form with the same rows (`parts.teir`).
"""

from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.teir import PAPER, TeirOptions, TeirRows
from model_updates.strategy import Family


class Teir(LanguageTeaching):
    """CLL-CLIP with identical-distribution start and regularised rows."""

    name = "teir"
    summary = "CLL-CLIP that holds back the words other languages use; forgets less than cll-clip."
    paper = PAPER
    family = Family.LANGUAGES
    trains = "the token table"
    keeps = "how often each token was seen"
    overhead = "2 % (paper: 0.2 h of 11 h)"
    rows_kind = TeirRows
    rows: TeirRows
    options: TeirOptions

    def __init__(self, options: TeirOptions | None = None) -> None:
        super().__init__(options)
        self.add(self.rows)
