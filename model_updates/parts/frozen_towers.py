"""Both towers frozen; what learns are modules in them that every input reads: l2p, cpe-clip and moe-adapters.

The modules are inserts of the encoder. An encoder whose vocabulary is not ours takes none: its text tower is not run on
embedded words.
"""

from abc import abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption, ForeignTokenizer
from model_updates.inserts import Insert
from model_updates.pair_sets import Batch
from model_updates.parts.two_towers import contrastive
from model_updates.prospect import Prospect
from model_updates.strategy import Strategy, UpdateContext
from model_updates.towers import why_fixed


class FrozenTowers(Strategy):
    """Base of the strategies that put one module into each tower."""

    _encoder: Encoder

    @abstractmethod
    def built(self, model: nn.Module) -> Sequence[Insert]:
        """Returns new modules for a model, image tower first.

        Raises:
            BadStrategyOption: a tower takes none.
        """

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses towers that take no modules."""
        if prospect.encoder.vocabulary is None:
            return self._foreign(prospect.encoder)
        try:
            self.built(prospect.encoder.model)
        except BadStrategyOption as error:
            return str(error)
        return None

    def before_update(self, context: UpdateContext) -> None:
        encoder = context.encoder
        if encoder.vocabulary is None:
            raise ForeignTokenizer(self._foreign(encoder))
        self._encoder = encoder
        encoder.model.requires_grad_(False)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        return {"contrastive": contrastive(self._encoder, batch)}

    def _foreign(self, encoder: Encoder) -> str:
        return (
            f"the text tower of {encoder.architecture} {why_fixed(encoder.model)}, so it is not run on embedded "
            f"words, around which {self.name} puts modules. Use finetune or c-clip, or an encoder with a text tower "
            "built like CLIP's"
        )
