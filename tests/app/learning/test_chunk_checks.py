"""Judging a chunk before it teaches: the whole way from an upload to findings and standing."""

from __future__ import annotations

import csv
import io
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.desk.errors import ChunkHeld
from app.desk.jobs import Stage, UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.jobs import job_runner, requests
from app.learning import adding, held_pairs, update_cycle
from app.learning.chunk_checks import believed_chunks, check_again, check_chunk, judge
from app.learning.chunk_findings import (
    EXCHANGE,
    HELD_OUT,
    LANGUAGE,
    MATCH,
    MIXTURE,
    REPETITION,
    SHIFT,
    ChunkSlice,
    overlap_finding,
)
from app.learning.outcomes import say_nothing
from app.learning.yardstick import Yardstick
from ingest.findings import Finding, Outcome, findings_in
from ingest.intake import IntakeOptions, ingest_source
from ingest.pair import SliceKey, Split
from ingest.records import ChunkRecord
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk
from ingest.standing import Standing
from tests.app.commands.running import document
from tests.app.small_home import copy_of, small_home
from tests.model_updates.synthetic_pairs import pair_set, shuffled

PICTURES = 130
CHOSEN = [(scene, "flat", 7_000 + n) for n, scene in enumerate(list(scenes.all_scenes())[5::33][:PICTURES])]
Row = dict[str, str]
Damage = Callable[[list[Row]], None]


@pytest.fixture(scope="module")
def clean_upload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("uploads") / "english.zip"
    write_chunk(path, scenes=CHOSEN, languages=["en"])
    return path


@pytest.fixture(scope="module")
def german_upload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("uploads") / "german.zip"
    write_chunk(path, scenes=CHOSEN, languages=["de"])
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_home(tmp_path_factory)


def damaged(source: Path, place: Path, damage: Damage) -> Path:
    """Writes an upload again with other captions."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(place, "w") as new:
        rows = list(csv.DictReader(io.StringIO(old.read("captions.csv").decode())))
        damage(rows)
        table = io.StringIO(newline="")
        writer = csv.DictWriter(table, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        new.writestr("captions.csv", table.getvalue())
        for name in old.namelist():
            if name != "captions.csv":
                new.writestr(name, old.read(name))
    return place


def taken_in(home: Path, place: Path, source: Path) -> Path:
    """Returns a copy of a home that took an upload in."""
    copy = copy_of(home, place)
    with Workspace.open(load_settings(home=copy)) as workspace:
        adding.add_chunk(workspace, source, IntakeOptions(), by="test")
    return copy


def last_chunk(workspace: Workspace) -> str:
    return workspace.catalog.chunks()[-1].id


def told(home: Path) -> tuple[str, dict[str, Finding]]:
    """Returns where the last chunk of a home stands, and what its checks found."""
    with Workspace.open(load_settings(home=home), read_only=True) as workspace:
        record = workspace.catalog.chunk(last_chunk(workspace))
        assert {pair.image_id for pair in workspace.catalog.pairs(chunk=record.id)} <= set(
            workspace.catalog.gallery_ids()
        )
        return record.standing, {finding.check: finding for finding in findings_in(record.report)}


def chunks_of(home: Path) -> list[ChunkRecord]:
    with Workspace.open(load_settings(home=home), read_only=True) as workspace:
        return workspace.catalog.chunks()


@pytest.fixture(scope="module")
def clean(home: Path, clean_upload: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home not to be changed that took the clean upload in."""
    return taken_in(home, tmp_path_factory.mktemp("clean"), clean_upload)


