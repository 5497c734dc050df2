"""Checkpoints of an update in progress: what an interrupted update needs to go on as if nothing happened.

One safetensors file holds the trained weights and the strategy's progress, both of the last epoch and of the kept one,
the optimizer's moments and the random state; its metadata the counters. It replaces the one before by rename, so
there is always a whole one.
"""

import hashlib
import json
import logging
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ingest.sentence import known_fields
from model_updates.encoder import Encoder
from model_updates.pairs import TrainingPair
from model_updates.strategy import Strategy, UpdateContext
from model_updates.towers import hash_tensors
from model_updates.validation import Score
from model_updates.vocabulary import Vocabulary

FILE = "checkpoint.safetensors"

logger = logging.getLogger(__name__)


@dataclass
class Progressed:
    """How far an update is: finished epochs, the one to keep, the best score, and what was logged."""

    epoch: int = 0
    kept_epoch: int = 0
    best: Score | None = None
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Kept:
    """The epoch that is kept: its trained weights and the strategy's progress."""

    weights: dict[str, Tensor] = field(default_factory=dict)
    strategy: dict[str, Tensor] = field(default_factory=dict)


def owner_of(strategy: Strategy, context: UpdateContext) -> str:
    """Returns the sha256 (hex) of what makes an update what it is; call before it changes the encoder.

    Strategy, options, what it carried from earlier updates, seed, pairs and starting weights: a checkpoint of anything
    else must not be resumed, for its weights would fit and mean something else. `owner_beside` adds what lies beside
    the chunk.
    """
    digest = hashlib.sha256(f"{strategy.name}|{strategy.options!r}|{context.seed}".encode())
    carried = strategy.carried()
    digest.update(json.dumps([carried.facts, carried.update], sort_keys=True).encode())
    hash_tensors(digest, carried.tensors.items())
    hash_tensors(digest, context.encoder.state().items())
    _add(digest, context.encoder.vocabulary, context.pairs)
    return digest.hexdigest()


def owner_beside(owner: str, encoder: Encoder, beside: Sequence[TrainingPair]) -> str:
    """Returns an owner (hex) with the vocabulary that the update trains and the pairs beside its chunk.

    These are replayed, distilled on, or help to choose the epoch. Call after the strategy has prepared the encoder.
    What was withdrawn since must not live on in a checkpoint, and which words are new depends on what lies beside.
    """
    digest = hashlib.sha256(owner.encode())
    _add(digest, encoder.vocabulary, beside)
    return digest.hexdigest()


def _add(digest: Any, vocabulary: Vocabulary | None, pairs: Sequence[TrainingPair]) -> None:
    digest.update(json.dumps(None if vocabulary is None else vocabulary.to_json()).encode())
    for pair in pairs:
        digest.update(json.dumps(vars(pair)).encode())


def save(
    folder: Path,
    progressed: Progressed,
    *,
    owner: str,
    weights: dict[str, Tensor],
    kept: Kept,
    strategy: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Writes the checkpoint of a finished epoch into a folder, replacing the one before."""
    tensors = {f"weights.{k}": v for k, v in weights.items()}
    tensors |= {f"kept.{k}": v for k, v in kept.weights.items()}
    tensors |= {f"kept_strategy.{k}": v for k, v in kept.strategy.items()}
    tensors |= {f"strategy.{k}": v for k, v in strategy.items()}
    for index, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{k}": torch.as_tensor(v) for k, v in values.items()}
    for index, group in enumerate(optimizer.param_groups):
        if "step" in group:  # where LAMB counts; AdamW counts with the moments
            tensors[f"steps.{index}"] = torch.as_tensor(group["step"])
    tensors["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{FILE}"
    save_file(
        {k: v.detach().cpu().clone().contiguous() for k, v in tensors.items()},
        temporary,
        metadata={"progressed": json.dumps(asdict(progressed)), "owner": owner},
    )
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    temporary.replace(folder / FILE)


@dataclass(frozen=True)
class Loaded:
    """A checkpoint read back."""

    progressed: Progressed
    weights: dict[str, Tensor]
    kept: Kept
    strategy: dict[str, Tensor]
    optimizer: dict[int, dict[str, Tensor]]
    steps: dict[str, Tensor]
    random: dict[str, Tensor]

    def restore_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Puts moments and counts back; hyper-parameters stay as the caller made them."""
        state: dict[str, Any] = optimizer.state_dict()
        state["state"] = self.optimizer
        for index, step in self.steps.items():
            state["param_groups"][int(index)]["step"] = step
        optimizer.load_state_dict(state)

    def restore_random(self, device: torch.device) -> None:
        """Puts the generators back where they were."""
        torch.set_rng_state(self.random["cpu"])
        if device.type == "cuda" and "cuda" in self.random:
            torch.cuda.set_rng_state(self.random["cuda"], device)


def load(folder: Path, *, owner: str) -> Loaded | None:
    """Reads the checkpoint of an update; None when there is none that this update can go on from.

    A damaged checkpoint, or one of another update, is worth a warning and a start from the beginning: it is
    only work saved, and its update is still to be done.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118 - no mapping
    except SafetensorError as error:
        logger.warning("the checkpoint in %s is damaged (%s); the update starts again", folder.name, error)
        return None
    if metadata.get("owner") != owner:
        logger.warning("the checkpoint in %s is of another update; this one starts again", folder.name)
        return None
    values = known_fields(Progressed, json.loads(metadata["progressed"]))
    best = values.pop("best")
    progressed = Progressed(**values, best=best and Score(**known_fields(Score, best)))
    parts = _by_first(tensors)
    return Loaded(
        progressed,
        weights=parts["weights"],
        kept=Kept(parts["kept"], parts["kept_strategy"]),
        strategy=parts["strategy"],
        optimizer={int(index): moments for index, moments in _by_first(parts["optimizer"]).items()},
        steps=parts["steps"],
        random=parts["random"],
    )


def _by_first(tensors: dict[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Returns tensors by the first part of their names, which ends at a dot."""
    found: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for name, value in tensors.items():
        first, _, rest = name.partition(".")
        found[first][rest] = value
    return found
