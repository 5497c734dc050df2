"""Claims about image to text: captions found by a vector, and an index built no more often than needed."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from app.desk.errors import BadQuery, CaptionsNotReady
from app.desk.hits import SearchRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, held_pairs
from app.query import caption_index
from app.query.caption_index import CaptionIndexes
from app.query.finder import Finder
from app.query.grammar import parse
from app.query.parts import decoded
from app.query.question import Question
from app.query.snapshot import Snapshot
from ingest.intake import IntakeOptions
from tests.app.small_home import copy_of, sample_chunk, small_home


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> object:
    with Workspace.open(load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))) as opened:
        yield opened


def _built(workspace: Workspace) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in workspace.home.captions.iterdir()}


def test_a_picture_finds_what_is_said_of_it(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)
    finder = Finder(workspace)
    right = 0
    for image_id in snapshot.generation.ids:
        packed = io.BytesIO()
        workspace.load_image(image_id).save(packed, "PNG")
        terms = parse("./a.png")
        pictures = {terms[0].value: decoded(terms[0], packed.getvalue())}
        answer = finder.find(snapshot, Question(terms, pictures, SearchRequest(captions=5), k=1))
        assert [one.score for one in answer.captions] == sorted(
            (o.score for o in answer.captions), reverse=True
        )
        assert {one.language for one in answer.captions} == {"en"}
        right += any(image_id in one.images for one in answer.captions)

    # By chance 5 of some 40 captions hold the right one for one picture in eight.
    assert right >= 0.8 * len(snapshot.generation)


def test_captions_are_ranked_as_their_vectors_say(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)
    texts = sorted({pair.text for pair in workspace.catalog.pairs(language="en")})
    query = snapshot.generation.vectors(snapshot.generation.ids[:1])[0]

    found = CaptionIndexes(workspace, patient=True).nearest(snapshot, query, ["en"], 10)

    scores = dict(zip(texts, snapshot.encoder.encode_texts(texts, "en") @ query, strict=True))
    best = sorted(scores, key=lambda text: -scores[text])[:10]
    assert [scores[one.text] for one in found] == pytest.approx([scores[text] for text in best], abs=1e-5)


def test_it_is_built_again_only_when_captions_or_tower_change(workspace: Workspace, tmp_path: Path) -> None:
    snapshot = Snapshot.load(workspace)
    query = snapshot.generation.vectors(snapshot.generation.ids[:1])[0]
    CaptionIndexes(workspace, patient=True).nearest(snapshot, query, [], 3)
    first = _built(workspace)

    CaptionIndexes(workspace, patient=True).nearest(snapshot, query, [], 3)
    assert _built(workspace) == first
    kept = CaptionIndexes(workspace, patient=True)
    before = kept.nearest(snapshot, query, [], 500)
    chunk = sample_chunk(tmp_path / "x.zip", pictures=4, first=3)
    adding.add_chunk(workspace, chunk, IntakeOptions(), by="t")
    after = kept.nearest(Snapshot.load(workspace), query, [], 500)

    assert len(after) > len(before)
    assert len(_built(workspace)) == 2


def test_a_caption_that_a_person_took_out_is_found_no_more_until_it_is_accepted_again(
    workspace: Workspace,
) -> None:
    catalog, snapshot = workspace.catalog, Snapshot.load(workspace)
    chunk = catalog.chunks()[-1].id
    (one, other) = [pair for pair in catalog.pairs(chunk=chunk, language="en")][:2]
    query = snapshot.encoder.encode_texts([one.text], "en")[0]
    indexes = CaptionIndexes(workspace, patient=True)

    def found() -> set[tuple[str, str]]:
        nearest = indexes.nearest(snapshot, query, ["en"], 500)
        return {(image, caption.text) for caption in nearest for image in caption.images}

    numbers = catalog.pair_numbers(chunk, [one.image_id, other.image_id])
    first, second = ((pair.image_id, pair.text) for pair in (one, other))
    assert {first, second} <= found()

    (aside,) = held_pairs.decide(
        workspace, chunk, take_out=[numbers[one.image_id, "en", one.text]], by="ada"
    ).pairs
    assert first not in found()
    # One comes back and another goes before anybody asks: there are as many as before.
    held_pairs.decide(workspace, chunk, accept=[aside.id], by="ada")
    (later,) = held_pairs.decide(
        workspace, chunk, take_out=[numbers[other.image_id, "en", other.text]], by="ada"
    ).pairs
    assert first in found()
    assert second not in found()
    # And back: no pair that is new, and none put aside that was not before.
    number = catalog.pair_numbers(chunk, [one.image_id])[one.image_id, "en", one.text]
    held_pairs.decide(workspace, chunk, take_out=[number], by="ada")
    held_pairs.decide(workspace, chunk, accept=[later.id], by="ada")
    assert first not in found()
    assert second in found()


def test_a_damaged_one_is_built_again(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)
    query = snapshot.generation.vectors(snapshot.generation.ids[:1])[0]
    found = CaptionIndexes(workspace, patient=True).nearest(snapshot, query, [], 3)
    index = next(workspace.home.captions.iterdir()) / "index.faiss"
    data = bytearray(index.read_bytes())
    data[len(data) // 2] ^= 1
    index.chmod(0o644)
    index.write_bytes(bytes(data))

    assert CaptionIndexes(workspace, patient=True).nearest(snapshot, query, [], 3) == found


def test_a_language_that_is_not_learned_is_refused(workspace: Workspace) -> None:
    with pytest.raises(BadQuery, match="de cannot be ranked"):
        Finder(workspace).find(
            Snapshot.load(workspace),
            Question(parse("boat"), asked=SearchRequest(captions=3, caption_languages=["de"])),
        )


def test_a_server_embeds_many_captions_in_the_background(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caption_index, "AT_ONCE", 5)
    snapshot = Snapshot.load(workspace)
    query = snapshot.generation.vectors(snapshot.generation.ids[:1])[0]
    indexes = CaptionIndexes(workspace, patient=False)

    with pytest.raises(CaptionsNotReady, match="Ask again"):
        indexes.nearest(snapshot, query, [], 3)

    deadline = time.monotonic() + 60
    while True:
        try:
            assert len(indexes.nearest(snapshot, query, [], 3)) == 3
            return
        except CaptionsNotReady:
            assert time.monotonic() < deadline
            time.sleep(0.05)
