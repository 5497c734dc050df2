"""Queries on a snapshot, languages, comparison, and the swap."""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sqlalchemy import delete

from app.desk.errors import BadQuery, UnknownRelease
from app.desk.hits import AUTO, SearchAnswer
from app.home.durable import sha256_of
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.language.detection import UNDETERMINED, Reading, detect, handicaps, readings
from app.language.reading import Reader
from app.learning import adding, going_live
from app.learning.mending import mend
from app.query.finder import Finder
from app.query.parts import encode
from app.query.question import Question
from app.query.ranking import SHALLOWEST, ranked
from app.query.reading import read_query
from app.query.snapshot import LastTexts, LiveSnapshot, Snapshot
from index.generation import load_generation
from index.segment import forget_held
from index.writing import write_generation
from ingest.engines import writing
from ingest.intake import IntakeOptions
from ingest.samples import scenes
from ingest.schema import captions, chunk_captions, chunk_images, images
from model_updates.encoder import Encoder
from model_updates.language_profiles import base_profiles, table_of, taught_profiles
from model_updates.photo.weights import LANGUAGES
from model_updates.towers import resize_token_table, token_table
from tests.app.small_home import copy_of, sample_chunk, small_home
from tests.model_updates.photographs import photo_encoder
from tests.model_updates.tiny import tiny_encoder


@pytest.fixture
def settings(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))


@pytest.fixture
def workspace(settings: Settings) -> object:
    with Workspace.open(settings) as opened:
        yield opened


def find(workspace: Workspace, snapshot: Snapshot, text: str, k: int = 24, **asked: str) -> SearchAnswer:
    return Finder(workspace).find(snapshot, Question.of(text, k, **asked))


def test_an_english_caption_finds_its_picture_near_the_top(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)
    drawn = list(scenes.all_scenes())[::40][:40]

    found = 0
    for scene in drawn:
        answer = find(workspace, snapshot, scenes.caption(scene, "en"), k=10)
        captions = {c.text for hit in answer.hits for c in workspace.catalog.captions_of(hit.id)}
        found += any(scenes.caption(scene, "en", variant=n) in captions for n in range(3))

    # A random encoder finds 10 of 40 pictures in a quarter of the cases; 10 expected, 20 has odds below 1 in 1,000.
    assert found >= 30


def test_scores_fall_and_ranks_count_from_one(workspace: Workspace) -> None:
    answer = find(workspace, Snapshot.load(workspace), "two red boats", k=7)

    assert [hit.rank for hit in answer.hits] == list(range(1, 8))
    scores = [hit.score for hit in answer.hits if hit.score is not None]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 7
    assert answer.release == going_live.live_release(workspace)[1].id


def test_only_allowed_pictures_come_back(workspace: Workspace) -> None:
    allowed = set(workspace.catalog.gallery_ids()[:3])

    snapshot = Snapshot.load(workspace)
    query = encode(snapshot, Question.of("two red boats").terms, {}, AUTO)
    found = ranked(snapshot, query.vectors, query.readings, 10, snapshot.holding(allowed))

    assert {hit.id for hit in found} == allowed


@pytest.mark.parametrize(
    ("query", "says"), [("", "nothing to look for"), (" \n", "nothing"), ("\ud800", "not valid text")]
)
def test_a_query_that_cannot_be_searched_is_explained(workspace: Workspace, query: str, says: str) -> None:
    with pytest.raises(BadQuery, match=says):
        find(workspace, Snapshot.load(workspace), query)


def test_a_language_nobody_taught_is_answered_with_a_note(workspace: Workspace) -> None:
    answer = find(workspace, Snapshot.load(workspace), "barca rossa", language="it", k=3)

    assert len(answer.hits) == 3
    assert "it is not learned yet" in answer.note


def test_comparing_a_release_with_itself_moves_nothing(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)

    answer = Finder(workspace).compare(snapshot, snapshot, Question.of("two red boats", 5))

    assert answer.overlap == 1.0
    assert all(move.rank_a == move.rank_b for move in answer.moves)


