"""Which words are hidden for masked-language modelling, and what stands in their place (BERT; CTP, eq. 2).

15 % of the words are chosen; of these 80 % are hidden, 10 % become some other word, 10 % stay as they are.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

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

    `words` (n, length) bool says which tokens may be chosen; `others` (k,) are rows that may stand in a word's place.
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
