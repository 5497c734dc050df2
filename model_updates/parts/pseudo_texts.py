"""Pseudo negative texts: mixtures of old texts, moved to where old towers find them hard to tell from pictures.

A pseudo text is a sequence of token embeddings and no words: ``e = beta * e_i + (1 - beta) * e_j`` of two texts of
the memory, read with the old table, and then moved by gradient descent until its similarity to every picture of the
batch lies in a band: above ``lowest``, or it were no hard negative, and below ``highest``, or it were no negative
(IncCLIP, ECCV 2022, 3.2, eq. 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize, relu

from model_updates.batches import pad, tokenise
from model_updates.encoder import Encoder
from model_updates.pair_sets import PairSet
from model_updates.towers import embed, text_body, why_fixed

NARROWEST = 0.05
HARD = 0.9  # the quantile of wrong similarities that a hard negative reaches
MOST_FOR_THE_BAND = 1_000


@dataclass(frozen=True)
class Band:
    """The cosines that a pseudo text may have with a picture."""

    lowest: float
    highest: float


@dataclass(frozen=True)
class PseudoTexts:
    """Texts as embeddings."""

    embedded: Tensor  # (n, length, width), without gradients
    ends: Tensor  # (n,) int64 position of each text's last token

    def features(self, encoder: Encoder) -> Tensor:
        """Returns (n, dim) raw features under an encoder; gradients reach its blocks and never its token table."""
        return text_body(encoder.model, self.embedded, self.ends).float()


class PseudoTextMaker:
    """Makes pseudo texts out of a memory, with an old encoder.

    `old` is the frozen encoder before the update, whose tokens are embeddings that it can read. Without a band it is
    measured on the memory.
    """

    def __init__(self, old: Encoder, memory: PairSet, band: Band | None = None) -> None:
        self._old = old
        self._sequences = tokenise(old, memory.pairs)
        self._pictures = normalize(memory.image_features.float(), dim=-1)
        self.band = band or measured_band(memory)

    def make(self, count: int, batch: int, *, steps: int, turn: float) -> PseudoTexts:
        """Returns so many pseudo texts; draws from the global generator.

        They are made of `batch` pairs of the memory, whose pictures they are hard for; `turn` is the mean change of a
        text's similarities in a step.
        """
        chosen = torch.randperm(len(self._sequences))[:batch].tolist()
        texts = self._mixed([self._sequences[n] for n in chosen], count)
        pictures = self._pictures[chosen].to(texts.embedded.device)
        return moved_into(self._old, texts, pictures, self.band, steps=steps, turn=turn)

    def _mixed(self, sequences: Sequence[Sequence[int]], count: int) -> PseudoTexts:
        device, vocabulary = self._old.device, self._old.vocabulary
        if vocabulary is None:
            raise ValueError("pseudo texts need an encoder that takes embeddings; ask `cannot_embed` first")
        rows = pad(self._old, sequences).to(device)
        ends = (rows == vocabulary.end_row).int().argmax(dim=-1)
        with torch.no_grad():
            embedded = embed(self._old.model, rows)
        first, second = torch.randint(len(sequences), (2, count)).to(device)
        share = torch.rand(count).to(embedded)[:, None, None]
        mixed = share * embedded[first] + (1 - share) * embedded[second]
        # Causal attention: the words of the shorter text are seen from the end of the longer one.
        return PseudoTexts(mixed, torch.maximum(ends[first], ends[second]))


def cannot_embed(encoder: Encoder) -> str | None:
    """Says why an encoder takes no embeddings; None when it does."""
    if encoder.vocabulary is not None:
        return None
    return f"the text tower of {encoder.architecture} {why_fixed(encoder.model)} and takes no embeddings"


def measured_band(memory: PairSet) -> Band:
    """Returns the band between hard wrong similarities and right ones, as an old encoder has them.

    From the .9 quantile of the cosines of pictures and texts that do not belong together up to one standard deviation
    below the mean of those that do; at least 0.05 wide.
    """
    if memory.text_features is None:
        raise ValueError("the band is measured on old text features, and the memory has none")
    image = normalize(memory.image_features[:MOST_FOR_THE_BAND].float(), dim=-1)
    text = normalize(memory.text_features[:MOST_FOR_THE_BAND].float(), dim=-1)
    index = memory.image_index[:MOST_FOR_THE_BAND]
    cosines, same = image @ text.T, index[:, None] == index[None, :]
    right, wrong = cosines.diagonal(), cosines[~same]
    highest = float(right.mean() - right.std())
    lowest = float(wrong.quantile(HARD)) if len(wrong) else highest - NARROWEST
    return Band(min(lowest, highest - NARROWEST), highest)


def band_loss(cosines: Tensor, band: Band) -> Tensor:
    """Returns (texts,) each text's mean distance from the band, of (pictures, texts) cosines (eq. 1)."""
    return (relu(band.lowest - cosines) + relu(cosines - band.highest)).mean(dim=0)


def moved_into(
    old: Encoder, texts: PseudoTexts, pictures: Tensor, band: Band, *, steps: int, turn: float
) -> PseudoTexts:
    """Returns texts after a number of plain gradient steps on the band's loss.

    The rate is such that to first order a text's loss falls by `turn` in a step, the mean over those that have one: a
    loss is a mean of cosines.

    The old encoder is frozen and gets no gradient; pictures are (b, dim) unit rows.
    """
    embedded = texts.embedded
    for _ in range(steps):
        with torch.enable_grad():
            leaf = embedded.detach().requires_grad_(True)
            features = normalize(text_body(old.model, leaf, texts.ends).float(), dim=-1)
            loss = band_loss(pictures @ features.T, band).sum()
            if not loss.requires_grad or float(loss.detach()) == 0:
                break
            (gradient,) = torch.autograd.grad(loss, leaf)
        steepness = gradient.flatten(1).square().sum(dim=1)
        paying = steepness[steepness > 0]
        if not len(paying):
            break
        embedded = embedded - turn / paying.mean() * gradient
    return PseudoTexts(embedded.detach(), texts.ends)
