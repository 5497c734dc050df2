"""Training the rows of a token table: which move, how strongly, and how new ones start.

TEIR scales the gradient and the decay of row j by lambda_j (CLL-CLIP paper, eq. 5 and 6). Adam divides a gradient by
its own size, so a scaled gradient hardly changes the step; ``apply_to="update"`` scales the finished step instead,
which is what eq. 5 intends. Rows with lambda 0 stay bit-identical either way.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from model_updates.vocabulary import Growth


def start_new_rows(
    table: nn.Parameter, growth: Growth, *, mean: float, std: float, generator: torch.Generator
) -> None:
    """Fills the rows of a growth in place: a copy of the row to start from, else N(mean, std^2)."""
    with torch.no_grad():
        for row, source in zip(growth.new_rows.tolist(), growth.start_from.tolist(), strict=True):
            if source >= 0:
                table[row] = table[source]
            else:
                drawn = torch.randn(table.shape[1], generator=generator) * std + mean
                table[row] = drawn.to(table)


def table_statistics(table: Tensor) -> tuple[float, float]:
    """Returns the scalar mean and standard deviation over all entries of a table (not per dimension)."""
    values = table.detach().double()
    return float(values.mean()), float(values.std())


def occurring_rows(sequences: Sequence[Sequence[int]], rows: int, special: Sequence[int]) -> Tensor:
    """Returns a (rows,) bool mask of the rows that occur in tokenised texts, start and end excluded."""
    mask = torch.zeros(rows, dtype=torch.bool)
    if sequences:
        mask[torch.tensor([row for sequence in sequences for row in sequence])] = True
    mask[list(special)] = False
    return mask


def teir_scale(occurs: Tensor, counts: Tensor) -> Tensor:
    """Returns lambda, (rows,) float32: 0 where a token does not occur, else 1 / (c + 1) (eq. 6, resolved)."""
    return torch.where(occurs, 1.0 / (counts.float() + 1.0), torch.zeros(len(occurs)))


class ScaledRows:
    """Applies row scales to one token table around the optimizer's step.

    Put the table in a parameter group with weight decay 0: the decay is applied here, so that it can be
    scaled too.

    The table is (rows, width); gradient and decay scale are (rows,) factors, and the decay is that of a row with decay
    scale 1. `apply_to` "grad" scales the gradient before Adam sees it, "update" the step that Adam makes.
    """

    def __init__(
        self,
        table: nn.Parameter,
        *,
        gradient_scale: Tensor,
        decay_scale: Tensor,
        weight_decay: float,
        apply_to: str = "grad",
    ) -> None:
        self.table = table
        self.gradient_scale = gradient_scale.to(table.device)[:, None]
        self.decay_scale = decay_scale.to(table.device)[:, None]
        self.weight_decay = weight_decay
        self.apply_to = apply_to
        self._before: Tensor | None = None

    def after_backward(self, learning_rate: float) -> None:
        """Scales the gradient and decays the rows; call after clipping, before the optimizer's step."""
        if self.table.grad is None:
            return
        with torch.no_grad():
            if self.apply_to == "grad":
                self.table.grad.mul_(self.gradient_scale)
            else:
                # A row at 0 must not collect moments either: they would move it once it is trained.
                self.table.grad.mul_(self.gradient_scale > 0)
            self.table.mul_(1 - learning_rate * self.weight_decay * self.decay_scale)
            if self.apply_to == "update":
                self._before = self.table.detach().clone()

    def after_step(self) -> None:
        """Shrinks the step just made to its scaled length (only with ``apply_to="update"``)."""
        if self._before is not None:
            with torch.no_grad():
                step = self.table - self._before
                self.table.copy_(self._before + self.gradient_scale * step)
            self._before = None
