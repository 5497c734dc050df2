"""Speed of teaching a language, beside what its text towers alone take for the same pairs in the same process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from PIL import Image
from speed_timing import Measured
from speed_update import drawn_lesson

from model_updates.batches import Batches, gather
from model_updates.encoder import Encoder, training
from model_updates.opening import open_encoder
from model_updates.options import options_of
from model_updates.pair_sets import UpdateData
from model_updates.pairs import TrainingPair
from model_updates.parts.own_rows import open_rows
from model_updates.search_encoder import Rows
from model_updates.strategies.language_tables import LanguageTables
from model_updates.strategy import UpdateContext
from model_updates.trainer import run_update

ENCODER = "perennial-photo"
LANGUAGE = "la"  # none of its own: German captions under a name that no text tower knows
HELD_OUT = 60
BAR = 1.3


class Pictures:
    """A feature cache that knows every picture, by random numbers, and keeps texts: no picture is looked at."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], Rows] = {}

    def get(
        self, fingerprint: str, kind: str, content_ids: Sequence[str], dim: int
    ) -> tuple[Rows, np.ndarray]:
        """Returns the known rows, and which were known."""
        if kind == "image":
            drawn = np.random.default_rng(0).random((len(content_ids), dim), dtype=np.float32)
            return drawn, np.ones(len(content_ids), dtype=np.bool_)
        rows = [self._texts.get((fingerprint, one)) for one in content_ids]
        known = [row for row in rows if row is not None]
        mask = np.asarray([row is not None for row in rows], dtype=np.bool_)
        return (np.stack(known) if known else np.empty((0, dim), dtype=np.float32)), mask

    def put(self, fingerprint: str, kind: str, content_ids: Sequence[str], rows: Rows) -> None:
        """Keeps rows of texts."""
        self._texts |= {(fingerprint, one): row for one, row in zip(content_ids, rows, strict=True)}


def taught_language(*, pairs: int, rounds: int) -> Measured:
    """Sets an update by `language-tables` beside its text towers: read once, forward and backward in each epoch."""
    drawn, _ = drawn_lesson(pairs + HELD_OUT)
    whole, floors = [], []
    for number in range(rounds):
        # Of each round texts of its own, for the same reason as in `_floor`.
        lesson = [
            TrainingPair(
                one.image_id, f"{one.text} {number}", LANGUAGE, one.domain, f"{one.english} {number}"
            )
            for one in drawn
        ]
        encoder, data, epochs, seconds = _taught(lesson[:pairs], lesson[pairs:])
        whole.append(seconds)
        floors.append(_floor(encoder, data, epochs))
    ratio = statistics.median(one / floor for one, floor in zip(whole, floors, strict=True))
    return Measured(
        f"a language of {pairs:,} pairs",
        f"{ratio:.2f}x the processor time of its text towers alone",
        f"<= {BAR}x",
        ratio <= BAR,
        f"`language-tables` on `{ENCODER}` without the gate, features of pictures known, {epochs} epochs; "
        f"medians of {rounds}: {statistics.median(whole):.1f} s against {statistics.median(floors):.1f} s "
        "for both towers over all captions "
        "and the English ones beside them once, and the first forward and backward over the captions in each epoch",
    )


def _taught(
    train: list[TrainingPair], held_out: list[TrainingPair]
) -> tuple[Encoder, UpdateData, int, float]:
    base, candidate = open_encoder(ENCODER), open_encoder(ENCODER)
    strategy, cache = LanguageTables(options_of(LanguageTables, {})), Pictures()
    context = UpdateContext(
        encoder=candidate,
        pairs=tuple(train),
        learned_languages=frozenset({"en"}),
        open_anchor=lambda: base,
        open_previous=lambda: base,
        seed=0,
        update_number=1,
    )
    made: list[UpdateData] = []

    def gathered(_: UpdateContext) -> UpdateData:
        made.append(
            gather(train, held_out, strategy=strategy, context=context, load_image=_no_picture, cache=cache)
        )
        return made[0]

    began = time.process_time()
    report = run_update(strategy, context, gathered)
    return candidate, made[0], len(report.history), time.process_time() - began


def _floor(encoder: Encoder, data: UpdateData, epochs: int) -> float:
    """Returns the seconds of the text towers over what an update reads, with the vocabulary that it has grown."""
    second, vocabulary = encoder.second, encoder.vocabulary
    if second is None or vocabulary is None:
        raise ValueError(f"{ENCODER} has two text towers")
    # The second tower keeps what it read last: the same texts with a mark more are new to it.
    own = [f"{pair.text}!" for pair in (*data.train.pairs, *data.validation.pairs)]
    english = [f"{pair.english}!" for pair in data.train.pairs]

    def read() -> None:
        for texts, language in ((own, LANGUAGE), (english, "en")):
            second.features(texts, [language] * len(texts))
        with torch.inference_mode():
            encoder.forward_tokens(encoder.tokenize(english, "en"), "en")

    rows = torch.tensor(sorted(vocabulary.tables[LANGUAGE].rows.values()))
    encoder.model.requires_grad_(False)
    open_rows(encoder.model, rows)
    batches = list(Batches(data.train, encoder, size=128, load_image=None).epoch(0))

    def learn() -> None:
        for batch in batches:
            encoder.forward_tokens(batch.tokens, batch.languages).sum().backward()  # type: ignore[no-untyped-call]

    with training(encoder):
        return _seconds(read) + epochs * _seconds(learn)


def _seconds(call: Callable[[], None]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def _no_picture(image_id: str) -> Image.Image:
    raise LookupError(f"picture {image_id} was to be known")
