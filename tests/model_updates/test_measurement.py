"""Slices measured as a searcher meets them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from ingest.pair import SliceKey
from model_updates import measurement
from model_updates.encoder import Encoder
from model_updates.evaluation import View
from model_updates.features import NoCache, text_id
from model_updates.measurement import (
    HeldOut,
    Measured,
    ReadAs,
    Side,
    first_pictures,
    measure,
    measure_views,
    searched,
)
from model_updates.readings import background, fused
from model_updates.search_encoder import Rows
from tests.model_updates.tiny import COLOURS, DOMAIN, SHAPES, draw, tiny_encoder

PICTURES = tuple(f"{colour} {shape}" for colour in COLOURS for shape in SHAPES)
KEY = SliceKey("en", DOMAIN)
CAPTIONS = tuple((picture, f"a {picture} on paper") for picture in PICTURES)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return tiny_encoder()


def in_english(texts: Sequence[str]) -> list[ReadAs]:
    return [(("en", 0.0),) for _ in texts]


def mixed(**changes: object) -> HeldOut:
    return HeldOut(KEY, PICTURES, CAPTIONS, View.MIXED, **changes)  # type: ignore[arg-type]


def ranks(encoder: Encoder, held_out: HeldOut) -> np.ndarray:
    side = Side(encoder, in_english, {})
    return measure_views(side, [held_out], draw, NoCache())[held_out.measured].text_ranks


def test_a_picture_scores_by_all_readings_of_a_text_together(encoder: Encoder) -> None:
    images = encoder.encode_images([draw(picture) for picture in PICTURES])
    readings: list[ReadAs] = [(("en", 0.0), ("de", -0.02)), (("de", 0.0),)]
    texts = [CAPTIONS[0][1], CAPTIONS[1][1]]
    english, german = (encoder.encode_texts(texts, tag) @ images.T for tag in ("en", "de"))
    above = [one[0] - background(one[:1]) for one in (english, german)]
    lowered, scale = np.asarray([0.0, -0.02], dtype=np.float32), encoder.similarity_scale
    found = searched(encoder, texts, readings, images, NoCache())
    both = fused(np.stack([above[0], above[1]]), lowered, scale)
    assert np.allclose(found[0] - found[0].max(), both - both.max(), atol=1e-5)
    assert np.allclose(found[1], german[1], atol=1e-5)


def test_the_ranks_are_those_of_a_search(encoder: Encoder) -> None:
    images = encoder.encode_images([draw(picture) for picture in PICTURES])
    scores = encoder.encode_texts([text for _, text in CAPTIONS], "en") @ images.T
    own = np.diag(scores)
    wanted = (scores >= own[:, None] - 1e-6).sum(axis=1) - 1
    assert ranks(encoder, mixed()).tolist() == wanted.tolist()


def test_a_picture_that_is_as_right_never_counts_as_ahead(encoder: Encoder) -> None:
    before = ranks(encoder, mixed())
    others = {n: tuple(m for m in range(len(PICTURES)) if m != n) for n in (0, 3)}
    after = ranks(encoder, mixed(neutral=others))
    assert (after[0], after[3]) == (0, 0)
    assert before.max() > 0, "an untrained encoder finds little"
    untouched = [n for n in range(len(PICTURES)) if n not in others]
    assert after[untouched].tolist() == before[untouched].tolist()


def test_a_caption_that_names_a_thing_is_measured_by_pictures_of_that_thing(encoder: Encoder) -> None:
    images = encoder.encode_images([draw(picture) for picture in PICTURES])
    scores = encoder.encode_texts([text for _, text in CAPTIONS], "en") @ images.T
    of_colour = {
        n: tuple(m for m, other in enumerate(PICTURES) if m != n and other.split()[0] == picture.split()[0])
        for n, picture in enumerate(PICTURES)
    }
    domains = tuple("sketch" if n % 2 else DOMAIN for n in range(len(PICTURES)))
    held_out = mixed(neutral=of_colour | {0: ()}, domains=domains)
    result = measure_views(Side(encoder, in_english, {}), [held_out], draw, NoCache())[held_out.measured]

    assert np.isnan(result.concepts[0]).all()  # nothing else shows it
    for n in range(1, len(PICTURES)):
        first = np.argsort(-scores[n], kind="stable")[: min(10, len(PICTURES))].tolist()
        same = {n, *of_colour[n]}
        wanted = len(same & set(first)) / min(len(first), len(same))
        assert result.concepts[n].tolist() == pytest.approx(
            [wanted, np.mean([domains[m] == "sketch" for m in first]), min(same)]
        )
    assert result.is_labelled
    assert 0 < result.recalls()["concept_p10"] <= 100
    single = measure_views(Side(encoder, in_english, {}), [mixed()], draw, NoCache())[mixed().measured]
    assert "concept_p10" not in single.recalls()


def test_where_things_count_one_that_shows_the_same_is_as_good_and_a_mere_claim_is_left_out(
    encoder: Encoder,
) -> None:
    images = encoder.encode_images([draw(picture) for picture in PICTURES])
    scores = encoder.encode_texts([text for _, text in CAPTIONS], "en") @ images.T
    last = int(np.argmax(ranks(encoder, mixed())))
    first = int(scores[last].argmax())
    alone = {"domains": (DOMAIN,) * len(PICTURES), "things": tuple(range(len(PICTURES)))}

    assert ranks(encoder, mixed(**alone)).tolist() == ranks(encoder, mixed()).tolist()
    assert ranks(encoder, mixed(neutral={last: (first,)}, **alone))[last] == 0
    claimed = ranks(encoder, mixed(claimed={last: (first,)}, **alone))
    assert claimed[last] == ranks(encoder, mixed(neutral={last: (first,)}))[last] > 0


def test_what_two_versions_read_and_see_alike_is_not_measured_again(encoder: Encoder) -> None:
    slices = [mixed(), HeldOut(KEY, PICTURES, CAPTIONS)]
    live = Side(encoder, in_english, {})
    results = measure_views(live, slices, draw, NoCache())
    forwards = encoder.image_forwards
    again = measure_views(live, slices, draw, NoCache(), known=(live, results))
    assert encoder.image_forwards == forwards
    assert again[Measured(KEY)] is results[Measured(KEY)]

    other = tiny_encoder(seed=1)
    measured = measure_views(Side(other, in_english, {}), slices, draw, NoCache(), known=(live, results))
    alone = measure_views(Side(other, in_english, {}), slices, draw, NoCache())
    for key in results:
        assert measured[key].text_ranks.tolist() == alone[key].text_ranks.tolist()
    assert any(measured[key].text_ranks.tolist() != results[key].text_ranks.tolist() for key in results)


def test_only_captions_that_are_read_otherwise_are_ranked_again(encoder: Encoder) -> None:
    def last_in_two(texts: Sequence[str]) -> list[ReadAs]:
        return [(("en", 0.0), ("de", -0.5)) if text == CAPTIONS[-1][1] else (("en", 0.0),) for text in texts]

    live, other = Side(encoder, in_english, {}), Side(encoder, last_in_two, {})
    results = measure_views(live, [mixed()], draw, NoCache())
    wrong = {key: result for key, result in results.items()}
    wrong[mixed().measured].text_ranks[:] = 99  # so that what is copied can be told from what is computed
    found = measure_views(other, [mixed()], draw, NoCache(), known=(live, wrong))[mixed().measured]
    assert (found.text_ranks[:-1] == 99).all()
    assert found.text_ranks[-1] < len(PICTURES)


@pytest.mark.parametrize("block", [1, 5, 1024])
def test_slices_that_are_measured_together_rank_as_each_does_alone(
    encoder: Encoder, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, before_reading = list[Measured](), list[list[Measured]]()

    def in_two(texts: Sequence[str]) -> list[ReadAs]:
        before_reading.append(list(begun))
        return [(("en", 0.0), ("de", -0.02)) if "red" in text else (("en", 0.0),) for text in texts]

    monkeypatch.setattr(measurement, "BLOCK", block)
    side = Side(encoder, in_two, {})
    same = {n: tuple(m for m in range(len(PICTURES)) if m % 4 == n % 4) for n in range(0, len(PICTURES), 3)}
    few = HeldOut(SliceKey("de", DOMAIN), PICTURES[3:], CAPTIONS[5:9], View.MIXED)
    nothing = HeldOut(SliceKey("fr", DOMAIN), PICTURES, (), View.MIXED)
    slices = [
        mixed(neutral=same, domains=(DOMAIN,) * 16, things=tuple(n // 2 for n in range(16))),
        few,
        nothing,
    ]
    slices += [HeldOut(KEY, PICTURES, CAPTIONS[::-1], View.MEMORY), HeldOut(KEY, PICTURES, CAPTIONS)]
    together = measure_views(
        side, slices, draw, NoCache(), begin=lambda held_out: begun.append(held_out.measured)
    )
    assert list(together) == [one.measured for one in slices if one.captions]
    assert sorted(begun) == sorted(together)
    assert begun.index(slices[0].measured) < begun.index(slices[3].measured)
    assert slices[0].measured in before_reading[0], "told before anything of it is computed"
    for one in slices:
        for key, alone in measure_views(side, [one], draw, NoCache()).items():
            assert together[key].text_ranks.tolist() == alone.text_ranks.tolist()
            assert np.array_equal(together[key].concepts, alone.concepts, equal_nan=True)
    plain = measure_views(side, slices, draw, NoCache(), ranks_alone=True)
    assert all(np.array_equal(plain[key].text_ranks, together[key].text_ranks) for key in together)
    assert np.isnan(plain[slices[0].measured].concepts).all()
    other = Side(tiny_encoder(seed=1), in_two, {})
    later = measure_views(other, slices, draw, NoCache(), known=(side, together), ranks_alone=True)
    assert np.isnan(later[slices[0].measured].concepts).all(), "not those of the version that is known"
    assert np.isfinite(together[slices[0].measured].concepts[0]).all()


class Stretched(NoCache):
    """A cache that gives each raw row back at a length of its own, up to eight times longer or shorter.

    By powers of two, so that the same unit vectors come of them to the last bit.
    """

    def __init__(self, *, is_plain: bool = False) -> None:
        self._rows: dict[tuple[str, str, str], Rows] = {}
        self._is_plain = is_plain
        self.lengths: set[float] = set()

    def get(
        self, fingerprint: str, kind: str, content_ids: Sequence[str], dim: int
    ) -> tuple[Rows, NDArray[np.bool_]]:
        rows = [self._rows.get((fingerprint, kind, content_id)) for content_id in content_ids]
        known = np.asarray([row is not None for row in rows], dtype=np.bool_)
        found = [
            row * self._length(one) for one, row in zip(content_ids, rows, strict=True) if row is not None
        ]
        return np.asarray(found, dtype=np.float32).reshape(len(found), dim), known

    def put(self, fingerprint: str, kind: str, content_ids: Sequence[str], rows: Rows) -> None:
        for one, row in zip(content_ids, rows, strict=True):
            self._rows[fingerprint, kind, one] = row.copy()

    def _length(self, content_id: str) -> np.float32:
        length = 1.0 if self._is_plain else 2.0 ** (int(text_id(content_id)[:8], 16) % 7 - 3)
        self.lengths.add(length)
        return np.float32(length)


def answers(encoder: Encoder, cache: Stretched) -> list[list[int]]:
    """Every rank that is measured, and the pictures put first, of rows that come from a cache."""
    side = Side(encoder, in_english, {})
    own = HeldOut(KEY, PICTURES, CAPTIONS)
    for _ in range(2):  # the first look fills the cache
        found = measure_views(side, [own, mixed()], draw, cache)
        told = measure(encoder, [own], draw, cache)[KEY]
        first = [
            [PICTURES.index(picture) for picture in first_pictures(side, one, range(16), draw, cache)]
            for one in (own, mixed())
        ]
    results = [*found.values(), told]
    return [*first, *([*one.text_ranks.tolist(), *one.image_ranks.tolist()] for one in results)]


def test_the_length_of_a_feature_changes_no_rank() -> None:
    encoder, plain, stretched = tiny_encoder(), Stretched(is_plain=True), Stretched()
    wanted = answers(encoder, plain)
    assert answers(encoder, stretched) == wanted
    assert (plain.lengths, len(stretched.lengths)) == ({1.0}, 7)
