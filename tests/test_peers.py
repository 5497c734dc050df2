"""docs/peers.md says which test shows each feature: those tests exist, and one that did not run shows nothing."""

from __future__ import annotations

import ast

import pytest

from tests.claims import PAGE, TESTS, Claim, claims, not_shown


@pytest.fixture(scope="module")
def made() -> list[Claim]:
    return claims(PAGE.read_text(encoding="utf-8"))


def test_every_feature_is_shown_by_a_test_that_exists(made: list[Claim]) -> None:
    assert len(made) > 50
    for claim in made:
        assert claim.shown_by, f"{claim.feature}: no test is named"
        for test in claim.shown_by:
            file, name = test.split("::")
            tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
            names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert name in names, f"{claim.feature}: {file} has no {name}"


def test_what_perennial_has_in_part_says_what_is_missing(made: list[Claim]) -> None:
    parts = [claim for claim in made if not claim.is_whole]
    assert {claim.feature for claim in parts} >= {"translated query", "encoders leave"}
    assert all(len(claim.said) > 20 for claim in parts)


def test_a_tick_is_not_shown_by_a_test_that_did_not_pass() -> None:
    page = """
| | others | Perennial | shown by |
|---|---|---|---|
| search | ✘ | ✔ | `a/test_a.py::test_one` and `test_b.py::test_two` |
| flight | ✔ | ◐ on some days | `test_b.py::test_three` |
"""
    made = claims(page)
    assert [claim.feature for claim in made] == ["search", "flight"]
    assert not_shown(made, {"a/test_a.py::test_one", "test_b.py::test_two"}) == []
    (said,) = not_shown(made, {"a/test_a.py::test_one"})
    assert said.startswith("search: test_b.py::test_two did not pass")
