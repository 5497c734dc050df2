"""Claims about many queries put to two releases: what counts as changed, and which queries are asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.errors import BadQuery
from app.desk.hits import Asked, Compared, Found, RankMove, SearchAnswer, Timing
from app.home.workspace import Workspace
from app.query.comparison import ask_all, change_of, mean_overlap, most_changed
from app.query.known_queries import known_queries
from ingest.pair import Split
from tests.app.server.served import add_held_out, make_home


def _answer(ids: str, language: str = "en") -> SearchAnswer:
    hits = tuple(Found(one, 0.5, rank) for rank, one in enumerate(ids, start=1))
    return SearchAnswer("r1", 1, "boat", language, (), "", Timing(0.004, 0.001), hits)


def _compared(a: str, b: str) -> Compared:
    both = dict.fromkeys(b + a)
    moves = tuple(RankMove(one, a.find(one) + 1 or None, b.find(one) + 1 or None) for one in both)
    common = len(set(a) & set(b)) / max(1, min(len(a), len(b)))
    return Compared(_answer(a), _answer(b, "de"), common, moves, {})


def test_a_change_says_what_is_common_which_is_first_and_how_far_pictures_moved() -> None:
    change = change_of(_compared("wxyz", "xwyq"))
    assert (change.overlap, change.same_first) == (0.75, False)
    assert change.moved == pytest.approx(2 / 3)  # w and x one place each, y none
    assert (change.read_a, change.read_b) == ("en", "de")
    assert change.seconds_a == pytest.approx(0.005)


def test_equal_and_empty_queries_are_asked_once_or_not_at_all() -> None:
    asked: list[str] = []

    def ask(query: str) -> Compared:
        asked.append(query)
        return _compared("ab", "ab")

    assert len(ask_all(ask, ["a boat", " ", "a  boat ", "a house"])) == 2
    assert asked == ["a boat", "a house"]


def test_a_query_that_is_refused_keeps_none_of_the_others_from_an_answer() -> None:
    def ask(query: str) -> Compared:
        if query == "bad":
            raise BadQuery("no")
        return _compared("ab", "ba")

    one, two = ask_all(ask, ["bad", "good"])
    assert (str(one.error), one.change) == ("no", None)
    assert two.change is not None
    assert mean_overlap([one, two]) == 1.0
    assert mean_overlap([one]) is None


def test_the_least_in_common_comes_first_and_what_stayed_is_left_out() -> None:
    pairs = {"same": ("ab", "ab"), "turned": ("ab", "ba"), "half": ("ab", "ac"), "all": ("ab", "cd")}
    asked = [Asked(name, change=change_of(_compared(*pair))) for name, pair in pairs.items()]
    assert [one.query for one in most_changed(asked, 9)] == ["all", "half", "turned"]
    assert [one.query for one in most_changed(asked, 1)] == ["all"]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(make_home(tmp_path)) as workspace:
        yield workspace


def test_known_queries_are_canaries_and_held_out_captions_of_both_languages(
    workspace: Workspace, tmp_path: Path
) -> None:
    add_held_out(workspace, tmp_path)
    workspace.catalog.set_pin("a pinned boat", "en", workspace.catalog.gallery_ids()[0])
    first, second = (workspace.releases.release(name) for name in ("r1", "r2"))
    queries = known_queries(workspace, first, second)
    held_out = {pair.text for pair in workspace.catalog.pairs(split=Split.TEST)}
    assert held_out
    assert queries[0] == "a pinned boat"
    assert set(queries[1:]) == held_out
    assert known_queries(workspace, first, second, most=2) == queries[:2]
