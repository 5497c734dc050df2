"""Trains the embedded default encoder, `perennial-tiny`, in English from drawn scenes and emoji pictures.

    python -m model_updates.pretrain --emoji DATA/emoji --out model_updates/assets/perennial-tiny

Two of three steps see emoji (styles noto and fluent3d, without the held-out concepts), one sees drawn scenes
(styles gouache and flat, without the held-out combinations). The loss is multi-positive
InfoNCE: pictures of one concept are each other's positives. An exponential moving average of the weights
is what is saved. `--start` goes on from saved weights with a fresh schedule. The commands that made the shipped
weights, and their figures: docs/results/perennial-tiny.md. Those weights were trained before equal texts gave
equal merges: `--vocabulary` takes the shipped vocabulary instead of learning one, to train them again.
"""

import argparse
import hashlib
import json
import math
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from ingest.samples import scenes
from model_updates.byte_pairs import learn_merges
from model_updates.embedded import TINY, folder_of
from model_updates.encoder import Encoder
from model_updates.evaluation import caption_ranks
from model_updates.losses import LARGEST_LOG_SCALE, multi_positive_info_nce
from model_updates.opening import build_model, open_embedded, wrap
from model_updates.pretrain_data import (
    Sample,
    TrainingPictures,
    augment,
    draw_stored,
    emoji_picture,
    load_emoji,
    load_scenes,
    read_emoji,
    scene_texts,
)
from model_updates.recalls import RECALL_DEPTHS
from model_updates.towers import causal_text_features
from model_updates.vocabulary import Vocabulary


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


def train(encoder: Encoder, sources: list[TrainingPictures], recipe: Recipe) -> None:
    """Trains both towers in place and leaves the moving average of the weights in the encoder."""
    torch.manual_seed(recipe.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = encoder.to(device).model.requires_grad_(True).train()
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


def _batches(sources: list[TrainingPictures], recipe: Recipe) -> Iterator[Sample]:
    rng = np.random.default_rng(recipe.seed)
    for step in range(recipe.steps):
        yield sources[recipe.order[step % len(recipe.order)]].sample(recipe.batch, rng)


def _step(
    encoder: Encoder, batch: Sample, optimizer: torch.optim.Optimizer, device: torch.device, spread: float
) -> float:
    pixels, texts, concepts = batch
    model, preprocessing = encoder.model, encoder.preprocessing
    pictures = augment(torch.from_numpy(pixels), preprocessing.size, torch.default_generator, spread).to(
        device
    )
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
        scale.clamp_(0, LARGEST_LOG_SCALE)
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
        "architecture": TINY,
        "weights_sha256": digest,
        "parameters": sum(p.numel() for p in encoder.model.parameters()),
        "training": training,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def context_length() -> int:
    """Returns the context length that the embedded architecture's config names."""
    config = json.loads((folder_of(TINY) / "config.json").read_text(encoding="utf-8"))
    return int(config["text_cfg"]["context_length"])


def _vocabulary(known: Path | None, emoji: Path, recipe: Recipe) -> Vocabulary:
    if known is None:
        return make_vocabulary(emoji, recipe, context_length())
    return Vocabulary.read(known)


def main() -> None:
    """Trains, saves and prints the figures that the bars of the project name."""
    defaults = Recipe()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--emoji", type=Path, required=True, help="folder with noto/, fluent3d/, names.tsv, concepts.tsv"
    )
    parser.add_argument("--out", type=Path, default=folder_of(TINY))
    parser.add_argument("--drawn", type=Path, help="a .npy file that keeps the drawn scenes between runs")
    parser.add_argument("--steps", type=int, default=defaults.steps)
    parser.add_argument("--batch", type=int, default=defaults.batch)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--rate", type=float, default=defaults.learning_rate)
    parser.add_argument("--spread", type=float, default=defaults.spread)
    parser.add_argument("--order", type=int, nargs="+", default=defaults.order, help="0 emoji, 1 scenes")
    parser.add_argument(
        "--start", type=Path, help="folder of an encoder to train on, instead of starting anew"
    )
    parser.add_argument(
        "--vocabulary", type=Path, help="a vocabulary.json to take instead of learning one from the texts"
    )
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
        vocabulary = _vocabulary(arguments.vocabulary, arguments.emoji, recipe)
        template = wrap(build_model(TINY, rows=vocabulary.size), TINY, vocabulary)
    pictures = [
        load_emoji(arguments.emoji, recipe.seed),
        load_scenes(recipe.pictures_per_scene, arguments.drawn),
    ]
    print(
        f"{sum(p.numel() for p in template.model.parameters())} parameters, "
        f"{[len(p.pixels) for p in pictures]} pictures, {time.monotonic() - started:.0f} s",
        flush=True,
    )
    train(template, pictures, recipe)
    seconds = time.monotonic() - started
    save_embedded(template, arguments.out, [*earlier, vars(recipe) | {"seconds": round(seconds)}])
    print(json.dumps(report(open_embedded(arguments.out), arguments.emoji), indent=2))


def report(encoder: Encoder, emoji: Path, *, queries: int = 500, distractors: int = 10) -> dict[str, float]:
    """Measures text-to-image recall in percent, pessimistic ties, as docs/results/perennial-tiny.md states it."""
    concepts = read_emoji(emoji)
    figures: dict[str, float] = {}
    for part, wanted in (("trained", False), ("held_out", True)):
        chosen = [concept for concept in concepts if concept.held_out is wanted]
        images = encoder.encode_images([emoji_picture(emoji, "noto", concept.key) for concept in chosen])
        ranks = _ranks(encoder.encode_texts([concept.name for concept in chosen], "en"), images)
        figures |= {f"noto_{part}_r{k}": round(100 * float((ranks < k).mean()), 2) for k in RECALL_DEPTHS}
    gallery = unseen_scenes(queries, distractors)
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        pixels = list(pool.map(draw_stored, [(scene, "gouache", 900) for scene in gallery], chunksize=32))
    images = encoder.encode_images([Image.fromarray(picture) for picture in pixels])
    texts = encoder.encode_texts([scenes.caption(scene, "en") for scene in gallery[:queries]], "en")
    ranks = _ranks(texts, images)
    figures |= {f"scenes_r{k}": round(100 * float((ranks < k).mean()), 2) for k in RECALL_DEPTHS}
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


if __name__ == "__main__":
    main()