def test_an_unknown_release_is_named(workspace: Workspace) -> None:
    with pytest.raises(UnknownRelease, match="r77"):
        Snapshot.load(workspace, "r77")


def test_the_server_swaps_to_a_new_commit_and_old_answers_stay_whole(
    workspace: Workspace, tmp_path: Path
) -> None:
    live = LiveSnapshot(workspace)
    before = live.current
    assert live.refresh() is False

    adding.add_chunk(
        workspace, sample_chunk(tmp_path / "x.zip", pictures=4, first=3), IntakeOptions(), by="t"
    )
    old_answer = find(workspace, before, "two red boats", k=100)
    read = before.texts.read(before.encoder, "two red boats", ("en",))

    assert live.refresh() is True
    assert live.current.commit == before.commit + 1
    assert len(live.current.generation) == len(before.generation) + 4
    shared = [one.generation.portions[0].segment for one in (before, live.current)]
    assert shared[0] is shared[1], "what is served already is not opened again"
    assert live.current.texts.read(live.current.encoder, "two red boats", ("en",)) is read, "nor read again"
    assert old_answer.release == before.release.id


def test_the_last_texts_are_known_by_what_reads_them() -> None:
    texts, encoder, other = LastTexts(most=8), tiny_encoder(), tiny_encoder(seed=1)
    first = texts.read(encoder, "a boat", ("en",))
    assert texts.read(encoder, "a boat", ("en",)) is first
    assert not np.array_equal(texts.read(other, "a boat", ("en",)), first)
    assert texts.read(encoder, "a boat", ("en", "de")).shape == (2, first.shape[1])
    for number in range(8):
        texts.read(encoder, str(number), ("en",))
    assert texts.read(encoder, "a boat", ("en",)) is not first, "no more are kept than the last ones"


def test_a_damaged_newer_release_is_not_served(workspace: Workspace, tmp_path: Path) -> None:
    live = LiveSnapshot(workspace)
    before = live.current
    outcome = adding.add_chunk(
        workspace, sample_chunk(tmp_path / "x.zip", pictures=4, first=3), IntakeOptions(), by="t"
    )
    assert outcome.commit is not None
    record = workspace.releases.release(outcome.commit.release)
    damaged = workspace.home.generations / record.generation / "index-2.faiss"
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.chmod(0o644)
    damaged.write_bytes(bytes(data))

    assert live.refresh() is False
    assert live.current is before
    assert live.problem is not None

    mend(workspace, by="t")
    assert live.refresh() is True
    assert live.problem is None
    assert len(live.current.generation) == len(before.generation) + 4


@pytest.mark.sqlite  # the commits are files
def test_where_the_commits_were_put_back_what_is_live_by_them_answers(
    workspace: Workspace, tmp_path: Path
) -> None:
    first = going_live.live_release(workspace)[1].id
    adding.add_chunk(
        workspace, sample_chunk(tmp_path / "x.zip", pictures=4, first=3), IntakeOptions(), by="t"
    )
    live = LiveSnapshot(workspace)
    grown, newest = live.current.release.id, max(workspace.home.commits.iterdir())
    assert grown != first
    newest.unlink()
    assert live.refresh() is True
    assert (live.current.release.id, live.problem) == (first, None)
    going_live.promote(workspace, grown, why="again", by="test", force=True)
    assert live.refresh() is True
    newest.unlink()
    # Another one gets the number of the commit that answers.
    workspace.releases.commit(first, parent=live.current.commit - 1, reason="promote", why="", by="test")
    assert newest.exists()
    assert live.refresh() is True
    assert live.current.release.id == first


@pytest.mark.sqlite  # the commits are files
def test_a_disk_that_fails_for_a_moment_is_no_lasting_problem(workspace: Workspace) -> None:
    live = LiveSnapshot(workspace)
    commits = workspace.home.commits
    hidden = commits.rename(commits.with_name("hidden"))
    assert live.refresh() is False
    assert live.problem is not None
    hidden.rename(commits)
    assert live.refresh() is False
    assert live.problem is None


