"""Trains the embedded default encoder, `perennial-tiny`, in English from drawn scenes and emoji pictures.

    python -m model_updates.pretrain --emoji DATA/emoji --out model_updates/assets/perennial-tiny

Two of three steps see emoji (styles noto and fluent3d, without the held-out concepts), one sees drawn scenes
(styles gouache and flat, without the held-out combinations). The loss is the multi-positive InfoNCE of
METHODS.md 0: pictures of one concept are each other's positives. An exponential moving average of the weights
is what is saved. `--start` goes on from saved weights with a fresh schedule. The commands that made the shipped
weights, and their figures: docs/results/perennial-tiny.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from ingest.samples import scenes
from model_updates.encoder import Encoder
from model_updates.evaluation import caption_ranks
from model_updates.losses import multi_positive_info_nce
from model_updates.opening import EMBEDDED, build_model, embedded_folder, open_embedded, wrap
from model_updates.towers import causal_text_features
from model_updates.vocabulary import Vocabulary, learn_merges

STYLES = ("gouache", "flat")
EMOJI_STYLES = ("noto", "fluent3d")
STORED = 72  # pixels a training picture is kept at; crops of it feed the 64-pixel tower
DRAWN = 192  # pixels a scene is drawn at before it is scaled down


@dataclass(frozen=True)
class Recipe:
    """The training schedule; each default was chosen on validation figures, see docs/log.md."""

    steps: int = 1200
    batch: int = 192
    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    warmup: float = 0.05
    average: float = 0.995
    rows: int = 3000
    pictures_per_scene: int = 1
    order: tuple[int, ...] = (0, 1, 0)  # emoji, scenes, emoji: a name needs more passes than an attribute
    spread: float = 1.0  # how far crops are turned, scaled and moved; a second stage takes less
    seed: int = 0


@dataclass
class Pictures:
    """Training pictures with the texts that describe each: uint8 (n, STORED, STORED, 3), concept numbers (n,)."""

    pixels: NDArray[np.uint8]
    concept: NDArray[np.int64]
    texts: list[list[str]] = field(default_factory=list)  # by concept

    def sample(
        self, count: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.uint8], list[str], NDArray[np.int64]]:
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


def load_emoji(folder: Path, seed: int) -> Pictures:
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
    return Pictures(
        np.stack(pixels), np.asarray(numbers), [emoji_texts(concept, rng) for concept in concepts]
    )


def _draw(task: tuple[scenes.Scene, str, int]) -> NDArray[np.uint8]:
    scene, style, seed = task
    picture = scenes.draw(scene, style, size=DRAWN, seed=seed)
    return np.asarray(picture.resize((STORED, STORED), Image.Resampling.BICUBIC))


def load_scenes(pictures_per_scene: int, drawn: Path | None = None) -> Pictures:
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
            pixels = np.stack(list(pool.map(_draw, tasks, chunksize=64)))
        if drawn is not None:
            np.save(drawn, pixels)
    concept = np.repeat(np.arange(len(chosen)), len(STYLES) * pictures_per_scene)
    return Pictures(pixels, concept, [scene_texts(scene) for scene in chosen])


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


def make_vocabulary(emoji: Path, recipe: Recipe, context: int) -> Vocabulary:
    """Learns the English BPE from names, keywords and scene captions of the training part."""
    texts = []
    for concept in read_emoji(emoji):
        if not concept.held_out:
            texts += [concept.name, *concept.keywords]
    for scene in list(scenes.all_scenes())[::7]:
        if not scenes.held_out(scene):
            texts += scene_texts(scene)[-6:]
    return Vocabulary.from_merges(learn_merges(texts, size=recipe.rows), context_length=context)


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Splits parameters: matrices decay; norms, biases, positions and the temperature do not."""
    decayed = [p for n, p in model.named_parameters() if p.ndim >= 2 and "embedding" not in n]
    kept = [p for n, p in model.named_parameters() if not (p.ndim >= 2 and "embedding" not in n)]
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": kept, "weight_decay": 0.0}]


