"""IncCLIP: replay beside generated hard negative texts, distilled similarities, and weights of bounded length.

Idea: what a contrast learns depends on its negatives, and those of the past are gone. So make some: mixtures of old
texts, moved until the old towers find them hard to tell from old pictures. They stand beside the batch's texts where
pictures look for their text, in the loss and in what the old similarities are held to.

Formula: with B pairs of chunk and memory and K pseudo texts, ``L = L_c + 5 L_d``. ``L_c``: half the cross-entropy of
pictures over B + K texts, half that of the B real texts over pictures. ``L_d``: of the same distributions, half and
half, ``KL(new || old)``, the new ones under the learned temperature, the old ones under 0.01 in the paper. After each
step every weight matrix longer than ``gamma`` times its length at the start is shortened to that. Source: Yan et al.,
ECCV 2022, eq. 1 to 10; LAMB, rate and decay 3e-3, 15 epochs.

Where we differ: eq. 7 and 8 print KL(new || old), which ``kd_direction=forward`` turns round into usual distillation.
``old_temperature=0``, the default, is the old model's own, in trained CLIPs 0.01 as well. The paper tells neither band
nor steps of the generation (`parts.pseudo_texts` measures and sets them) nor gamma: 2, which encoders that were trained
before hardly reach, so that the bound stays on for them, too. It has 256 pseudo texts beside the 512 pairs of each
device: half as many as a batch has pairs. Pseudo texts are made of the memory, so the first update of a line has none;
it holds to the base all the same, unless ``from_scratch``. The paper's rate is for starting from nothing, too; it ruins
what was trained before (see `RATES`).

Carried between updates: a sample of the pairs. The lengths at the start are those of the encoder that the line of
versions started from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, normalize

from model_updates.checked import Count, CountOrZero, NotNegative, OneOf, Positive
from model_updates.encoder import Encoder
from model_updates.losses import soft_cross_entropy
from model_updates.pair_sets import Batch, UpdateData
from model_updates.parts.distillation import old_features, same_picture
from model_updates.parts.pseudo_texts import PseudoTextMaker, cannot_embed
from model_updates.parts.replaying import MemoryOptions, ReplayMemory, remember
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers, inverse_temperature, raw_features
from model_updates.prospect import Prospect
from model_updates.strategy import Family, Replay, Schedule, UpdateContext
from model_updates.towers import is_small

PAPER_RATE = 3e-3
# Of encoders that were trained before; LAMB's rate is a share of each weight's length. `perennial-tiny` taught 160
# drawn scenes in chalk, then in ink, 4 epochs each, R@1 among 100 of flat, chalk and ink (100, 81 and 72 before): 0.005
# gives 86, 72 and 77, 0.002 97, 83 and 88; finetune+er 88, 86 and 88. That of large encoders is not measured.
RATES = {"small": 2e-3, "large": 2e-4}
BOUNDED_FROM = 2  # dimensions of what counts as a matrix or kernel
FEWEST_OLD = 2  # pairs that a pseudo text can be mixed of


@dataclass(frozen=True)
class IncclipOptions(MemoryOptions, TwoTowerOptions):
    """Adds negatives, distillation and bound to the options of memory and two towers."""

    epochs: Count = 15  # passes over chunk and memory (paper: 15).
    weight_decay: NotNegative = 3e-3  # on matrices (paper: 0.003).
    negatives: bool = True  # make pseudo texts and stand them beside the batch's.
    # how many in each batch (paper: 256); 0 means half as many as `batch_size`.
    pseudo_texts: CountOrZero = 0
    generation_steps: CountOrZero = 5  # of gradient descent for each (the paper does not say).
    # mean change of a pseudo text's cosines in a step (the paper does not say).
    generation_turn: Positive = 0.02
    distillation: NotNegative = 5.0  # weight of the distilled similarities (paper: 5); 0 leaves them out.
    # "reverse": KL(new || old) as printed; "forward": KL(old || new).
    kd_direction: Annotated[str, OneOf("reverse", "forward")] = "reverse"
    old_temperature: NotNegative = 0.0  # of the old similarities (paper: 0.01); 0 means the old model's own.
    bound_norms: bool = True  # shorten weights that grow.
    # gamma, how many times its length at the start a weight may have (the paper does not say).
    norm_bound: Positive = 2.0
    # the encoder that the line started from was never trained: the paper's rate, and nothing to hold to in
    # the first update.
    from_scratch: bool = False


@dataclass(frozen=True)
class Seen:
    """What a step compares: cosines of b pictures with b + k texts, the pseudo texts last."""

    now: Tensor  # (b, b + k) under the towers in training
    before: Tensor  # (b, b + k) under the old ones, without gradients
    same: Tensor  # (b, b) bool, which real texts show which picture


class Incclip(TwoTowers):
    """Generative negative text replay."""

    name = "incclip"
    summary = "Replays old pairs and hard negative texts made of them, and keeps old similarities."
    paper = "IncCLIP, ECCV 2022, eq. 1 to 10"
    family = Family.MEMORY
    keeps = "a sample of the pairs"
    overhead = "epochs longer by the memory, and some passes of the text tower over pseudo texts in each step"
    needs = frozenset({"text_features"})
    replay = Replay.JOINED
    options: IncclipOptions

    def __init__(self, options: IncclipOptions | None = None) -> None:
        super().__init__(options)
        self.kept = remember(self, ReplayMemory(self.options))
        self._maker: PseudoTextMaker | None = None

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses two text spaces, and an encoder that takes no embeddings, while negatives are wanted."""
        reason = cannot_embed(prospect.encoder) if self.options.negatives else None
        if reason is None:
            return super().fits(prospect)
        return f"{reason}, of which {self.name} makes its negative texts. Use negatives=no to leave them out"

    def before_update(self, context: UpdateContext) -> None:
        """Lets every parameter train; opens the teacher and measures the weights of the base."""
        super().before_update(context)
        options = self.options
        first = context.update_number == 1 and not self.kept.seen
        self._holds = options.distillation > 0 and not (options.from_scratch and first)
        self._old = context.open_previous()
        own = float(inverse_temperature(context.encoder).detach())
        self._old_scale = 1 / options.old_temperature if options.old_temperature else own
        of_base = lengths(context.open_anchor().model) if options.bound_norms else {}
        self._bounds = {name: options.norm_bound * length for name, length in of_base.items()}
        self._weights = dict(context.encoder.model.named_parameters())

    def take(self, data: UpdateData) -> None:
        """Prepares the making of pseudo texts, where there is a memory to make them of."""
        super().take(data)
        enough = self.options.negatives and len(data.memory) >= FEWEST_OLD
        self._maker = PseudoTextMaker(self._old, data.memory) if enough else None

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns the paper's LAMB; an encoder that was trained before takes a smaller rate."""
        trained = RATES["small" if is_small(encoder.dim) else "large"]
        rate = self.options.learning_rate or (PAPER_RATE if self.options.from_scratch else trained)
        return replace(super().schedule(encoder), optimizer="lamb", learning_rate=rate)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the contrastive term and, where there is something to hold to, the distillation."""
        seen, scale = self._seen_by_both(batch), inverse_temperature(self._encoder)
        terms = {"contrastive": contrast_beside(seen.now, scale, seen.same)}
        if self._holds:
            kept = divergence(
                scale * seen.now,
                self._old_scale * seen.before,
                real=len(seen.same),
                direction=self.options.kd_direction,
            )
            terms["distillation"] = self.options.distillation * kept
        return terms

    def after_step(self) -> None:
        super().after_step()
        hold_lengths(self._weights, self._bounds)

    def _seen_by_both(self, batch: Batch) -> Seen:
        image, text = raw_features(self._encoder, batch)
        old_image, old_text = old_features(batch)
        if self._maker is not None:
            options = self.options
            made = self._maker.make(
                options.pseudo_texts or options.batch_size // 2,
                options.batch_size,
                steps=options.generation_steps,
                turn=options.generation_turn,
            )
            text = torch.cat([text, made.features(self._encoder)])
            with torch.no_grad():
                old_text = torch.cat([old_text, made.features(self._old)])
        return Seen(
            normalize(image, dim=-1) @ normalize(text, dim=-1).T,
            normalize(old_image, dim=-1) @ normalize(old_text, dim=-1).T,
            same_picture(batch),
        )


def contrast_beside(cosines: Tensor, scale: Tensor | float, same: Tensor) -> Tensor:
    """Returns InfoNCE whose pictures choose among real and pseudo texts, and whose real texts choose among pictures.

    Cosines are (b, b + k), the real texts first; `same` (b, b) bool says which real texts show which picture.
    """
    real = len(same)
    right = torch.cat([same, same.new_zeros(real, cosines.shape[1] - real)], dim=1)
    to_texts = soft_cross_entropy(scale * cosines, right)
    return (to_texts + soft_cross_entropy(scale * cosines[:, :real].T, same.T)) / 2


def divergence(now: Tensor, before: Tensor, *, real: int, direction: str) -> Tensor:
    """Returns the KL between new and old choices of texts and of pictures, half and half, means over rows (eq. 7 to 9).

    Logits are (b, b + k); no gradient flows into the old ones. The first `real` columns are real texts: they alone
    choose among pictures. The direction is "reverse" for KL(new || old), "forward" for KL(old || new).
    """
    old = before.detach()
    both = [(now, old), (now[:, :real].T, old[:, :real].T)]
    parts = []
    for ours, theirs in both:
        new_log, old_log = log_softmax(ours, dim=1), log_softmax(theirs, dim=1)
        first, second = (new_log, old_log) if direction == "reverse" else (old_log, new_log)
        parts.append((first.exp() * (first - second)).sum(dim=1).mean())
    return (parts[0] + parts[1]) / 2


def lengths(model: nn.Module) -> dict[str, float]:
    """Returns the Frobenius norm of each weight matrix and kernel, by name; embeddings are left alone."""
    return {
        name: float(parameter.detach().norm())
        for name, parameter in model.named_parameters()
        if parameter.ndim >= BOUNDED_FROM and "embedding" not in name
    }


def hold_lengths(parameters: Mapping[str, Tensor], bounds: Mapping[str, float]) -> None:
    """Shortens parameters that are longer than their bound to it, in place; the direction stays (3.3)."""
    with torch.no_grad():
        for name, bound in bounds.items():
            length = float(parameters[name].norm())
            if length > bound:
                parameters[name].mul_(bound / length)