def test_a_newer_release_that_cannot_be_read_for_a_moment_is_served_in_the_next(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveSnapshot(workspace)
    more = sample_chunk(tmp_path / "x.zip", pictures=4, first=3)
    commit = adding.add_chunk(workspace, more, IntakeOptions(), by="t").commit
    assert commit is not None
    forget_held()
    opened = Path.open
    failures = [OSError(errno.EMFILE, os.strerror(errno.EMFILE))]

    def failing_once(path: Path, *asked: Any, **named: Any) -> Any:
        if path.name == "index-2.faiss" and failures:
            raise failures.pop()
        return opened(path, *asked, **named)

    monkeypatch.setattr(Path, "open", failing_once)
    assert live.refresh() is False
    assert live.problem
    assert live.refresh() is True
    assert live.current.commit == commit.number


def test_a_release_whose_graph_cannot_be_opened_is_stepped_over(workspace: Workspace) -> None:
    before = LiveSnapshot(workspace).current
    staged = shutil.copytree(
        workspace.home.versions / before.release.version, workspace.home.staging / "unfit"
    )
    manifest = staged / "manifest.json"
    said = json.loads(manifest.read_text())
    for graph in staged.glob("search-text*.onnx"):
        graph.unlink()
        graph.write_bytes(b"no graph")
        said["files"][graph.name] = {"bytes": 8, "sha256": sha256_of(graph)}
    manifest.unlink()
    manifest.write_text(json.dumps(said))
    version = workspace.releases.publish_version(staged)
    parent = before.release
    release = workspace.releases.publish_release(parent.manifest.successor(parent.id, version=version))
    workspace.releases.commit(release, parent=before.commit, reason="promote", why="unfit", by="t")
    now = LiveSnapshot(workspace)
    assert now.current.release.id == parent.id
    assert now.problem


def test_a_query_in_no_learned_language_is_answered_with_a_note(workspace: Workspace) -> None:
    answer = find(workspace, Snapshot.load(workspace), "красная лодка", k=3)

    assert len(answer.hits) == 3
    assert answer.detected == ((UNDETERMINED, 1.0),)
    assert "none of the learned languages" in answer.note


def test_a_query_that_may_be_in_no_learned_language_is_answered_and_says_so(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)

    polish = find(workspace, snapshot, "czarny pies biegnie po mokrej trawie nad brzegiem rzeki", k=3)
    english = find(workspace, snapshot, "two red boats", k=3)

    assert len(polish.hits) == 3
    assert polish.note.startswith("This may be in none of the learned languages (en)")
    assert english.note == ""


@pytest.mark.parametrize(
    ("text", "told", "reading"),
    [
        ("दो कुत्ते समुद्र तट पर दौड़ते हैं", "hi", ["hi"]),
        ("ein rotes Boot", "de-AT", ["de"]),
        ("dva psi", "cs", ["cs"]),
        ("दो कुत्ते समुद्र तट पर दौड़ते हैं", AUTO, ["hi", "mr"]),
        ("két kutya fut a tengerparton a gyerekekkel", AUTO, ["hu"]),
        ("Dva psi běží po písečné pláži u moře", AUTO, ["cs"]),
        ("två hundar springer på stranden vid havet", AUTO, ["sv", "da"]),
        ("ಎರಡು ನಾಯಿಗಳು ಕಡಲತೀರದಲ್ಲಿ ಓಡುತ್ತಿವೆ", AUTO, ["kn"]),  # lingua does not know it; its letters say it
        ("Two dogs run on the beach.", AUTO, ["en"]),
        (
            "two dogs run समुद्र तट पर",
            AUTO,
            ["en", "hi", "mr"],
        ),  # words in other letters are judged by themselves
        ("كلبان يركضان on the sandy beach", AUTO, ["en"]),
        ("犬が浜辺を走る dogs", AUTO, ["ja"]),
        ("Zwei Hunde laufen am Strand", AUTO, ["de"]),
        ("兩條紅船", "zh-Hant", ["zh-TW"]),  # the same letters, not the same language alone
        ("兩條紅船", "zh-HK", ["zh-TW"]),
        ("两条红船", "zh-SG", ["zh"]),
    ],
)
def test_a_language_that_the_encoder_knows_untaught_is_read_in_it(
    workspace: Workspace, text: str, told: str, reading: list[str]
) -> None:
    encoder = photo_encoder()
    snapshot = replace(Snapshot.load(workspace), encoder=encoder, languages=LANGUAGES)

    assert {"hi", "cs", "kn"} < set(snapshot.untaught)
    assert not {"de", "en"} & set(snapshot.untaught)
    chosen, guesses, note = read_query(snapshot, text, told)

    assert [one.language for one in chosen] == reading
    assert guesses[0][0] == reading[0]
    untaught = [language for language in reading if language not in LANGUAGES]
    assert note.startswith("Nothing was taught in " + " and ".join(untaught)) is bool(untaught)
    if told == AUTO:
        lowered = handicaps(chosen, encoder.similarity_scale)
        measured = Reader(encoder, LANGUAGES, workspace.features)([text])[0]
        assert [language for language, _ in measured] == reading
        assert [value for _, value in measured] == pytest.approx(lowered, abs=1e-2)


def test_two_tags_of_one_language_are_each_read_by_their_own_table(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)
    words = {
        "pt": ["autocarro", "comboio", "telemóvel"],
        "pt-BR": ["ônibus", "trem", "celular"],
        "zh": ["红苹果", "笑脸", "猫和鱼"],
        "zh-Hant": ["紅蘋果", "笑臉", "貓和魚"],
    }
    encoder = workspace.open_encoder(snapshot.release.version)
    for tag, texts in words.items():
        encoder = with_own_table(encoder, tag, texts)
    taught = replace(snapshot, encoder=encoder, languages=("en", *words))

    for tag, texts in words.items():
        told = find(workspace, taught, texts[0], language=tag.lower(), k=5)
        found = find(workspace, taught, texts[0], k=5)
        assert told.language == tag
        assert found.detected[0][0] == tag
        assert tag in found.language.split(" + ")
    scores = {
        tag: find(workspace, taught, "celular", language=tag, k=1).hits[0].score for tag in ("pt", "pt-BR")
    }
    assert scores["pt"] != scores["pt-BR"]


def test_what_a_first_query_would_wait_for_is_ready_before_the_swap(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)

    assert snapshot.encoder.profiles
    made = table_of.cache_info().misses
    find(workspace, snapshot, "a red boat", k=1)
    assert table_of.cache_info().misses == made


def test_an_unsure_query_is_read_in_each_likely_language_and_fused_by_its_odds(
    workspace: Workspace,
) -> None:
    snapshot = Snapshot.load(workspace)
    encoder = with_german_table(workspace.open_encoder(snapshot.release.version))
    unsure = replace(snapshot, encoder=encoder, languages=("en", "de"))
    text = "taxi"
    chosen = readings(detect(text, unsure.languages, encoder.profiles), encoder.text_route)
    assert len(chosen) == 2, "choose a word that both languages may write"

    answer = find(workspace, unsure, text, k=5)

    ids = unsure.generation.ids
    vectors = unsure.generation.vectors(ids)
    lowered = handicaps(chosen, encoder.similarity_scale)
    cosines = np.stack([vectors @ encoder.encode_texts([text], reading.language)[0] for reading in chosen])
    tenth = np.sort(cosines, axis=1)[:, -10] / 2
    chances = np.exp(encoder.similarity_scale * np.asarray(lowered))
    each = np.exp(encoder.similarity_scale * (cosines - (tenth - tenth[0])[:, None]))
    scores = np.log(chances @ each / chances.sum()) / encoder.similarity_scale
    assert [hit.score for hit in answer.hits] == pytest.approx(np.sort(scores)[::-1][:5], abs=1e-5)
    assert answer.hits[0].id == ids[int(scores.argmax())]
    assert answer.language == " + ".join(reading.language for reading in chosen)
    assert "both were searched" in answer.note


def test_beside_an_older_catalog_what_that_does_not_know_is_hidden(
    workspace: Workspace,
) -> None:
    known = workspace.catalog.gallery_ids()
    assert workspace.catalog.gallery_size() == len(known)
    assert not {*known} & {*workspace.catalog.outside_gallery()}
    assert Snapshot.load(workspace).hidden == frozenset()
    with writing(workspace.catalog._engine) as connection:
        for table in (chunk_captions, captions, chunk_images):
            connection.execute(delete(table))
        connection.execute(delete(images).where(images.c.id.in_(known[:2])))
    assert Snapshot.load(workspace).hidden == {*known[:2]}


def test_deeper_answers_of_an_unsure_query_begin_like_shallow_ones(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)
    unsure = replace(
        snapshot,
        encoder=with_german_table(workspace.open_encoder(snapshot.release.version)),
        languages=("en", "de"),
    )
    whole = [hit.id for hit in find(workspace, unsure, "taxi", k=500).hits]
    assert sorted(whole) == sorted(unsure.generation.ids)
    for k in (1, 3, 10, 11, 24):
        assert [hit.id for hit in find(workspace, unsure, "taxi", k=k).hits] == whole[:k]
    query = encode(unsure, Question.of("taxi").terms, {}, AUTO)
    assert ranked(unsure, query.vectors, query.readings, 5, unsure.holding([])) == ()
    few, rows = whole[-3:], unsure.holding(whole[-3:])
    assert [hit.id for hit in ranked(unsure, query.vectors, query.readings, 5, rows)] == few


def test_what_every_reading_finds_near_is_ahead_of_what_one_finds_nearer(
    workspace: Workspace, tmp_path: Path
) -> None:
    # So many pictures lie a little nearer to each of two readings than the one that lies near both.
    many = SHALLOWEST + 20

    def at(one: float, other: float) -> NDArray[np.float32]:
        return np.asarray([one, other, np.sqrt(1 - one**2 - other**2)], dtype=np.float32)

    rows = [at(0.6, 0.6), *[at(0.61, 0)] * many, *[at(0, 0.61)] * many]
    ids = [f"{n:03d}" for n in range(len(rows))]
    write_generation(tmp_path / "near", fingerprint="f", ids=ids, vectors=np.stack(rows), mode="full")
    snapshot = Snapshot.load(workspace)
    near = replace(snapshot, generation=load_generation(tmp_path / "near"), hidden=frozenset())
    queries = np.eye(2, 3, dtype=np.float32)
    chosen = (Reading("en", 0.5), Reading("de", 0.5))

    found = ranked(near, queries, chosen, 1)

    assert snapshot.encoder.similarity_scale < 69, (
        "else half a chance is worth less than a hundredth of cosine"
    )
    assert [hit.id for hit in found] == ["000"]
    assert found[0].score == pytest.approx(0.6)


def with_german_table(encoder: Encoder) -> Encoder:
    """Returns a copy in which German has rows of its own, moved so that they say something else."""
    grown = with_own_table(encoder, "de", ["taxi", "zwei rote boote"])
    grown.profiles = base_profiles(["en", "de"])
    return grown


def with_own_table(encoder: Encoder, language: str, texts: list[str]) -> Encoder:
    """Returns a copy in which a language has rows of its own, drawn at random, and a profile of the texts."""
    grown = encoder.copy()
    assert grown.vocabulary is not None
    growth = grown.vocabulary.grow_table(language, [], texts)
    resize_token_table(grown.model, grown.vocabulary.size)
    table = token_table(grown.model)
    assert table is not None
    torch.manual_seed(len(grown.profiles))
    table.data[growth.new_rows] = torch.randn(len(growth.new_rows), table.shape[1]) * table.std()
    grown.profiles = taught_profiles(grown.profiles, {language: texts})
    return grown
