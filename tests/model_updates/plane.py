"""Pairs of texts and pictures in the plane, whose cosines can be worked out by hand."""

import math

import torch
from torch import Tensor

from model_updates.parts.domain_terms import Known

SCALE = 4.0


def rows(*angles: float) -> Tensor:
    """Unit vectors in the plane, by degrees."""
    turned = torch.tensor([math.radians(angle) for angle in angles])
    return torch.stack([turned.cos(), turned.sin()], dim=1)


def pairs(texts: Tensor, pictures: Tensor, *captions: int, first_picture: int = 0) -> Known:
    shown = torch.arange(first_picture, first_picture + len(texts))
    return Known(texts, pictures, torch.tensor(captions), shown)


NEW = pairs(rows(0, 90), rows(10, 80), 0, 1)
OLD = pairs(rows(0, 180), rows(5, 170), 0, 7, first_picture=10)
OTHERS = pairs(rows(0, 90), rows(10, 80), 20, 21)  # captions that no old picture has
