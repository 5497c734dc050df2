"""Plain sequential fine-tuning: both towers, every parameter, the contrastive loss alone.

Idea: keep training the whole model on the new chunk. It learns fastest and forgets most; every other strategy
is measured against it. Source: the "SeqF" baseline of CTP (ICCV 2023) and the "FT" of C-CLIP (ICLR 2025). It keeps
nothing between updates.
"""

from model_updates.parts.two_towers import TwoTowers
from model_updates.strategy import Family


class Finetune(TwoTowers):
    """Trains everything on the new pairs."""

    name = "finetune"
    summary = "Trains both towers on the new pairs and protects nothing; the yardstick for forgetting."
    paper = "sequential fine-tuning, the SeqF baseline of CTP (ICCV 2023)"
    family = Family.BOUNDS
    trains = "both towers"
    keeps = "nothing"
    overhead = "none"
