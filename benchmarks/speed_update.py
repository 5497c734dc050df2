"""Speed of a text-only update: an epoch without image forwards against one with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from PIL import Image
from speed_timing import Measured, in_turn

from ingest.samples import scenes
from model_updates.batches import gather
from model_updates.encoder import Encoder
from model_updates.features import NoCache
from model_updates.opening import open_encoder
from model_updates.options import options_of
from model_updates.pair_sets import Batch
from model_updates.pairs import TrainingPair
from model_updates.strategies.language_tables import LanguageTables
from model_updates.strategy import BOTH_TOWERS, Strategy, UpdateContext
from model_updates.towers import token_table
from model_updates.trainer import TrainingReport, run_update


class WithImageForwards(LanguageTables):
    """What a text-only update would cost without cached features: each step runs the frozen image tower."""

    name = "language-tables"

    touches = BOTH_TOWERS  # asks the trainer for pictures

    def terms(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Computes the picture features of the batch anew."""
        if batch.images is None:
            raise ValueError("pictures are missing from the batch")
        with torch.no_grad():
            self._encoder.forward_images(batch.images)
        return super().terms(batch)


def text_only_update(*, pairs: int) -> Measured:
    """Compares an epoch without image forwards to one with them, and to what the towers' own times allow."""
    lesson, pictures = drawn_lesson(pairs)
    text_only = epoch_seconds(LanguageTables, lesson, pictures)
    with_images = epoch_seconds(WithImageForwards, lesson, pictures)
    image_seconds, text_seconds = _tower_seconds(text_only.encoder, lesson, pictures)
    reached = with_images.seconds / text_only.seconds
    allowed = (image_seconds + text_seconds) / text_seconds
    share = reached / allowed
    return Measured(
        "text-only update",
        f"{share:.2f} of the speed-up that the towers' own times allow, {text_only.image_forwards} image forwards",
        ">= 0.85, 0 image forwards",
        share >= 0.85 and text_only.image_forwards == 0,
        f"an epoch of {pairs} pairs takes {text_only.seconds:.2f} s against {with_images.seconds:.2f} s with image "
        f"forwards: {reached:.2f}x; the towers alone take {image_seconds:.2f} s (image forward) and "
        f"{text_seconds:.2f} s (text forward and backward) for the same batches: {allowed:.2f}x",
    )


def drawn_lesson(pairs: int) -> tuple[tuple[TrainingPair, ...], dict[str, Image.Image]]:
    """Returns pairs of German captions with English ones beside them, and their pictures."""
    drawn = list(scenes.all_scenes())[:pairs]
    pictures = {str(n): scenes.draw(scene, style="flat", seed=n) for n, scene in enumerate(drawn)}
    lesson = tuple(
        TrainingPair(str(n), scenes.caption(scene, "de"), "de", "drawn", scenes.caption(scene, "en"))
        for n, scene in enumerate(drawn)
    )
    return lesson, pictures


@dataclass(frozen=True)
class Epoch:
    """What one epoch cost, and the encoder that it has taught."""

    seconds: float
    image_forwards: int
    encoder: Encoder


def epoch_seconds(
    kind: type[Strategy],
    lesson: tuple[TrainingPair, ...],
    pictures: dict[str, Image.Image],
    opened: Callable[[], Encoder] = open_encoder,
    **options: int,
) -> Epoch:
    """Returns the cost of one epoch: a run of three epochs less a run of one, so that preparing drops out."""
    (one, _), (three, encoder) = (
        _train(kind, lesson, pictures, opened, options | {"epochs": epochs}) for epochs in (1, 3)
    )
    return Epoch((three.seconds - one.seconds) / 2, three.image_forwards, encoder)


def _train(
    kind: type[Strategy],
    lesson: tuple[TrainingPair, ...],
    pictures: dict[str, Image.Image],
    opened: Callable[[], Encoder],
    options: dict[str, int],
) -> tuple[TrainingReport, Encoder]:
    base, candidate = opened(), opened()
    strategy = kind(options_of(kind, options))
    context = UpdateContext(
        encoder=candidate,
        pairs=lesson,
        learned_languages=frozenset({"en"}),
        open_anchor=lambda: base,
        open_previous=lambda: base,
        seed=0,
        update_number=1,
    )
    cache = NoCache()
    report = run_update(
        strategy,
        context,
        lambda _: gather(
            lesson, (), strategy=strategy, context=context, load_image=pictures.__getitem__, cache=cache
        ),
    )
    return report, candidate


def _tower_seconds(
    encoder: Encoder, lesson: tuple[TrainingPair, ...], pictures: dict[str, Image.Image]
) -> tuple[float, float]:
    """Times the towers alone on an epoch's batches, read with the vocabulary that the update has grown."""
    table = token_table(encoder.model)
    if table is None:
        raise ValueError("the encoder has no token table")
    encoder.model.requires_grad_(False)
    table.requires_grad_(True)
    size = 128
    batches = [lesson[start : start + size] for start in range(0, len(lesson), size)]
    prepared = [encoder.prepare_images([pictures[pair.image_id] for pair in batch]) for batch in batches]
    tokens = [encoder.tokenize([pair.text for pair in batch], "de") for batch in batches]

    def image() -> None:
        with torch.no_grad():
            for batch in prepared:
                encoder.forward_images(batch)

    def text() -> None:
        for batch in tokens:
            encoder.forward_tokens(batch).sum().backward()  # type: ignore[no-untyped-call]

    image_seconds, text_seconds = in_turn([image, text], 3)
    return image_seconds, text_seconds
