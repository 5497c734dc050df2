"""CPE-CLIP: both towers frozen; prompts of several layers learn, those of pictures as a linear map of those of texts.

Idea: a few shared vectors steer both towers together and need nobody to say which update an input belongs to. The more
was taught before, the less the next chunk may move them.

Formula: G (depth, length, width) Xavier-uniform; texts carry ``G[l]`` behind the start token of layer l, pictures
``linear(G)[l]`` behind their last token, and each layer's replace what the one before made of its own. ``L =
L_contrastive``; from the second update on gradients are multiplied by ``n_t / sum n``, the share of this chunk in all
pairs taught so far. SGD with momentum 0.9, rate 0.00325, decay 1e-5, cosine. Source: D'Alessandro et al., ICCV
workshops 2023, and the authors' code; length 2, depth 3 there, every layer in C-CLIP's comparison (ICLR 2025), which is
``depth=0``.

Where we differ: the authors count classes, which captions have not; we count pairs. InfoNCE takes the place of the
cross-entropy over classes. The cosine falls once and has no warm restarts, and only the "replace" handling of deep
prompts is built. A text has as many words less as it has prompts. What the image tower reads between updates is the
result of the map, so that a picture's fingerprint holds all that reads it.

Kept in the encoder: the prompts and the map. Every vector changes with them, so that the gallery is embedded again.
Carried between updates: how many pairs were taught.
"""

from dataclasses import dataclass

import torch
from torch import nn

from model_updates.checked import Count, CountOrZero, NotNegative
from model_updates.encoder import Encoder
from model_updates.inserts import ENCODER
from model_updates.parts.deep_prompts import DeepImagePrompts, DeepTextPrompts
from model_updates.parts.frozen_towers import FrozenTowers
from model_updates.parts.text_blocks import require_blocks, require_image_blocks, width_of
from model_updates.parts.two_towers import RunOptions
from model_updates.strategy import Epochs, Family, ParameterGroup, Schedule, State, UpdateContext


@dataclass(frozen=True)
class CpeClipOptions(RunOptions):
    """Options of `cpe-clip`."""

    length: Count = 2  # prompt tokens of a layer (2).
    # layers with prompts of their own (3), at most those of the tower with fewer; 0 means all of these.
    depth: CountOrZero = 3
    # of the peak; 0 means the default for the encoder's size (0.00325 in the paper).
    learning_rate: NotNegative = 0.0
    weight_decay: NotNegative = 1e-5  # on prompts and map (1e-5).


class CpeClip(FrozenTowers):
    """Continual parameter-efficient CLIP."""

    name = "cpe-clip"
    summary = (
        "Freezes both towers and learns a few prompts that every picture and text carries; fast and small."
    )
    paper = "D'Alessandro et al., ICCV workshops 2023, as compared with in C-CLIP (ICLR 2025)"
    family = Family.MODULES
    trains = "a few prompts and a map between the towers"
    keeps = "the number of pairs taught; the prompts are part of the encoder"
    overhead = "a few tokens more for every input"
    options: CpeClipOptions

    def __init__(self, options: CpeClipOptions | None = None) -> None:
        super().__init__(options)
        self._taught = 0

    def before_update(self, context: UpdateContext) -> None:
        """Freezes the towers and puts the prompts in, or goes on with those of earlier updates."""
        super().before_update(context)
        encoder = context.encoder
        kept = {insert.kind: insert for insert in encoder.inserts}
        image, text = kept.get(DeepImagePrompts.kind), kept.get(DeepTextPrompts.kind)
        if not (isinstance(image, DeepImagePrompts) and isinstance(text, DeepTextPrompts)):
            generator = torch.Generator().manual_seed(context.seed)
            image, text = self.built(encoder.model)
            text.draw(generator)
            image.draw(generator)
            encoder.inserts.extend([image, text])
        image.follow(text)
        self._image, self._text = image, text
        for insert in (image, text):
            insert.requires_grad_(True)
        self._share = len(context.pairs) / (self._taught + len(context.pairs))
        encoder.forget_fingerprints()

    def built(self, model: nn.Module) -> tuple[DeepImagePrompts, DeepTextPrompts]:
        texts, pictures = require_blocks(model), require_image_blocks(model)
        layers = min(len(texts), len(pictures))
        depth = min(self.options.depth or layers, layers)
        config = {"length": self.options.length, "depth": depth}
        return (
            DeepImagePrompts.build(ENCODER, {**config, "from": width_of(texts[0])}, model),
            DeepTextPrompts.build(ENCODER, config, model),
        )

    def parameter_groups(self) -> list[ParameterGroup]:
        return [ParameterGroup([self._text.prompts, *self._image.map.parameters()])]

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns SGD with momentum and a cosine; small encoders take a larger rate."""
        decay = self.options.weight_decay
        return self.options.cosine(encoder, small=0.1, large=0.00325, optimizer="sgd", weight_decay=decay)

    def after_backward(self, learning_rate: float) -> None:
        """Lets a chunk move the prompts by its share in all that was taught."""
        for group in self.parameter_groups():
            for parameter in group.parameters:
                if parameter.grad is not None:
                    parameter.grad.mul_(self._share)

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Fixes the pictures' prompts, and counts."""
        self._image.settle()
        self._taught += len(context.pairs)

    def notes(self) -> list[str]:
        depth, length, _ = self._text.prompts.shape
        said = f"{length} prompts in each of {depth} layers of both towers."
        return [
            said,
            f"Gradients were multiplied by {self._share:.2f}, the chunk's share of all pairs taught.",
        ]

    def carried(self) -> State:
        return State(facts={"pairs": self._taught}) if self._taught else State()

    def carry(self, state: State) -> None:
        self._taught = int(state.facts["pairs"])
