"""Evergreen: what a chunk brings decides what is taught; no other route changes."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model_updates.batches import gather
from model_updates.encoder import Encoder
from model_updates.features import NoCache
from model_updates.pairs import TrainingPair
from model_updates.strategies.evergreen import Evergreen
from model_updates.strategy import Tolerance, UpdateContext
from model_updates.trainer import run_update
from tests.model_updates.domains import KNOWN_IDS, NEW, NEW_IDS, evolve, known_pairs, new_pairs
from tests.model_updates.tiny import (
    DOMAIN,
    ENGLISH_TEXTS,
    assert_same_state,
    context_for,
    draw,
    make_strategy,
    tiny_encoder,
    toy_pairs,
)

KNOWN = [draw(image_id) for image_id in KNOWN_IDS]
BROUGHT = [draw(image_id) for image_id in NEW_IDS]
WITH_WORDS = [replace(pair, text="a zebrafinch " + pair.text) for pair in new_pairs(domain=DOMAIN)]
BOTH = [*new_pairs("en"), *new_pairs("de")]


def parts_of(notes: Sequence[str]) -> list[str]:
    return sorted({note.partition(":")[0] for note in notes})


@pytest.mark.parametrize(
    ("pairs", "parts"),
    [
        (new_pairs("de"), ["language-tables"]),
        (new_pairs("en"), ["domain-adapters"]),
        (BOTH, ["domain-adapters", "language-tables"]),
        (WITH_WORDS, ["new-words"]),
        ([*WITH_WORDS, *new_pairs()], ["domain-adapters", "new-words"]),
        (new_pairs(domain=DOMAIN), ["domain-adapters"]),
    ],
    ids=["a language", "a domain", "both", "words", "words and a domain", "nothing new"],
)
def test_what_a_chunk_brings_decides(pairs: list[TrainingPair], parts: list[str]) -> None:
    report = evolve(tiny_encoder(), make_strategy("evergreen"), pairs, known=toy_pairs("en"))
    assert parts_of(report.notes) == parts


@pytest.mark.parametrize(
    ("pairs", "moved"),
    [
        (new_pairs("de"), frozenset[str]()),
        (new_pairs("en"), {NEW}),
        (BOTH, {NEW}),
        (WITH_WORDS, frozenset[str]()),
    ],
    ids=["a language", "a domain", "both", "words"],
)
def test_what_is_foreseen_is_what_is_then_prepared_and_changes_nothing(
    pairs: list[TrainingPair], moved: Collection[str]
) -> None:
    encoder = tiny_encoder()
    context = replace(
        context_for(encoder, pairs),
        learned_domains=frozenset({DOMAIN}),
        load_image=draw,
        open_known=lambda: toy_pairs("en"),
    )
    strategy, state = Evergreen(), {name: value.clone() for name, value in encoder.state().items()}
    foreseen = strategy.foreseen(context)
    assert_same_state(encoder.state(), state)
    assert (foreseen.moves_pictures, foreseen.domains) == (bool(moved), moved)
    prepared = Evergreen()
    prepared.before_update(context)
    assert prepared.schedule(encoder).epochs == foreseen.epochs
    assert ("image" in prepared.touches, prepared.reads_pictures) == (
        foreseen.moves_pictures,
        foreseen.reads_pictures,
    )


@pytest.mark.parametrize(
    ("pairs", "tolerance"),
    [(new_pairs("de"), Tolerance()), (new_pairs("en"), Tolerance(2, 2)), (BOTH, Tolerance(2, 2))],
    ids=["a language", "a domain", "both"],
)
def test_an_update_of_a_domain_tolerates_a_later_epoch_than_one_of_a_language(
    pairs: list[TrainingPair], tolerance: Tolerance
) -> None:
    encoder = tiny_encoder()
    strategy = Evergreen()
    known = toy_pairs("en")
    context = replace(
        context_for(encoder, pairs),
        learned_domains=frozenset({DOMAIN}),
        load_image=draw,
        open_known=lambda: known,
    )
    strategy.before_update(context)
    assert strategy.schedule(encoder).tolerance == tolerance


def grown() -> Encoder:
    """An encoder with a language and a domain of its own."""
    encoder = tiny_encoder()
    evolve(encoder, make_strategy("evergreen"), BOTH, known=known_pairs())
    return encoder


def test_both_at_once_leave_everything_known_bit_identical() -> None:
    before, after = tiny_encoder(), grown()
    assert after.image_routes == (NEW,)
    for route in ("", DOMAIN):
        assert after.image_fingerprint(route) == before.image_fingerprint(route)
        assert np.array_equal(after.image_features(KNOWN, route), before.image_features(KNOWN, route))
    for language in ("en", "fr"):
        assert after.text_fingerprint(language) == before.text_fingerprint(language)
        assert np.array_equal(
            after.text_features(ENGLISH_TEXTS, language), before.text_features(ENGLISH_TEXTS, language)
        )
    assert after.text_fingerprint("de") != before.text_fingerprint("de")
    assert after.image_fingerprint(NEW) != before.image_fingerprint(NEW)


def test_more_of_what_is_known_moves_its_own_routes_alone() -> None:
    encoder = grown()
    told = {language: encoder.text_fingerprint(language) for language in ("en", "de")}
    seen = {route: encoder.image_fingerprint(route) for route in ("", NEW)}
    evolve(
        encoder,
        make_strategy("evergreen"),
        WITH_WORDS,
        known=[*known_pairs(), *new_pairs()],
        languages=("en", "de"),
        domains=(DOMAIN, NEW),
    )
    assert {route: encoder.image_fingerprint(route) for route in seen} == seen
    assert encoder.text_fingerprint("de") == told["de"]
    assert encoder.text_fingerprint("en") != told["en"]


def test_a_new_language_teaches_known_captions_only_of_new_domains() -> None:
    strategy = make_strategy("evergreen")
    pairs = [*new_pairs("de"), *new_pairs("en"), *known_pairs("en")]
    assert strategy.taught(pairs, {"en"}, {DOMAIN}) == [*new_pairs("de"), *new_pairs("en")]
    assert strategy.taught(pairs, {"en"}, {DOMAIN, NEW}) == new_pairs("de")
    assert strategy.taught(new_pairs("en"), {"en"}, {NEW}) == new_pairs("en")


def test_one_part_is_what_it_is_alone() -> None:
    alone, composed = tiny_encoder(), tiny_encoder()
    evolve(alone, make_strategy("domain-adapters"), new_pairs(), known=known_pairs())
    evolve(composed, make_strategy("evergreen"), new_pairs(), known=known_pairs())
    assert_same_state(alone.state(), composed.state())


def test_an_interrupted_update_ends_at_the_same_weights(tmp_path: Path) -> None:
    whole, resumed = tiny_encoder(), tiny_encoder()
    run(whole, tmp_path / "one")
    with pytest.raises(KeyboardInterrupt):
        run(resumed, tmp_path / "two", stop_after=1)
    resumed = tiny_encoder()
    run(resumed, tmp_path / "two")
    assert_same_state(whole.state(), resumed.state())


def run(encoder: Encoder, checkpoints: Path, stop_after: int | None = None) -> None:
    """One update in both parts, broken off at the start of an epoch when asked."""
    strategy = make_strategy("evergreen", epochs=3)
    context: UpdateContext = replace(
        context_for(encoder, BOTH),
        learned_domains=frozenset({DOMAIN}),
        open_known=known_pairs,
        load_image=draw,
    )

    def stop(progress: object) -> None:
        if stop_after is not None and getattr(progress, "epoch") > stop_after:  # noqa: B009
            raise KeyboardInterrupt

    run_update(
        strategy,
        context,
        lambda frozen: gather(BOTH, (), strategy=strategy, context=frozen, load_image=draw, cache=NoCache()),
        checkpoints=checkpoints,
        progress=stop,
    )


def test_nothing_that_update_after_update_leaves_in_an_encoder_serves_nobody() -> None:
    """So nothing has to be cleared away: an insert takes the place of the one before, and each row is some token's."""
    encoder, known = grown(), [*known_pairs(), *new_pairs()]
    for strategy, pairs in [
        ("evergreen", WITH_WORDS),
        ("language-tables", [replace(pair, text=pair.text + " und eulen") for pair in new_pairs("de")]),
        ("evergreen", [replace(pair, text="eulen " + pair.text) for pair in BOTH]),
        ("domain-adapters", new_pairs()),
        ("ridge-heads", new_pairs()),
        ("domain-adapters", new_pairs()),
    ]:
        evolve(
            encoder,
            make_strategy(strategy),
            pairs,
            known=known,
            languages=("en", "de"),
            domains=(DOMAIN, NEW),
        )
        assert encoder.vocabulary is not None
        vocabulary = encoder.vocabulary
        of_tokens = [vocabulary.segmentation(table)[1] for table in vocabulary.tables]
        of_tokens.append(np.asarray([vocabulary.pad_row]))
        assert np.array_equal(np.unique(np.concatenate(of_tokens)), np.arange(vocabulary.size))
        for left_out in encoder.inserts:
            fewer = encoder.around(encoder.model, [one for one in encoder.inserts if one is not left_out])
            seen, without = (each.image_features(BROUGHT, left_out.owner.name) for each in (encoder, fewer))
            assert left_out.tower == "router" or not np.array_equal(seen, without)
        assert sum(left_out.tower == "router" for left_out in encoder.inserts) <= 1
