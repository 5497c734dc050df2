"""What stands beside a domain's chunk: a sample of every known slice, and the domain's own earlier pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model_updates.batches import prepared_pictures
from model_updates.encoder import Encoder
from model_updates.pair_sets import UpdateData
from model_updates.pairs import TrainingPair
from model_updates.parts.domain_terms import Known


def even_sample(pairs: Sequence[TrainingPair], most: int) -> list[TrainingPair]:
    """Returns at most so many pairs: as many of each language and domain, spread evenly over each.

    What a small slice leaves over goes to the larger ones. The same pairs give the same sample.
    """
    slices: dict[tuple[str, str], list[TrainingPair]] = {}
    for pair in pairs:
        slices.setdefault((pair.language, pair.domain), []).append(pair)
    chosen: list[TrainingPair] = []
    left = most
    for done, own in enumerate(sorted(slices.values(), key=len)):
        count = min(len(own), left // (len(slices) - done))
        chosen += [own[k * len(own) // count] for k in range(count)]
        left -= count
    return chosen


def trunk_rows(data: UpdateData) -> dict[str, NDArray[np.float32]]:
    """Returns the base trunk features of an update's pictures, taught and remembered, by domain; each picture once."""
    rows: dict[str, dict[int, None]] = {}
    for pairs in (data.train, data.memory):
        for pair, number in zip(pairs.pairs, pairs.image_index.tolist(), strict=True):
            rows.setdefault(pair.domain, {})[number] = None
    trunk = data.train.pictures.trunk.cpu().numpy()
    return {domain: trunk[list(own)] for domain, own in rows.items()}


@dataclass(frozen=True)
class Drawn:
    """Earlier pairs that join a batch: prepared pictures, or trunk features alone."""

    pairs: Known
    images: Tensor | None
    trunk: Tensor
    domains: tuple[str, ...]


class Earlier:
    """Pairs of the chunk's own domains that were learned before; a batch is followed by as many of them as it has."""

    def __init__(
        self, encoder: Encoder, data: UpdateData, memory: Known, rows: Sequence[int], *, pictures: bool
    ) -> None:
        """Prepares them.

        `memory` has the update's remembered pairs as unit features, `rows` says which are the domains' own, and
        `pictures` whether decoded ones are needed.
        """
        self._rows = list(rows)
        self._memory = memory
        self._trunk = data.memory.trunk
        pairs = [data.memory.pairs[n] for n in self._rows]
        self._domains = [pair.domain for pair in pairs]
        self._images = prepared_pictures(pairs, encoder, data.load_image) if pictures and pairs else None

    def drawn(self, batch: Tensor) -> Drawn | None:
        """Returns earlier pairs for the batch of these rows, the same for the same batch; None without any."""
        if not self._rows:
            return None
        # Drawn from what is in the batch, so that a resumed update needs no state of a generator.
        places = torch.arange(1, len(batch) + 1)
        generator = torch.Generator().manual_seed(int((batch.cpu() * places).sum()))
        positions = torch.randperm(len(self._rows), generator=generator)[: len(batch)].tolist()
        chosen = torch.tensor([self._rows[n] for n in positions])
        return Drawn(
            self._memory.rows(chosen.to(self._memory.caption.device)),
            None if self._images is None else self._images(positions),
            self._trunk[chosen],
            tuple(self._domains[n] for n in positions),
        )
