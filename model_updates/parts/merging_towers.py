"""Two towers that train as finetune does and release other weights: an average, or a sum of task vectors.

Validation sees what would be released, after every epoch (`deployed`). Running statistics of batch norms are counted
anew on the chunk wherever merged weights are put in.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from model_updates.encoder import Encoder
from model_updates.parts.merging import return_to
from model_updates.strategy import Epochs, Part, UpdateContext


class Merging(Part):
    """Puts merged weights in the place of those that were trained, for validation and at the end of an update.

    `merged` gives what would be released if the update ended with these parameters.
    """

    def __init__(self, merged: Callable[[Mapping[str, Tensor]], dict[str, Tensor]]) -> None:
        self._merged = merged

    def before_update(self, context: UpdateContext) -> None:
        self._encoder, self._seed = context.encoder, context.seed

    def before_epoch(self, epoch: int, batches: Epochs) -> None:
        self._batches = batches

    @contextmanager
    def deployed(self) -> Iterator[None]:
        """Puts the merged weights in while the block runs."""
        model = self._encoder.model
        trained = {name: value.detach().clone() for name, value in model.state_dict().items()}
        self._release(self._batches)
        try:
            yield
        finally:
            model.load_state_dict(trained)

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        self._release(batches)
        self._encoder.forget_fingerprints()

    def _release(self, batches: Epochs) -> None:
        put(self._encoder.model, self._merged(values_of(self._encoder.model)))
        count_statistics(self._encoder, batches, self._seed)


class TaskVectors(Merging):
    """Trains every update from the base, and releases it with all changes merged in; `add_up` keeps an update's."""

    def __init__(
        self,
        merged: Callable[[Mapping[str, Tensor]], dict[str, Tensor]],
        add_up: Callable[[Mapping[str, Tensor]], None],
    ) -> None:
        super().__init__(merged)
        self._add_up = add_up
        self.updates = 0  # whose changes have been taken
        self.base: dict[str, Tensor] = {}  # the base's parameters, while an update runs

    def before_update(self, context: UpdateContext) -> None:
        super().before_update(context)
        base = context.open_anchor().model
        return_to(context.encoder.model, base)
        self.base = values_of(base)

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Merges, and takes this update's change."""
        trained = {name: value.clone() for name, value in values_of(context.encoder.model).items()}
        super().after_update(context, batches)
        self._add_up(trained)
        self.base = {}
        self.updates += 1


def values_of(model: nn.Module) -> dict[str, Tensor]:
    """Returns a model's parameters without gradients, by name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def put(model: nn.Module, values: Mapping[str, Tensor]) -> None:
    """Gives parameters new values, in place."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(values[name])


def count_statistics(encoder: Encoder, batches: Epochs, seed: int) -> None:
    """Counts the running statistics of batch norms anew, as plain means over one epoch; of other models none."""
    norms = [module for module in encoder.model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    encoder.train(False)
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a mean over all batches, not a moving one
        norm.train()
    with torch.no_grad():
        for batch in batches.epoch(seed):
            if batch.images is not None:
                encoder.forward_images(batch.images, batch.domains)
            encoder.forward_tokens(batch.tokens, batch.languages)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    encoder.train(False)
