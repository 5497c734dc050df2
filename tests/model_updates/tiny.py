"""A random encoder that is built in milliseconds, and drawn pairs for it to learn from."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import open_clip
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from model_updates.batches import gather
from model_updates.byte_pairs import learn_merges
from model_updates.encoder import Encoder
from model_updates.features import FeatureCache, NoCache
from model_updates.gaussians import FEWEST_PICTURES
from model_updates.options import options_of
from model_updates.pair_sets import UpdateData
from model_updates.pairs import TrainingPair
from model_updates.preprocessing import Preprocessing
from model_updates.strategies import STRATEGIES
from model_updates.strategies.table_joint import TableJoint
from model_updates.strategy import Strategy, UpdateContext, no_reference
from model_updates.trainer import TrainingReport, run_update
from model_updates.vocabulary import Vocabulary

COLOURS = {"red": (220, 40, 40), "green": (30, 160, 60), "blue": (40, 70, 220), "black": (20, 20, 20)}
SHAPES = ("circle", "square", "bar", "dot")
GERMAN = {
    "red": "roter",
    "green": "grüner",
    "blue": "blauer",
    "black": "schwarzer",
    "circle": "Kreis",
    "square": "Würfel",
    "bar": "Balken",
    "dot": "Punkt",
}
ENGLISH_TEXTS = [f"a {colour} {shape} on paper" for colour in COLOURS for shape in SHAPES]
DOMAIN = "drawn"
SKETCH, NEGATIVE = "sketch", "negative"  # domains of the same things in other styles: outlines, a dark ground
CONTEXT_LENGTH = 16
TEXT_ONLY = tuple(name for name, kind in STRATEGIES.items() if "image" not in kind().touches)


# Registered with open_clip, so that a version of a tiny encoder opens like any other.
open_clip.add_model_config(Path(__file__).parent / "architectures")


def tiny_encoder(seed: int = 0, architecture: str = "tiny") -> Encoder:
    """A 32-pixel, two-layer CLIP with random weights and a small English vocabulary.

    Args:
        seed: of the weights.
        architecture: "tiny" (ViT), "tiny-resnet", "tiny-custom-text": a ViT and a text tower that is built like CLIP's
            but lies in a `CustomTextCLIP`, as those of EVA02 do; or "tiny-both-ways": such a tower that reads texts in
            both directions, with open_clip's own tokenizer.
    """
    built, random = _built(seed, architecture)
    torch.set_rng_state(random)  # as if the weights had just been drawn
    return built.copy()


@functools.cache
def _built(seed: int, architecture: str) -> tuple[Encoder, Tensor]:
    """The encoder that all others are copies of, and where it left torch's generator."""
    vocabulary = None
    if architecture != "tiny-both-ways":
        merges = learn_merges(ENGLISH_TEXTS, size=540)
        vocabulary = Vocabulary.from_merges(merges, context_length=CONTEXT_LENGTH)
    config = dict(open_clip.get_model_config(architecture))
    kind = open_clip.CustomTextCLIP if config.pop("custom_text", False) else open_clip.CLIP
    if vocabulary is not None:
        config["text_cfg"] = config["text_cfg"] | {"vocab_size": vocabulary.size}
    torch.manual_seed(seed)
    grey = (0.5, 0.5, 0.5)
    encoder = Encoder(
        kind(**config),
        architecture=architecture,
        preprocessing=Preprocessing(size=32, mean=grey, std=grey),
        vocabulary=vocabulary,
        foreign_tokenizer=None if vocabulary else open_clip.get_tokenizer(architecture),
    )
    return encoder, torch.get_rng_state()


def draw(image_id: str) -> Image.Image:
    """Draws the picture that an id such as "red circle" names; "red circle sketch" names it in another style."""
    colour, shape, *style = image_id.split()
    picture = Image.new("RGB", (32, 32), "navy" if NEGATIVE in style else "white")
    pen = ImageDraw.Draw(picture)
    ink = COLOURS[colour]
    drawn: dict[str, Any] = {"outline": ink, "width": 2} if SKETCH in style else {"fill": ink}
    if shape == "circle":
        pen.ellipse((4, 4, 28, 28), **drawn)
    elif shape == "square":
        pen.rectangle((6, 6, 26, 26), **drawn)
    elif shape == "bar":
        pen.rectangle((2, 13, 30, 19), **drawn)
    else:
        pen.ellipse((13, 13, 19, 19), **drawn)
    return picture


def image_ids() -> list[str]:
    return [f"{colour} {shape}" for colour in COLOURS for shape in SHAPES]


