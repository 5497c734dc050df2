"""Verbs about releases: releases, promote, rollback, compare, diff, drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.commands.options import (
    BackToArgument,
    ComparedHits,
    DriftPairsOption,
    ForceOption,
    LanguageOption,
    LineageOption,
    ReleaseArgument,
    TextArgument,
    WhyOption,
)
from app.commands.searching import caption_of
from app.commands.terminal import HomeOption, JsonOption, settings_for, show, who, workspace_for

if TYPE_CHECKING:
    from app.desk.releases import Difference, Node
    from app.home.commits import CommitRecord
    from app.home.workspace import Workspace


def releases(
    lineage: LineageOption = False,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """List the releases, newest first."""
    settings = settings_for(home)
    from app.home.folder import Home
    from app.home.store import ReleaseStore

    store = ReleaseStore(Home.open(settings.home))
    standing = store.standing()
    live = standing.commit.release if standing.commit else None
    if lineage:
        from app.home.lineage import lineage as lineage_of

        show_lineage(lineage_of(store.releases(), store.history(), live), is_json=is_json)
        return
    found = [
        {
            "id": record.id,
            "live": record.id == live,
            "created": record.manifest.created,
            "strategy": record.manifest.strategy,
            "mode": record.manifest.mode,
            "verdict": record.manifest.verdict,
            "languages": record.manifest.languages,
            "version": record.version,
            "generation": record.generation,
        }
        for record in store.releases()[::-1]
    ]
    show_releases(found, is_json=is_json)


def show_lineage(nodes: Sequence[Node], *, is_json: bool) -> None:
    """Draws releases with where they come from, and says when each was live and why."""
    from app.words.lineage import lineage_lines

    show(is_json, [asdict(node) for node in nodes], *lineage_lines(nodes))


def show_releases(found: Sequence[Mapping[str, Any]], *, is_json: bool) -> None:
    """Lists releases, as `GET /v1/releases` describes each."""
    from app.words.messages import table

    rows = [
        (one["id"], "live" if one["live"] else "", str(one["created"])[:19])
        + (one["strategy"], one["mode"], one["verdict"], ", ".join(one["languages"]))
        for one in found
    ]
    header = ("release", "", "created", "strategy", "mode", "verdict", "languages")
    show(is_json, found, table(header, rows) if rows else "There are none yet. Run `python -m app init`.")


def promote(
    release: ReleaseArgument,
    why: WhyOption = "",
    force: ForceOption = False,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Make a release live."""
    with workspace_for(home) as workspace:
        from app.learning import going_live

        commit = going_live.promote(workspace, release, why=why, by=who(), force=force)
        _show_commit(workspace, commit, is_json)


def rollback(
    release: BackToArgument = None,
    why: WhyOption = "",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Go back to an earlier release."""
    with workspace_for(home) as workspace:
        from app.learning import going_live

        commit = going_live.rollback(workspace, release, why=why, by=who())
        _show_commit(workspace, commit, is_json)


def compare(
    a: ReleaseArgument,
    b: ReleaseArgument,
    query: TextArgument,
    language: LanguageOption = "auto",
    k: ComparedHits = 10,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Ask two releases the same and show how pictures moved."""
    with workspace_for(home) as workspace:
        from app.query.finder import Finder
        from app.query.parts import read_file
        from app.query.question import Question
        from app.query.snapshot import Snapshot
        from app.words.messages import moved_table

        longest = workspace.settings.max_query_characters
        question = Question.typed(query, longest=longest, k=k, language=language, read=read_file)
        first, second = Snapshot.load(workspace, a), Snapshot.load(workspace, b)
        answer = Finder(workspace).compare(first, second, question)
        moves = [
            (move.image_id, move.rank_a, move.rank_b, caption_of(workspace, move.image_id, answer.b))
            for move in answer.moves
        ]
    common = f"{100 * answer.overlap:.0f} % of the pictures are the same."
    show(is_json, asdict(answer), common, moved_table(answer.a.release, answer.b.release, moves))


def diff(
    a: ReleaseArgument,
    b: ReleaseArgument,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show what two releases differ in: what they know, what is read and seen differently, recall."""
    with workspace_for(home) as workspace:
        from app.learning.difference import difference_between

        found = difference_between(workspace, a, b)
    show_difference(found, is_json=is_json)


def show_difference(found: Difference, *, is_json: bool) -> None:
    """Shows what two releases differ in."""
    from app.words.difference import SLICE_HEADERS, difference_sentences, slice_rows
    from app.words.messages import plain, table

    rows = slice_rows(found)
    said = [plain(one) for one in difference_sentences(found)]
    shown = [table(SLICE_HEADERS, rows, title="Mean of R@1, R@5 and R@10 in percent")] if rows else []
    show(is_json, asdict(found), f"A {found.a}, B {found.b}", *said, *shown)


def drift(
    a: ReleaseArgument,
    b: ReleaseArgument,
    pairs: DriftPairsOption = 2000,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show how far the vectors of two releases have turned, and whether both towers turned together."""
    with workspace_for(home) as workspace:
        from app.learning.drift import drift_between

        found = asdict(drift_between(workspace, a, b, most=pairs))
    show_drift(found, is_json=is_json)


def show_drift(found: Mapping[str, Any], *, is_json: bool) -> None:
    """Shows how far two releases lie apart, as `GET /v1/drift` has it."""
    from app.words.drift import drift_lines

    show(is_json, found, *drift_lines(found))


def _show_commit(workspace: Workspace, commit: CommitRecord, is_json: bool) -> None:
    """Shows a change of what is live, and starts adding the pictures that the release does not hold."""
    from app.jobs import requests, worker
    from app.words.messages import left_out_line

    left_out, job = requests.gallery_job(workspace, commit)
    if job is not None:
        worker.spawn(workspace.settings, job.id)
    said = (
        f"{commit.release} is live (commit {commit.number}, {commit.reason}). {left_out_line(left_out, job)}"
    )
    document = asdict(commit) | {"left_out": left_out, "job": job.id if job else None}
    show(is_json, document, said.rstrip())
