"""The data of an update: pairs, cached features of frozen towers, and batches of them.

What a frozen tower would compute again and again is computed once: image features and English
teacher features come through the feature cache; pictures are decoded only for a strategy that trains the
image tower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model_updates.encoder import Encoder
from model_updates.errors import NothingToLearn
from model_updates.features import FeatureCache, LoadImage, image_features, text_features
from model_updates.strategy import BASE_LANGUAGE, Batch, Strategy, TrainingPair, UpdateContext
from model_updates.towers import is_text_body

# Prepared pictures are kept in memory up to this; beyond it they are decoded in every epoch.
PREPARED_BYTES = 2 << 30


@dataclass(frozen=True)
class PairSet:
    """Training or validation pairs with everything frozen about them, row by row.

    Attributes:
        pairs: the pairs themselves.
        image_index: (n,) int64, equal where the picture is the same.
        image_features: (n, dim) raw features of the picture before this update.
        english_features: (n, dim) raw teacher features of the English caption; zero where there is none.
        has_english: (n,) bool.
        text_features: (n, dim) raw features of the text before this update, when the strategy asked for them.
    """

    pairs: tuple[TrainingPair, ...]
    image_index: Tensor
    image_features: Tensor
    english_features: Tensor
    has_english: Tensor
    text_features: Tensor | None

    @property
    def english_share(self) -> float:
        """Share of pairs that have an English caption beside them."""
        return float(self.has_english.float().mean()) if len(self.pairs) else 0.0


@dataclass(frozen=True)
class UpdateData:
    """What one update learns from and validates on."""

    train: PairSet
    validation: PairSet
    load_image: LoadImage


def gather(
    train: Sequence[TrainingPair],
    validation: Sequence[TrainingPair],
    *,
    strategy: Strategy,
    context: UpdateContext,
    load_image: LoadImage,
    cache: FeatureCache,
) -> UpdateData:
    """Collects pairs and frozen features; runs each frozen tower once per picture or text the cache lacks.

    Raises:
        NothingToLearn: no training pair.
    """
    if len(train) < 2:
        raise NothingToLearn(
            f"{len(train)} training pairs are too few to learn from; "
            "a chunk needs at least 2 outside its test split"
        )
    everything = [*train, *validation]
    numbers = {image_id: n for n, image_id in enumerate(dict.fromkeys(p.image_id for p in everything))}
    previous = context.open_previous()
    images = image_features(previous, [pair.image_id for pair in everything], load_image, cache)
    wants_texts = "text_features" in strategy.needs
    learned = PairSet(
        pairs=tuple(train),
        image_index=_image_index(train, numbers),
        image_features=torch.from_numpy(images[: len(train)]),
        english_features=_english_rows(train, teacher(context.open_anchor(), previous), cache),
        has_english=torch.tensor([pair.english is not None for pair in train], dtype=torch.bool),
        text_features=_text_rows(previous, train, cache) if wants_texts else None,
    )
    # Validation ranks texts against pictures and needs no teacher.
    checked = PairSet(
        pairs=tuple(validation),
        image_index=_image_index(validation, numbers),
        image_features=torch.from_numpy(images[len(train) :]),
        english_features=torch.zeros(len(validation), previous.dim),
        has_english=torch.zeros(len(validation), dtype=torch.bool),
        text_features=None,
    )
    return UpdateData(learned, checked, load_image)


def teacher(anchor: Encoder, previous: Encoder) -> Encoder:
    """Returns whose English vectors are the target: the anchor's, whose words no update has moved.

    Once an update has trained the text body (finetune, or c-clip with both towers), the anchor's vectors lie
    in a space that body and pictures have left; then it is the encoder before this update.
    """
    ours, theirs = previous.model.state_dict(), anchor.model.state_dict()
    body = [name for name in ours if is_text_body(name)]
    same = all(name in theirs and torch.equal(ours[name].cpu(), theirs[name].cpu()) for name in body)
    return anchor if same else previous


def _image_index(pairs: Sequence[TrainingPair], numbers: Mapping[str, int]) -> Tensor:
    return torch.tensor([numbers[pair.image_id] for pair in pairs], dtype=torch.int64)


def _english_rows(pairs: Sequence[TrainingPair], encoder: Encoder, cache: FeatureCache) -> Tensor:
    rows = torch.zeros(len(pairs), encoder.dim)
    known = [n for n, pair in enumerate(pairs) if pair.english is not None]
    if known:
        texts = [pairs[n].english or "" for n in known]
        rows[known] = torch.from_numpy(text_features(encoder, texts, BASE_LANGUAGE, cache))
    return rows


def _text_rows(encoder: Encoder, pairs: Sequence[TrainingPair], cache: FeatureCache) -> Tensor:
    rows = torch.zeros(len(pairs), encoder.dim)
    for language in sorted({pair.language for pair in pairs}):
        chosen = [n for n, pair in enumerate(pairs) if pair.language == language]
        texts = [pairs[n].text for n in chosen]
        rows[chosen] = torch.from_numpy(text_features(encoder, texts, language, cache))
    return rows


class Batches:
    """Yields the batches of an epoch in a seeded order, tokenised with the candidate's vocabulary.

    Args:
        pairs: what to draw from.
        encoder: the candidate; its vocabulary must have grown already.
        load_image: decodes a picture, or None when the image tower stays frozen.
        size: pairs per batch; a rest of one pair is dropped, since one pair has nothing to be contrasted
            with.
    """

    def __init__(self, pairs: PairSet, encoder: Encoder, *, size: int, load_image: LoadImage | None) -> None:
        self.pairs = pairs
        self.size = size
        self._encoder = encoder
        self._sequences = tokenise(encoder, pairs.pairs)
        self._pictures = None if load_image is None else _pictures(pairs.pairs, encoder, load_image)

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        full, rest = divmod(len(self.pairs.pairs), self.size)
        return full + (rest > 1)

    def epoch(self, seed: int) -> Iterator[Batch]:
        """Yields one epoch; the same seed gives the same order."""
        order = torch.randperm(len(self.pairs.pairs), generator=torch.Generator().manual_seed(seed))
        for start in range(0, len(order), self.size):
            chosen = order[start : start + self.size]
            if len(chosen) > 1:
                yield self._batch(chosen)

    def _batch(self, chosen: Tensor) -> Batch:
        pairs = self.pairs
        positions = chosen.tolist()
        return Batch(
            tokens=pad(self._encoder, [self._sequences[n] for n in positions]),
            image_index=pairs.image_index[chosen],
            image_features=pairs.image_features[chosen],
            images=None if self._pictures is None else self._pictures(positions),
            text_features=None if pairs.text_features is None else pairs.text_features[chosen],
            english_features=pairs.english_features[chosen],
            has_english=pairs.has_english[chosen],
            replayed=torch.zeros(len(positions), dtype=torch.bool),
        )


def tokenise(encoder: Encoder, pairs: Sequence[TrainingPair]) -> list[list[int]]:
    """Returns each pair's token rows, read with its own language's table."""
    sequences: list[list[int]] = [[] for _ in pairs]
    for language in sorted({pair.language for pair in pairs}):
        chosen = [n for n, pair in enumerate(pairs) if pair.language == language]
        texts = [pairs[n].text for n in chosen]
        if encoder.vocabulary is not None:
            rows = encoder.vocabulary.encode(texts, language)
        else:
            rows = encoder.tokenize(texts, language).tolist()
        for n, row in zip(chosen, rows, strict=True):
            sequences[n] = row
    return sequences


def pad(encoder: Encoder, sequences: Sequence[Sequence[int]]) -> Tensor:
    """Returns (b, longest) int64 token rows."""
    if encoder.vocabulary is not None:
        return torch.from_numpy(encoder.vocabulary.pad(sequences))
    return torch.tensor([list(sequence) for sequence in sequences], dtype=torch.int64)


def _pictures(
    pairs: Sequence[TrainingPair], encoder: Encoder, load_image: LoadImage
) -> Callable[[list[int]], Tensor]:
    ids = [pair.image_id for pair in pairs]
    unique = list(dict.fromkeys(ids))
    size = encoder.preprocessing.size
    if len(unique) * 3 * size * size * 4 > PREPARED_BYTES:
        return lambda positions: encoder.prepare_images([load_image(ids[n]) for n in positions])
    kept = torch.empty(len(unique), 3, size, size)
    for n, image_id in enumerate(unique):
        kept[n] = encoder.prepare_images([load_image(image_id)])[0]
    place = {image_id: n for n, image_id in enumerate(unique)}
    return lambda positions: kept[[place[ids[n]] for n in positions]]