@pytest.fixture(scope="module")
def exchanged_upload(clean_upload: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return damaged(clean_upload, tmp_path_factory.mktemp("uploads") / "some.zip", shuffle)


@pytest.fixture(scope="module")
def exchanged(home: Path, exchanged_upload: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home not to be changed that was told to take exchanged captions in."""
    copy = copy_of(home, tmp_path_factory.mktemp("exchanged"))
    # Whoever adds a chunk that waits for a person is told by the exit code.
    assert document("add", exchanged_upload, home=copy, code=4)["standing"] == "held"
    return copy


@pytest.fixture(scope="module")
def tagged_upload(clean_upload: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """English under the tag of Quechua."""

    def tag(rows: list[Row]) -> None:
        for row in rows:
            row["language"] = "qu"

    return damaged(clean_upload, tmp_path_factory.mktemp("uploads") / "tag.zip", tag)


@pytest.fixture(scope="module")
def tagged(home: Path, tagged_upload: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home not to be changed that took English under another tag in."""
    return taken_in(home, tmp_path_factory.mktemp("tagged"), tagged_upload)


def test_a_clean_chunk_is_accepted_with_numbers(clean: Path) -> None:
    standing, found = told(clean)
    assert standing == "new"
    assert {finding.outcome for finding in found.values()} == {Outcome.ACCEPT}
    assert {LANGUAGE, MATCH, SHIFT, REPETITION, HELD_OUT, EXCHANGE} <= found.keys()
    assert float(str(found[MATCH].figures["mismatched_share"])) < 0.1


# Whether from the first row on or from the middle; the first under -m slow, as tests/model_updates/trust has it, too.
@pytest.mark.parametrize("first", [pytest.param(0, marks=pytest.mark.slow), 50])
def test_a_slip_of_one_row_is_held_and_says_where(
    home: Path, clean_upload: Path, tmp_path: Path, first: int
) -> None:
    def slip(rows: list[Row]) -> None:
        captions = [row["caption"] for row in rows[first:]]
        for row, caption in zip(rows[first:], captions[-1:] + captions[:-1], strict=True):
            row["caption"] = caption

    upload = damaged(clean_upload, tmp_path / "slip.zip", slip)
    standing, found = told(taken_in(home, tmp_path, upload))
    assert standing == "held"
    assert found[SHIFT].outcome is Outcome.HOLD
    at = int(str(found[SHIFT].figures["first_pair"]))
    assert at == pytest.approx(first + 1, abs=3)
    assert f"moved by one row down from pair {at} (“{captions_of(upload)[at - 1]}”)" in found[SHIFT].sentence
    assert found[SHIFT].figures["rows"] == 1
    assert len(found[SHIFT].examples) == 12


def shuffle(rows: list[Row]) -> None:
    chosen = [rows[int(at)] for at in np.random.default_rng(0).permutation(len(rows))[: int(0.4 * len(rows))]]
    captions = [row["caption"] for row in chosen]
    for row, caption in zip(chosen, captions[1:] + captions[:1], strict=True):
        row["caption"] = caption


def captions_of(upload: Path) -> list[str]:
    with zipfile.ZipFile(upload) as archive:
        rows = csv.DictReader(io.StringIO(archive.read("captions.csv").decode()))
        return [row["caption"] for row in rows]


def test_shuffled_captions_are_held_with_their_pairs_and_the_exit_code_says_so(exchanged: Path) -> None:
    standing, found = told(exchanged)
    assert found[MATCH].outcome is Outcome.HOLD, found[MATCH]
    assert standing == "held"
    assert float(str(found[MATCH].figures["mismatched_share"])) == pytest.approx(0.4, abs=0.15)
    assert len(found[MATCH].examples) == 12


def test_a_chunk_whose_wrong_pairs_were_taken_out_is_checked_again_and_may_teach(
    exchanged: Path, clean_upload: Path, exchanged_upload: Path, tmp_path: Path
) -> None:
    right = dict(enumerate(captions_of(clean_upload)))
    wrong = {text for at, text in enumerate(captions_of(exchanged_upload)) if text != right[at]}
    with Workspace.open(load_settings(home=copy_of(exchanged, tmp_path))) as workspace:
        chunk = last_chunk(workspace)
        numbers = workspace.catalog.pair_numbers(
            chunk, [pair.image_id for pair in workspace.catalog.pairs(chunk=chunk)]
        )
        bad = [number for (_, _, text), number in numbers.items() if text in wrong]
        decided = held_pairs.decide(workspace, chunk, take_out=bad[:3], by="ada")
        job = requests.decision_job(workspace, decided, by="ada")
        again = held_pairs.decide(workspace, chunk, take_out=bad[3:5], by="ada")
        assert job is not None
        assert job == requests.decision_job(workspace, again, by="ada")  # one that waits sees both
        check_again(workspace, chunk)
        assert workspace.catalog.chunk(chunk).standing == "held"
        held_pairs.decide(workspace, chunk, take_out=bad[5:], by="ada")
        findings = check_again(workspace, chunk)
        assert [one.check for one in findings if one.outcome is Outcome.HOLD] == []
        record = workspace.catalog.chunk(chunk)
        assert (record.standing, record.standing_by) == ("new", "checks")
        assert list(findings_in(record.report)) == list(findings)
        workspace.catalog.set_standing(chunk, "held", by="ada", why="I want to look at it")
        check_again(workspace, chunk)
        assert workspace.catalog.chunk(chunk).standing == "held"  # a person's word stays


@pytest.fixture(scope="module")
def exchanged_folder(exchanged_upload: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uploads") / "some"
    with zipfile.ZipFile(exchanged_upload) as archive:
        archive.extractall(folder)
    return folder


def stopped(home: Path, source: Path, stage: str) -> None:
    """Takes an upload in, and is stopped when a stage begins."""

    def stop(told: Stage) -> None:
        if told.name == stage:
            raise KeyboardInterrupt

    with Workspace.open(load_settings(home=home)) as workspace, pytest.raises(KeyboardInterrupt):
        adding.add_chunk(workspace, source, IntakeOptions(), by="test", progress=stop)


# While the captions are judged; after the first part: in 50 and in 80 pairs no check can tell that some are exchanged.
@pytest.mark.parametrize(("stage", "standings"), [("check", ["held"]), ("embed", ["new", "new"])])
def test_a_folder_whose_checks_were_broken_off_is_judged_when_it_is_added_again(
    home: Path, exchanged_folder: Path, tmp_path: Path, stage: str, standings: list[str]
) -> None:
    copy = copy_of(home, tmp_path)
    before = len(chunks_of(copy))
    stopped(copy, exchanged_folder, stage)
    code = 4 if "held" in standings else 0
    document("add", exchanged_folder, home=copy, code=code)
    taken = chunks_of(copy)[before:]
    assert [one.standing for one in taken] == standings
    assert all(MATCH in {finding.check for finding in findings_in(one.report)} for one in taken)
    assert document("add", exchanged_folder, home=copy, code=code)["images_embedded"] == 0
    assert chunks_of(copy)[before:] == taken


def test_an_upload_whose_worker_died_while_it_was_judged_is_judged_by_the_next_and_teaches_nothing(
    home: Path, exchanged_upload: Path, tmp_path: Path
) -> None:
    settings = load_settings(home=copy_of(home, tmp_path))
    then = UpdateRequest(chunk="", strategy="evergreen", by="test")
    with Workspace.open(settings) as workspace:
        kept = ingest_source(exchanged_upload, catalog=workspace.catalog, blobs=workspace.blobs)
        sent = Path(shutil.copy(exchanged_upload, tmp_path))  # a job takes its file away
        job = requests.intake_job(settings, sent, IntakeOptions(), by="test", then=then)
        died = {"name": "check", "details": {"chunk": kept.chunk_id}}
        workspace.catalog.update_job(job.id, state="interrupted", progress=died)
    assert job_runner.run_job(settings, job.id) == 0
    standing, found = told(settings.home)
    assert (standing, found[MATCH].outcome) == ("held", Outcome.HOLD)
    with Workspace.open(settings, read_only=True) as workspace:
        result = workspace.catalog.job(job.id).result
    assert result["update"] is None
    assert "is held and teaches nothing yet" in result["update_refused"]


@pytest.mark.parametrize("said", ["new", "rejected"])  # by the gate of a release that judged no chunks
def test_a_chunk_that_nobody_judged_is_judged_before_it_teaches(
    home: Path, exchanged_upload: Path, tmp_path: Path, said: Standing
) -> None:
    copy = copy_of(home, tmp_path)
    stopped(copy, exchanged_upload, "check")
    with Workspace.open(load_settings(home=copy)) as workspace:
        workspace.catalog.set_standing(last_chunk(workspace), said, by="gate", why="nothing was learned")
        request = UpdateRequest(last_chunk(workspace), by="test")
        with pytest.raises(ChunkHeld, match="is held and teaches nothing yet"):
            update_cycle.update(workspace, request, scratch=tmp_path, progress=say_nothing)
    standing, found = told(copy)
    assert (standing, found[MATCH].outcome) == ("held", Outcome.HOLD)


def test_english_under_a_foreign_tag_is_held(tagged: Path) -> None:
    standing, found = told(tagged)
    assert standing == "held"
    assert found[LANGUAGE].outcome is Outcome.HOLD
    assert "look like en" in found[LANGUAGE].sentence


@pytest.mark.parametrize(("every", "standing"), [(8, "new"), (3, "held")])
def test_captions_in_another_language_are_listed_and_measure_nothing(
    home: Path, clean_upload: Path, german_upload: Path, tmp_path: Path, every: int, standing: str
) -> None:
    english = captions_of(clean_upload)

    def mix(rows: list[Row]) -> None:
        for row, caption in list(zip(rows, english, strict=True))[::every]:
            row["caption"] = caption

    with Workspace.open(load_settings(home=copy_of(home, tmp_path))) as workspace:
        upload = damaged(german_upload, tmp_path / "mixed.zip", mix)
        chunk = adding.add_chunk(workspace, upload, IntakeOptions(), by="test").report.chunk_id
        record = workspace.catalog.chunk(chunk)
        found = {finding.check: finding for finding in findings_in(record.report)}[MIXTURE]
        assert found.outcome is (Outcome.HOLD if standing == "held" else Outcome.ACCEPT)
        assert (found.figures["looks"], found.figures["captions"]) == ("en", len(english[::every]))
        assert {one.text for one in found.examples} <= set(english)
        assert record.standing == standing
        commit = workspace.releases.current()
        assert commit is not None
        live = workspace.releases.release(commit.release)
        slices = Yardstick(workspace, live, chunk).slices(
            ["en"], [key for key in workspace.catalog.slices(chunks=[chunk])]
        )
        measured = {text for one in slices if one.is_new for _, text in one.captions}
        held_out = {pair.text for pair in workspace.catalog.pairs(chunk=chunk, split=Split.TEST)}
        assert measured == held_out - set(english) != held_out


def test_few_different_captions_are_not_taken_for_many() -> None:
    """Class names on hundreds of pictures look like Tagalog or Zulu to a detector of sentences."""
    names = ["banana", "kamera", "lampa", "papaya", "salata", "mango"]
    pairs = replace(pair_set(300), texts=[names[n % len(names)] for n in range(300)])
    one = ChunkSlice(SliceKey("en", "shop"), pairs, [Split.TRAIN] * 300)
    found = {finding.check: finding for finding in judge(one, {})}[LANGUAGE]
    assert found.outcome is Outcome.UNKNOWN
    assert "6 different captions" in found.sentence


@pytest.mark.slow  # tests/model_updates/trust/test_other_language.py has it of the captions alone
def test_a_clean_chunk_of_german_is_not_mixed(home: Path, german_upload: Path, tmp_path: Path) -> None:
    _, found = told(taken_in(home, tmp_path, german_upload))
    assert MIXTURE not in found
    assert found[LANGUAGE].outcome is Outcome.ACCEPT


def test_a_word_of_a_person_outlives_the_same_upload(
    tagged: Path, tagged_upload: Path, tmp_path: Path
) -> None:
    with Workspace.open(load_settings(home=copy_of(tagged, tmp_path))) as workspace:
        chunk = last_chunk(workspace)
        workspace.catalog.set_standing(chunk, "accepted", by="a person", why="loan words")
        adding.add_chunk(workspace, tagged_upload, IntakeOptions(), by="test")
        assert workspace.catalog.chunk(chunk).standing == "accepted"
        assert check_chunk(workspace, chunk)


def test_captions_that_nobody_could_judge_speak_for_no_others(clean: Path, tmp_path: Path) -> None:
    """Else a chunk with exchanged captions, which passes where no check can tell, has others with them pass."""
    with Workspace.open(load_settings(home=copy_of(clean, tmp_path))) as workspace:
        catalog = workspace.catalog
        chunk = last_chunk(workspace)
        commit = workspace.releases.current()
        assert commit is not None
        live = workspace.releases.release(commit.release)
        assert chunk in believed_chunks(workspace, live)
        report = catalog.chunk(chunk).report
        unknown = [
            replace(one, outcome=Outcome.UNKNOWN) if one.check == MATCH else one
            for one in findings_in(report)
        ]
        catalog.set_report(chunk, {**report, "findings": [one.to_json() for one in unknown]})
        assert chunk not in believed_chunks(workspace, live)
        catalog.set_standing(chunk, "accepted", by="ada", why="I looked at all of them")
        assert chunk in believed_chunks(workspace, live)


def test_what_cannot_be_judged_is_said_to_be_not_judged() -> None:
    dim = replace(shuffled(pair_set(300, sees=0.25), 0.6)[0], beside=())
    found = {
        finding.check: finding
        for finding in judge(ChunkSlice(SliceKey("ta", "blob"), dim, [Split.TRAIN] * 300), {})
    }
    assert found[MATCH].outcome is Outcome.UNKNOWN
    assert found[MATCH].sentence.startswith("ta/blob: not judged.")


def test_twelve_pairs_say_what_it_would_take() -> None:
    pairs = pair_set(12, beside=True)
    one = ChunkSlice(SliceKey("qu", "drawn"), pairs, [Split.TRAIN] * 12)
    found = {finding.check: finding for finding in judge(one, {})}
    assert found[MATCH].outcome is Outcome.UNKNOWN
    assert "12 pairs are too few" in found[MATCH].sentence
    assert not {finding.outcome for finding in found.values()} & {Outcome.HOLD, Outcome.REJECT}


def test_known_pictures_are_counted() -> None:
    assert overlap_finding({"in_upload": 3}, 0) is None
    found = overlap_finding({"of_known": 7, "of_held_out": 4}, 2)
    assert found is not None
    assert found.outcome is Outcome.ACCEPT
    assert "4 of them of held-out ones" in found.sentence
