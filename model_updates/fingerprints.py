"""Fingerprints: the sha256 of what turns a picture or a text into numbers, so that "nothing moved" is an equality."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import torch
from torch import nn

from model_updates.preprocessing import Preprocessing
from model_updates.towers import hash_rows, hash_tensors, image_tower, is_text_body, token_table
from model_updates.vocabulary import Vocabulary

if TYPE_CHECKING:
    from hashlib import _Hash


def trunk_digest(model: nn.Module, preprocessing: Preprocessing, architecture: str) -> str:
    """Returns the sha256 (hex) of what turns a picture into trunk features."""
    return _tower(model, preprocessing, architecture).hexdigest()


def image_digest(model: nn.Module, preprocessing: Preprocessing, architecture: str) -> str:
    """Returns the sha256 (hex) of what turns a picture into a vector: the tower, and the head where there is one."""
    digest = _tower(model, preprocessing, architecture)
    head = getattr(model, "image_head", None)
    if head is not None:
        hash_tensors(digest, head.state_dict().items())
    return digest.hexdigest()


def _tower(model: nn.Module, preprocessing: Preprocessing, architecture: str) -> _Hash:
    digest = hashlib.sha256(json.dumps(asdict(preprocessing), sort_keys=True).encode())
    digest.update(architecture.encode())
    hash_tensors(digest, image_tower(model).state_dict().items())
    return digest


def text_body_digest(model: nn.Module, architecture: str) -> _Hash:
    """Hashes what every token table of a text tower is read with; `text_digest` goes on from a copy."""
    digest = hashlib.sha256(architecture.encode())
    hash_tensors(digest, ((k, v) for k, v in model.state_dict().items() if is_text_body(k)))
    return digest


def text_digest(body: _Hash, model: nn.Module, vocabulary: Vocabulary | None, table: str) -> str:
    """Returns the sha256 (hex) of what turns a text of one token table into a vector: body, rows, segmentation."""
    digest = body.copy()
    weight = token_table(model)
    if vocabulary is None or weight is None:
        hash_tensors(digest, [] if weight is None else [("tokens", weight)])
        return digest.hexdigest()
    described, rows = vocabulary.segmentation(table)
    digest.update(described)
    hash_rows(digest, "rows", weight, torch.from_numpy(rows))
    return digest.hexdigest()
