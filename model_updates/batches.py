"""The data of an update: pairs, cached features of frozen towers, and batches of them.

What a frozen tower would compute again and again is computed once: image features and English
teacher features come through the feature cache; pictures are decoded only for a strategy that trains the
image tower.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ingest.pair import BASE_LANGUAGE
from model_updates.encoder import Encoder
from model_updates.errors import NothingToLearn
from model_updates.features import (
    FeatureCache,
    LoadImage,
    caption_features,
    image_features,
    text_features,
    trunk_features,
)
from model_updates.pair_sets import Batch, PairSet, PictureRows, UpdateData
from model_updates.pairs import TrainingPair, by_language
from model_updates.routes import BASE
from model_updates.strategy import Replay, Strategy, UpdateContext
from model_updates.towers import is_text_body

# Prepared pictures are kept in memory up to this; beyond it they are decoded in every epoch.
PREPARED_BYTES = 2 << 30
KNOWN_PAIRS = 500
"""Of what people find today, looked up after every epoch of a strategy that can forget; half as many as are taught, so
that looking costs little beside teaching, and at least `FEWEST_KNOWN`."""
FEWEST_KNOWN = 100


def gather(
    train: Sequence[TrainingPair],
    validation: Sequence[TrainingPair],
    *,
    strategy: Strategy,
    context: UpdateContext,
    load_image: LoadImage,
    cache: FeatureCache,
    watch_known: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> UpdateData:
    """Collects the chunk's pairs, the strategy's memory and all frozen features.

    Each frozen tower runs once per picture or text that the cache lacks. Unless ``watch_known`` is switched off, a
    strategy that can forget also gets pairs of what is known, which take part in choosing its epoch. `progress` is told
    (pictures embedded, pictures to embed).

    Raises:
        NothingToLearn: no training pair.
    """
    if len(train) < 2:
        raise NothingToLearn(
            f"{len(train)} training pairs are too few to learn from; "
            "a chunk needs at least 2 outside its test split"
        )
    remembered = tuple(strategy.memory(context))
    count = min(KNOWN_PAIRS, max(FEWEST_KNOWN, len(train) // 2))
    known = sampled(context.open_known(), count) if watch_known and strategy.can_forget else []
    everything = [*train, *remembered, *validation, *known]
    numbers = {image_id: n for n, image_id in enumerate(dict.fromkeys(p.image_id for p in everything))}
    previous = context.open_previous()
    pictures = _pictures_of(previous, everything, list(numbers), load_image, cache, progress)
    frozen = _Frozen(previous, teacher(context.open_anchor(), previous), numbers, pictures, cache)
    texts = "text_features" in strategy.needs
    return UpdateData(
        train=frozen.rows(train, texts=texts, english=True),
        memory=frozen.rows(remembered, texts=texts, english=True),
        # Validation ranks texts against pictures and needs no teacher.
        validation=frozen.rows(validation, texts=texts, english=False),
        load_image=load_image,
        known=frozen.rows(known, texts=False, english=False) if known else None,
    )


def sampled(pairs: Sequence[TrainingPair], count: int) -> list[TrainingPair]:
    """Returns up to so many pairs, those whose hashes are lowest: the same ones whoever asks."""
    return sorted(pairs, key=_hash)[:count]


def _hash(pair: TrainingPair) -> str:
    return hashlib.sha256(f"{pair.image_id}\0{pair.language}\0{pair.text}".encode()).hexdigest()


def _pictures_of(
    encoder: Encoder,
    pairs: Sequence[TrainingPair],
    image_ids: Sequence[str],
    load_image: LoadImage,
    cache: FeatureCache,
    progress: Callable[[int, int], None] | None,
) -> PictureRows:
    trunk = trunk_features(encoder, image_ids, load_image, cache, progress=progress)
    routes = {pair.image_id: encoder.image_route(pair.domain) for pair in pairs}

    def features() -> Tensor:
        # Of a tower without a head these are the trunk features themselves.
        rows = encoder.projected(trunk).copy()
        own = [n for n, image_id in enumerate(image_ids) if routes[image_id] != BASE]
        if own:
            chosen = [image_ids[n] for n in own]
            rows[own] = image_features(encoder, chosen, load_image, cache, routes=routes)
        return torch.from_numpy(rows)

    return PictureRows(torch.from_numpy(trunk), features)


@dataclass(frozen=True)
class _Frozen:
    """The frozen features of an update's pictures, the number of each, and what computes those of texts."""

    previous: Encoder
    teacher: Encoder
    numbers: Mapping[str, int]
    pictures: PictureRows
    cache: FeatureCache

    def rows(self, pairs: Sequence[TrainingPair], *, texts: bool, english: bool) -> PairSet:
        index = torch.tensor([self.numbers[pair.image_id] for pair in pairs], dtype=torch.int64)
        known = [english and pair.english is not None for pair in pairs]
        own = torch.from_numpy(caption_features(self.previous, pairs, self.cache)) if texts else None
        return PairSet(
            pairs=tuple(pairs),
            image_index=index,
            pictures=self.pictures,
            english_features=own
            if own is not None and english and self._are_english(pairs)
            else _english_rows(pairs, known, self.teacher, self.cache),
            has_english=torch.tensor(known, dtype=torch.bool),
            text_features=own,
        )

    def _are_english(self, pairs: Sequence[TrainingPair]) -> bool:
        """Says whether captions are their own English, and read by the teacher as by the encoder before."""
        return all(pair.language == BASE_LANGUAGE and pair.english == pair.text for pair in pairs) and (
            self.teacher.text_fingerprint(BASE_LANGUAGE) == self.previous.text_fingerprint(BASE_LANGUAGE)
        )


