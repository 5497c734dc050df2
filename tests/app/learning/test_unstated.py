"""Pictures of no stated domain that look like nothing learned open one of their own; a person names it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.errors import UsageProblem
from app.home.releases import ReleaseRecord
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live
from app.learning.unstated import OPENED, name_domain, open_domain
from ingest.checks import DEFAULT_DOMAIN
from ingest.intake import IntakeOptions
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from tests.app.small_home import copy_of, small_home

PICTURES = 30


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(
        load_settings(home=copy_of(small_home(tmp_path_factory, pictures=160), tmp_path))
    ) as opened:
        yield opened


def learned(workspace: Workspace) -> ReleaseRecord:
    """The live release, as if an update had learned the chunk of scenes."""
    _, record = going_live.live_release(workspace)
    scenes = [one.id for one in workspace.catalog.chunks() if "scenes" in one.domains]
    manifest = record.manifest.successor(record.id, chunks=tuple(scenes))
    return workspace.releases.release(workspace.releases.publish_release(manifest))


def unstated(workspace: Workspace, folder: Path, style: str, first: int, every: int = 40) -> str:
    """Takes in pictures of a style, of which nothing is said."""
    source = folder / f"{style}-{first}.zip"
    chosen = [(scene, style, 1) for scene in list(all_scenes())[first::every][:PICTURES]]
    write_chunk(source, scenes=chosen, languages=["en"], domain=DEFAULT_DOMAIN)
    return adding.add_chunk(workspace, source, IntakeOptions(), by="test").report.chunk_id


def test_pictures_like_nothing_learned_open_a_domain_and_more_of_them_join_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    record = learned(workspace)
    ink = unstated(workspace, tmp_path, "ink", 3)
    found = open_domain(workspace, record, ink)

    assert found is not None
    assert (found.check, found.figures["domain"]) == (OPENED, "domain-2")
    assert "look like nothing that was learned" in found.sentence
    assert workspace.catalog.chunk(ink).domains == {"domain-2": PICTURES}

    again = unstated(workspace, tmp_path, "ink", 7)
    more = open_domain(workspace, record, again)
    assert more is not None
    assert workspace.catalog.chunk(again).domains == {"domain-2": PICTURES}
    assert "look like those of domain-2" in more.sentence

    assert name_domain(workspace, "domain-2", "Ink drawings") == (2 * PICTURES, "ink-drawings")
    assert name_domain(workspace, "ink-drawings", "scenes") == (2 * PICTURES, "scenes")
    assert "ink-drawings" not in workspace.catalog.domains()


def test_pictures_like_what_was_learned_stay_and_so_do_all_where_nothing_was(
    workspace: Workspace, tmp_path: Path
) -> None:
    _, nothing = going_live.live_release(workspace)
    record, catalog = learned(workspace), workspace.catalog
    chunk = unstated(workspace, tmp_path, "flat", 0, every=125)  # scenes of that chunk, drawn once more

    assert open_domain(workspace, record, chunk) is None
    assert open_domain(workspace, nothing, chunk) is None
    assert catalog.domains()[DEFAULT_DOMAIN] == PICTURES


@pytest.mark.parametrize("checked", [True, False])
def test_a_learned_chunk_that_is_sent_again_stays_where_it_lies(
    workspace: Workspace, tmp_path: Path, checked: bool
) -> None:
    ink = unstated(workspace, tmp_path, "ink", 3)
    catalog, known = workspace.catalog, learned(workspace)
    if not checked:  # it comes from a time without checks
        catalog.set_report(ink, {})
    before = catalog.chunk(ink)
    manifest = known.manifest.successor(known.id, chunks=(*known.manifest.chunks, ink))
    release = workspace.releases.publish_release(manifest)
    live, _ = going_live.live_release(workspace)
    workspace.releases.commit(release, parent=live.number, reason="promote", why="test", by="test")

    assert unstated(workspace, tmp_path, "ink", 3) == ink
    assert catalog.chunk(ink) == before
    assert before.domains == {DEFAULT_DOMAIN: PICTURES}
    assert open_domain(workspace, workspace.releases.release(release), ink) is None


def test_what_cannot_be_named_is_refused(workspace: Workspace) -> None:
    record = learned(workspace)
    live, _ = going_live.live_release(workspace)
    workspace.releases.commit(record.id, parent=live.number, reason="promote", why="test", by="test")
    for domain, to, said in (
        ("nowhere", "ink", "No domain is called nowhere"),
        ("scenes", "a/b", "is no domain name"),
        ("scenes", "other", "Something was learned of scenes"),
    ):
        with pytest.raises(UsageProblem, match=said):
            name_domain(workspace, domain, to)
