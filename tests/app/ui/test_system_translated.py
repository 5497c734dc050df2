"""Claims about the System tab in other languages: jobs, what the doctor finds, and settings."""

from __future__ import annotations

import ast
import re
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.desk.health import SUMMARY
from app.desk.jobs import UpdateRequest
from app.desk.operation import document_of
from app.doctor import examination, files, published, stores
from app.home.settings import Settings, described
from app.ui import system_words
from app.ui.words import Words
from ingest.records import JOB_STATES, JobRecord
from tests.app.server.served import make_home
from tests.app.ui.seen import LANGUAGES, WHEN, left, table

DONE = {
    "sentence": "Passed: All 3 pinned queries keep their answer. 4 pictures were embedded again.",
    "report": {"name": "Rejected", "new_pairs": 5, "held": 1, "rejected": 2},
}
MESSAGES = (
    "3 of 9 pictures embedded", "3 pictures read", "epoch 2 of 5, 30 pairs/s, 12 s left", "publishing the release",
    "checking generation g7", "making r2 live", "teaching chunk c1, 1 of 2", "checking live",
    "40 pairs to learn from, 4 to validate", "2 slices, captions by view: 9 own, 9 mixed",
)  # fmt: skip


def job(kind: str = "update", state: str = "running", **facts: Any) -> JobRecord:
    usual: dict[str, Any] = {
        "arguments": {},
        "progress": {},
        "result": {},
        "error": None,
        "pid": None,
        "created": WHEN,
    }
    ended = {"started": WHEN, "finished": "2026-11-21T11:12:00+00:00"}
    return JobRecord(id="j1", kind=kind, state=state, **usual | ended | facts)


JOBS = [
    *(job(kind) for kind in system_words.KINDS),
    *(job(state=state) for state in JOB_STATES),
    *(job(result={what: said}) for what, said in DONE.items()),
    *(job(progress={"message": message}) for message in MESSAGES),
    job(error="Its worker was stopped."),
    job(arguments={"why": "Rejected", "by": "Update"}),
]


@pytest.mark.parametrize("language", LANGUAGES)
def test_jobs_are_told_in_the_browsers_language_and_peoples_words_as_they_are(language: str) -> None:
    # `Rejected` is the name of an upload and somebody's reason here, `Update` somebody's name.
    names = ("j1", "Rejected", "Update")
    assert (
        left(language, table(system_words.JOB_HEADERS, partial(system_words.job_rows, JOBS)), *names) == set()
    )
    rows = system_words.job_rows(JOBS, Words(language))
    assert rows[-1][-2:] == ["Update", "Rejected"]
    assert any(row[-1].startswith("Rejected: ") for row in rows)


@pytest.mark.parametrize(("after", "english"), [("00:05", "5 s"), ("05:00", "5 min"), ("59:59", "59 min")])
def test_how_long_a_job_took_is_told_in_the_units_of_a_language(after: str, english: str) -> None:
    one = job(finished=f"2026-11-21T10:{after}+00:00")
    assert system_words.took(one) == english
    assert system_words.job_rows([one], Words("ja"))[0][4].endswith(("秒", "分"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_job_is_told_with_what_it_was_asked(language: str) -> None:
    request = UpdateRequest("c1", "teir", why="Rejected", by="Update")
    asked = asdict(request) | {"held": False, "every_byte": True, "held_why": "c2", "check": "c3"}
    one = job(arguments=asked | {"name": "c4", "source": "c5"}, error="Its worker was stopped.")
    names = (*(f"c{n}" for n in range(1, 6)), "teir", "Rejected", "Update")
    assert left(language, partial(system_words.job_view, one), *names) == set()
    assert {field.name for field in fields(UpdateRequest)} - {"options"} <= set(system_words.ARGUMENTS)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_doctor_finds_is_told_in_the_browsers_language(tmp_path: Path, language: str) -> None:
    settings = make_home(tmp_path)
    sound = document_of(examination.examine(settings))
    (settings.home / "x7").mkdir()
    quick = document_of(examination.examine(settings, every_byte=False))
    broken = {"level": "error", "check": "stores", "sentence": "Nothing is live.", "advice": ""}
    for found in (sound, quick, {"found": [broken]}):
        assert left(language, partial(system_words.examination_view, found), "x7") == set()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("said", [*SUMMARY.values(), ""])
def test_when_the_doctor_looked_is_told_in_the_browsers_language(said: str, language: str) -> None:
    looked = job("doctor", "succeeded", arguments={"every_byte": not said}, result={"sentence": said})
    looking = job("doctor", progress={"message": "orphan files"})
    for one in (looked, looking, job("doctor", "queued"), None):
        assert left(language, partial(system_words.examination_line, one)) == set()


COMPOSED = {
    "All 7 pictures are 7.",
    "One encoder made all live vectors, on 7 7.",
    "7 of 7 releases is as it was written.",
}
"""Sentences of the doctor of which a part is chosen; a real examination has them."""


def _doctors_sentences() -> set[str]:
    """Every sentence in the doctor's code, with a 7 for each value in it."""
    found = set()
    for module in (examination, files, published, stores):
        nodes = list(ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))))
        parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                values = [part.value if isinstance(part, ast.Constant) else 7 for part in node.values]
                found.add("".join(map(str, values)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
                found.add(node.value)
    filled = {re.sub(r"\{\w+\}", "7", text) for text in found}
    return {text for text in filled if text.endswith(".") and " " in text} - COMPOSED


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_of_the_doctor_has_another_in_each_language(language: str) -> None:
    sentences, said = _doctors_sentences(), Words(language).said
    assert len(sentences) > 30
    assert {text for text in sentences if said(text) == text} == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_setting_is_explained_in_the_browsers_language(language: str) -> None:
    own = described(Settings(home=Path("x"), port=1))
    values = {text for one in own for text in (one.name, one.value, one.default)} | {"docs/gate.md"}
    assert left(language, partial(system_words.settings_view, own), *values) == set()
