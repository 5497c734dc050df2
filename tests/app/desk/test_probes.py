"""The built-in checks: nothing that a person reads counts or measures by them before they are asked for."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.desk import Desk
from app.desk.health import Status
from app.desk.hits import SearchRequest
from app.desk.probes import DOMAIN, is_probes
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.local.at_home import AtHome
from app.query.known_queries import known_queries
from tests.app.server.served import served
from tests.app.small_home import PICTURES, copy_of, new_home, small_home


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A home with nothing but what making it drew, and one upload that nobody taught."""
    with AtHome(load_settings(home=small_home(tmp_path_factory)), by="tests") as desk:
        yield desk


def test_counts_and_lists_are_of_what_a_person_brought(new: Desk) -> None:
    found, every = new.status(), new.status(probes=True)
    assert (found.counts["pairs"], found.counts["chunks"]) == (2 * PICTURES, 1)
    assert every.counts["pairs"] == 2 * PICTURES + 400
    assert [chunk.name for chunk in found.chunks] == ["german.zip"]
    assert [chunk.name for chunk in every.chunks] == ["german.zip", "built-in checks"]
    assert new.chunks() == list(found.chunks)
    assert new.chunks(probes=True) == list(every.chunks)


def test_no_recall_is_shown_that_is_not_of_a_persons_own_pictures(new: Desk) -> None:
    assert _domains(new.status()) == set()
    assert _domains(new.status(probes=True)) == {DOMAIN}
    answer = new.search(SearchRequest(text="a red boat"))
    assert (answer.language, answer.recalls) == ("en", {})
    assert [one.recall for one in new.choices().learned] == [None]
    assert new.evaluate().slices == ()
    assert {one.domain for one in new.evaluate(probes=True).slices} == {DOMAIN}
    compared = new.compare("a red boat", "r1", "r2")
    assert compared.slices == {"a": (), "b": ()}
    assert new.difference("r1", "r2").slices == ()


def test_the_quality_of_a_new_home_is_that_of_no_picture(new: Desk) -> None:
    found, every = new.quality(), new.quality(probes=True)
    assert (found.table.lines, found.table.forgetting) == ((), None)
    assert {one.domain for one in every.table.lines} == {DOMAIN}
    assert DOMAIN not in {one.domain for one in found.coverage}
    assert DOMAIN in {one.domain for one in every.coverage}


def test_releases_are_compared_by_no_caption_of_the_built_in_checks(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with Workspace.open(load_settings(home=small_home(tmp_path_factory)), read_only=True) as workspace:
        first, second = (workspace.releases.release(name) for name in ("r1", "r2"))
        assert known_queries(workspace, first, second) == []


def test_a_home_of_an_earlier_release_has_them_under_their_name_of_then(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = Path(shutil.copytree(small_home(tmp_path_factory), tmp_path / "home"))
    with sqlite3.connect(home / "catalog.sqlite") as catalog:
        catalog.execute("UPDATE chunks SET name = 'probe slices' WHERE name = 'built-in checks'")
    with AtHome(load_settings(home=home), by="tests") as desk:
        assert [is_probes(chunk) for chunk in desk.chunks(probes=True)] == [False, True]
        assert len(desk.chunks()) == 1


def test_metrics_are_of_a_persons_own_pictures(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = copy_of(new_home(tmp_path_factory), tmp_path)
    with served(load_settings(home=home, jobs="elsewhere")) as running:
        text = running.serving.metrics.text().decode()
    assert 'domain="probes"' not in text
    assert "perennial_chunks{" not in text


def _domains(found: Status) -> set[str]:
    assert found.live is not None
    return {one.domain for one in found.live.slices}
