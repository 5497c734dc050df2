"""Data parallelism: an encoder whose towers several processes run together, each on its share of the rows.

Every process runs the same update, on the same pairs with the same random numbers. Where a tower runs, each takes its
share of the rows, and then all have all features, with gradients: so a loss sees every negative, a memory or an anchor
is shared out as a batch is, and neither the trainer nor a strategy knows how many they are. Going back, a share's
gradients are added up before they reach a parameter, as the one and as the other of Megatron-LM's conjugate operators
do (Shoeybi et al., arXiv:1909.08053, section 3). So every gradient of a parameter is that of one process but for float
rounding, also one that a strategy asks for by itself. What dropout leaves out is not what it leaves out in one process.

What looks at a whole batch is run whole by every process: norms over a batch, inserts that may remember what a batch
chose, and towers that are watched at work (`together`).
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.autograd.function import once_differentiable
from torch.distributed import ProcessGroup
from torch.nn.modules.batchnorm import _BatchNorm

from model_updates.encoder import Encoder
from model_updates.inserts import ENCODER, Insert
from model_updates.routes import BASE, Route
from model_updates.strategy import Epochs, Strategy, UpdateContext
from model_updates.vocabulary import SHARED

RunRows = Callable[[Tensor, Route], Tensor]


class DataParallelEncoder(Encoder):
    """An encoder whose towers the processes of a group run together.

    Every process must call it in the same order with the same rows, as those do that run one update.

    Attributes:
        group: the processes; None runs every tower here.
        shared: rows that were shared out so far, of all processes.
    """

    group: ProcessGroup | None = None
    shared: int = 0

    @classmethod
    def of(cls, encoder: Encoder, group: ProcessGroup | None) -> "DataParallelEncoder":
        """Returns an encoder around the same model and inserts, which the processes of a group run together."""
        made = cls(
            encoder.model,
            architecture=encoder.architecture,
            preprocessing=encoder.preprocessing,
            vocabulary=encoder.vocabulary,
            foreign_tokenizer=encoder.foreign_tokenizer,
            inserts=encoder.inserts,
            profiles=encoder.profiles,
        )
        made.group = group
        return made

    def around(self, model: nn.Module, inserts: Sequence[Insert] = ()) -> Encoder:
        """Returns an encoder of another model, which the same processes run together."""
        return self.of(super().around(model, inserts), self.group)

    def train(self, mode: bool = True) -> None:
        """Sets the mode; before training goes on, all take the weights of the first process.

        Processors that round in another way would draw them apart.
        """
        super().train(mode)
        if mode and self.group is not None:
            for _, parameter in self.parameters():
                if parameter.requires_grad:
                    distributed.broadcast(parameter.data, group_src=0, group=self.group)

    def forward_trunk(self, prepared: Tensor, route: Route = BASE) -> Tensor:
        """Runs the image tower on this process's share, and returns the trunk features of all."""
        before = self.image_forwards
        features = self._shared_out("image", super().forward_trunk, prepared, route)
        self.image_forwards = before + len(prepared)
        return features

    def forward_tokens(self, tokens: Tensor, route: Route = SHARED, *, together: bool = False) -> Tensor:
        """Runs the text tower on this process's share, and returns the features of all."""
        if together:
            return super().forward_tokens(tokens, route, together=True)
        return self._shared_out("text", super().forward_tokens, tokens, route)

    def _shared_out(self, tower: str, run: RunRows, rows: Tensor, route: Route) -> Tensor:
        if self.group is None or len(rows) < 2 or self._looks_at_batches(tower):
            return run(rows, route)
        self.shared += len(rows)
        size, rank = self.group.size(), self.group.rank()
        each = -(-len(rows) // size)
        # The last shares may lack rows; they take some again, and what comes of those is left out.
        mine = [(rank * each + n) % len(rows) for n in range(each)]
        route = route if isinstance(route, str) else [route[n] for n in mine]
        trained = {name: parameter for name, parameter in self._named() if parameter.requires_grad}
        if not torch.is_grad_enabled() or not trained:
            return _gathered(self._drawn_apart(run, rows[mine], route), self.group)[: len(rows)]
        leaves = _Leaves.apply(self.group, *trained.values())
        tensors = dict(zip(trained, leaves, strict=True))
        tower_parts = _Towers(self.model, self.inserts)
        share: Tensor = torch.func.functional_call(
            tower_parts, tensors, (self._drawn_apart, run, rows[mine], route), strict=False
        )
        features: Tensor = _Gathered.apply(self.group, share, *leaves)
        return features[: len(rows)]

    def _named(self) -> list[tuple[str, nn.Parameter]]:
        return list(_Towers(self.model, self.inserts).named_parameters())

    def _looks_at_batches(self, tower: str) -> bool:
        return any(insert.tower == tower and insert.owner == ENCODER for insert in self.inserts) or any(
            isinstance(module, _BatchNorm) and module.training for module in self.model.modules()
        )

    def _drawn_apart(self, run: RunRows, rows: Tensor, route: Route) -> Tensor:
        """Runs a share with random numbers of its own, and leaves those of the update the same for all."""
        if not self.model.training or self.group is None:
            return run(rows, route)
        with torch.random.fork_rng([rows.device] if rows.is_cuda else []):
            common = hashlib.sha256(torch.get_rng_state().numpy().data).digest()
            torch.manual_seed(int.from_bytes(common[:7]) + self.group.rank())
            before = torch.get_rng_state()
            features = run(rows, route)
            drew = torch.tensor(int(not torch.equal(before, torch.get_rng_state())), device=rows.device)
        distributed.all_reduce(drew, group=self.group)
        if drew:
            torch.rand(())  # the next call draws others, also after a checkpoint
        return features


def up_to_its_end(strategy: Strategy, begins_epoch: Callable[[], None]) -> Strategy:
    """Returns a strategy that trains and does not end its update: who has its last checkpoint can.

    `begins_epoch` is called before each epoch, when the checkpoint of the one before is there.
    """
    kind = type(strategy)

    def before_epoch(self: Strategy, epoch: int, batches: Epochs) -> None:
        begins_epoch()
        kind.before_epoch(self, epoch, batches)

    def after_update(self: Strategy, context: UpdateContext, batches: Epochs) -> None:
        pass

    def notes(self: Strategy) -> list[str]:
        return []  # some are of what `after_update` found

    hooks = {"before_epoch": before_epoch, "after_update": after_update, "notes": notes}
    strategy.__class__ = type(kind.__name__, (kind,), hooks)
    return strategy


class _Towers(nn.Module):
    """Model and inserts as one module, whose parameters others can stand in for while something runs."""

    def __init__(self, model: nn.Module, inserts: Sequence[Insert]) -> None:
        super().__init__()
        self.model = model
        self.inserts = nn.ModuleList(inserts)

    def forward(self, run: Callable[..., Tensor], *args: Any) -> Tensor:
        return run(*args)


class _Leaves(torch.autograd.Function):
    """Parameters as they are; going back, the gradients of all processes are added up."""

    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, *parameters: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.group, ctx.like = group, [(one.shape, one.dtype, one.device) for one in parameters]
        return tuple(parameter.view_as(parameter) for parameter in parameters)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        # What no share has reached has no gradient; zeros would let it decay.
        reached = torch.tensor([gradient is not None for gradient in gradients], dtype=torch.int32)
        reached = reached.to(ctx.like[0][2])
        distributed.all_reduce(reached, group=ctx.group)
        chosen = [n for n, count in enumerate(reached.tolist()) if count]
        found: list[Tensor | None] = [None] * len(gradients)
        if chosen:
            flat = torch.cat([_or_zeros(gradients[n], *ctx.like[n]).reshape(-1) for n in chosen])
            distributed.all_reduce(flat, group=ctx.group)
            pieces = torch.split(flat, [ctx.like[n][0].numel() for n in chosen])
            for n, piece in zip(chosen, pieces, strict=True):
                found[n] = piece.view(ctx.like[n][0])
        return (None, *found)


class _Gathered(torch.autograd.Function):
    """The features of all shares; going back, each process takes the gradient of its own.

    It is told the leaves, so that every process goes back to them, also one whose share none of them has part in.
    """

    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, share: Tensor, *leaves: Tensor) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.rows, ctx.rank, ctx.leaves = len(share), group.rank(), len(leaves)
        return _gathered(share, group)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[Tensor | None, ...]:
        mine = None if gradient is None else gradient[ctx.rank * ctx.rows :][: ctx.rows]
        return (None, mine, *[None] * ctx.leaves)


def _or_zeros(gradient: Tensor | None, shape: torch.Size, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.zeros(shape, dtype=dtype, device=device) if gradient is None else gradient


def _gathered(share: Tensor, group: ProcessGroup) -> Tensor:
    share = share.contiguous()
    shares = [torch.empty_like(share) for _ in range(group.size())]
    distributed.all_gather(shares, share, group=group)
    return torch.cat(shares)
