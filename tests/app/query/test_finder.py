"""Claims about the search engine on a real home: parts, filters, hybrid, folding and pages."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.desk.errors import BadQuery
from app.desk.hits import Mode, SearchAnswer, SearchRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding
from app.query import fusion
from app.query.finder import Finder
from app.query.fusion import fused
from app.query.grammar import Kind, Term, parse
from app.query.parts import decoded
from app.query.question import Question
from app.query.snapshot import Snapshot
from index.generation import load_generation
from index.writing import contents_of, grow_generation
from ingest.errors import UnknownChunk
from ingest.intake import IntakeOptions
from tests.app.small_home import copy_of, small_home
from tests.model_updates.tiny import tiny_encoder

TODAY = datetime.now(UTC).date()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=small_home(tmp_path_factory)), read_only=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def snapshot(workspace: Workspace) -> Snapshot:
    return Snapshot.load(workspace)


def _find(
    workspace: Workspace, snapshot: Snapshot, query: str | Question, k: int = 10, **asked: Any
) -> SearchAnswer:
    question = query if isinstance(query, Question) else Question(parse(query))
    return Finder(workspace).find(snapshot, replace(question, asked=SearchRequest(**asked), k=k))


def _ids(answer: SearchAnswer) -> list[str]:
    return [hit.id for hit in answer.hits]


@pytest.mark.parametrize("query", ['"a boat - one house"', '"boat.jpg"', "a red boat"])
def test_the_query_of_an_answer_asks_the_same_again(
    workspace: Workspace, snapshot: Snapshot, query: str
) -> None:
    answer = _find(workspace, snapshot, query)
    assert answer.query == query
    assert _ids(_find(workspace, snapshot, answer.query)) == _ids(answer)


def test_one_text_finds_the_pictures_of_nearest_cosine(workspace: Workspace, snapshot: Snapshot) -> None:
    found = _find(workspace, snapshot, "two red boats")

    rows = snapshot.generation.vectors(snapshot.generation.ids)
    cosines = rows @ snapshot.encoder.encode_texts(["two red boats"], "en")[0]
    assert [hit.score for hit in found.hits] == pytest.approx(np.sort(cosines)[::-1][:10], abs=1e-6)
    assert found.hits[0].id == snapshot.generation.ids[int(cosines.argmax())]
    assert (found.query, found.language) == ("two red boats", "en")


def test_a_picture_finds_itself_first_and_with_words_what_is_like_both(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    wanted = snapshot.generation.ids[5]
    packed = io.BytesIO()
    workspace.load_image(wanted).save(packed, "PNG")
    terms = parse("./a.png")
    pictures = {terms[0].value: decoded(terms[0], packed.getvalue())}

    alone = _find(workspace, snapshot, Question(terms, pictures), 5)
    both = _find(workspace, snapshot, Question(parse("./a.png + 3:a red car"), pictures), 5, explain=True)

    assert alone.hits[0].id == wanted
    assert alone.hits[0].score == pytest.approx(1, abs=1e-3)
    assert alone.language == ""
    near_text = [hit.parts[1] for hit in both.hits]
    alone_text = [hit.parts[0] for hit in _find(workspace, snapshot, "a red car", explain=True).hits]
    assert max(near_text) > np.median(alone_text)


def test_a_file_of_the_gallery_finds_itself_first_whatever_route_it_takes(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    """Its domain was stated when it was taken in, and may be another than it looks like."""
    turned = replace(snapshot, encoder=tiny_encoder())  # by which no picture is where it was
    terms = parse("./a.png")
    for wanted in snapshot.generation.ids[:5]:
        pictures = {terms[0].value: decoded(terms[0], workspace.blobs.original(wanted))}
        first = _find(workspace, turned, Question(terms, pictures), 1).hits[0]
        assert first.id == wanted
        assert first.score == pytest.approx(1, abs=1e-6)
    hidden = replace(snapshot, hidden=frozenset({wanted}))
    assert wanted not in _ids(_find(workspace, hidden, Question(terms, pictures)))


def test_beside_a_hidden_picture_what_left_the_index_before_stays_out(
    workspace: Workspace, snapshot: Snapshot, tmp_path: Path
) -> None:
    """A picture that was taken out keeps its row in a segment; who leaves out another must not bring it back."""
    before, (gone, hidden) = snapshot.generation, snapshot.generation.ids[:2]
    grow_generation(
        tmp_path / "less",
        before,
        contents_of([], np.empty((0, before.dim), dtype=np.float32), {}),
        fingerprints=before.fingerprints,
        mode="delta",
        choice=before.choice,
        taken_out=[gone],
    )
    less = replace(snapshot, generation=load_generation(tmp_path / "less"), hidden=frozenset({hidden}))

    found = _ids(_find(workspace, less, "a red car", k=500))

    assert sorted(found) == sorted({*before.ids} - {gone, hidden})


def test_what_is_taken_away_goes_down_and_weights_count(workspace: Workspace, snapshot: Snapshot) -> None:
    def near(query: str) -> float:
        return float(np.mean([hit.parts[-1] for hit in _find(workspace, snapshot, query, explain=True).hits]))

    assert near("a red car - night") < near("a red car + night") < near("a red car + 5:night")


def test_parts_count_by_how_they_spread(workspace: Workspace, snapshot: Snapshot) -> None:
    ids = snapshot.generation.ids
    everything = snapshot.generation.vectors(ids)
    item = ids[7]
    text = snapshot.encoder.encode_texts(["a red car"], "en")[0]
    picture = everything[7]

    answer = _find(workspace, snapshot, f"a red car - 2:#{item[:12]}", k=3)

    near = everything @ np.stack([text, picture], axis=1)
    scores = near / near.std(axis=0) @ np.array([1, -2])
    order = [ids[n] for n in np.argsort(-scores) if ids[n] != item]
    assert _ids(answer) == order[:3]


def test_more_like_this_leaves_out_what_it_is_like(workspace: Workspace, snapshot: Snapshot) -> None:
    ids = snapshot.generation.ids

    answer = _find(workspace, snapshot, f"#{ids[0][:10]} + #{ids[1]}", k=500)

    assert set(_ids(answer)) == set(ids) - set(ids[:2])
    with pytest.raises(BadQuery, match="No picture of release r"):
        _find(workspace, snapshot, "#0000000000")


def test_parts_that_cancel_out_are_refused(workspace: Workspace, snapshot: Snapshot) -> None:
    with pytest.raises(BadQuery, match="cancel each other out"):
        _find(workspace, snapshot, "red car - red car")


@pytest.mark.parametrize(
    ("numbers", "says"), [((1.0, 2.0), "2 numbers"), ((0.0,) * 64, "zeros"), ((float("nan"),) * 64, "finite")]
)
def test_an_embedding_that_cannot_be_one_is_refused(
    workspace: Workspace, snapshot: Snapshot, numbers: tuple[float, ...], says: str
) -> None:
    if len(numbers) == 64:
        numbers = numbers[:1] * snapshot.generation.dim
    with pytest.raises(BadQuery, match=says):
        _find(workspace, snapshot, Question((Term(Kind.VECTOR, "embedding", vector=numbers),)))


def test_filters_leave_what_holds(workspace: Workspace, snapshot: Snapshot) -> None:
    def left(**filters: object) -> int:
        return len(_find(workspace, snapshot, "a red car", k=500, **filters).hits)

    chunk = workspace.catalog.chunks()[-1]
    everything = len(snapshot.generation)
    red = {c.image_id for c in workspace.catalog.find_captions("red", limit=1000)}
    assert left(chunks=[chunk.id[:8]]) == chunk.images
    assert left(languages=["de"], domains=["scenes"]) == everything
    assert left(domains=["probes"]) == 0
    with pytest.raises(BadQuery, match="No picture is of the domain 'flat'. Domains here: scenes."):
        left(domains=["scenes", "flat"])
    assert left(since=TODAY - timedelta(1), until=TODAY + timedelta(1)) == everything
    assert left(since=TODAY + timedelta(1)) == 0
    assert left(until=TODAY - timedelta(1)) == 0
    assert left(until=date.max) == everything
    assert 0 < left(caption="red") == len(red & set(snapshot.generation.ids)) < everything
    assert left(caption=' red" OR *') == 0
    with pytest.raises(BadQuery, match="Exchange"):
        left(since=TODAY, until=TODAY - timedelta(1))
    with pytest.raises(UnknownChunk):
        left(chunks=["nosuch"])


def test_captions_are_found_by_words_and_hybrid_says_which_half_found_what(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    by_words = _find(workspace, snapshot, "red boats", mode=Mode.CAPTIONS)
    both = _find(workspace, snapshot, "red boats", mode=Mode.HYBRID)

    assert all(hit.by == ("captions",) for hit in by_words.hits)
    captions = [c.text for c in workspace.catalog.captions_of(by_words.hits[0].id)]
    assert any("red boats" in text for text in captions)
    assert both.hits[0].by == ("vectors", "captions")
    vectors = _ids(_find(workspace, snapshot, "red boats", k=500))
    ranks = {
        "vectors": vectors,
        "captions": _ids(_find(workspace, snapshot, "red boats", mode=Mode.CAPTIONS, k=500)),
    }
    assert [(h.id, h.fused, h.by) for h in both.hits] == fused(ranks)[:10]
    with pytest.raises(BadQuery, match="by words"):
        _find(workspace, snapshot, "- boats", mode=Mode.HYBRID)


@pytest.mark.parametrize("mode", list(Mode))
def test_only_the_best_hits_are_put_in_the_order_of_their_dates(
    workspace: Workspace, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    monkeypatch.setattr("app.query.finder.BEST", 3)
    best = _ids(_find(workspace, snapshot, "red boats", k=500, mode=mode))[:3]
    assert set(_ids(_find(workspace, snapshot, "red boats", k=500, mode=mode, sort="taken"))) == set(best)


def test_a_filter_holds_before_captions_are_cut_off(
    workspace: Workspace, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(**filters: Any) -> list[str]:
        return _ids(_find(workspace, snapshot, "a", mode=Mode.CAPTIONS, k=500, **filters))

    whole = found()
    last = next(one.text for one in workspace.catalog.captions_of(whole[-1]) if one.language == "en")
    monkeypatch.setattr(fusion, "DEPTH", 3)  # 12 captions are looked at
    for filters in (
        {},
        {"domains": ["scenes"], "languages": ["en"], "until": TODAY},
        {"chunks": [workspace.catalog.chunks()[-1].id]},
        {"where": 'NOT language = fr AND NOT folder = nowhere AND caption ~ "a"'},
    ):
        assert found(**filters) == whole[:3]

    assert whole[-1] in found(caption=last)


def test_reciprocal_rank_fusion_adds_one_over_sixty_and_the_rank() -> None:
    found = fused({"a": ["x", "y"], "b": ["y", "z"]})

    assert found == [
        ("y", 1 / 62 + 1 / 61, ("a", "b")),
        ("x", 1 / 61, ("a",)),
        ("z", 1 / 62, ("b",)),
    ]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("fold", [False, True])
def test_pages_together_are_the_whole(
    workspace: Workspace, snapshot: Snapshot, mode: Mode, fold: bool
) -> None:
    how = {"mode": mode, "dedup": fold}
    whole = _find(workspace, snapshot, "a red car", k=500, **how)
    assert whole.next == ""

    seen, cursor, ranks = [], "", []
    for _ in range(20):
        page = _find(workspace, snapshot, "a red car", k=7, cursor=cursor, **how)
        seen += _ids(page)
        ranks += [hit.rank for hit in page.hits]
        cursor = page.next
        if not cursor:
            break

    assert seen == _ids(whole)
    assert ranks == list(range(1, len(seen) + 1))


@pytest.mark.parametrize(
    "how",
    [{}, {"dedup": True}, {"sort": "taken"}, {"until": TODAY}, {"items": True}],
    ids=["bare", "folded", "by date", "filtered", "like a picture"],
)
def test_pages_go_on_behind_what_was_shown_whatever_is_taken_out_or_put_back(
    workspace: Workspace, snapshot: Snapshot, how: dict[str, Any]
) -> None:
    how = dict(how)
    query: str | Question = "a red car"
    if how.pop("items", False):
        query = Question((Term(Kind.ITEM, snapshot.generation.ids[0]),))
    every = _ids(_find(workspace, snapshot, query, k=500, **how))

    def page(hidden: list[str], cursor: str) -> SearchAnswer:
        return _find(workspace, replace(snapshot, hidden=frozenset(hidden)), query, 4, cursor=cursor, **how)

    assert len(every) > 20
    first = page(every[1:2], "")
    assert _ids(first) == [every[0], *every[2:5]]
    fewer = page([*every[2:5], every[7]], first.next)  # the last one, too, which the next page begins behind
    assert (_ids(fewer), fewer.first) == ([*every[5:7], *every[8:10]], 4)
    assert [hit.rank for hit in fewer.hits] == [5, 6, 7, 8]
    assert _ids(page(every[:5], first.next)) == every[5:9]
    late = page(every[:9], "")
    assert _ids(late) == every[9:13]
    assert _ids(page([], late.next)) == every[13:17]  # nine pictures came back before it
    last = page(every[: len(every) - 6], "")
    rest = page(every[-6:-2], last.next)
    assert (_ids(rest), rest.next) == (every[-2:], "")


def test_a_text_that_was_asked_before_runs_no_tower(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = Snapshot.load(workspace)
    other = replace(snapshot, encoder=workspace.open_encoder(snapshot.release.version))
    whole = _find(workspace, snapshot, "a red boat", k=6)
    monkeypatch.setattr(snapshot.encoder, "encode_readings", None)  # whoever runs it would fail
    first = _find(workspace, snapshot, "a red boat", k=3)
    rest = _find(workspace, replace(snapshot, hidden=frozenset()), "a red boat", k=3, cursor=first.next)
    assert _ids(first) + _ids(rest) == _ids(whole)
    assert [hit.score for hit in (*first.hits, *rest.hits)] == [hit.score for hit in whole.hits]
    for query, language in (("a red ship", "auto"), ("a red boat", "de")):
        with pytest.raises(TypeError):
            _find(workspace, snapshot, query, language=language)
    assert _ids(_find(workspace, other, "a red boat", k=6)) == _ids(whole)  # read by its own encoder


def test_a_cursor_of_something_else_is_refused(workspace: Workspace, snapshot: Snapshot) -> None:
    cursor = _find(workspace, snapshot, "a red car", k=3).next

    with pytest.raises(BadQuery, match="another query"):
        _find(workspace, snapshot, "a blue car", k=3, cursor=cursor)
    other = replace(snapshot, release=replace(snapshot.release, id="r9-00000000"))
    with pytest.raises(BadQuery, match="belongs to an answer of release"):
        _find(workspace, other, "a red car", k=3, cursor=cursor)
    forged = [
        base64.urlsafe_b64encode(one.encode()).decode()
        for one in ('["r1", "", Infinity]', '["r1", "", 1e999]', '["r1", "", 1e30]', '["\\ud800", "", 3]')
    ]
    for nonsense in ("x", "!!", "W10", cursor[:-4], "é", *forged):
        with pytest.raises(BadQuery):
            _find(workspace, snapshot, "a red car", k=3, cursor=nonsense)


def test_near_copies_are_folded_under_the_best(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = copy_of(small_home(tmp_path_factory), tmp_path)
    with Workspace.open(load_settings(home=home)) as opened:
        copied = opened.catalog.gallery_ids()[3]
        text = next(c.text for c in opened.catalog.captions_of(copied) if c.language == "en")
        folder = tmp_path / "again"
        folder.mkdir()
        opened.load_image(copied).save(folder / "again.jpg", quality=80)
        (folder / "again.txt").write_text(text)
        adding.add_chunk(opened, folder, IntakeOptions(language="en", domain="scenes"), by="t")
        fresh = Snapshot.load(opened)
        again = (set(fresh.generation.ids) - set(snapshot_ids(opened))).pop()

        plain = _find(opened, fresh, text, k=500)
        folded = _find(opened, fresh, text, k=500, dedup=True)

    assert {copied, again} <= set(_ids(plain))
    best = min((hit for hit in plain.hits if hit.id in {copied, again}), key=lambda hit: hit.rank)
    kept = next(hit for hit in folded.hits if hit.id == best.id)
    assert kept.copies == tuple({copied, again} - {best.id})
    assert len(folded.hits) == len(plain.hits) - 1


def snapshot_ids(workspace: Workspace) -> list[str]:
    """The gallery before the last chunk came."""
    return workspace.catalog.gallery_ids()[:-1]
