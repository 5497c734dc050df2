"""CLL-CLIP on everything at once: one table from the base's, all captions of all chunks so far; the upper bound.

Idea: nothing can be forgotten that is trained on again, and nothing is segmented anew where one vocabulary is learned
on all languages together. What this reaches is what every strategy on the shared table is measured against from above.

Formula: CLL-CLIP's losses over the union of the chunks, from the token table that the line of versions started from,
its vocabulary grown by one BPE of 200,000 entries on all captions together. The English captions that stand beside the
others are taught as captions, too: English is the paper's first language, and a table that is trained without it loses
it. Source: the joint-learning rows of CLL-CLIP with TEIR (AAAI 2024), Table 2. Where we differ: the BPE reads the
captions so far, and those to come only where the option ``oracle`` names them. Tables of their own that languages had
(language-tables) are dropped, as the table starts anew.

Kept between updates: nothing but the catalog's pairs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ingest.pair import BASE_LANGUAGE
from model_updates.byte_pairs import Merge, learn_merges
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.pairs import TrainingPair
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.replaying import unlike
from model_updates.parts.shared_table import SharedRows, SharedTableOptions
from model_updates.parts.table_rows import VocabularySize
from model_updates.strategy import Family, Replay, UpdateContext
from model_updates.towers import replace_token_table, token_table
from model_updates.vocabulary import SHARED


@dataclass(frozen=True)
class TableJointOptions(SharedTableOptions):
    """The shared table's options, of which ``vocabulary`` has no part here."""

    # no part here: one BPE of `oracle_vocabulary` entries is learned on all languages together.
    vocabulary: VocabularySize = SharedTableOptions.vocabulary
    # entries of that BPE (paper: 200,000).
    oracle_vocabulary: VocabularySize = SharedTableOptions.oracle_vocabulary

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vocabulary != SharedTableOptions.vocabulary:
            raise BadStrategyOption(
                f"vocabulary={self.vocabulary} would change nothing: cll-clip+joint learns one BPE on all languages "
                f"together. Say oracle_vocabulary={self.vocabulary} for its entries"
            )


class JointRows(SharedRows):
    """Rows of one BPE of all captions so far, or of the oracle's."""

    def __init__(self, options: SharedTableOptions, earlier: Callable[[], Sequence[TrainingPair]]) -> None:
        super().__init__(options)
        self._earlier = earlier

    def merges(self, context: UpdateContext) -> dict[str, tuple[Merge, ...]]:
        """Returns one BPE of all captions so far, or that of the oracle."""
        if self.options.oracle:
            return super().merges(context)
        texts = sorted(pair.text for pair in (*context.pairs, *self._earlier()))
        return {SHARED: learn_merges(texts, size=self.options.oracle_vocabulary)}


class TableJoint(LanguageTeaching):
    """Trains one table on all languages so far."""

    name = "cll-clip+joint"
    summary = (
        "Trains the word table anew on this chunk and all before it together; the upper bound of cll-clip."
    )
    paper = "CLL-CLIP with TEIR, AAAI 2024, Table 2, joint learning"
    family = Family.BOUNDS
    trains = "the token table, from the base's"
    keeps = "nothing: every pair of every chunk is in the catalog"
    overhead = "epochs as long as everything so far"
    replay = Replay.JOINED
    trains_on_all = True
    options: TableJointOptions

    def __init__(self, options: TableJointOptions | None = None) -> None:
        super().__init__(options)
        self._earlier: list[TrainingPair] = []
        self.rows = JointRows(self.options, lambda: self._earlier)

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns all pairs of earlier chunks and the English captions beside all, without what the chunk has again."""
        earlier = context.open_earlier()
        base = [
            TrainingPair(pair.image_id, pair.english, BASE_LANGUAGE, pair.domain, pair.english)
            for pair in (*context.pairs, *earlier)
            if pair.english is not None
        ]
        self._earlier = unlike(context.pairs, list(dict.fromkeys((*earlier, *base))))
        return self._earlier

    def before_update(self, context: UpdateContext) -> None:
        """Goes back to the base's vocabulary and table, and grows them once for all languages so far."""
        start_anew(context.encoder, context.open_anchor())
        super().before_update(context)

    def notes(self) -> list[str]:
        return [
            *super().notes(),
            f"{len(self._earlier)} earlier and English pairs were learned beside the chunk.",
        ]


def start_anew(encoder: Encoder, base: Encoder) -> None:
    """Gives an encoder the vocabulary and the token table of another one, in place; neither has to have both."""
    table = token_table(base.model)
    if table is not None and base.vocabulary is not None and encoder.vocabulary is not None:
        encoder.vocabulary = base.vocabulary.copy()
        with torch.no_grad():
            replace_token_table(encoder.model, table.detach().clone().to(encoder.device))
        encoder.forget_fingerprints()
