"""Claims about `capacity`: what it says for people and for machines, and what it refuses."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from app.commands import cli
from index.capacity import engines


def _said(*words: str) -> str:
    done = CliRunner().invoke(cli.app, ["capacity", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_each_engine_has_a_line_and_what_perennial_does_not_search_by_is_marked() -> None:
    said = _said("--pictures", "1e9", "--qps", "1000")
    assert said.startswith("1,000,000,000 pictures of 512 numbers, 1000 queries a second")
    for engine in engines():
        line = next(line for line in said.splitlines() if line.strip().startswith(engine.name))
        assert ("not yet" in line) == (not engine.is_offered)
    assert "too large for one" in said
    assert "too large for one" not in _said("--pictures", "2e6")


def test_machines_are_told_the_same_in_numbers() -> None:
    document = json.loads(_said("--pictures", "3.6e6", "--embedding", "100", "--price", "0.5", "--json"))
    assert document["embedding_hours"] == pytest.approx(100)
    assert document["embedding_price"] == pytest.approx(50)
    listed = {one["engine"]: one for one in document["engines"]}
    for engine in engines():
        assert listed[engine.name]["memory"] == pytest.approx(engine.need(3.6e6, 512).memory)
        assert listed[engine.name]["source"] == engine.source


@pytest.mark.parametrize("said", ["nan", "0", "-5", "many", "1e308", "1e999"])
def test_what_is_no_number_of_pictures_is_refused_in_a_sentence(said: str) -> None:
    done = CliRunner().invoke(cli.app, ["capacity", "--pictures", said])
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output
