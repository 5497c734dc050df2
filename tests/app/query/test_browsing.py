"""Claims about browsing: what is shown where nothing is looked for, in which order, and words to begin with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from app.desk.errors import BadQuery
from app.desk.hits import SearchAnswer, SearchRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding
from app.local.at_home import AtHome
from app.query.browsing import examples
from app.query.finder import Finder
from app.query.question import Question
from app.query.snapshot import Snapshot
from ingest.engines import writing
from ingest.intake import IntakeOptions
from ingest.schema import images
from tests.app.small_home import PICTURES, copy_of, new_home, small_home


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    home = copy_of(small_home(tmp_path_factory), tmp_path_factory.mktemp("browsed"))
    with Workspace.open(load_settings(home=home)) as opened:
        yield opened


@pytest.fixture(scope="module")
def snapshot(workspace: Workspace) -> Snapshot:
    return Snapshot.load(workspace)


def _browse(workspace: Workspace, snapshot: Snapshot, k: int = 100, **asked: Any) -> SearchAnswer:
    return Finder(workspace).find(snapshot, Question((), asked=SearchRequest(**asked), k=k))


def _ids(answer: SearchAnswer) -> list[str]:
    return [hit.id for hit in answer.hits]


def test_pages_show_all_pictures_once_the_newest_first_and_without_scores(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    seen, cursor, ranks = [], "", []
    while True:
        page = _browse(workspace, snapshot, 7, cursor=cursor)
        assert {hit.score for hit in page.hits} == {None}
        seen += _ids(page)
        ranks += [hit.rank for hit in page.hits]
        if not (cursor := page.next):
            break
    assert seen == workspace.catalog.gallery_ids()[::-1]
    assert ranks == list(range(1, PICTURES + 1))
    assert (page.searched, page.query, page.language) == (PICTURES, "", "")


def test_no_probe_is_among_pictures_languages_domains_or_examples(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    assert "probes" in workspace.catalog.domains()
    known = workspace.catalog.images(_ids(_browse(workspace, snapshot)))
    assert {one.domain for one in known.values()} == set(workspace.catalog.domains(in_gallery=True))
    assert "probes" not in workspace.catalog.domains(in_gallery=True)
    with AtHome(workspace.settings, by="tests", workspace=workspace) as desk:
        choices = desk.choices()
        assert choices.pictures == PICTURES
        assert (set(choices.languages), choices.domains) == ({"de", "en"}, ("scenes",))
        captions = {one.text for image in known for one in workspace.catalog.captions_of(image)}
        assert len(choices.examples) == 4
        assert set(choices.examples) <= captions


def test_by_when_they_were_taken_those_of_which_it_is_not_known_come_last(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    first, second, *others = workspace.catalog.gallery_ids()
    with writing(workspace.catalog._engine) as connection:
        for image_id, taken in ((first, "2024-05-01T10:00:00"), (second, "2019-01-01T10:00:00")):
            connection.execute(images.update().where(images.c.id == image_id).values(taken=taken))
    answer = _browse(workspace, snapshot, sort="taken")
    assert _ids(answer) == [first, second, *others[::-1]]


def test_the_best_hits_of_a_query_can_be_put_in_the_order_of_their_dates(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    by_score = Finder(workspace).find(snapshot, Question.of("a boat", 100))
    newest, oldest = by_score.hits[-1].id, by_score.hits[-2].id
    with writing(workspace.catalog._engine) as connection:
        connection.execute(images.update().values(taken=""))
        for image_id, taken in ((newest, "2024-05-01T10:00:00"), (oldest, "2019-01-01")):
            connection.execute(images.update().where(images.c.id == image_id).values(taken=taken))
    by_date = Finder(workspace).find(snapshot, Question.of("a boat", 5, sort="taken"))
    rest = [hit.id for hit in by_score.hits if hit.id not in {newest, oldest}]
    assert _ids(by_date) == [newest, oldest, *rest[:3]]
    assert by_date.relevance == by_score.relevance
    then = Finder(workspace).find(snapshot, Question.of("a boat", 5, sort="taken", cursor=by_date.next))
    assert _ids(then) == rest[3:8]


def test_filters_and_folded_copies_hold_for_browsing(workspace: Workspace, snapshot: Snapshot) -> None:
    assert _ids(_browse(workspace, snapshot, until="2020-01-01")) == []
    (one, *_) = _ids(_browse(workspace, snapshot, 1))
    spoken = workspace.catalog.captions_of(one)[0].text
    some = _browse(workspace, snapshot, caption=spoken)
    assert one in _ids(some)
    assert some.searched == len(some.hits) < PICTURES
    every = _ids(_browse(workspace, snapshot))
    with writing(workspace.catalog._engine) as connection:
        same = images.c.id.in_(every[:3])
        connection.execute(images.update().where(same).values(cluster="one thing"))
    folded = _browse(workspace, snapshot, 5, dedup=True)
    assert _ids(folded) == [every[0], *every[3:7]]
    assert folded.hits[0].copies == tuple(every[1:3])
    first = _browse(workspace, snapshot, 1, dedup=True)
    assert _ids(_browse(workspace, snapshot, 4, dedup=True, cursor=first.next)) == every[3:7]


@pytest.mark.sqlite  # which counts its steps
@pytest.mark.parametrize("sort", ["added", "taken"])
def test_a_folded_page_takes_about_what_a_plain_one_does_however_many_are_before_it(
    snapshot: Snapshot, tmp_path_factory: pytest.TempPathFactory, sort: str
) -> None:
    home = copy_of(small_home(tmp_path_factory), tmp_path_factory.mktemp("deep"))
    with Workspace.open(load_settings(home=home)) as workspace:
        first, copied, *others = _ids(_browse(workspace, snapshot, sort=sort))
        with writing(workspace.catalog._engine) as connection:
            found = connection.execute(images.select().where(images.c.id == first)).mappings().one()
            known = {name: value for name, value in found.items() if name not in {"seq", "sketch"}}
            before = ({"id": f"{n:064x}", "taken": "2999", "cluster": f"thing {n}"} for n in range(3000))
            connection.execute(images.insert(), [known | one for one in before])
            for one, cluster in ((first, None), (copied, first)):  # as when the first came alone
                connection.execute(images.update().where(images.c.id == one).values(cluster=cluster))
        cursor = _browse(workspace, snapshot, 1, sort=sort).next
        plain, fewer = _steps(workspace, snapshot, sort=sort, cursor=cursor)
        cursor = _browse(workspace, snapshot, 1, sort=sort, dedup=True).next
        folded, steps = _steps(workspace, snapshot, sort=sort, dedup=True, cursor=cursor)
    assert (_ids(folded), _ids(plain)) == (others[:5], [copied, *others[:4]])
    assert steps < 3 * fewer  # to read all that is before it would take twenty times as many


def _steps(workspace: Workspace, snapshot: Snapshot, **asked: Any) -> tuple[SearchAnswer, int]:
    """Returns a page, and how many steps SQLite took for it."""
    count = 0

    def tick() -> None:
        nonlocal count
        count += 1

    def watch(connection: Any, *_: Any) -> None:
        connection.connection.driver_connection.set_progress_handler(tick, 1)

    event.listen(workspace.catalog._engine, "before_cursor_execute", watch)
    answer = _browse(workspace, snapshot, 5, **asked)
    event.remove(workspace.catalog._engine, "before_cursor_execute", watch)
    return answer, count


@pytest.mark.parametrize("sort", ["added", "taken"])
def test_pages_go_on_behind_what_was_shown_whatever_is_taken_out_or_put_back(
    workspace: Workspace, snapshot: Snapshot, sort: str
) -> None:
    every = _ids(_browse(workspace, snapshot, sort=sort))
    first = _browse(workspace, replace(snapshot, hidden=frozenset({every[1]})), 4, sort=sort)
    assert _ids(first) == [every[0], *every[2:5]]
    # The whole first page is taken out, and what stood in it before is put back.
    with _outside_gallery(workspace, every[2:5]):
        hidden = replace(snapshot, hidden=frozenset({every[0], *every[2:5]}))
        second = _browse(workspace, hidden, 4, sort=sort, cursor=first.next)
    assert (_ids(second), second.hits[0].rank, second.first) == (every[5:9], 5, 4)


@contextmanager
def _outside_gallery(workspace: Workspace, ids: list[str]) -> Iterator[None]:
    for is_in in (False, True):
        with writing(workspace.catalog._engine) as connection:
            connection.execute(images.update().where(images.c.id.in_(ids)).values(in_gallery=is_in))
        if not is_in:
            yield


def test_hidden_pictures_are_not_shown(workspace: Workspace, snapshot: Snapshot) -> None:
    gone = workspace.catalog.gallery_ids()[-1]
    answer = _browse(workspace, replace(snapshot, hidden=frozenset({gone})))
    assert gone not in _ids(answer)
    assert answer.searched == PICTURES - 1


@pytest.mark.parametrize(
    "given", [{"translation": "boat"}, {"mode": "hybrid"}, {"min_relevance": "weak"}, {"explain": True}]
)
def test_what_only_a_query_has_is_refused(
    workspace: Workspace, snapshot: Snapshot, given: dict[str, Any]
) -> None:
    with pytest.raises(BadQuery, match=f"so {next(iter(given))} cannot be used"):
        _browse(workspace, snapshot, **given)


def test_what_is_browsed_has_no_last_page_but_the_end(workspace: Workspace, snapshot: Snapshot) -> None:
    from app.query.pages import Place, cursor_of

    digest = Question((), asked=SearchRequest()).digest()
    deep = cursor_of(Place(snapshot.release.id, digest, 5001))
    assert _browse(workspace, snapshot, cursor=deep).hits == ()


def test_without_captions_examples_are_domains_that_somebody_named(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from PIL import Image

    folder = tmp_path / "photos"
    folder.mkdir()
    Image.effect_noise((80, 60), 60).save(folder / "a.png")
    home = copy_of(new_home(tmp_path_factory), tmp_path)
    with Workspace.open(load_settings(home=home)) as opened:
        assert examples(opened.catalog, ["en"]) == ()
        adding.add_chunk(opened, folder, IntakeOptions(domain="sketches"), by="test")
        assert examples(opened.catalog, ["en"]) == ("sketches",)