def toy_pairs(language: str = "de") -> list[TrainingPair]:
    """Sixteen pairs, one a picture, in German with English beside it, or in English alone."""
    pairs = []
    for image_id in image_ids():
        colour, shape = image_id.split()
        english = f"a {colour} {shape} on paper"
        if language == "en":
            pairs.append(TrainingPair(image_id, english, "en", DOMAIN, english))
        else:
            text = f"ein {GERMAN[colour]} {GERMAN[shape]} auf Papier"
            pairs.append(TrainingPair(image_id, text, language, DOMAIN, english))
    return pairs


def styled_pairs(style: str) -> list[TrainingPair]:
    """English pairs of a domain of its own, of as many pictures as a router needs to know it."""
    return [
        TrainingPair(f"{image_id} {style}", f"{image_id}, {style}", "en", style, f"{image_id}, {style}")
        for image_id in image_ids()[:FEWEST_PICTURES]
    ]


QUICK = {"epochs": 2, "batch_size": 8, "vocabulary": 560, "memory_size": 6}
"""By option: what makes any strategy that has it quick."""
QUICK_BY_NAME: dict[str, dict[str, Any]] = {
    "acil": {"width": 40},
    "c-clip": {"rank": 4},
    "cll-clip+joint": {"vocabulary": TableJoint.Options.vocabulary, "oracle_vocabulary": 560},
    "ctp": {"queue": 12},
    "der": {"memory_size": 8_000},
    "domain-adapters": {"rank": 4},
    "dualprompt": {"expert": 2},
    "er": {"memory_size": 8_000},
    "evergreen": {"rank": 4},
    "incclip": {"pseudo_texts": 4, "generation_steps": 1},
    "l2p": {"pool": 6, "length": 1, "top": 2},
    "moe-adapters": {"experts": 4, "bottleneck": 4},
    "p-tuning": {"length": 3, "hidden": 8},
    "ranpac": {"width": 40},
    "tic": {"fixed_compute": False},
    "zscl": {"reference_size": 8, "reference_batch": 4},
}


def quick(kind: type[Strategy]) -> dict[str, Any]:
    """Options with which a strategy teaches a tiny encoder in a second; those of one made of another are its own."""
    known = {field.name for field in fields(kind.Options)}
    usual = {name: value for name, value in QUICK.items() if name in known}
    return usual | QUICK_BY_NAME.get(kind.name.removeprefix("teir+").removesuffix("+er"), {})


def make_strategy(name: str, **options: Any) -> Strategy:
    """A registered strategy with options that make it quick."""
    kind = STRATEGIES[name]
    return kind(options_of(kind, {**quick(kind), **options}))


def context_for(
    encoder: Encoder,
    pairs: Sequence[TrainingPair],
    *,
    languages: frozenset[str] = frozenset({"en"}),
    anchor: Encoder | None = None,
    seed: int = 3,
) -> UpdateContext:
    """A context whose previous encoder is a copy of the candidate as it is now."""
    previous = encoder.copy()
    return UpdateContext(
        encoder=encoder,
        pairs=pairs,
        learned_languages=languages,
        open_anchor=lambda: anchor or previous,
        open_previous=lambda: previous,
        seed=seed,
    )


def data_for(
    strategy: Strategy,
    context: UpdateContext,
    *,
    validation: Sequence[TrainingPair] = (),
    cache: FeatureCache | None = None,
) -> UpdateData:
    return gather(
        context.pairs,
        validation,
        strategy=strategy,
        context=context,
        load_image=draw,
        cache=cache or NoCache(),
    )


def teach(
    encoder: Encoder,
    strategy: Strategy,
    pairs: Sequence[TrainingPair] | None = None,
    *,
    languages: frozenset[str] = frozenset({"en"}),
    validation: Sequence[TrainingPair] = (),
    checkpoints: Path | None = None,
    seed: int = 3,
    reference: Callable[[str], Sequence[TrainingPair]] = no_reference,
) -> TrainingReport:
    """Runs one whole update on an encoder, in place."""
    context = context_for(encoder, pairs or toy_pairs(), languages=languages, seed=seed)
    context = replace(context, open_reference=reference)
    return run_update(
        strategy,
        context,
        lambda frozen: data_for(strategy, frozen, validation=validation),
        checkpoints=checkpoints,
    )


def assert_same_state(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> None:
    """Fails unless both hold the same keys and bit-identical tensors."""
    assert one.keys() == other.keys()
    different = [name for name in one if not torch.equal(one[name], other[name])]
    assert not different, f"these differ: {different}"