def train(encoder: Encoder, sources: list[Pictures], recipe: Recipe) -> None:
    """Trains both towers in place and leaves the moving average of the weights in the encoder."""
    torch.manual_seed(recipe.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = encoder.to(device).model.train()
    average = {name: value.detach().clone() for name, value in model.state_dict().items()}
    groups = parameter_groups(model, recipe.weight_decay)
    optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.98), eps=1e-6)
    warmup = max(1, int(recipe.steps * recipe.warmup))
    start = time.monotonic()
    for step, batch in enumerate(_batches(sources, recipe)):
        progress = max(0.0, (step - warmup) / max(1, recipe.steps - warmup))
        rate = recipe.learning_rate * min(1.0, (step + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * progress))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = _step(encoder, batch, optimizer, device, recipe.spread)
        keep = min(recipe.average, (1 + step) / (10 + step))
        with torch.no_grad():
            for name, value in model.state_dict().items():
                average[name].lerp_(value, 1 - keep)
        if step % 50 == 0 or step == recipe.steps - 1:
            print(f"step {step:5d}  loss {loss:.3f}  {time.monotonic() - start:6.0f} s", flush=True)
    model.load_state_dict(average)
    encoder.to("cpu").model.eval()
    encoder.forget_fingerprints()


def _batches(
    sources: list[Pictures], recipe: Recipe
) -> Iterator[tuple[NDArray[np.uint8], list[str], NDArray[np.int64]]]:
    rng = np.random.default_rng(recipe.seed)
    for step in range(recipe.steps):
        yield sources[recipe.order[step % len(recipe.order)]].sample(recipe.batch, rng)


def _step(
    encoder: Encoder,
    batch: tuple[NDArray[np.uint8], list[str], NDArray[np.int64]],
    optimizer: torch.optim.Optimizer,
    device: torch.device,
    spread: float,
) -> float:
    pixels, texts, concepts = batch
    model, preprocessing = encoder.model, encoder.preprocessing
    pictures = augment(torch.from_numpy(pixels), preprocessing.size, torch.default_generator, spread).to(device)
    mean = torch.tensor(preprocessing.mean, device=device).view(1, 3, 1, 1)
    std = torch.tensor(preprocessing.std, device=device).view(1, 3, 1, 1)
    tokens = encoder.tokenize(texts).to(device)
    scale: nn.Parameter = model.logit_scale  # type: ignore[assignment]
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
        image = functional.normalize(model.visual((pictures - mean) / std).float(), dim=-1)  # type: ignore[operator]
        end = encoder.vocabulary.end_row if encoder.vocabulary else 0
        text = functional.normalize(causal_text_features(model, tokens, end).float(), dim=-1)
    same = torch.from_numpy(concepts).to(device)
    loss = multi_positive_info_nce(image @ text.T, scale.exp(), same, same)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        scale.clamp_(0, math.log(100))
    return float(loss.detach())


