"""Ridge heads: a domain is what all of its pairs give, whenever they came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from model_updates.batches import gather
from model_updates.encoder import Encoder
from model_updates.features import NoCache
from model_updates.gaussians import FEWEST_PICTURES
from model_updates.pairs import TrainingPair
from model_updates.parts.ridge import Sums, captioned_in
from model_updates.strategies.ridge_heads import RidgeHeads
from model_updates.trainer import TrainingReport, run_update
from tests.model_updates.domains import NEW, NEW_IDS, evolve, known_pairs, new_pairs
from tests.model_updates.photographs import photo_encoder
from tests.model_updates.tiny import DOMAIN, context_for, data_for, draw, tiny_encoder, toy_pairs


def taught(chunk: Sequence[TrainingPair], earlier: Sequence[TrainingPair] = (), seed: int = 3) -> Encoder:
    """A tiny encoder whose head of the new domain is solved from a chunk, beside what came earlier."""
    encoder = tiny_encoder()
    _solve(encoder, chunk, earlier, seed)
    return encoder


def _solve(
    encoder: Encoder, chunk: Sequence[TrainingPair], earlier: Sequence[TrainingPair], seed: int
) -> TrainingReport:
    context = replace(
        context_for(encoder, chunk, languages=frozenset({"en", "de"}), seed=seed),
        load_image=draw,
        open_earlier=lambda: earlier,
        open_known=known_pairs,
    )
    strategy = RidgeHeads()
    return run_update(
        strategy,
        context,
        lambda frozen: gather(
            chunk, chunk, strategy=strategy, context=frozen, load_image=draw, cache=NoCache()
        ),
    )


def vectors(encoder: Encoder, route: str = NEW) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return encoder.encode_images([draw(image_id) for image_id in NEW_IDS], route)


def test_the_order_of_chunks_and_the_seed_do_not_matter() -> None:
    first, second = new_pairs()[:4], new_pairs()[4:]

    at_once = vectors(taught(new_pairs()))

    assert np.array_equal(vectors(taught(second, first)), at_once)
    assert np.array_equal(vectors(taught(first, second)), at_once)
    assert np.array_equal(vectors(taught(new_pairs(), seed=8)), at_once)
    assert not np.allclose(vectors(taught(first)), at_once, atol=1e-3)


def test_a_chunk_that_was_withdrawn_leaves_no_trace() -> None:
    first, second = new_pairs()[:5], new_pairs()[5:]
    encoder = taught(first)
    _solve(encoder, second, first, 3)

    # `open_earlier` leaves out what was withdrawn: the first chunk is gone, and the second is taught again.
    _solve(encoder, second, (), 3)

    assert np.array_equal(vectors(encoder), vectors(taught(second)))


def test_nothing_else_moves_and_the_report_says_what_was_solved() -> None:
    before, encoder = tiny_encoder(), tiny_encoder()
    report = _solve(encoder, new_pairs(), (), 3)

    assert encoder.image_routes == (NEW,)
    assert encoder.image_fingerprint() == before.image_fingerprint()
    assert encoder.text_fingerprint() == before.text_fingerprint()
    assert encoder.trunk_fingerprint(NEW) == before.trunk_fingerprint()
    assert encoder.image_fingerprint(NEW) != before.image_fingerprint()
    assert report.kept_epoch == 1
    assert report.validation is not None
    assert report.notes == (f"{NEW}: a head solved from 8 pairs; no other picture and no text could change.",)


def test_captions_find_pictures_that_they_did_not_find() -> None:
    def found(encoder: Encoder) -> float:
        pairs = new_pairs()
        texts = encoder.encode_texts([pair.text for pair in pairs])
        cosines = texts @ vectors(encoder, encoder.image_route(NEW)).T
        return float((cosines.argmax(axis=1) == np.arange(len(pairs))).mean())

    assert found(taught(new_pairs())) > found(tiny_encoder())


def test_the_router_is_fitted_to_as_many_pictures_however_many_languages_speak_of_them() -> None:
    said = [replace(pair, language=f"l{n}", domain=f"d{n % 2}") for n in range(2) for pair in known_pairs()]
    many = [replace(pair, language=f"x{n}") for pair in said for n in range(20)]
    seen = [replace(pair, image_id=f"{pair.domain}-{pair.image_id}") for pair in many]
    context = replace(context_for(tiny_encoder(), new_pairs()), open_known=lambda: seen)
    memory = RidgeHeads().memory(replace(context, open_earlier=tuple))
    assert len(memory) == len({pair.image_id for pair in memory}) == 2 * len(known_pairs())


def test_a_router_tells_the_domains_apart() -> None:
    many = [replace(pair, domain=NEW) for pair in toy_pairs("en")][: FEWEST_PICTURES + 2]
    encoder = tiny_encoder()
    evolve(encoder, RidgeHeads(), many, known=[replace(p, domain=DOMAIN) for p in toy_pairs("de")])

    assert encoder.image_routes == (NEW,)


def test_captions_that_one_space_does_not_know_count_in_the_other_alone() -> None:
    pairs = [
        *new_pairs("en"),
        *[replace(pair, language="hi", text="दो लाल नावें") for pair in new_pairs("en")[:3]],
    ]
    context = context_for(photo_encoder(), pairs, languages=frozenset({"en", "hi"}))
    data = data_for(RidgeHeads(), context)

    first, second = (Sums.of(*said) for said in captioned_in(data.train, (512, 384)))

    assert (float(first.count), float(second.count)) == (8.0, 11.0)
    assert torch.isfinite(second.gram).all()
