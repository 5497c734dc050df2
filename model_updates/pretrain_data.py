"""What `perennial-tiny` is trained on: emoji pictures and drawn scenes, their texts, and random crops of them."""

import math
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from ingest.samples import scenes

STYLES = ("gouache", "flat")
EMOJI_STYLES = ("noto", "fluent3d")
Sample = tuple[NDArray[np.uint8], list[str], NDArray[np.int64]]

STORED = 72  # pixels a training picture is kept at; crops of it feed the 64-pixel tower
DRAWN = 192  # pixels a scene is drawn at before it is scaled down


@dataclass
class TrainingPictures:
    """Training pictures with the texts that describe each: uint8 (n, STORED, STORED, 3), concept numbers (n,)."""

    pixels: NDArray[np.uint8]
    concept: NDArray[np.int64]
    texts: list[list[str]] = field(default_factory=list)  # by concept

    def sample(self, count: int, rng: np.random.Generator) -> Sample:
        """Returns a random batch: pixels, one text for each, concept numbers."""
        chosen = rng.choice(len(self.pixels), size=count, replace=False)
        concepts = self.concept[chosen]
        return self.pixels[chosen], [str(rng.choice(self.texts[c])) for c in concepts], concepts


@dataclass(frozen=True)
class EmojiConcept:
    """One concept of the emoji data: file key, short English name, keywords, whether it is held out."""

    key: str
    name: str
    keywords: tuple[str, ...]
    held_out: bool


def read_emoji(folder: Path, language: str = "en") -> list[EmojiConcept]:
    """Reads concepts.tsv and names.tsv of the emoji data (its README describes them)."""
    lines = (folder / "concepts.tsv").read_text(encoding="utf-8").splitlines()[1:]
    held_out = {line.split("\t")[0]: line.split("\t")[4] == "1" for line in lines}
    concepts = []
    for line in (folder / "names.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        key, _, tag, name, keywords = line.split("\t")
        if tag == language and key in held_out:
            words = tuple(word.strip() for word in keywords.split("|") if word.strip())
            concepts.append(EmojiConcept(key, name, words, held_out[key]))
    return concepts


def emoji_picture(folder: Path, style: str, key: str) -> Image.Image:
    """Opens one emoji picture as RGB on white."""
    path = next((folder / style).glob(f"{key}.*"))
    with Image.open(path) as opened:
        rgba = opened.convert("RGBA")
    white = Image.new("RGBA", rgba.size, "white")
    return Image.alpha_composite(white, rgba).convert("RGB")


def emoji_texts(concept: EmojiConcept, rng: np.random.Generator) -> list[str]:
    """Returns texts for a concept: its name often, its name with keywords, keywords alone (these fill long texts)."""
    texts = [concept.name] * 8
    words = [word for word in concept.keywords if word != concept.name] or [concept.name]
    for _ in range(8):
        chosen = rng.permutation(len(words))[: int(rng.integers(1, 7))]
        phrase = ", ".join(words[int(i)] for i in chosen)
        texts.append(phrase if rng.random() < 0.5 else f"{concept.name}, {phrase}")
    return texts


def load_emoji(folder: Path, seed: int) -> TrainingPictures:
    """Loads the training concepts of the emoji data in both styles."""
    rng = np.random.default_rng(seed)
    concepts = [concept for concept in read_emoji(folder) if not concept.held_out]
    pixels, numbers = [], []
    for number, concept in enumerate(concepts):
        for style in EMOJI_STYLES:
            picture = emoji_picture(folder, style, concept.key).resize(
                (STORED, STORED), Image.Resampling.BICUBIC
            )
            pixels.append(np.asarray(picture))
            numbers.append(number)
    return TrainingPictures(
        np.stack(pixels), np.asarray(numbers), [emoji_texts(concept, rng) for concept in concepts]
    )


def draw_stored(task: tuple[scenes.Scene, str, int]) -> NDArray[np.uint8]:
    """Draws a (scene, style, seed) and scales it down: uint8 (STORED, STORED, 3)."""
    scene, style, seed = task
    picture = scenes.draw(scene, style, size=DRAWN, seed=seed)
    return np.asarray(picture.resize((STORED, STORED), Image.Resampling.BICUBIC))


def load_scenes(pictures_per_scene: int, drawn: Path | None = None) -> TrainingPictures:
    """Draws the training scenes (those not held out), `pictures_per_scene` times in each base style.

    `drawn` names a .npy file to keep the pixels in between runs; drawing takes minutes.
    """
    chosen = [scene for scene in scenes.all_scenes() if not scenes.held_out(scene)]
    tasks = [
        (scene, style, 1 + repeat)
        for scene in chosen
        for style in STYLES
        for repeat in range(pictures_per_scene)
    ]
    if drawn is not None and drawn.exists():
        pixels = np.load(drawn, allow_pickle=False)
    else:
        with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
            pixels = np.stack(list(pool.map(draw_stored, tasks, chunksize=64)))
        if drawn is not None:
            np.save(drawn, pixels)
    concept = np.repeat(np.arange(len(chosen)), len(STYLES) * pictures_per_scene)
    return TrainingPictures(pixels, concept, [scene_texts(scene) for scene in chosen])


def scene_texts(scene: scenes.Scene) -> list[str]:
    """Returns the English texts of a scene: full captions, and a few that name fewer attributes."""
    full = [scenes.caption(scene, "en", variant=variant) for variant in range(3)]
    parts = [
        scenes.partial_caption(scene, "en", keep)
        for keep in (
            {"subject", "colour", "count"},
            {"subject", "colour", "place"},
            {"subject", "place", "time"},
        )
    ]
    return full * 4 + parts


def augment(pixels: Tensor, size: int, generator: torch.Generator, spread: float = 1.0) -> Tensor:
    """Returns randomly scaled, moved and slightly turned crops, (n, 3, size, size) in [0, 1], white outside."""
    n = len(pixels)
    ink = 1 - pixels.permute(0, 3, 1, 2).float() / 255  # zero padding is then white paper
    angle = (torch.rand(n, generator=generator) - 0.5) * math.radians(20 * spread)
    scale = 1 + 0.3 * spread * (torch.rand(n, generator=generator) - 0.5)
    shift = (torch.rand(n, 2, generator=generator) - 0.5) * 0.2 * spread
    rows = [torch.cos(angle) * scale, -torch.sin(angle) * scale, shift[:, 0]]
    rows += [torch.sin(angle) * scale, torch.cos(angle) * scale, shift[:, 1]]
    grid = functional.affine_grid(torch.stack(rows, 1).view(n, 2, 3), [n, 3, size, size], align_corners=False)
    gain = 1 + (torch.rand(n, 3, 1, 1, generator=generator) - 0.5) * 0.1
    moved = functional.grid_sample(ink, grid.to(ink.device), align_corners=False, padding_mode="zeros")
    return 1 - (moved * gain.to(ink.device)).clamp(0, 1)
