"""The figures of `perennial-tiny`: recall on emoji names and on unseen scenes among their near misses."""

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ingest.samples import scenes
from model_updates.encoder import Encoder
from model_updates.evaluation import caption_ranks
from model_updates.pretrain_data import draw_stored, emoji_picture, read_emoji
from model_updates.recalls import RECALL_DEPTHS


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
