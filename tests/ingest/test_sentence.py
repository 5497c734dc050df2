"""Claims about sentences that keep their template and their values."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ingest.catalog import Catalog
from ingest.errors import BadOption, UnknownChunk
from ingest.sentence import Sentence, from_stored, joined, phrase, to_stored

HOSTILE = some.text(some.sampled_from("{}%\\\n*[]()<>`'\"!0:x\x1e \u2068a"), max_size=12)


@given(HOSTILE, HOSTILE)
def test_values_are_filled_in_without_being_interpreted(one: str, other: str) -> None:
    sentence = phrase("Chunk {chunk} of {name}, {chunk} again.", chunk=one, name=other)
    assert sentence == "Chunk " + one + " of " + other + ", " + one + " again."
    for copied in (
        from_stored(json.loads(json.dumps(to_stored(sentence)))),
        pickle.loads(pickle.dumps(sentence)),
        copy.deepcopy(sentence),
    ):
        assert copied == sentence
        assert (copied.template, copied.values) == (sentence.template, {"chunk": one, "name": other})


@given(some.lists(HOSTILE))
def test_joined_sentences_are_the_texts_after_one_another(texts: list[str]) -> None:
    sentences = [phrase("It is {what}.", what=text) for text in texts]
    assert joined(sentences, " · ") == " · ".join(sentences)
    assert joined(texts, "") == "".join(texts)


def test_a_sum_with_a_sentence_is_a_sentence() -> None:
    held = phrase("{count} held", count=3)
    for both in (held + "; " + held, "1 known; " + held):
        assert isinstance(both, Sentence)
        assert held in both.values.values()


def test_a_place_needs_a_value() -> None:
    with pytest.raises(KeyError):
        phrase("Chunk {chunk} is held.")


@pytest.mark.parametrize("kind", [BadOption, UnknownChunk, ValueError])
def test_the_text_of_an_error_is_the_sentence_that_it_was_raised_with(kind: type[Exception]) -> None:
    error = kind(phrase("Chunk {chunk} is held.", chunk="a1"))
    said = phrase("It waits: {why}", why=error)
    assert isinstance(said.values["why"], Sentence)
    assert said == "It waits: Chunk a1 is held."


@dataclass
class Record:
    sentence: str
    counts: dict[str, int]


def test_what_is_kept_keeps_its_sentences_and_plain_texts_of_old_stay_plain() -> None:
    record = Record(phrase("{count} held", count=3), {"de": 2})
    stored = json.loads(json.dumps(to_stored([asdict(record), "plain", None])))
    read = from_stored(stored)
    assert read == [{"sentence": "3 held", "counts": {"de": 2}}, "plain", None]
    assert read[0]["sentence"].values == {"count": 3}
    assert type(read[1]) is str


@pytest.mark.parametrize(
    "document",
    [
        {"$template": 3, "values": {}},
        {"$template": "{a}", "values": {}},
        {"$template": "{a}", "values": {"a": None}},
        {"$template": "{a}", "values": []},
    ],
)
def test_a_document_that_only_looks_like_a_sentence_stays_what_it_is(document: dict[str, Any]) -> None:
    assert from_stored(document) == document
    assert type(from_stored(document)) is dict


def test_the_catalog_keeps_the_sentences_of_a_job_and_programs_get_plain_english(tmp_path: Path) -> None:
    with Catalog.open(tmp_path / "catalog.sqlite", read_only=False) as catalog:
        job = catalog.add_job("update", {"why": "{held}"})
        why = phrase("Commit {number} is skipped.", number=3)
        catalog.update_job(job.id, state="failed", error=why, result={"sentence": why}, progress={})
        kept = catalog.job(job.id)
        assert (kept.error, kept.result, kept.arguments) == (why, {"sentence": why}, {"why": "{held}"})
        for sentence in (kept.error, kept.result["sentence"]):
            assert isinstance(sentence, Sentence)
            assert sentence.values == {"number": 3}
        assert json.dumps(kept.result) == '{"sentence": "Commit 3 is skipped."}'
        for plain in ("it failed", "\x1eit failed", ""):
            catalog.update_job(job.id, error=plain)
            assert catalog.job(job.id).error == plain
