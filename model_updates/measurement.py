"""Measures an encoder on held-out slices, with every feature computed at most once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ingest.pair import SliceKey
from model_updates.encoder import Encoder, unit
from model_updates.evaluation import SliceResult, rank_slice
from model_updates.features import FeatureCache, LoadImage, image_features, text_features


@dataclass(frozen=True)
class HeldOut:
    """One slice: its captions, and the gallery they are looked up in (all held-out pictures of the domain)."""

    key: SliceKey
    gallery: tuple[str, ...]
    captions: tuple[tuple[str, str], ...]
    """(image id, text) of each held-out pair."""


def measure(
    encoder: Encoder, slices: Iterable[HeldOut], load_image: LoadImage, cache: FeatureCache
) -> dict[SliceKey, SliceResult]:
    """Ranks every slice's captions among its gallery, each text read in the slice's language.

    Args:
        encoder: the version to measure.
        slices: held-out pairs; a slice without captions is left out.
        load_image: decodes a picture by id.
        cache: where raw features are kept.
    """
    return {
        held_out.key: _measure_slice(encoder, held_out, load_image, cache)
        for held_out in slices
        if held_out.captions
    }


def _measure_slice(
    encoder: Encoder, held_out: HeldOut, load_image: LoadImage, cache: FeatureCache
) -> SliceResult:
    place = {image_id: position for position, image_id in enumerate(held_out.gallery)}
    caption_image = np.asarray([place[image_id] for image_id, _ in held_out.captions], dtype=np.int64)
    route = encoder.image_route(held_out.key.domain)
    routes = dict.fromkeys(held_out.gallery, route)
    images = unit(image_features(encoder, held_out.gallery, load_image, cache, routes=routes))
    texts = unit(
        text_features(encoder, [text for _, text in held_out.captions], held_out.key.language, cache)
    )
    ranks = rank_slice(images, texts, caption_image)
    return SliceResult(held_out.key.language, held_out.key.domain, held_out.gallery, caption_image, *ranks)
