"""A token table of which only some rows train: the rest is looked up and never given a gradient or a moment.

Adam keeps two numbers for each that may move. Of a table of 128,000 rows a language owns a few thousand; as a parameter
of its own they cost memory and time for those alone, and no other row can change.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from model_updates.towers import text_parts, token_table


class OwnRows(nn.Module):
    """Stands in for a model's token embedding while some of its rows train; `merged` ends it."""

    table: Tensor
    place: Tensor

    def __init__(self, table: Tensor, rows: Tensor) -> None:
        super().__init__()
        self.rows = rows.to(table.device)
        place = torch.full((len(table),), -1, dtype=torch.int64, device=table.device)
        place[self.rows] = torch.arange(len(rows), device=table.device)
        # Neither is state: the table is the model's, and comes back with the update's end.
        self.register_buffer("table", table.detach(), persistent=False)
        self.register_buffer("place", place, persistent=False)
        self.own = nn.Parameter(table.detach()[self.rows].clone())  # (o, width) the rows that train

    def forward(self, tokens: Tensor) -> Tensor:
        """Returns (n, length, width) embedded tokens, with gradients to the rows that train."""
        place = self.place[tokens]
        own = functional.embedding(place.clamp(min=0), self.own)
        return torch.where((place >= 0)[..., None], own, functional.embedding(tokens, self.table))

    def merged(self) -> nn.Embedding:
        """Returns the embedding with the trained rows in it."""
        weight = self.table.clone()
        weight[self.rows] = self.own.detach()
        rows, width = weight.shape
        return nn.Embedding(rows, width, _weight=weight)


def open_rows(model: nn.Module, rows: Tensor) -> nn.Parameter:
    """Puts `OwnRows` in the place of a model's token embedding and returns the parameter that trains.

    Raises:
        ValueError: the model has no token table.
    """
    table = token_table(model)
    if table is None:
        raise ValueError("this model has no token table whose rows could train")
    opened = OwnRows(table, rows)
    text_parts(model).token_embedding = opened
    return opened.own


def close_rows(model: nn.Module) -> None:
    """Puts a plain token embedding with the trained rows back."""
    parts = text_parts(model)
    opened = getattr(parts, "token_embedding", None)  # a foreign tower has none
    if isinstance(opened, OwnRows):
        parts.token_embedding = opened.merged()
