"""Options of strategies: read from text and JSON, and refused with a sentence."""

from typing import Any

import pytest

from model_updates.errors import BadStrategyOption
from model_updates.options import options_of
from model_updates.strategies import STRATEGIES
from model_updates.strategy import Schedule


def test_an_unknown_option_is_told_the_known_ones() -> None:
    with pytest.raises(BadStrategyOption, match="'teir' has no option 'lamda'; it has: epochs"):
        options_of(STRATEGIES["teir"], {"lamda": 1})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"epochs": "3"}, 3),
        ({"epochs": 3.0}, 3),
        ({"learning_rate": "1e-3"}, 1e-3),
        ({"learning_rate": 1}, 1.0),
        ({"initialise": "no"}, False),
        ({"initialise": False}, False),
        ({"apply_to": " update "}, "update"),
    ],
)
def test_options_are_read_from_text_and_json(given: dict[str, Any], expected: object) -> None:
    options = options_of(STRATEGIES["teir"], given)
    (name,) = given
    value = getattr(options, name)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("teir", {"epochs": "many"}, "epochs must be a number"),
        ("teir", {"epochs": 2.5}, "epochs must be a whole number"),
        ("teir", {"epochs": None}, "epochs must be a number"),
        ("teir", {"epochs": -1}, "epochs is not negative"),
        ("teir", {"batch_size": 1}, "batch_size is at least 2"),
        ("teir", {"learning_rate": "nan"}, "finite"),
        ("teir", {"learning_rate": -1}, "not negative"),
        ("teir", {"weight_decay": -1}, "not negative"),
        ("teir", {"initialise": "perhaps"}, "yes or no"),
        ("teir", {"apply_to": "both"}, "'grad' or 'update'"),
        ("teir", {"apply_to": 3}, "is a word"),
        ("teir", {"vocabulary": 512}, "512 byte symbols"),
        ("cll-clip", {"cross_modal": 0, "cross_lingual": 0}, "at least one is above zero"),
        ("finetune", {"epochs": -1}, "epochs is at least 1"),
        ("c-clip", {"towers": "text"}, "'auto', 'both' or 'image'"),
        ("c-clip", {"targets": "all"}, "targets is 'qkvo"),
        ("c-clip", {"merge": -0.1}, "merge is at least 0 and at most 1"),
        ("c-clip", {"rank": 0}, "rank is at least 1"),
        ("c-clip", {"dropout": 1}, "dropout is at least 0 and below 1"),
        ("c-clip", {"text_rate": -1}, "not negative"),
    ],
)
def test_unusable_options_are_refused_with_a_sentence(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        options_of(STRATEGIES[name], given)


def test_an_unknown_decay_is_refused() -> None:
    with pytest.raises(BadStrategyOption, match="'constant' or 'cosine'"):
        Schedule(decay="linear")


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        (
            "mas",
            {"strength": -1},
            "strength is not negative",
        ),  # its base says so, and it sets another default
        ("l2p", {"top": 7, "pool": 6}, "top is at most pool"),
        ("evergreen", {"batch_size": 1}, "batch_size is at least 2, or 0 for the default"),
        ("domain-adapters", {"displacement": -0.5}, "displacement is not negative, or -1 for the default"),
        ("finetune+er", {"memory_share": 0, "epochs": 3}, "memory_share is above 0"),
        ("teir+der", {"features": "all"}, "'end' or 'insertion'"),
    ],
)
def test_rules_of_bases_and_of_joined_options_hold(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        options_of(STRATEGIES[name], given)
    assert options_of(STRATEGIES["domain-adapters"], {"displacement": -1}).displacement == -1
