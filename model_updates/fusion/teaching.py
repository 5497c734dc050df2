"""What a fusion encoder learns beside the towers: hidden words, and whether a text belongs to a picture.

``L_mlm``: the cross-entropy of the hidden words, read with the picture (CTP, eq. 2). ``L^c_mlm``: the same places as
the slow model reads them, at temperature 1 (eq. 5). ``L_itm``: whether a text and a picture are a pair, for each pair
of the batch and two that are none: each picture with another text and each text with another picture, drawn by how
alike the towers find them, the hard negatives of ALBEF (Li et al., NeurIPS 2021, 3.2).

CTP itself has no matching term: its fusion features are only compared with each other. A re-ranker asks whether *this*
text belongs to *that* picture, and so needs the head of the model that CTP is built on.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from model_updates.encoder import Encoder
from model_updates.fusion.encoder import FusionEncoder, PictureFeatures, Texts, fusion_of, new_fusion
from model_updates.fusion.tokens import Read, read_texts, real_words, words_to_hide
from model_updates.losses import kl_rows
from model_updates.pair_sets import Batch
from model_updates.parts.momentum_contrast import Slow
from model_updates.towers import token_table

CHOSEN = 0.15
HIDDEN = 0.8
OTHER = 0.1


@dataclass(frozen=True)
class Masked:
    """Texts with words hidden."""

    tokens: Tensor  # (n, length) int64, some of them other words
    hidden: Tensor  # (n, length) bool, read as the mask
    chosen: Tensor  # (n, length) bool, the words that are to be guessed
    right: Tensor  # (m,) int64, the rows that stood at the chosen places, row by row


def hide_words(tokens: Tensor, words: Tensor, others: Tensor) -> Masked:
    """Chooses words and hides them, by torch's generator of the CPU; at least one is hidden where there is a word.

    15 % of the words are chosen; of these 80 % are hidden, 10 % become some other word, 10 % stay as they are (BERT;
    CTP, eq. 2). `words` (n, length) bool may be chosen; `others` (k,) are rows that may stand in their place.
    """
    draw, fate = torch.rand(2, *tokens.shape).to(tokens.device)
    chosen = words & (draw < CHOSEN)
    if not bool(chosen.any()):
        # The word that was nearest to being chosen: a batch without a hidden word teaches the heads nothing.
        draw = torch.where(words, draw, torch.inf)
        chosen = words & (draw == draw.min())
        fate = torch.zeros_like(fate)
    hidden = chosen & (fate < HIDDEN)
    other = chosen & (fate >= HIDDEN) & (fate < HIDDEN + OTHER)
    drawn = others[torch.randint(len(others), tokens.shape).to(others.device)].to(tokens.device)
    return Masked(torch.where(other, drawn, tokens), hidden, chosen, tokens[chosen])


LEAST_WEIGHT = 1e-5
"""What even the most unlike negative is drawn with (ALBEF's code)."""


class SlowFusion(Slow):
    """The slow model's fusion encoder: moves as its towers do, by a share towards what it was before the update."""

    def __init__(self, fusion: FusionEncoder, *, momentum: float, share_of_old: float) -> None:
        self.fusion = copy.deepcopy(fusion)
        old = {name: value.detach().clone() for name, value in fusion.named_parameters()}
        super().__init__(self.fusion, old, "fusion.", momentum=momentum, share_of_old=share_of_old)


@dataclass(frozen=True)
class FusionTeaching:
    """A fusion encoder that learns beside its encoder's towers, and the slow one that distils it."""

    encoder: Encoder
    fusion: FusionEncoder  # its fusion encoder, in training
    slow: SlowFusion | None  # the slow one; None goes without distillation

    @classmethod
    def begin(
        cls, encoder: Encoder, *, layers: int, seed: int, slow: tuple[float, float] | None, first: float
    ) -> FusionTeaching:
        """Goes on with an encoder's fusion encoder, or puts a new one in.

        Layers and seed are of a new one. `slow` is momentum and share of the old in each step of the slow one; None
        goes without. While there is no old one, the slow one follows the current one alone, with the momentum `first`.
        """
        known = fusion_of(encoder)
        if known is None:
            torch.manual_seed(seed)
            encoder.inserts.append(new_fusion(encoder, layers))
        fusion = fusion_of(encoder)
        if fusion is None:
            raise ValueError("an encoder has lost its fusion encoder")
        moving = None
        if slow is not None:
            momentum, share = (first, 0.0) if known is None else slow
            moving = SlowFusion(fusion, momentum=momentum, share_of_old=share)
        return cls(encoder, fusion.requires_grad_(True), moving)

    def terms(
        self,
        batch: Batch,
        images: Read,
        texts: Read,
        slow: tuple[Encoder, Read] | None,
        scale: Tensor | float,
    ) -> dict[str, Tensor]:
        """Returns the terms of a batch.

        Images and texts are as the towers in training read them; `slow` is the slow model and its reading of the
        pictures; `scale` the inverse temperature at which towers find negatives alike.
        """
        pictures = self.fusion.pictures(images)
        masked = masked_texts(self.encoder, batch)
        logits = hidden_word_logits(self.encoder, self.fusion, batch, masked, pictures)
        terms = word_terms(logits, masked, self._slow_logits(batch, masked, slow))
        read = self.fusion.texts(texts, real_words(self.encoder, batch.tokens))
        cosines, index = pictures.vectors @ read.vectors.T, batch.image_index
        negatives = hard_negatives(cosines, index, scale), hard_negatives(cosines.T, index, scale)
        terms["matching"] = matching(self.fusion, read, pictures, negatives)
        return terms

    def _slow_logits(self, batch: Batch, masked: Masked, slow: tuple[Encoder, Read] | None) -> Tensor | None:
        if slow is None or self.slow is None:
            return None
        encoder, images = slow
        with torch.no_grad():
            pictures = self.slow.fusion.pictures(images)
            return hidden_word_logits(encoder, self.slow.fusion, batch, masked, pictures)


def masked_texts(encoder: Encoder, batch: Batch) -> Masked:
    """Hides words of a batch's texts; others that may stand in their place are words of the same batch."""
    tokens = batch.tokens.to(encoder.device)
    words = words_to_hide(encoder, tokens)
    others = tokens[words]
    return hide_words(tokens, words, others if len(others) else tokens.flatten())


def hidden_word_logits(
    encoder: Encoder, fusion: FusionEncoder, batch: Batch, masked: Masked, pictures: PictureFeatures
) -> Tensor:
    """Returns (m, rows) what a model makes of the chosen places, reading text and picture together."""
    read = read_texts(encoder, masked.tokens, batch.languages, hidden=masked.hidden, mask=fusion.mask)
    fused = fusion(fusion.texts(read, real_words(encoder, batch.tokens)), pictures)[1]
    table = token_table(encoder.model)
    if table is None:
        raise ValueError("this text tower has no token table; ask no_tokens() first")
    return fusion.word_logits(fused[masked.chosen], table)


def word_terms(logits: Tensor, masked: Masked, slow_logits: Tensor | None) -> dict[str, Tensor]:
    """Returns the term of the hidden words and, with a slow model, that of its guesses."""
    terms = {"words": cross_entropy(logits, masked.right)}
    if slow_logits is not None:
        terms["slow-words"] = kl_rows(slow_logits, logits)
    return terms


def hard_negatives(similarities: Tensor, image_index: Tensor, scale: Tensor | float) -> Tensor:
    """Draws one wrong column for each row of (b, b) cosines, the likelier the more alike; -1 where none is wrong.

    By torch's generator of the CPU. `image_index` (b,) is equal where rows and columns show the same picture and so are
    no negatives.
    """
    same = (image_index[:, None] == image_index[None, :]).cpu()
    weights = (scale * similarities.detach().float()).softmax(dim=1).cpu() + LEAST_WEIGHT
    weights = weights.masked_fill(same, 0.0)
    lost = weights.sum(dim=1) == 0
    weights[lost] = 1.0
    drawn = torch.multinomial(weights, 1).squeeze(1)
    return torch.where(lost, -1, drawn).to(similarities.device)


def matching(
    fusion: FusionEncoder, texts: Texts, pictures: PictureFeatures, negatives: tuple[Tensor, Tensor]
) -> Tensor:
    """Returns the cross-entropy of telling b pairs from hard negatives.

    Negatives are (b,) a wrong text for each picture, and a wrong picture for each text; -1 where there is none.
    """
    places = torch.arange(len(pictures.patches), device=pictures.patches.device)
    wrong_text, wrong_image = negatives
    has_text, has_image = wrong_text >= 0, wrong_image >= 0
    which_texts = torch.cat([places, wrong_text[has_text], places[has_image]])
    which_pictures = torch.cat([places, places[has_text], wrong_image[has_image]])
    whole = fusion(texts.select(which_texts), pictures.select(which_pictures))[0]
    right = (torch.arange(len(whole), device=whole.device) < len(places)).float()
    return binary_cross_entropy_with_logits(fusion.log_odds(whole), right)
