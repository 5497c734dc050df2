"""Reference data: pictures and texts that are not taught, on which an update must say what a teacher says of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ingest.pair import BASE_LANGUAGE
from model_updates.batches import prepared_pictures, sampled
from model_updates.encoder import Encoder
from model_updates.features import LoadImage
from model_updates.pairs import TrainingPair
from model_updates.strategy import UpdateContext

TEACHER_BATCH = 64


@dataclass(frozen=True)
class Reference:
    """Reference pairs, and where they are from."""

    pairs: tuple[TrainingPair, ...]  # each picture once
    origin: str  # where they are from, for a sentence


def chosen_reference(context: UpdateContext, chunk: str, count: int) -> Reference:
    """Returns up to so many reference pairs, the same ones whenever it is asked.

    Those of the named chunk; without one, of what people find today; where nothing is known, of the chunks learned
    before; where there are none, of the chunk itself.

    Raises:
        NothingToLearn: there is no such chunk here, or it has no pair.
    """
    if chunk:
        return _of(context.open_reference(chunk), count, f"the chunk {chunk}")
    for found, origin in (
        (context.open_known(), "pictures of the gallery that are found today"),
        (context.open_earlier(), "chunks learned before"),
    ):
        if found:
            return _of(found, count, origin)
    return _of(context.pairs, count, "the chunk itself, for want of others")


def _of(pairs: Sequence[TrainingPair], count: int, origin: str) -> Reference:
    first: dict[str, TrainingPair] = {}
    for pair in sampled(pairs, len(pairs)):
        first.setdefault(pair.image_id, pair)
        if len(first) == count:
            break
    return Reference(tuple(first.values()), origin)


class TeacherOutputs:
    """What a frozen teacher makes of reference pictures and texts; they need not belong together.

    A text is the English caption where there is one: a teacher from before all updates knows no other language.
    """

    def __init__(self, reference: Reference, teacher: Encoder, load_image: LoadImage) -> None:
        pairs = reference.pairs
        self._pictures = prepared_pictures(pairs, teacher, load_image)
        self._domains = [pair.domain for pair in pairs]
        with torch.no_grad():
            rows = [self._features(teacher, start) for start in range(0, len(pairs), TEACHER_BATCH)]
            self._images = torch.cat(rows)
            self.texts = _texts(pairs, teacher)  # (m, dim) unit text features

    def __len__(self) -> int:
        return len(self._images)

    def _features(self, teacher: Encoder, start: int) -> Tensor:
        some = range(start, min(start + TEACHER_BATCH, len(self._domains)))
        pictures, domains = self.pictures(some)
        return normalize(teacher.forward_images(pictures, domains).float(), dim=-1)

    def pictures(self, rows: Sequence[int]) -> tuple[Tensor, list[str]]:
        """Returns prepared pictures (n, 3, size, size) and their domains."""
        return self._pictures(list(rows)), [self._domains[row] for row in rows]

    def images(self, rows: Sequence[int]) -> Tensor:
        """Returns the teacher's (n, dim) unit features of these pictures."""
        return self._images[list(rows)]

    def draw(self, count: int, seed: int) -> list[int]:
        """Returns the rows of up to so many pictures, the same for the same seed."""
        generator = torch.Generator().manual_seed(seed)
        rows: list[int] = torch.randperm(len(self), generator=generator)[:count].tolist()
        return rows


def _texts(pairs: Sequence[TrainingPair], teacher: Encoder) -> Tensor:
    said = dict.fromkeys((p.english, BASE_LANGUAGE) if p.english else (p.text, p.language) for p in pairs)
    rows = [
        torch.from_numpy(teacher.text_features([text for text, its in said if its == language], language))
        for language in sorted({language for _, language in said})
    ]
    return normalize(torch.cat(rows).to(teacher.device), dim=-1)
