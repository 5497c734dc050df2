"""What a candidate is measured by: who earned it, in which views, and against which versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.desk.jobs import UpdateRequest
from app.home.releases import ReleaseRecord
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.language.reading import Reader
from app.learning import adding, going_live, publishing
from app.learning.judging import Taught, attempts, judge_taught
from app.learning.pairs import earlier_pairs, known_pairs
from app.learning.past import RECENT, chosen, past_results, side_of
from app.learning.yardstick import Yardstick, held_out, trusted_chunks, usable_chunks
from app.query.finder import Finder
from app.query.question import Question
from app.query.snapshot import Snapshot
from ingest.intake import IntakeOptions
from ingest.pair import SliceKey, Split
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk
from model_updates.encoder import Encoder
from model_updates.evaluation import View
from model_updates.gate.rules import Past
from model_updates.measurement import HeldOut, Measured, measure_views
from tests.app.home.publishing import damage
from tests.app.small_home import copy_of, sample_chunk, small_home

PROBES, SCENES = SliceKey("en", "probes"), SliceKey("en", "scenes")
GERMAN = SliceKey("de", "scenes")


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))) as opened:
        yield opened


def live(workspace: Workspace) -> ReleaseRecord:
    return going_live.live_release(workspace)[1]


def the_chunk(workspace: Workspace) -> str:
    return workspace.catalog.chunks()[-1].id


def teach_on_paper(workspace: Workspace, *chunks: str, version: str = "") -> ReleaseRecord:
    """Makes a release live that says it learned chunks."""
    commit, record = going_live.live_release(workspace)
    facts = record.manifest.successor(record.id, chunks=chunks, version=version or record.version)
    release = workspace.releases.publish_release(facts)
    workspace.releases.commit(release, parent=commit.number, reason="promote", why="", by="test")
    return live(workspace)


def changed_version(workspace: Workspace, seed: int) -> str:
    """Publishes the live encoder with its words mixed up."""
    record = live(workspace)
    encoder = workspace.open_encoder(record.version).copy()
    words = {k: v for k, v in encoder.state().items() if k.endswith("token_embedding.weight")}
    encoder.load_state({name: value.roll(seed, 0) for name, value in words.items()})
    facts = publishing.version_facts(workspace, strategy="mixed", languages=["en"], parent=record.version)
    return publishing.publish_version(workspace, encoder, facts | {"seed": seed}, {})


# ------------------------------------------------------------------------------------------------ who measures


def test_an_upload_measures_nothing_until_it_was_learned_or_accepted(workspace: Workspace) -> None:
    probes, chunk = (record.id for record in workspace.catalog.chunks())
    assert trusted_chunks(workspace, live(workspace)) == {probes}

    workspace.catalog.set_standing(chunk, "accepted", by="anna", why="checked by hand")
    assert trusted_chunks(workspace, live(workspace)) == {probes}, (
        "accepted for teaching is not for measuring"
    )
    workspace.catalog.set_standing(chunk, "accepted", by="anna", why="a clean set", measures=True)
    assert trusted_chunks(workspace, live(workspace)) == {probes, chunk}

    workspace.catalog.set_standing(chunk, "new", by="anna", why="", measures=False)
    learned = teach_on_paper(workspace, chunk)
    assert trusted_chunks(workspace, learned) == {probes, chunk}
    workspace.catalog.set_standing(chunk, "withdrawn", by="anna", why="wrong names")
    assert trusted_chunks(workspace, learned) == {probes}


def test_a_chunk_does_not_vouch_for_itself(workspace: Workspace) -> None:
    chunk = the_chunk(workspace)
    workspace.catalog.set_standing(chunk, "accepted", by="anna", why="a clean set", measures=True)
    assert SCENES in {one.key for one in Yardstick(workspace, live(workspace)).old({"en"})}
    slices = Yardstick(workspace, live(workspace), chunk).slices({"en"}, {SCENES})
    assert {one.view for one in slices if one.key == SCENES and one.is_new} == {View.OWN, View.MIXED}
    assert not [one for one in slices if one.key == SCENES and not one.is_new]


def test_a_rollback_takes_a_chunk_out_of_the_yardstick(workspace: Workspace) -> None:
    before = live(workspace).id
    chunk = the_chunk(workspace)
    teach_on_paper(workspace, chunk, version=changed_version(workspace, 1))
    assert SCENES in {one.key for one in Yardstick(workspace, live(workspace)).old({"en"})}
    going_live.rollback(workspace, before, why="", by="test")
    assert {one.key for one in Yardstick(workspace, live(workspace)).old({"en"})} == {PROBES}


def test_no_upload_passes_for_the_probes(workspace: Workspace, tmp_path: Path) -> None:
    source = sample_chunk(tmp_path / "more.zip", pictures=8, first=5)
    options = IntakeOptions(name="probe slices", in_gallery=False, domain="probes")
    forged = adding.add_chunk(workspace, source, options, by="mallory").report.chunk_id
    assert forged not in trusted_chunks(workspace, live(workspace))


def test_what_was_objected_to_stands_beside_nothing(workspace: Workspace) -> None:
    chunk, record = the_chunk(workspace), live(workspace)
    assert chunk in usable_chunks(workspace, record)
    assert "scenes" in {pair.domain for pair in known_pairs(workspace, record, ())}
    for standing in ("held", "rejected", "withdrawn"):
        workspace.catalog.set_standing(chunk, standing, by="test", why="wrong names")
        assert chunk not in usable_chunks(workspace, record)
        assert {pair.domain for pair in known_pairs(workspace, record, ())} == {"probes"}


def test_a_pictures_captions_in_other_languages_stay_known(workspace: Workspace) -> None:
    record = live(workspace)
    english = [pair for pair in known_pairs(workspace, record, ()) if pair.domain == "scenes"]
    german = [replace(pair, language="de", text="ein Haus") for pair in english]
    assert set(english) <= set(known_pairs(workspace, record, german))
    assert not set(english) & set(known_pairs(workspace, record, english))


def test_the_pairs_of_earlier_chunks_can_be_replayed(workspace: Workspace) -> None:
    assert earlier_pairs(workspace, live(workspace)) == ()
    record = teach_on_paper(workspace, the_chunk(workspace))
    earlier = earlier_pairs(workspace, record)
    assert {pair.language for pair in earlier} == {"en"}, "German has not been learned"
    assert not set(workspace.catalog.test_images("scenes")) & {pair.image_id for pair in earlier}
    assert earlier


# ------------------------------------------------------------------------------------------------- the views


def test_a_taught_chunk_is_measured_by_its_own_pairs_and_nothing_else_is_new(workspace: Workspace) -> None:
    chunk = the_chunk(workspace)
    slices = Yardstick(workspace, live(workspace), chunk).slices(["en"], [GERMAN])
    assert {one.measured for one in slices} == {
        Measured(PROBES),
        Measured(PROBES, View.MIXED),
        Measured(GERMAN, View.OWN, is_new=True),
        Measured(GERMAN, View.MIXED, is_new=True),
    }
    new = next(one for one in slices if one.measured == Measured(GERMAN, is_new=True))
    held = workspace.catalog.pairs(chunk=chunk, split=Split.TEST, language="de")
    assert set(new.captions) == {(pair.image_id, pair.text) for pair in held}
    assert set(new.gallery) == set(workspace.catalog.test_images("scenes", chunks=[chunk]))


def test_the_mixed_gallery_holds_everything_that_is_looked_for_and_the_gallery(workspace: Workspace) -> None:
    record = teach_on_paper(workspace, the_chunk(workspace))
    slices = Yardstick(workspace, record).old(["en"])
    memory = [one for one in slices if one.view is View.MEMORY]
    assert [one.key for one in memory] == [SCENES]
    trained = {pair.image_id for pair in workspace.catalog.pairs(split=Split.TRAIN, domain="scenes")}
    assert {image_id for image_id, _ in memory[0].captions} == trained
    galleries = {one.gallery for one in slices if one.view is not View.OWN and one.key != PROBES}
    assert len(galleries) == 1
    (gallery,) = galleries
    assert len(set(gallery)) == len(gallery)
    assert set(gallery) == {*workspace.catalog.gallery_ids(), *workspace.catalog.test_images("probes")}


def test_probes_that_nobody_can_find_stand_among_themselves(workspace: Workspace) -> None:
    record = teach_on_paper(workspace, the_chunk(workspace))
    mixed = [one for one in Yardstick(workspace, record).old(["en"]) if one.view is View.MIXED]
    (probes,) = [one for one in mixed if one.key == PROBES]
    assert set(probes.gallery) == set(workspace.catalog.test_images("probes"))
    assert any(set(probes.gallery) < set(one.gallery) for one in mixed)


def test_pairs_that_are_being_taught_are_no_memory(workspace: Workspace) -> None:
    record = teach_on_paper(workspace, the_chunk(workspace))
    slices = Yardstick(workspace, record, the_chunk(workspace)).slices(["en"], [])
    assert not [one for one in slices if one.view is View.MEMORY]


def test_pictures_with_the_same_caption_are_as_right_as_the_right_one(workspace: Workspace) -> None:
    record = teach_on_paper(workspace, the_chunk(workspace))
    captioned: dict[str, set[str]] = {}
    for pair in workspace.catalog.pairs(language="en"):
        captioned.setdefault(pair.text, set()).add(pair.image_id)
    for one in Yardstick(workspace, record).old(["en"]):
        if one.view is View.OWN:
            assert not one.neutral
            continue
        for number, (image_id, text) in enumerate(one.captions):
            found = {one.gallery[place] for place in one.neutral.get(number, ())}
            assert found == captioned[text] & set(one.gallery) - {image_id}


def test_another_style_of_the_same_things_is_measured_by_things(workspace: Workspace, tmp_path: Path) -> None:
    chosen = list(scenes.all_scenes())[::40][:40]
    drawn = [(scene, "ink", n) for n, scene in enumerate(chosen)]
    write_chunk(tmp_path / "ink.zip", scenes=drawn, languages=["en"], domain="sketch")
    old = the_chunk(workspace)
    adding.add_chunk(workspace, tmp_path / "ink.zip", IntakeOptions(), by="test")
    record = teach_on_paper(workspace, old, the_chunk(workspace))
    slices = Yardstick(workspace, record).old(("en",))
    (one,) = [s for s in slices if s.view is View.MIXED and s.key == SliceKey("en", "sketch")]

    assert {"sketch", "scenes"} <= set(one.domains)
    assert len(one.domains) == len(one.gallery)
    encoder, generation = (
        workspace.open_encoder(record.version),
        workspace.open_generation(record.generation),
    )
    side = side_of(workspace, encoder, record.manifest.languages, [one], generation)
    result = measure_views(side, [one], workspace.load_image, workspace.features)[one.measured]

    assert result.is_labelled  # each scene has a picture in both styles
    recalls = result.recalls()
    assert 0 <= recalls["concept_p10"] <= 100
    assert 0 < recalls["elsewhere_p10"] < 100


def test_what_a_chunk_says_of_its_pictures_is_a_claim_until_something_bears_it_out(
    workspace: Workspace, tmp_path: Path
) -> None:
    old = the_chunk(workspace)
    scene = list(scenes.all_scenes())[::40][:40]
    write_chunk(
        tmp_path / "ink.zip", scenes=[(one, "ink", 1) for one in scene], languages=["en"], domain="sketch"
    )
    adding.add_chunk(workspace, tmp_path / "ink.zip", IntakeOptions(), by="test")
    taught, record = the_chunk(workspace), teach_on_paper(workspace, old)
    ours = workspace.catalog.ids_where(chunks=[taught])

    def memory(borne_out: frozenset[str]) -> HeldOut:
        slices = Yardstick(workspace, record, taught, borne_out).old(["en"], views=[View.MEMORY])
        return next(one for one in slices if one.key == SCENES)

    def shown(one: HeldOut, places: Mapping[int, Sequence[int]]) -> set[str]:
        return {one.gallery[place] for some in places.values() for place in some}

    before = memory(frozenset())
    assert shown(before, before.claimed) & ours
    assert not shown(before, before.neutral) & ours
    alone = [before.things[before.gallery.index(image_id)] for image_id in ours]
    assert len({*alone}) == len(ours)  # each takes its place

    after = memory(frozenset(ours))
    said = {pair.image_id: pair.text for pair in workspace.catalog.pairs(language="en")}
    for number, (_, text) in enumerate(after.captions):
        claimed = {before.gallery[place] for place in before.claimed.get(number, ())}
        right = {after.gallery[place] for place in after.neutral.get(number, ())}
        # A group is stated as easily as a caption, and no copy is asked about it.
        assert right & ours == {one for one in claimed & ours if said[one] == text}
    number = next(n for n in after.neutral if shown(after, {n: after.neutral[n]}) & ours)
    twin = next(iter(shown(after, {number: after.neutral[number]}) & ours))
    image_id, text = after.captions[number]
    assert said[twin] == text
    assert after.things[after.gallery.index(twin)] == after.things[after.gallery.index(image_id)]


def test_a_caption_is_read_as_search_reads_it(workspace: Workspace) -> None:
    record = live(workspace)
    snapshot = Snapshot.load(workspace)
    encoder = workspace.open_encoder(record.version)
    slices = held_out(workspace, {"en"}, [the_chunk(workspace)])
    one = replace(slices[0], view=View.MIXED, gallery=tuple(workspace.catalog.gallery_ids()))
    side = side_of(workspace, encoder, record.manifest.languages, [one], snapshot.generation)
    result = measure_views(side, [one], workspace.load_image, workspace.features)[one.measured]
    finder = Finder(workspace)
    for (image_id, text), rank in zip(one.captions, result.text_ranks, strict=True):
        found = [hit.id for hit in finder.find(snapshot, Question.of(text, 500)).hits]
        assert found.index(image_id) == rank


def test_readings_are_kept_between_runs(workspace: Workspace) -> None:
    encoder = workspace.open_encoder(live(workspace).version)
    texts = ["a red boat", "ein rotes Boot", "???"]
    first = Reader(encoder, ["en", "de"], workspace.features)(texts)
    profiles, encoder.profiles = encoder.profiles, dict(encoder.profiles)
    again = Reader(encoder, ["en", "de"], workspace.features)(texts)
    assert again == first
    assert all(reading[0][1] == 0.0 for reading in first)
    encoder.profiles = profiles


def test_one_table_for_all_languages_asks_nobody_which_it_is(workspace: Workspace) -> None:
    encoder = workspace.open_encoder(live(workspace).version)
    texts = ["a red boat", "ein rotes Boot"]
    assert encoder.text_route("en") == encoder.text_route("de")
    # Told apart, the second would be read as German: by the same table, and after some time.
    assert Reader(encoder, ["en", "de"], workspace.features)(texts) == [(("en", 0.0),)] * 2


# ---------------------------------------------------------------------------------------------- high water


def everything(workspace: Workspace, record: ReleaseRecord) -> list[HeldOut]:
    return Yardstick(workspace, record).old(record.manifest.languages)


def test_every_version_that_was_live_and_ranks_otherwise_sets_the_high_water(workspace: Workspace) -> None:
    first = live(workspace).version
    second, third = changed_version(workspace, 1), changed_version(workspace, 2)
    teach_on_paper(workspace, version=second)
    record = teach_on_paper(workspace, version=third)
    past = water(workspace, record)
    assert {name for one in past.values() for name, _ in one.versions} == {first, second}
    assert Measured(PROBES) in past
    assert Measured(PROBES, View.MIXED) in past


def test_a_damaged_release_of_the_past_is_left_out(workspace: Workspace) -> None:
    first = live(workspace).version
    second, third = changed_version(workspace, 1), changed_version(workspace, 2)
    past = teach_on_paper(workspace, version=second)
    record = teach_on_paper(workspace, version=third)
    manifest = workspace.home.releases / past.id / "manifest.json"
    manifest.chmod(0o644)
    damage(manifest)
    assert {name for one in water(workspace, record).values() for name, _ in one.versions} == {first}


@pytest.mark.parametrize("count", [0, 1, RECENT, RECENT + 1, 12, 36, 64, 100, 1_000])
def test_of_many_versions_few_are_measured_and_one_of_every_age(count: int) -> None:
    places = chosen(count)
    assert places[:1] == [0][:count]
    assert set(range(max(0, count - RECENT), count)) <= set(places)
    ages = [count - place for place in places]
    doubling = [1 << n for n in range(2, count.bit_length() - 1)]
    assert all(any(age <= one < 2 * age for one in ages) for age in doubling)
    assert len(places) <= RECENT + max(1, count.bit_length() - 2)


def test_no_version_is_measured_again_that_was_left_out_before() -> None:
    # How it reads the texts that came meanwhile would have to be found out.
    for count in range(300):
        assert set(chosen(count + 1)) - set(chosen(count)) == {count}


def water(workspace: Workspace, record: ReleaseRecord) -> dict[Measured, Past]:
    slices = everything(workspace, record)
    encoder: Encoder = workspace.open_encoder(record.version)
    generation = workspace.open_generation(record.generation)
    side = side_of(workspace, encoder, record.manifest.languages, slices, generation)
    results = measure_views(side, slices, workspace.load_image, workspace.features)
    return past_results(workspace, slices, record, (side, results))


# ------------------------------------------------------------------------------------------------ the verdict


def test_an_upload_that_trained_nothing_changes_no_verdict(workspace: Workspace, tmp_path: Path) -> None:
    chunk, record = the_chunk(workspace), live(workspace)
    candidate = workspace.open_encoder(changed_version(workspace, 1))
    taught = Taught(chunk, {GERMAN: 30}, ("en", "de"))
    policy = workspace.settings.gate

    def rows() -> list[object]:
        report, _ = judge_taught(workspace, taught, candidate, live(workspace), policy)
        return [row for row in report.rows if row.view == "own"]

    before = rows()
    source = sample_chunk(tmp_path / "more.zip", pictures=30, first=7)
    adding.add_chunk(workspace, source, IntakeOptions(), by="test")
    assert rows() == before
    assert record.version == live(workspace).version


def test_candidates_held_against_one_version_are_counted(workspace: Workspace) -> None:
    version = live(workspace).version
    for commit, judged in ((None, version), (7, version), (None, "v9-other")):
        job = workspace.catalog.add_job("update", UpdateRequest(chunk="c").to_json())
        result = {"judged_against": judged, "commit": commit, "verdict": "reject"}
        workspace.catalog.update_job(job.id, state="rejected", result=result)
    assert attempts(workspace, version) == 2
