"""Claims about the System tab in other languages: jobs, what the doctor finds, and settings."""

from __future__ import annotations

from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.desk.health import SUMMARY, IndexStatus
from app.desk.jobs import UpdateRequest
from app.desk.operation import stored_of
from app.doctor import examination
from app.home.settings import Settings, described
from app.ui import system_words
from app.ui.words import Words
from ingest.records import JOB_STATES, JobRecord
from ingest.sentence import joined, phrase
from tests.app.server.served import make_home
from tests.app.ui.seen import LANGUAGES, WHEN, left, table

DONE = {
    "sentence": joined(
        (
            phrase("Passed: {why}", why=phrase("All {count} pinned queries keep their answer.", count=3)),
            phrase("{count} pictures were embedded again.", count=4),
        )
    ),
    "report": {"name": "Rejected", "new_pairs": 5, "held": 1, "rejected": 2},
}
VIEWS = (phrase("{count} {view}", count=9, view=view) for view in ("own", "mixed"))
MESSAGES = (
    phrase("{count} of {all} pictures embedded", count=3, all=9),
    phrase("{count} pictures read", count=3),
    phrase("epoch {epoch} of {all}, {speed} pairs/s, {left} s left", epoch=2, all=5, speed=30, left=12),
    phrase("publishing the release"),
    phrase("checking generation {generation}", generation="g7"),
    phrase("making {release} live", release="r2"),
    phrase("teaching chunk {chunk}, {count} of {all}", chunk="c1", count=1, all=2),
    phrase("checking {name}", name="live"),
    phrase("{count} pairs to learn from, {validation} to validate", count=40, validation=4),
    phrase("{count} slices, captions by view: {views}", count=2, views=joined(VIEWS, ", ")),
)


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
    job(error=phrase("Its process was stopped.")),
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
    one = job(arguments=asked | {"name": "c4", "source": "c5"}, error=phrase("Its process was stopped."))
    names = (*(f"c{n}" for n in range(1, 6)), "teir", "Rejected", "Update")
    assert left(language, partial(system_words.job_view, one), *names) == set()
    assert {field.name for field in fields(UpdateRequest)} - {"options"} <= set(system_words.ARGUMENTS)


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What the doctor finds in a sound home, in one with a strange folder, and where nothing is live."""
    settings = make_home(tmp_path_factory.mktemp("examined"))
    sound = stored_of(examination.examine(settings))
    (settings.home / "x7").mkdir()
    quick = stored_of(examination.examine(settings, every_byte=False))
    broken = {"level": "error", "check": "stores", "sentence": "Nothing is live.", "advice": ""}
    return [sound, quick, {"found": [broken]}]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_doctor_finds_is_told_in_the_browsers_language(
    examined: list[dict[str, Any]], language: str
) -> None:
    for found in examined:
        assert left(language, partial(system_words.examination_view, found), "x7") == set()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("said", [*SUMMARY.values(), ""])
def test_when_the_doctor_looked_is_told_in_the_browsers_language(said: str, language: str) -> None:
    looked = job("doctor", "succeeded", arguments={"every_byte": not said}, result={"sentence": said})
    looking = job("doctor", progress={"message": "orphan files"})
    for one in (looked, looking, job("doctor", "queued"), None):
        assert left(language, partial(system_words.examination_line, one)) == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_setting_is_explained_in_the_browsers_language(language: str) -> None:
    own = described(Settings(home=Path("x"), port=1))
    values = {text for one in own for text in (one.name, one.value, one.default)}
    values |= {"docs/gate.md", "X-Forwarded-For", "X-Forwarded-Proto"}
    assert left(language, partial(system_words.settings_view, own), *values) == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_index_is_like_is_told_in_the_browsers_language(language: str) -> None:
    why = phrase("Fewer than {count} pictures are always compared in full.", count="10,000")
    for known in (0.5, None):
        found = IndexStatus("r7", "g7", "Flat", why, 96, 4, 5000, known, known, ())
        assert "4.0 %" in system_words.index_view(found)
        assert left(language, partial(system_words.index_view, found), "r7", "Flat", "ms", "kB") <= {
            "segments"
        }