def save_embedded(encoder: Encoder, folder: Path, training: list[dict[str, Any]]) -> None:
    """Writes fp16 weights, vocabulary and manifest with the SHA-256 that opening checks."""
    if encoder.vocabulary is None:
        raise ValueError("the embedded encoder has a vocabulary of its own")
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: value.half().contiguous() for name, value in encoder.model.state_dict().items()}
    save_file(state, folder / "weights.safetensors")
    description = json.dumps(encoder.vocabulary.to_json(), ensure_ascii=False)
    (folder / "vocabulary.json").write_text(description + "\n", encoding="utf-8")
    digest = hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest()
    manifest = {
        "architecture": EMBEDDED,
        "weights_sha256": digest,
        "parameters": sum(p.numel() for p in encoder.model.parameters()),
        "training": training,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def context_length() -> int:
    """Returns the context length that the embedded architecture's config names."""
    config = json.loads((embedded_folder() / "config.json").read_text(encoding="utf-8"))
    return int(config["text_cfg"]["context_length"])


def report(encoder: Encoder, emoji: Path, *, queries: int = 500, distractors: int = 10) -> dict[str, float]:
    """Measures text-to-image recall in percent, pessimistic ties, as docs/results/perennial-tiny.md states it."""
    concepts = read_emoji(emoji)
    figures: dict[str, float] = {}
    for part, wanted in (("trained", False), ("held_out", True)):
        chosen = [concept for concept in concepts if concept.held_out is wanted]
        images = encoder.encode_images([emoji_picture(emoji, "noto", concept.key) for concept in chosen])
        ranks = _ranks(encoder.encode_texts([concept.name for concept in chosen], "en"), images)
        figures |= {f"noto_{part}_r{k}": round(100 * float((ranks < k).mean()), 2) for k in (1, 5, 10)}
    gallery = unseen_scenes(queries, distractors)
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        pixels = list(pool.map(_draw, [(scene, "gouache", 900) for scene in gallery], chunksize=32))
    images = encoder.encode_images([Image.fromarray(picture) for picture in pixels])
    texts = encoder.encode_texts([scenes.caption(scene, "en") for scene in gallery[:queries]], "en")
    ranks = _ranks(texts, images)
    figures |= {f"scenes_r{k}": round(100 * float((ranks < k).mean()), 2) for k in (1, 5, 10)}
    return figures | {"scenes_gallery": float(len(gallery))}


def unseen_scenes(queries: int, distractors: int) -> list[scenes.Scene]:
    """Returns held-out scenes first, then what is missing for each to have its one-attribute distractors."""
    rng = np.random.default_rng(7)
    held_out = [scene for scene in scenes.all_scenes() if scenes.held_out(scene)]
    asked = [held_out[int(i)] for i in rng.permutation(len(held_out))[:queries]]
    gallery = dict.fromkeys(asked)
    for scene in asked:
        near = scenes.neighbours(scene)
        order = [near[int(i)] for i in rng.permutation(len(near))]
        lacking = distractors - sum(other in gallery for other in near)
        gallery |= dict.fromkeys([other for other in order if other not in gallery][: max(0, lacking)])
    return list(gallery)


def _ranks(texts: NDArray[np.float32], images: NDArray[np.float32]) -> NDArray[np.int64]:
    ranks: NDArray[np.int64] = caption_ranks(texts @ images.T, np.arange(len(texts)))
    return ranks


def main() -> None:
    """Trains, saves and prints the figures that the bars of the project name."""
    defaults = Recipe()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--emoji", type=Path, required=True, help="folder with noto/, fluent3d/, names.tsv, concepts.tsv"
    )
    parser.add_argument("--out", type=Path, default=embedded_folder())
    parser.add_argument("--drawn", type=Path, help="a .npy file that keeps the drawn scenes between runs")
    parser.add_argument("--steps", type=int, default=defaults.steps)
    parser.add_argument("--batch", type=int, default=defaults.batch)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--rate", type=float, default=defaults.learning_rate)
    parser.add_argument("--spread", type=float, default=defaults.spread)
    parser.add_argument("--order", type=int, nargs="+", default=defaults.order, help="0 emoji, 1 scenes")
    parser.add_argument("--start", type=Path, help="folder of an encoder to train on, instead of starting anew")
    arguments = parser.parse_args()
    recipe = Recipe(
        steps=arguments.steps,
        batch=arguments.batch,
        seed=arguments.seed,
        learning_rate=arguments.rate,
        spread=arguments.spread,
        order=tuple(arguments.order),
    )
    torch.manual_seed(recipe.seed)
    started = time.monotonic()
    earlier: list[dict[str, Any]] = []
    if arguments.start is not None:
        template = open_embedded(arguments.start)
        earlier = json.loads((arguments.start / "manifest.json").read_text(encoding="utf-8"))["training"]
    else:
        vocabulary = make_vocabulary(arguments.emoji, recipe, context_length())
        template = wrap(build_model(EMBEDDED, rows=vocabulary.size), EMBEDDED, vocabulary)
    pictures = [
        load_emoji(arguments.emoji, recipe.seed),
        load_scenes(recipe.pictures_per_scene, arguments.drawn),
    ]
    print(
        f"{sum(p.numel() for p in template.model.parameters())} parameters, {[len(p.pixels) for p in pictures]} pictures, {time.monotonic() - started:.0f} s",
        flush=True,
    )
    train(template, pictures, recipe)
    seconds = time.monotonic() - started
    save_embedded(template, arguments.out, [*earlier, vars(recipe) | {"seconds": round(seconds)}])
    print(json.dumps(report(open_embedded(arguments.out), arguments.emoji), indent=2))


if __name__ == "__main__":
    main()
