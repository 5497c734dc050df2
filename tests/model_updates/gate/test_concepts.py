"""Captions that name things: what the gate says when another style of the same things stands before them."""

from dataclasses import replace

import numpy as np

from model_updates.evaluation import SliceResult, View
from model_updates.gate.concepts import judge_concepts
from model_updates.gate.kept import OldSlice
from model_updates.gate.report import Policy
from tests.model_updates.gate.test_rules import ranks_with, slice_of

THINGS = 40


def sketches(right: float, other: float, *, view: View = View.MIXED, named: float = 1.0) -> SliceResult:
    """A slice whose captions name one of forty things, with the shares of their first ten."""
    plain = slice_of("en/sketch", ranks_with(0.5))
    count = len(plain.text_ranks)
    rng = np.random.default_rng(0)
    shares = np.clip(right + 0.1 * rng.standard_normal(THINGS), 0, 1)
    thing = np.arange(count) % THINGS
    concepts = np.column_stack([shares[thing], np.full(count, other), thing]).astype(np.float64)
    concepts[int(named * count) :] = np.nan
    return replace(plain, view=view, concepts=concepts)


def test_a_loss_of_things_is_for_a_person_and_says_what_stands_there() -> None:
    live, candidate = sketches(0.85, 0.0), sketches(0.55, 0.4)
    (rule,) = judge_concepts([OldSlice(candidate, live)], Policy(), 1)

    assert rule.verdict == "review"
    assert "Styles of the same things compete: 40 are of other domains, before 0" in rule.reasons[0]
    assert "A search in this domain alone" in rule.reasons[0]


def test_what_competes_and_shows_the_same_thing_is_no_loss() -> None:
    (rule,) = judge_concepts([OldSlice(sketches(0.85, 0.5), sketches(0.85, 0.0))], Policy(), 1)
    assert rule.verdict == "promote"
    (rule,) = judge_concepts([OldSlice(sketches(0.83, 0.1), sketches(0.85, 0.0))], Policy(), 1)
    assert rule.verdict == "promote"  # less than the policy allows


def test_captions_that_tell_single_pictures_apart_are_not_judged_by_things() -> None:
    pairs = [
        (sketches(0.2, 0.4, named=0.1), sketches(0.9, 0.0, named=0.1)),
        (sketches(0.2, 0.4, view=View.MEMORY), sketches(0.9, 0.0, view=View.MEMORY)),
        (sketches(0.9, 0.0), sketches(0.9, 0.0)),
    ]
    assert judge_concepts([OldSlice(*pair) for pair in pairs], Policy(), 1) == ()
