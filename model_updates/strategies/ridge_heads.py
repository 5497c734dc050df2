"""Ridge heads: every domain gets a head in closed form, the same whatever the order in which its chunks came.

Idea: where pictures have features that are kept, a linear map from them to what captions say takes a second and has no
epochs, no rate and no seed. One map for all would let a large domain drown a small one, so each domain has its own; its
pictures alone move, and no text does. A domain is always what all its pairs at once give: a chunk that comes later, or
one that was withdrawn, leaves no trace of when it came.

Formula: `parts.ridge_head`, over the pairs of the chunk and of all chunks learned before in the same domain.
Source: our own; recursive ridge regression is known from ACIL (Zhuang et al., NeurIPS 2022) and RanPAC (McDonnell et
al., NeurIPS 2023), which classify, with one map for all tasks.

Kept between updates: the heads and the router (`parts.router`), part of the encoder. The sums that a head is solved
from are made anew of features that are kept anyway; they would take 38 MB a domain in every version.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from model_updates.checked import Checked, CountOrZero
from model_updates.encoder import Encoder
from model_updates.inserts import domain
from model_updates.pair_sets import UpdateData
from model_updates.pairs import TrainingPair
from model_updates.parts.domain_memory import even_sample, trunk_rows
from model_updates.parts.ridge import captioned_in, nothing_readable
from model_updates.parts.ridge_head import RidgeHead
from model_updates.parts.router import renew_router
from model_updates.prospect import Prospect
from model_updates.strategy import Family, Foresight, Schedule, Strategy, UpdateContext


@dataclass(frozen=True)
class RidgeHeadsOptions(Checked):
    """Options of `ridge-heads`."""

    # at most so many pairs of other domains stand beside the chunk, so that the router tells its pictures from theirs.
    known_pairs: CountOrZero = 2000


class RidgeHeads(Strategy):
    """Solves one head for each domain of the chunk; nothing is trained."""

    name = "ridge-heads"
    summary = (
        "Solves a head for each domain in closed form, in seconds and the same in any order of chunks; no other "
        "picture and no text can change."
    )
    can_forget = False
    paper = "our own; recursive ridge regression as in ACIL, NeurIPS 2022"
    family = Family.OURS
    trains = "a head for each domain, in closed form"
    keeps = "nothing: the heads are part of the encoder; a domain's pairs are all solved again"
    overhead = "none"
    embeds_again = "none; those of the domains are mapped again"
    needs = frozenset({"text_features"})
    touches = frozenset({"image"})
    options: RidgeHeadsOptions

    def __init__(self, options: RidgeHeadsOptions | None = None) -> None:
        super().__init__(options)
        self._heads: dict[str, RidgeHead] = {}
        self._pairs: dict[str, int] = {}

    @property
    def reads_pictures(self) -> bool:
        """Never: features are enough."""
        return False

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses captions that nobody can read yet: a head learns how pictures look from what captions say."""
        return nothing_readable(prospect, self.name)

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns all earlier pairs of the chunk's domains, and a sample of the pictures of every other domain."""
        taught = {pair.domain for pair in context.pairs}
        chunk = {(pair.image_id, pair.language, pair.text) for pair in context.pairs}
        own = {
            (pair.image_id, pair.language, pair.text): pair
            for pair in context.open_earlier()
            if pair.domain in taught and pair.language in context.learned_languages
        }
        # One of a picture's captions: the router looks at pictures, and many languages say the same of few.
        others = {pair.image_id: pair for pair in context.open_known() if pair.domain not in taught}
        return (
            *(pair for key, pair in own.items() if key not in chunk),
            *even_sample(list(others.values()), self.options.known_pairs),
        )

    def before_update(self, context: UpdateContext) -> None:
        """Gives each domain of the chunk an empty head in the place of the one it has."""
        encoder = self._encoder = context.encoder
        owners = [domain(name) for name in sorted({pair.domain for pair in context.pairs})]
        encoder.inserts[:] = [
            insert for insert in encoder.inserts if insert.tower != "image" or insert.owner not in owners
        ]
        self._heads = {owner.name: empty_head(encoder, owner.name) for owner in owners}

    def take(self, data: UpdateData) -> None:
        """Receives the pairs and solves each head."""
        pairs = data.train.followed_by(data.memory) if len(data.memory) else data.train
        for name, head in self._heads.items():
            own = pairs.select([n for n, pair in enumerate(pairs.pairs) if pair.domain == name])
            self._pairs[name] = len(own)
            head.fit(list(captioned_in(own, head.widths)))
        self._encoder.inserts.extend(self._heads.values())
        self._encoder.forget_fingerprints()
        self._trunks = trunk_rows(data)

    def foreseen(self, context: UpdateContext) -> Foresight:
        """Returns what an update would do: nothing is trained, and pictures of the chunk's domains move."""
        return Foresight(
            1, False, moves_pictures=True, domains=frozenset(pair.domain for pair in context.pairs)
        )

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns one epoch, of which nothing is trained."""
        return Schedule(epochs=1)

    def after_update(self, context: UpdateContext, batches: object) -> None:
        """Fits the router anew."""
        renew_router(context.encoder, self._trunks)

    def notes(self) -> list[str]:
        return [
            f"{name}: a head solved from {self._pairs[name]:,} pairs; no other picture and no text could change."
            for name in self._heads
        ]


def empty_head(encoder: Encoder, name: str) -> RidgeHead:
    """Returns a head of a domain that `fit` fills, for the spaces of an encoder's vectors."""
    base = getattr(encoder.model, "image_head", None)
    widths, shares = getattr(base, "widths", (encoder.dim,)), getattr(base, "shares", (1.0,))
    config = {"trunk": encoder.trunk_dim, "widths": list(widths), "shares": list(shares)}
    head = RidgeHead.build(domain(name), config, encoder.model).requires_grad_(False)
    centre = getattr(base, "centre", None)
    if isinstance(centre, Tensor):
        head.base_centre.copy_(centre)
    return head