def teacher(anchor: Encoder, previous: Encoder) -> Encoder:
    """Returns whose English vectors are the target: the anchor's, whose words no update has moved.

    Once an update has trained the text body (finetune, or c-clip with both towers), the anchor's vectors lie
    in a space that body and pictures have left; then it is the encoder before this update.
    """
    ours, theirs = previous.model.state_dict(), anchor.model.state_dict()
    body = [name for name in ours if is_text_body(name)]
    same = all(name in theirs and torch.equal(ours[name].cpu(), theirs[name].cpu()) for name in body)
    return anchor if same else previous


def _english_rows(
    pairs: Sequence[TrainingPair], known: Sequence[bool], encoder: Encoder, cache: FeatureCache
) -> Tensor:
    rows = torch.zeros(len(pairs), encoder.dim)
    chosen = [n for n, there in enumerate(known) if there]
    if chosen:
        texts = [pairs[n].english or "" for n in chosen]
        rows[chosen] = torch.from_numpy(text_features(encoder, texts, BASE_LANGUAGE, cache))
    return rows


class Batches:
    """Yields the batches of an epoch in a seeded order, tokenised with the candidate's vocabulary.

    The candidate's vocabulary must have grown already. Without `load_image` no picture is decoded. `size` is pairs of
    the chunk per batch; a rest of one pair is dropped, since one pair has nothing to be contrasted with.
    """

    def __init__(
        self,
        train: PairSet,
        encoder: Encoder,
        *,
        size: int,
        load_image: LoadImage | None,
        memory: PairSet | None = None,
        replay: Replay = Replay.NONE,
    ) -> None:
        replayed = memory if memory is not None and len(memory) and replay is not Replay.NONE else None
        self.pairs = train if replayed is None else train.followed_by(replayed)
        self.size = size
        self._own = len(train)
        self._beside = replay is Replay.BESIDE and replayed is not None
        self._drawn_from = len(train) if self._beside else len(self.pairs)
        self._encoder = encoder
        self._pictures = (
            None if load_image is None else prepared_pictures(self.pairs.pairs, encoder, load_image)
        )

    @cached_property
    def _sequences(self) -> list[list[int]]:
        # Not before a batch is asked for: what is solved in closed form asks for none.
        return tokenise(self._encoder, self.pairs.pairs)

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        full, rest = divmod(self._drawn_from, self.size)
        return full + (rest > 1)

    def epoch(self, seed: int) -> Iterator[Batch]:
        """Yields one epoch; the same seed gives the same order, and the same pairs from the memory."""
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(self._drawn_from, generator=generator)
        for start in range(0, len(order), self.size):
            chosen = order[start : start + self.size]
            if len(chosen) > 1:
                yield self._batch(torch.cat([chosen, self._replayed(len(chosen), generator)]))

    def _replayed(self, count: int, generator: torch.Generator) -> Tensor:
        """Positions of pairs drawn from the memory, each at most once a batch."""
        if not self._beside:
            return torch.zeros(0, dtype=torch.int64)
        kept = len(self.pairs) - self._own
        return self._own + torch.randperm(kept, generator=generator)[:count]

    def _batch(self, chosen: Tensor) -> Batch:
        pairs, shown = self.pairs, self.pairs.image_index[chosen]
        positions = chosen.tolist()
        return Batch(
            tokens=pad(self._encoder, [self._sequences[n] for n in positions]),
            image_index=shown,
            image_features=pairs.pictures.features[shown],
            trunk=pairs.pictures.trunk[shown],
            row=chosen,
            languages=tuple(pairs.pairs[n].language for n in positions),
            domains=tuple(pairs.pairs[n].domain for n in positions),
            replayed=chosen >= self._own,
            images=None if self._pictures is None else self._pictures(positions),
            text_features=None if pairs.text_features is None else pairs.text_features[chosen],
            english_features=pairs.english_features[chosen],
            has_english=pairs.has_english[chosen],
        )


