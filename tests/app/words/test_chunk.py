"""Claims about a chunk's checks in a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from app.words import chunk as chunk_words
from app.words.chunk import chunk_parts
from ingest.records import ChunkRecord
from tests.app.gate_reports import HOSTILE, chunk_with_findings


def shown(chunk: ChunkRecord, width: int = 250) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False)
    for part in chunk_parts(chunk):
        console.print(part)
    return out.getvalue()


def test_a_held_chunk_says_since_when_by_whom_and_why() -> None:
    text = shown(chunk_with_findings())
    assert (
        "Status: held (not used for training until somebody accepts it). By checks, 2026-11-21 15:01 UTC: row shift."
        in text
    )


def test_what_speaks_against_a_chunk_comes_first_with_figures_and_examples() -> None:
    text = shown(chunk_with_findings())
    order = [text.index(word) for word in ("HOLD  row shift", "UNKNOWN  mismatched", "repetition")]
    assert order == sorted(order)
    assert "offset 1" in text
    assert HOSTILE in text
    assert "aaaaaaaaaaaa" in text


@pytest.mark.parametrize(
    ("standing", "verbs"),
    [
        ("held", ["accept 0a1b2c3d4e5f", "withdraw 0a1b2c3d4e5f", "corrected chunk"]),
        ("new", ["update --chunk 0a1b2c3d4e5f", "withdraw"]),
        ("accepted", ["update --chunk 0a1b2c3d4e5f", "withdraw"]),
        ("rejected", ["gate JOB", "withdraw"]),
        ("withdrawn", ["add SOURCE"]),
    ],
)
def test_each_standing_says_what_can_be_done(standing: str, verbs: list[str]) -> None:
    steps = " ".join(chunk_words.next_steps(chunk_with_findings(standing)))
    assert [verb for verb in verbs if verb not in steps] == []


def test_a_chunk_without_checks_says_so_and_terminals_are_not_steered() -> None:
    chunk = ChunkRecord("0" * 12, "a\x1b[2Jb", "", True, 1, 1, 1, 1, {"de": 1}, {"x": 1}, {})
    text = shown(chunk)
    assert "No checks" in text
    assert "\x1b" not in text


def test_nothing_is_wider_than_the_terminal() -> None:
    assert max(map(len, shown(chunk_with_findings(), 80).splitlines())) <= 80


def test_what_the_checks_said_is_not_said_twice() -> None:
    chunk = chunk_with_findings()
    sentence = chunk_words.findings_of(chunk)[0].sentence
    assert "By checks, 2026-11-21 15:01 UTC: for what they found." in chunk_words.standing_sentence(
        replace(chunk, standing_why=f"{sentence} And more.")
    )
    assert [one.sentence for one in chunk_words.against(chunk)] == [sentence]
