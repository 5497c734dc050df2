"""How a taught language is read beside a second text tower: that tower corrected, and its own table as far as it knows.

Idea: a few hundred captions teach a table the words they have, and no others. Read with it in full, a language that the
second tower reads untaught is found less often than before: 100 Czech captions cost 6 points of R (docs/log.md). So the
table's part of a vector gets the length that its held-out captions ask for. The second tower, which is frozen, is drawn
to what it says of the English captions beside.

Formula: rest' = N(e + e B), B = (E'E + strength I)^-1 E'(Y - E), with the unit rows E of the captions and Y of the
English ones. The length of the first part is the one of `LENGTHS` under which held-out captions are likeliest to name
their pictures among those of the chunk: the mean of log softmax(scale * cosine).
Source: our own; ridge regression as in `parts.ridge`.
"""

from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from model_updates.encoder import Encoder
from model_updates.inserts import Insert, Owner, language
from model_updates.pair_sets import PairSet
from model_updates.search_encoder import TEXT_BATCH

STRENGTH = 3.0
LENGTHS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4)
FROM_FEW = 0.3
"""The length where nearly nothing is held out; chunks of 100 to 400 pairs ask for .2 to .5."""
FEW = 8


class SecondReading(Insert):
    """Changes both parts of a vector of one language's texts; see the module for how."""

    kind = "second-reading"
    tower = "text"
    runs_in_tower = False
    by: Tensor  # (d, d) float16, what is added to a unit row of the second tower: row @ by
    length: Tensor  # () float32 of the first tower's part

    def __init__(self, owner: Owner, config: Mapping[str, Any]) -> None:
        super().__init__(owner, config)
        width = int(config["width"])
        self.register_buffer("by", torch.zeros(width, width, dtype=torch.float16))
        self.register_buffer("length", torch.ones(()))

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes one that changes nothing."""
        return cls(owner, config).to(next(model.parameters()).device)

    def beside(self, first: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
        turned, read = (
            functional.normalize(rest + rest @ self.by.to(rest), dim=-1),
            rest.norm(dim=-1, keepdim=True),
        )
        # Where the second tower is spared the first says all, however little it would count beside it.
        return torch.where(read > 0, self.length, 1.0) * first, turned * read

    def said(self) -> str:
        """Returns a sentence on how the language is read."""
        share = round(100 * float(self.length) / (1 + float(self.length)))
        return (
            f"{self.owner.name}: the words it was taught count {share} %, what could be read before the rest."
        )

    def correct(self, rest: Tensor, english: Tensor) -> None:
        """Solves what draws rows (n, d) of the second tower to those of the English captions beside."""
        read, wanted = (functional.normalize(rows.double(), dim=-1) for rows in (rest, english))
        gram = read.T @ read + STRENGTH * torch.eye(read.shape[1], dtype=read.dtype)
        self.by.copy_(torch.linalg.solve(gram, read.T @ (wanted - read)))

    def weigh(self, first: Tensor, rest: Tensor, own: Tensor, pictures: Tensor, scale: float) -> None:
        """Chooses the length of the first part from n texts.

        Args:
            first: (n, w) unit rows of the first tower.
            rest: (n, d) rows of the second, not yet corrected.
            own: (n,) int64, the picture of each text.
            pictures: (p, w + d) unit vectors.
            scale: how steeply cosines are told apart.
        """
        if len(own) < FEW:
            self.length.fill_(FROM_FEW)
            return
        _, turned = self.beside(first, rest)
        losses = []
        for length in LENGTHS:
            texts = functional.normalize(torch.cat([length * first, turned], dim=-1), dim=-1)
            losses.append(float(functional.cross_entropy(scale * texts @ pictures.T, own)))
        self.length.fill_(LENGTHS[losses.index(min(losses))])


def read_beside(encoder: Encoder, tag: str, train: PairSet, held_out: PairSet) -> SecondReading | None:
    """Gives a language that was just taught its insert in the place of the one it has, and returns it.

    None where the encoder has no second tower.

    Args:
        encoder: whose table of the language is trained already.
        tag: the language.
        train: pairs it was taught with.
        held_out: pairs it was not taught with; those of other languages are left out.
    """
    second = encoder.second
    if second is None:
        return None
    owner = language(tag)
    kept = [one for one in encoder.inserts if not (isinstance(one, SecondReading) and one.owner == owner)]
    knew = len(kept) < len(encoder.inserts)
    insert = SecondReading.build(owner, {"width": second.dim}, encoder.model).cpu()
    beside = _of(train, tag, translated=True)
    if len(beside):
        insert.correct(_rest(encoder, beside, knew=knew), beside.english_features[:, encoder.tower_dim :])
    asked = _of(held_out, tag)
    pictures, own = _pictures(asked, train)
    insert.weigh(
        _first(encoder, asked, tag), _rest(encoder, asked, knew=knew), own, pictures, encoder.similarity_scale
    )
    encoder.inserts[:] = [*kept, insert.to(encoder.device).eval().requires_grad_(False)]
    encoder.forget_fingerprints()
    return insert


def _of(pairs: PairSet, tag: str, *, translated: bool = False) -> PairSet:
    """Returns the pairs of a language, or those with an English caption beside them."""
    chosen = [
        n
        for n, pair in enumerate(pairs.pairs)
        if pair.language == tag and (not translated or bool(pairs.has_english[n]))
    ]
    return pairs.select(chosen)


def _first(encoder: Encoder, pairs: PairSet, tag: str) -> Tensor:
    """Returns (n, w) unit rows of the first tower."""
    rows = [torch.zeros(0, encoder.tower_dim)]
    with torch.inference_mode():
        for start in range(0, len(pairs), TEXT_BATCH):
            texts = [pair.text for pair in pairs.pairs[start : start + TEXT_BATCH]]
            rows.append(encoder.forward_tokens(encoder.tokenize(texts, tag), tag).float().cpu())
    return functional.normalize(torch.cat(rows), dim=-1)


def _rest(encoder: Encoder, pairs: PairSet, *, knew: bool) -> Tensor:
    """Returns (n, d) rows of the second tower, not corrected: those at hand, unless the language had an insert."""
    if pairs.text_features is not None and not knew:
        return pairs.text_features[:, encoder.tower_dim :]
    second = encoder.second
    if second is None or not len(pairs):
        return torch.zeros(len(pairs), encoder.dim - encoder.tower_dim)
    return torch.from_numpy(
        second.features([pair.text for pair in pairs.pairs], [pair.language for pair in pairs.pairs])
    )


def _pictures(asked: PairSet, beside: PairSet) -> tuple[Tensor, Tensor]:
    """Returns (p, dim) unit vectors of all pictures, and which of them each asked pair shows, (n,) int64."""
    index = torch.cat([asked.image_index, beside.image_index])
    numbers, place = index.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    return functional.normalize(asked.pictures.features[numbers], dim=-1), place[: len(asked)]