def tokenise(encoder: Encoder, pairs: Sequence[TrainingPair]) -> list[list[int]]:
    """Returns each pair's token rows, read with its own language's table."""
    sequences: list[list[int]] = [[] for _ in pairs]
    for language, chosen in by_language(pairs):
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


def prepared_pictures(
    pairs: Sequence[TrainingPair], encoder: Encoder, load_image: LoadImage
) -> Callable[[list[int]], Tensor]:
    """Returns what gives the prepared pictures of chosen pairs, (b, 3, size, size) float32.

    They are kept as bytes where the encoder computes, so that a card waits for no copy, or decoded anew in every epoch
    when they are many.
    """
    ids, preprocessing, device = [pair.image_id for pair in pairs], encoder.preprocessing, encoder.device
    unique, size = list(dict.fromkeys(ids)), preprocessing.size
    if len(unique) * 3 * size * size > _room(device):
        return lambda positions: encoder.prepare_images([load_image(ids[n]) for n in positions])
    decoded = torch.empty(len(unique), size, size, 3, dtype=torch.uint8)
    for n, image_id in enumerate(unique):
        decoded[n] = torch.from_numpy(np.array(preprocessing.resized(load_image(image_id))))
    kept, place = decoded.to(device), {image_id: n for n, image_id in enumerate(unique)}
    # Numbers of the device: a division by a number of Python's is a product there, and off by a bit.
    whole, mean, std = (
        torch.tensor(x, device=device) for x in (255.0, preprocessing.mean, preprocessing.std)
    )

    def prepared(positions: list[int]) -> Tensor:
        rows = kept[torch.tensor([place[ids[n]] for n in positions], device=device)]
        return ((rows.float() / whole - mean) / std).permute(0, 3, 1, 2).contiguous()

    return prepared


def _room(device: torch.device) -> int:
    """Returns how many bytes of pictures a device keeps: on a card no more than a quarter of what is free."""
    return (
        PREPARED_BYTES
        if device.type != "cuda"
        else min(PREPARED_BYTES, torch.cuda.mem_get_info(device)[0] // 4)
    )
