"""Domain adapters: one domain's pictures move, and nothing else by a bit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from model_updates.encoder import Encoder
from model_updates.parts.router import LdaRouter
from model_updates.strategies.domain_adapters import defaults_for
from tests.model_updates.domains import KNOWN_IDS, NEW, NEW_IDS, evolve, known_pairs, new_pairs
from tests.model_updates.photographs import photo_encoder
from tests.model_updates.tiny import (
    DOMAIN,
    ENGLISH_TEXTS,
    GERMAN,
    assert_same_state,
    context_for,
    data_for,
    draw,
    make_strategy,
    teach,
    tiny_encoder,
)

KNOWN = [draw(image_id) for image_id in KNOWN_IDS]
BROUGHT = [draw(image_id) for image_id in NEW_IDS]


def taught(**options: float) -> Encoder:
    encoder = tiny_encoder()
    evolve(encoder, make_strategy("domain-adapters", **options), new_pairs(), known=known_pairs())
    return encoder


def test_every_other_route_keeps_its_fingerprint_and_every_bit() -> None:
    before, after = tiny_encoder(), taught()
    assert_same_state(before.model.state_dict(), after.model.state_dict())
    assert after.image_routes == (NEW,)
    assert after.image_fingerprint() == after.image_fingerprint(DOMAIN) == before.image_fingerprint()
    assert after.text_fingerprint("de") == before.text_fingerprint("de")
    assert np.array_equal(after.image_features(KNOWN, DOMAIN), before.image_features(KNOWN))
    assert np.array_equal(after.text_features(ENGLISH_TEXTS, "en"), before.text_features(ENGLISH_TEXTS, "en"))
    assert not np.array_equal(after.image_features(BROUGHT, NEW), before.image_features(BROUGHT))


def test_the_new_pictures_are_told_apart_by_their_texts() -> None:
    texts = tiny_encoder().encode_texts([pair.text for pair in new_pairs()], "en")

    def margin(encoder: Encoder) -> float:
        cosines = encoder.encode_images(BROUGHT, NEW) @ texts.T
        return float(np.diagonal(cosines).mean() - cosines.mean())

    assert margin(taught(epochs=30)) > margin(tiny_encoder()) + 0.005


def test_a_second_domain_leaves_the_first_ones_adapter_alone() -> None:
    encoder = taught()
    fingerprint, features = encoder.image_fingerprint(NEW), encoder.image_features(BROUGHT, NEW)
    evolve(
        encoder,
        make_strategy("domain-adapters"),
        [pair for pair in new_pairs(domain="ink") if pair.image_id.startswith("black")],
        known=[*known_pairs(), *new_pairs()],
    )
    assert encoder.image_routes == ("ink", NEW)
    assert encoder.image_fingerprint(NEW) == fingerprint
    assert np.array_equal(encoder.image_features(BROUGHT, NEW), features)


def test_more_pairs_of_a_domain_go_on_with_its_adapter_and_its_earlier_pairs() -> None:
    encoder = taught()
    fingerprint, count = encoder.image_fingerprint(NEW), len(encoder.inserts)
    more = [pair for pair in new_pairs() if pair.image_id.startswith("black")]
    strategy = make_strategy("domain-adapters")
    report = evolve(
        encoder,
        strategy,
        more,
        known=[*known_pairs(), *(pair for pair in new_pairs() if pair not in more)],
    )
    assert encoder.image_fingerprint(NEW) != fingerprint
    assert len(encoder.inserts) == count
    assert report.notes[0].startswith("sketch: its adapter went on learning")
    # Four pairs of the chunk and as many earlier ones of the domain in the one batch of each of two epochs.
    assert report.image_forwards == 2 * (len(more) + 4)


def test_pairs_of_its_domain_that_nobody_taught_are_not_trained_on() -> None:
    waiting, learned = new_pairs()[:2], new_pairs()[2:4]
    context = replace(
        context_for(tiny_encoder(), new_pairs()[4:]),
        open_known=lambda: [*known_pairs(), *new_pairs()[:4]],
        open_earlier=lambda: learned,
    )
    memory = make_strategy("domain-adapters").memory(context)
    assert [pair for pair in memory if pair.domain == NEW] == learned
    assert not set(waiting) & set(memory)


def test_displacement_keeps_new_pictures_from_old_texts() -> None:
    old = tiny_encoder().encode_texts([pair.text for pair in known_pairs()], "en")
    likeness = {
        weight: float((taught(epochs=30, displacement=weight).encode_images(BROUGHT, NEW) @ old.T).mean())
        for weight in (0.0, 20.0)
    }
    assert likeness[20.0] < likeness[0.0]


def test_a_small_batch_speaks_for_all_pictures_of_the_chunk() -> None:
    # At a rate that moves nothing, half the batch displaces as much: it stands for twice as many pictures.
    whole, half = (
        evolve(
            tiny_encoder(),
            make_strategy("domain-adapters", epochs=1, batch_size=size, learning_rate=1e-12),
            new_pairs(),
            known=known_pairs(),
        ).history[-1]["displacement"]
        for size in (8, 4)
    )
    assert half == pytest.approx(whole, rel=0.03)


def test_a_router_is_fitted_where_there_are_enough_pictures() -> None:
    encoder = tiny_encoder()
    pairs = [pair for pair in new_pairs() for _ in range(2)]
    twins = [pair for pair in known_pairs() for _ in range(2)]
    evolve(encoder, make_strategy("domain-adapters"), pairs, known=twins)
    assert not encoder.can_guess_routes  # eight different pictures of each are too few for a Gaussian
    assert not any(isinstance(insert, LdaRouter) for insert in encoder.inserts)


def test_it_teaches_all_learned_languages_at_once() -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy("language-tables"))
    fingerprint = encoder.text_fingerprint("de")
    mixed = [*new_pairs("en"), *new_pairs("de")]
    report = evolve(encoder, make_strategy("domain-adapters"), mixed, languages=("en", "de"))
    assert encoder.text_fingerprint("de") == fingerprint
    assert report.training_pairs == 16
    assert GERMAN["red"] == "roter"


def test_it_starts_where_the_base_is() -> None:
    torch.manual_seed(0)
    encoder = tiny_encoder()
    evolve(encoder, make_strategy("domain-adapters", learning_rate=1e-12), new_pairs(), known=known_pairs())
    np.testing.assert_allclose(
        encoder.image_features(BROUGHT, NEW), encoder.image_features(BROUGHT), atol=1e-5
    )


@pytest.mark.parametrize("name", ["visibility", "displacement"])
def test_the_terms_are_in_the_report(name: str) -> None:
    report = evolve(tiny_encoder(), make_strategy("domain-adapters"), new_pairs(), known=known_pairs())
    assert name in report.history[-1]


def test_where_trunk_features_are_kept_a_head_learns_without_a_picture() -> None:
    encoder = photo_encoder().copy()
    base = photo_encoder()
    report = evolve(encoder, make_strategy("domain-adapters", epochs=1), new_pairs(), known=known_pairs())
    assert report.image_forwards == 0
    assert [insert.kind for insert in encoder.inserts] == ["feature-head"]
    assert encoder.trunk_fingerprint(NEW) == base.trunk_fingerprint()
    assert encoder.image_fingerprint(NEW) != base.image_fingerprint() == encoder.image_fingerprint()
    assert encoder.text_fingerprint("en") == base.text_fingerprint("en")


def test_remembered_pictures_of_a_domain_have_their_routes_features_and_the_bases_trunk() -> None:
    encoder = taught()
    context = replace(context_for(encoder, known_pairs()), open_known=new_pairs, load_image=draw)
    memory = data_for(make_strategy("domain-adapters"), context).memory
    np.testing.assert_allclose(memory.trunk.numpy(), encoder.trunk_features(BROUGHT), atol=1e-5)
    np.testing.assert_allclose(memory.image_features.numpy(), encoder.image_features(BROUGHT, NEW), atol=1e-5)
    assert not np.allclose(memory.trunk.numpy(), memory.image_features.numpy(), atol=1e-3)


@pytest.mark.parametrize(("pairs", "epochs"), [(0, 22), (900, 22), (4000, 15), (10**6, 5)])
def test_a_large_chunk_takes_fewer_epochs_in_a_tower(pairs: int, epochs: int) -> None:
    assert defaults_for(tiny_encoder(), pairs).epochs == epochs
