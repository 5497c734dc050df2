"""The frozen encoders that an update may look at, and the proof that they stayed frozen."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from model_updates.encoder import Encoder
from model_updates.errors import TeacherMoved
from model_updates.strategy import UpdateContext


class Teachers:
    """Opens the teachers of one update as copies of their own, and checks at its end that none has moved.

    A teacher that is never opened costs nothing.
    """

    def __init__(self, context: UpdateContext) -> None:
        """Takes over a context's teachers; use `context` from then on."""
        self._opened: dict[str, tuple[Encoder, dict[str, int]]] = {}
        device = context.encoder.device

        def frozen(name: str, open_encoder: Callable[[], Encoder]) -> Callable[[], Encoder]:
            def opened() -> Encoder:
                if name not in self._opened:
                    teacher = open_encoder().copy().to(device)
                    for _, parameter in teacher.parameters():
                        parameter.requires_grad_(False)
                    self._opened[name] = (teacher, _sums(teacher))
                return self._opened[name][0]

            return opened

        self.context = replace(
            context,
            open_anchor=frozen("anchor", context.open_anchor),
            open_previous=frozen("previous", context.open_previous),
        )

    def require_unmoved(self) -> None:
        """Raises when a teacher is not what it was.

        Raises:
            TeacherMoved: its parameters changed, train, or have gradients.
        """
        for name, (teacher, before) in self._opened.items():
            loose = [n for n, p in teacher.parameters() if p.requires_grad or p.grad is not None]
            if loose or teacher.model.training or _sums(teacher) != before:
                raise TeacherMoved(
                    f"the {name} encoder, a frozen teacher, was changed by the update"
                    + (f" ({loose[0]} trains)" if loose else "")
                    + ". This is a fault of the strategy; the live model is as it was"
                )


def _sums(encoder: Encoder) -> dict[str, int]:
    """Returns of each tensor the sum of its bits as whole numbers: any change by mistake is one of it, too.

    A hash would tell no more, for nobody hides a change here, and takes ten times as long.
    """
    return {name: _sum(value.detach().reshape(-1)) for name, value in encoder.state().items()}


def _sum(values: Tensor) -> int:
    whole = torch.int64 if values.nbytes % 8 == 0 else torch.uint8
    return int(values.contiguous().view(whole).sum())
