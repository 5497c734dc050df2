"""Verbs about what answers are worth: changes, quality, feedback."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.options import LanguageOption, release_names
from app.commands.terminal import HomeOption, JsonOption, show, workspace_for

if TYPE_CHECKING:
    from app.asked import AskedLanguage
    from app.comparison import Asked
    from app.feedback import Votes
    from app.proposal import Proposal
    from app.quality import Measure, QualityTable

_RELEASE = typer.Argument(help="A release, such as r3.", show_default=False, autocompletion=release_names)


def changes(
    a: Annotated[str, _RELEASE],
    b: Annotated[str, _RELEASE],
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries",
            exists=True,
            dir_okay=False,
            show_default=False,
            help="A file with a query a line; without it canaries and held-out captions are asked.",
        ),
    ] = None,
    language: LanguageOption = "auto",
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="How many hits are compared.")] = 10,
    most: Annotated[int, typer.Option("--most", min=1, help="How many answers to show.")] = 20,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Ask two releases many queries and show which answers changed most."""
    with workspace_for(home) as workspace:
        from app.comparison import ask_all, known_queries, mean_overlap, most_changed
        from app.search import Snapshot, compare

        first, second = Snapshot.load(workspace, a), Snapshot.load(workspace, b)
        if queries is None:
            wanted = known_queries(workspace, first.release, second.release)
        else:
            wanted = queries.read_text(encoding="utf-8-sig", errors="replace").splitlines()
        asked = ask_all(lambda query: compare(first, second, query, language=language, k=k), wanted)
        changed = most_changed(asked, most)
        refused = [one for one in asked if one.change is None]
        overlap = mean_overlap(asked)
    document = {
        "a": first.release.id,
        "b": second.release.id,
        "queries": len(asked),
        "overlap": overlap,
        "changed": [asdict(one.change) for one in changed if one.change is not None],
        "refused": [{"query": one.query, "error": str(one.error)} for one in refused],
    }
    said = [f"{len(asked)} queries were asked."]
    if overlap is not None:
        said.append(f"On average {100 * overlap:.0f} % of the pictures are the same.")
    said += [f"Refused: {one.error}" for one in refused[:5]]
    if len(refused) > 5:
        said.append(f"… and {len(refused) - 5} more were refused.")
    show(is_json, document, *said, _table(changed) if changed else "No answer changed.")


def _table(changed: list[Asked]) -> Any:
    from app.messages import table

    rows = [
        (
            f"{100 * one.change.overlap:.0f} %",
            "the same" if one.change.same_first else "another",
            f"{one.change.moved:.1f}",
            f"{one.change.read_a} / {one.change.read_b}",
            one.query,
        )
        for one in changed
        if one.change is not None
    ]
    return table(("in common", "first picture", "moved by", "read in", "query"), rows)


def quality(
    metric: Annotated[str, typer.Option(help="t2i_r1, t2i_r5, t2i_r10 or t2i_mean.")] = "t2i_r10",
    view: Annotated[str, typer.Option(help="own, mixed or memory.")] = "own",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show what each released version reaches on each slice, and which languages are asked for."""
    with workspace_for(home) as workspace:
        from app.asked import WINDOW_DAYS, advice, asked_languages
        from app.quality import coverage, quality_table

        table = quality_table(workspace, metric=metric, view=view)
        learned = next((column.languages for column in table.columns if column.is_live), ())
        asked = asked_languages(workspace.catalog, learned)
        document = {
            "table": asdict(table),
            "coverage": [asdict(one) for one in coverage(workspace)],
            "asked": {
                "days": WINDOW_DAYS,
                "languages": [asdict(one) for one in asked],
                "advice": advice(asked),
            },
        }
    tables = [_slices(table)] if table.lines else ["No release was measured in this view yet."]
    show(is_json, document, *advice(asked), *tables, *([_asked(asked)] if asked else []))


def _slices(found: QualityTable) -> Any:
    from app.messages import table
    from model_updates.gate.report import points

    def cell(one: Measure | None) -> str:
        if one is None:
            return "–"
        return f"{one.recall:.1f}" + ("" if one.change is None else f" ({points(one.change)})")

    header = ("slice", *(f"{one.release}{' ●' if one.is_live else ''}" for one in found.columns))
    return table(
        header, [(f"{line.language}/{line.domain}", *map(cell, line.measures)) for line in found.lines]
    )


def _asked(asked: list[AskedLanguage]) -> Any:
    from app.messages import table

    header = ("asked in", "queries", "share", "probably nothing found", "learned")
    return table(
        header,
        [
            (
                one.language,
                one.queries,
                f"{100 * one.share:.0f} %",
                one.unanswered,
                "yes" if one.is_learned else "no",
            )
            for one in asked
        ],
    )


def feedback(
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Write the proposed chunk into this zip.", show_default=False),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option("--leave-out", help="A pair by its id, as listed; may be repeated.", show_default=False),
    ] = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show what people said of answers, and the chunk that it proposes."""
    with workspace_for(home) as workspace:
        from app.asked import language_of
        from app.feedback import votes
        from app.proposal import chosen_pairs, propose, write_proposal
        from app.search import Snapshot

        snapshot = Snapshot.load(workspace)
        counted = votes(workspace.catalog.feedback.all())
        found = propose(workspace, lambda text: language_of(text, snapshot))
        document: dict[str, Any] = {"votes": [asdict(one) for one in counted], "proposal": asdict(found)}
        said = [_voted(one) for one in counted] or ["Nobody has voted between two releases yet."]
        if to is not None:
            out = {pair.id for pair in chosen_pairs(found, leave_out)} if leave_out else set()
            pairs = chosen_pairs(found, {pair.id for pair in found.pairs} - out)
            document["file"] = str(write_proposal(workspace, pairs, to))
            said.append(f"{len(pairs)} pairs are in {to}. Look at it, then `python -m app ingest {to}`.")
    show(is_json, document, *said, _proposed(found) if found.pairs else "No pair is proposed yet.")


def _voted(one: Votes) -> str:
    share = "" if one.share_b is None else f" {one.share_b:.0f} % ({one.low:.0f} to {one.high:.0f} %)"
    return (
        f"{one.b} was preferred to {one.a} by {one.for_b} of {one.for_a + one.for_b} votes{share}; "
        f"ties {one.ties}, both bad {one.both_bad}."
    )


def _proposed(found: Proposal) -> Any:
    from app.messages import table

    header = ("id", "query", "language", "picture", "split", "up", "down")
    return table(
        header,
        [
            (pair.id, pair.text, pair.language, pair.image_id[:12], pair.split, pair.up, pair.down)
            for pair in found.pairs
        ],
    )
