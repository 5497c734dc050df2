"""Captions that a grown vocabulary cuts into other tokens."""

from __future__ import annotations

from app.bench.material import HELD_OUT, TRAINED, Material, Slice
from app.bench.segmentation import Segmentation
from ingest.pair import SliceKey
from model_updates.vocabulary import Vocabulary
from tests.model_updates.tiny import CONTEXT_LENGTH, tiny_encoder


def _slice(
    language: str, texts: list[str], since: int, kind: str = HELD_OUT, *, unseen: bool = False
) -> Slice:
    captions = tuple((f"{language}-{n}", text) for n, text in enumerate(texts))
    return Slice(
        SliceKey(language, "drawings"), kind, since, captions, ("",) * len(texts), ("",) * len(texts), unseen
    )


def test_captions_are_counted_from_the_step_that_taught_them() -> None:
    encoder = tiny_encoder()
    merges = [("c", "a"), ("ca", "t</w>"), ("d", "o")]
    encoder.vocabulary = Vocabulary.from_merges(merges, context_length=CONTEXT_LENGTH)
    slices = (
        _slice("en", ["dog", "cat", "a cat", "the dog"], 0),
        _slice("en", ["dog"], 0, TRAINED),
        _slice("en", ["dog"], 0, unseen=True),
        _slice("de", ["gut"], 1),
        _slice("fr", ["dog"], 2),
    )
    segmentation = Segmentation(Material((), (), slices, {}, {}, {}))
    assert segmentation.after(encoder, 0) is None  # nothing was known before
    assert segmentation.after(encoder, 1) == 0.0
    encoder.vocabulary.grow_shared([("do", "g</w>")])
    # Half of the English captions have a dog; the French one is taught with the new token.
    assert segmentation.after(encoder, 2) == 25.0
    assert segmentation.after(encoder, 3) == round(100 * (0.5 + 0 + 0) / 3, 2)


def test_a_foreign_tokenizer_is_not_looked_at() -> None:
    encoder = tiny_encoder(architecture="tiny-both-ways")
    segmentation = Segmentation(Material((), (), (_slice("en", ["dog"], 0),), {}, {}, {}))
    assert [segmentation.after(encoder, step) for step in (0, 1)] == [None, None]
