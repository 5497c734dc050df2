"""C-CLIP: low-rank adapters in the towers, contrastive knowledge consolidation, interpolated merge.

Idea: learn a new domain in LoRA adapters; make the projected new features contrast with the old model's, so
that the old space stays readable; at the end move only part of the way to the merged weights.

Formula: ``L = L_CLIP + L_CKC``. CKC stacks image and text features along the batch, 2B rows: new features
through a projector h (Linear, BatchNorm, ReLU, Linear; fresh in every update), old ones as they are;
cross-entropy both ways under the model's own temperature, averaged. Then ``theta_t = theta_old + alpha *
(theta_merged - theta_old)`` for every parameter. Source: C-CLIP (ICLR 2025), eq. 2, 5 and 6.
CKC stacks along the batch, which is what the paper's 2N counts.

Each half alone: ``consolidation=0`` is the adapters without CKC, ``adapters=no`` is CKC with every weight in training,
which needs no merge and takes `finetune`'s rate unless told otherwise.

Where we differ: small encoders take a larger rate and go further towards the merged weights (measured, see
`SMALL`); the text tower learns at the image tower's rate (``text_rate``; ten times as fast in the paper); the
adapters of `parts.lora` sit on attention and MLP (``targets=qkvo+mlp``), and what lies outside the blocks is
frozen by default. ``targets=mlp train_outer=yes`` is what the paper's parameter counts imply: they count
adapters on the attention's output projection too, which are never run. A ResNet image tower, which the paper does not
try, takes an adapter beside each convolution of its bottlenecks.
``towers=image`` leaves the text tower alone: moving it would disturb every language learned on it, so it is
the default once there are such languages. The epoch is chosen on the weights that the merge will leave.
``L_CLIP`` takes all captions of one picture in a batch as right, where eq. 6 takes each row's own alone. The warm-up is
a tenth of the steps, as everywhere here; the paper's is 5 of 40 epochs.

Kept between updates: nothing but the encoder itself.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from ingest.pair import BASE_LANGUAGE
from model_updates.checked import BatchSize, Count, NotNegative, OneOf, Share, Within
from model_updates.encoder import Encoder
from model_updates.losses import LARGEST_LOG_SCALE, ckc, multi_positive_info_nce
from model_updates.pair_sets import Batch
from model_updates.parts import lora
from model_updates.parts.merging import keep_share
from model_updates.parts.two_towers import RunOptions, require_one_space, two_spaces
from model_updates.prospect import Prospect
from model_updates.strategy import (
    BOTH_TOWERS,
    Epochs,
    Family,
    ParameterGroup,
    Schedule,
    Strategy,
    UpdateContext,
)
from model_updates.towers import image_tower, is_image_parameter, is_scale, is_small, text_tower

PROJECTOR = "projector."
HIDDEN = 2048  # of the projector


@dataclass(frozen=True)
class Defaults:
    """What suits an encoder of some size."""

    learning_rate: float
    merge: float


PAPER = Defaults(learning_rate=3e-5, merge=0.5)
# Measured on the style `line` of the emoji after seven languages, image tower, R@1 of trained names; `finetune` gains
# 25.1 and loses 59.2 on noto English. Rate 1e-3 and merge 0.5: +2.4 and -7.0. Rate 3e-3: merge 0.5 +8.0 and -8.2,
# merge 0.7 +21.7 and -17.4, merge 1 +57.1 and -39.5 (docs/log.md).
SMALL = Defaults(learning_rate=3e-3, merge=0.7)
# Every weight in training, as `finetune` does it.
WHOLE = Defaults(learning_rate=1e-5, merge=1.0)
SMALL_WHOLE = Defaults(learning_rate=3e-4, merge=1.0)


@dataclass(frozen=True)
class CClipOptions(RunOptions):
    """Options of `c-clip`."""

    # "both", "image", or "auto": image once languages beyond the base's are learned, else both.
    towers: Annotated[str, OneOf("auto", "both", "image")] = "auto"
    adapters: bool = True  # train adapters; no trains every weight of the towers, for CKC alone.
    rank: Count = 16  # of the adapters (paper: 16); alpha is twice the rank.
    dropout: Annotated[float, Within("[0, 1)")] = 0.1  # on the adapters' input (paper: 0.1).
    targets: Annotated[str, OneOf(*lora.TARGETS)] = "qkvo+mlp"  # "qkvo+mlp" or "mlp".
    # also train embeddings, norms and projections outside the blocks, as the paper's counts imply.
    train_outer: bool = False
    # how far to move towards the merged weights; 0 means the default for the encoder's size (0.5 in the
    # paper), the whole way without adapters.
    merge: Share = 0.0
    consolidation: NotNegative = 1.0  # weight of the CKC term (paper: 1); 0 goes without it.
    text_rate: NotNegative = 1.0  # learning-rate factor of the text tower (paper: 10).
    epochs: Count = 20  # passes over the chunk (paper: 40).
    batch_size: BatchSize = 128  # pairs per step (paper: 1024).
    learning_rate: NotNegative = 0.0  # 0 means the default for the encoder's size (3e-5 in the paper).
    weight_decay: NotNegative = 0.2  # of adapters and projector (paper: 0.2).


class CClip(Strategy):
    """LoRA, knowledge consolidation and an interpolated merge."""

    name = "c-clip"
    summary = (
        "Learns a new domain in small adapters and keeps close to the old model; pictures are embedded again."
    )
    paper = "C-CLIP, ICLR 2025, eq. 2, 5 and 6"
    family = Family.MODULES
    trains = "low-rank adapters in both towers"
    keeps = "nothing: the encoder before the update is the teacher"
    overhead = "about a quarter more time an epoch (Table 9: +26 %)"
    needs = frozenset({"text_features"})
    touches = frozenset({"image"})  # the text tower, too, where an update decides so
    options: CClipOptions

    def __init__(self, options: CClipOptions | None = None) -> None:
        super().__init__(options)
        self._old: dict[str, Tensor] = {}
        self._projector: nn.Module | None = None

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses two text spaces, and a tower without transformer blocks to put adapters in."""
        reason = two_spaces(self.name, prospect.encoder)
        if reason is not None or not self.options.adapters:
            return reason
        model = prospect.encoder.model
        towers = [image_tower(model)]
        if self._wants_text(prospect.learned_languages):
            towers.append(text_tower(model))
        unfit = next((tower for tower in towers if not lora.adaptable(tower, self.options.targets)), None)
        return None if unfit is None else lora.no_blocks(unfit)

    def before_update(self, context: UpdateContext) -> None:
        """Keeps the old weights, inserts adapters and makes a fresh projector."""
        encoder, options = context.encoder, self.options
        require_one_space(self.name, encoder)
        if self._wants_text(context.learned_languages):
            self.touches = BOTH_TOWERS
        self._encoder = encoder
        self._old = {name: value.detach().clone() for name, value in encoder.model.state_dict().items()}
        encoder.model.requires_grad_(False)
        torch.manual_seed(context.seed)  # peft and nn.Linear draw from the global generator
        towers = [image_tower(encoder.model), text_tower(encoder.model)]
        self._towers = towers if "text" in self.touches else towers[:1]
        for tower in self._towers if options.adapters else []:
            lora.insert_lora(
                tower,
                rank=options.rank,
                alpha=2 * options.rank,
                dropout=options.dropout,
                targets=options.targets,
            )
        self._projector = _projector(encoder.dim).to(encoder.device) if options.consolidation else None

    def _wants_text(self, learned_languages: frozenset[str]) -> bool:
        beyond_base = learned_languages - {BASE_LANGUAGE}
        return self.options.towers == "both" or (self.options.towers == "auto" and not beyond_base)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns what trains of the image tower, the projector, the temperature, and the text tower at its rate."""
        scale: nn.Parameter = self._encoder.model.logit_scale  # type: ignore[assignment]
        groups = [
            ParameterGroup(lora.trainable(self._of_tower("image"))),
            ParameterGroup([] if self._projector is None else list(self._projector.parameters())),
            ParameterGroup(lora.trainable([scale]), weight_decay=0.0),
        ]
        if "text" in self.touches:
            groups.append(
                ParameterGroup(lora.trainable(self._of_tower("text")), rate_factor=self.options.text_rate)
            )
        return groups

    def _of_tower(self, side: str) -> list[nn.Parameter]:
        model, of_image = self._encoder.model, side == "image"
        if self.options.adapters:
            outer = lora.outer_parameters(model, side) if self.options.train_outer else []
            return lora.lora_parameters(self._towers[0 if of_image else 1]) + outer
        return [
            p for n, p in model.named_parameters() if not is_scale(n) and is_image_parameter(n) == of_image
        ]

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns the paper's cosine behind the warm-up of all strategies; small encoders take a larger rate."""
        rate, decay = self._defaults(encoder).learning_rate, self.options.weight_decay
        return self.options.cosine(encoder, small=rate, large=rate, weight_decay=decay, betas=(0.9, 0.99))

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        if batch.images is None or batch.text_features is None:
            raise ValueError("c-clip needs before_update, pictures and the old model's text features first")
        # On the routes that the old features were read on.
        image, text = self._encoder.forward_images(batch.images, batch.domains).float(), batch.text_features
        if "text" in self.touches:
            text = self._encoder.forward_tokens(batch.tokens, batch.languages).float()
        scale: Tensor = self._encoder.model.logit_scale.exp()  # type: ignore[operator]
        similarities = normalize(image, dim=-1) @ normalize(text, dim=-1).T
        contrast = multi_positive_info_nce(similarities, scale, batch.image_index, batch.image_index)
        if self._projector is None:
            return {"contrastive": contrast}
        new = torch.cat([self._projector(image), self._projector(text)])
        old = torch.cat([batch.image_features, batch.text_features])
        return {"contrastive": contrast, "consolidation": self.options.consolidation * ckc(new, old, scale)}

    def after_step(self) -> None:
        scale: Tensor = self._encoder.model.logit_scale  # type: ignore[assignment]
        with torch.no_grad():
            scale.clamp_(0, LARGEST_LOG_SCALE)

    @contextmanager
    def deployed(self) -> Iterator[None]:
        """Validates the share of the way that the merge will go, not the adapters at full strength."""
        model = self._encoder.model
        outside = {n: v for n, v in model.state_dict().items() if n in self._old}
        trained = {name: value.detach().clone() for name, value in outside.items()}
        with ExitStack() as stack:
            for tower in self._towers:
                stack.enter_context(lora.scaled_lora(tower, self._share))
            keep_share(outside, self._old, self._share)
            try:
                yield
            finally:
                model.load_state_dict(trained, strict=False)

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Merges the adapters and moves every parameter part of the way to the merged weights."""
        for tower in self._towers:
            lora.merge_lora(tower)
        keep_share(self._encoder.model.state_dict(), self._old, self._share)
        self._old, self._projector = {}, None
        self._encoder.forget_fingerprints()

    def notes(self) -> list[str]:
        if not self.options.adapters:
            return ["Both towers trained." if "text" in self.touches else "The image tower trained."]
        return ["Adapters in both towers." if "text" in self.touches else "Adapters in the image tower only."]

    def progress(self) -> dict[str, Tensor]:
        return {} if self._projector is None else self._projector.state_dict(prefix=PROJECTOR)

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        own = {name.removeprefix(PROJECTOR): value for name, value in progress.items()}
        if self._projector is not None:
            self._projector.load_state_dict(own)

    @property
    def _share(self) -> float:
        return self.options.merge or self._defaults(self._encoder).merge

    def _defaults(self, encoder: Encoder) -> Defaults:
        if self.options.adapters:
            return SMALL if is_small(encoder.dim) else PAPER
        return SMALL_WHOLE if is_small(encoder.dim) else WHOLE


def _projector(dim: int) -> nn.Module:
    return nn.Sequential(nn.Linear(dim, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, dim))
