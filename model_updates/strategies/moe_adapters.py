"""MoE-Adapters: both towers frozen; a mixture of small experts in every block, and a router for each update.

Idea: each update gets a router that mixes two of a pool of experts in every block. What it used most is frozen, so that
later updates can read but not change it. What an input is like decides whose router reads it, and what is like nothing
that was taught runs through the plain tower, which is how the authors mean to keep zero-shot ability.

Formula: in `parts.experts`; ``L = L_contrastive``, labels smoothed by 0.2 in the paper; after an update the two most
used experts of each block are frozen. 22 experts with bottleneck 64. Source: Yu et al., CVPR 2024, and the authors'
code, which computes a term that balances the load and never adds it; nor do we.

Where we differ. The authors send a whole batch to the update whose autoencoder rebuilds its AlexNet features best, and
encode the class texts once for each router: a gallery would need one index for each, and a query all of them, which is
the method's real cost in search. Ours chooses for each input alone, by its feature under the frozen tower, and in each
tower by itself: one vector for each picture and one for each query, each for two runs of its tower. A text cannot know
the domain that it looks for: captions of old pictures that are like the chunk's take the new router while their
pictures run plain, which cost 2 points; with ``towers=auto`` the text tower learns languages alone and the image tower
domains alone, which cost none (docs/log.md). Experts that are not frozen yet serve old routers, too, and what they
give out moves with them; so the gallery is embedded again. The router of texts reads the end token: token 0 of a
causal tower, which the authors read, is the same for all texts. An autoencoder's threshold is a quantile of its own
held-out inputs in the place of a fixed 0.0655 and a reference on TinyImageNet. The temperature stays; labels are not
smoothed unless told, for InfoNCE under a fixed temperature then pushes wrong pairs together (docs/log.md).

Kept in the encoder: experts, routers and autoencoders.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from model_updates.batches import pad, sampled, tokenise
from model_updates.checked import Count, NotNegative, OneOf, Within
from model_updates.encoder import Encoder
from model_updates.features import LoadImage
from model_updates.inserts import ENCODER
from model_updates.pair_sets import Batch, UpdateData
from model_updates.pairs import TrainingPair
from model_updates.parts.experts import CHOSEN, Experts, ImageExperts, TextExperts
from model_updates.parts.frozen_towers import FrozenTowers
from model_updates.parts.selectors import selected
from model_updates.parts.two_towers import RunOptions, contrast, unit_features
from model_updates.search_encoder import IMAGE_BATCH, TEXT_BATCH
from model_updates.strategy import BOTH_TOWERS, Epochs, Family, ParameterGroup, Schedule, UpdateContext
from model_updates.towers import embed, image_trunk, text_body

KNOWN_BY = 2_000
"""Pairs that an autoencoder learns from: more would cost minutes and tell little more."""


@dataclass(frozen=True)
class MoeAdaptersOptions(RunOptions):
    """Options of `moe-adapters`."""

    # "both" (the paper's), "image", "text", or "auto": those whose inputs are new, by the chunk's languages
    # and domains.
    towers: Annotated[str, OneOf("auto", "both", "image", "text")] = "both"
    # in each block (22); two are frozen after every update.
    experts: Annotated[int, Within(f"[{CHOSEN}, inf)")] = 22
    bottleneck: Count = 64  # inner width of an expert (64).
    dropout: Annotated[float, Within("[0, 1)")] = 0.1  # in an expert (0.1).
    # hidden width of an autoencoder (100, for features of 9,216 numbers), at most a quarter of a feature's
    # length.
    selector: Count = 100
    # share of an update's own inputs that its autoencoder should know; the others run plain.
    inside: Annotated[float, Within("(0, 1]")] = 0.99
    # of the contrastive loss (0.2 of a loss over classes; see above why none here).
    label_smoothing: Annotated[float, Within("[0, 1)")] = 0.0
    # of the peak; 0 means the default for the encoder's size (0.001 in the paper).
    learning_rate: NotNegative = 0.0


class MoeAdapters(FrozenTowers):
    """A mixture of experts as adapters, routed by what an input is like."""

    name = "moe-adapters"
    summary = (
        "Freezes both towers and mixes small experts in every block; each input takes two runs of a tower."
    )
    paper = "Yu et al., CVPR 2024"
    family = Family.MODULES
    trains = "experts in every block and a router"
    keeps = "nothing: experts, routers and autoencoders are part of the encoder"
    overhead = "two runs of each tower for every input, and an autoencoder for each update"
    options: MoeAdaptersOptions

    def __init__(self, options: MoeAdaptersOptions | None = None) -> None:
        super().__init__(options)
        self._known: dict[str, float] = {}
        self.touches = frozenset({self.options.towers} & BOTH_TOWERS) or BOTH_TOWERS

    def before_update(self, context: UpdateContext) -> None:
        """Freezes the towers and adds a router to the experts, which are new or those of earlier updates."""
        super().before_update(context)
        encoder, self._seed = context.encoder, context.seed
        if self.options.towers == "auto":
            self.touches = _new_sides(context)
        generator = torch.Generator().manual_seed(context.seed)
        self._experts = []
        for new in self.built(encoder.model):
            kept = next((insert for insert in encoder.inserts if insert.kind == new.kind), None)
            if new.tower not in self.touches:
                continue
            if not isinstance(kept, Experts):
                kept = new
                kept.draw(generator)
                encoder.inserts.append(kept)
            kept.begin()
            self._experts.append(kept)
        encoder.forget_fingerprints()

    def built(self, model: nn.Module) -> list[Experts]:
        options = self.options
        config = {
            "experts": options.experts,
            "bottleneck": options.bottleneck,
            "dropout": options.dropout,
            "routers": 0,
            "hidden": options.selector,
        }
        return [ImageExperts.build(ENCODER, config, model), TextExperts.build(ENCODER, config, model)]

    def take(self, data: UpdateData) -> None:
        """Has the new autoencoders learn what the chunk's inputs are like, so that validation routes as search will."""
        pairs = sampled(data.train.pairs, KNOWN_BY)
        for experts in self._experts:
            if experts.tower == "image":
                rows = _picture_features(self._encoder, pairs, data.load_image)
            else:
                rows = _text_features(self._encoder, pairs)
            experts.newest_selector.fit(rows, share=self.options.inside, seed=self._seed)
            with torch.no_grad():
                read = selected(list(experts.selectors), rows) == len(experts.selectors) - 1
            self._known[experts.tower] = float(read.float().mean())

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns experts and the new routers, which do not decay: decay would move frozen experts."""
        trained = [parameter for experts in self._experts for parameter in experts.trained()]
        return [ParameterGroup(trained, weight_decay=0.0)]

    def schedule(self, encoder: Encoder) -> Schedule:
        return self.options.cosine(encoder, small=3e-3, large=1e-3, weight_decay=0.0)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        image, text = self._features(batch)
        smoothing = self.options.label_smoothing
        return {"contrastive": contrast(self._encoder, image, text, batch, smoothing=smoothing)}

    def _features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Runs the towers; the image tower's features are cached where it does not learn."""
        if "image" in self.touches:
            return unit_features(self._encoder, batch)
        text = self._encoder.forward_tokens(batch.tokens, batch.languages).float()
        return normalize(batch.image_features.float(), dim=-1), normalize(text, dim=-1)

    def after_backward(self, learning_rate: float) -> None:
        for experts in self._experts:
            experts.hold_frozen()

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Freezes the experts that this update used most."""
        for experts in self._experts:
            experts.end()

    def notes(self) -> list[str]:
        return [
            f"Router {len(experts.gates)} of the {experts.tower} tower reads {100 * self._known[experts.tower]:.0f} % "
            f"of the chunk; {int(experts.frozen.sum())} of {experts.frozen.numel()} experts are frozen."
            for experts in self._experts
        ]


def _new_sides(context: UpdateContext) -> frozenset[str]:
    """The text tower for a language that is not learned; the image tower for a domain that is not, or if neither is."""
    languages = {pair.language for pair in context.pairs} - context.learned_languages
    domains = {pair.domain for pair in context.pairs} - context.learned_domains
    if languages and domains:
        return BOTH_TOWERS
    return frozenset({"text"} if languages else {"image"})


def _picture_features(encoder: Encoder, pairs: Sequence[TrainingPair], load_image: LoadImage) -> Tensor:
    """Returns what the frozen image tower makes of the pairs' pictures, each once."""
    ids = list(dict.fromkeys(pair.image_id for pair in pairs))
    rows = []
    with torch.no_grad():
        for start in range(0, len(ids), IMAGE_BATCH):
            some = [load_image(image_id) for image_id in ids[start : start + IMAGE_BATCH]]
            rows.append(image_trunk(encoder.model, encoder.prepare_images(some).to(encoder.device)).float())
    return torch.cat(rows)


def _text_features(encoder: Encoder, pairs: Sequence[TrainingPair]) -> Tensor:
    """Returns what the frozen text tower makes of the pairs' texts, each once."""
    sequences = list(dict.fromkeys(map(tuple, tokenise(encoder, pairs))))
    rows = []
    with torch.no_grad():
        for start in range(0, len(sequences), TEXT_BATCH):
            some = sequences[start : start + TEXT_BATCH]
            ends = torch.tensor([len(sequence) - 1 for sequence in some], device=encoder.device)
            embedded = embed(encoder.model, pad(encoder, some).to(encoder.device))
            rows.append(text_body(encoder.model, embedded, ends).float())
    return torch.cat(rows)
