"""Verbs about what answers are worth: changes, quality, feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.commands.answers import ID_SHOWN
from app.commands.options import (
    ComparedHits,
    LanguageOption,
    LeaveOutOption,
    MetricOption,
    MostOption,
    ProposalOption,
    QueriesOption,
    ReleaseArgument,
    ViewOption,
)
from app.commands.terminal import HomeOption, JsonOption, require_place, show, workspace_for
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.desk.hits import Asked, ManyCompared


def changes(
    a: ReleaseArgument,
    b: ReleaseArgument,
    queries: QueriesOption = None,
    language: LanguageOption = "auto",
    k: ComparedHits = 10,
    most: MostOption = 20,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Ask two releases many queries and show which answers changed most."""
    with workspace_for(home) as workspace:
        from app.desk.hits import ManyCompared
        from app.query.comparison import ask_all, mean_overlap
        from app.query.finder import Finder
        from app.query.grammar import literal
        from app.query.known_queries import known_queries
        from app.query.parts import read_file
        from app.query.question import Question
        from app.query.snapshot import CompareAnswer, Snapshot

        first, second = Snapshot.load(workspace, a), Snapshot.load(workspace, b)
        finder, longest = Finder(workspace), workspace.settings.max_query_characters

        def ask(query: str) -> CompareAnswer:
            question = Question.typed(query, longest=longest, k=k, language=language, read=read_file)
            return finder.compare(first, second, question)

        known = known_queries(workspace, first.release, second.release)
        # Captions and canaries are meant as they are, whatever signs are in them.
        asked = ask_all(ask, list(map(literal, known)) if queries is None else queries_in(queries))
    compared = ManyCompared(
        first.release.id, second.release.id, len(asked), mean_overlap(asked), tuple(asked)
    )
    show_changes(compared, most, is_json=is_json)


def queries_in(file: Path) -> list[str]:
    """Returns the queries of a file, one a line.

    Raises:
        UsageProblem: there is none in it.
    """
    queries = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    if not any(map(str.strip, queries)):
        raise UsageProblem(f"--queries {file}: there is no query in it. Write one a line.")
    return queries


def show_changes(compared: ManyCompared, most: int, *, is_json: bool) -> None:
    """Shows the answers that changed most, and what could not be asked."""
    from app.query.comparison import most_changed
    from app.words.messages import plain

    changed = most_changed(compared.asked, most)
    refused = [one for one in compared.asked if one.change is None]
    document = {
        "a": compared.a,
        "b": compared.b,
        "queries": compared.queries,
        "overlap": compared.overlap,
        "changed": [asdict(one.change) for one in changed if one.change is not None],
        "refused": [{"query": one.query, "error": str(one.error)} for one in refused],
    }
    said = [f"{compared.queries} queries were asked."]
    if compared.overlap is not None:
        said.append(f"On average {100 * compared.overlap:.0f} % of the pictures are the same.")
    said += [plain(f"Refused: {one.error}") for one in refused[:5]]
    if len(refused) > 5:
        said.append(f"… and {len(refused) - 5} more were refused.")
    show(is_json, document, *said, _table(changed) if changed else "No answer changed.")


def _table(changed: list[Asked]) -> Any:
    from app.words.messages import table

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
    metric: MetricOption = "t2i_r10",
    view: ViewOption = "own",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show what each released version reaches on each slice, and which languages are asked for."""
    with workspace_for(home) as workspace:
        from app.feedback.asked import WINDOW_DAYS, advice, asked_languages
        from app.learning.quality import coverage, quality_table

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
    show_quality(document, is_json=is_json)


def show_quality(document: Mapping[str, Any], *, is_json: bool) -> None:
    """Shows slices by versions and the languages that are asked for, as `GET /v1/quality` has them."""
    from app.words.messages import plain

    table, asked = document["table"], document["asked"]
    slices = _slices(table) if table["lines"] else "No release was measured in this view yet."
    languages = [_asked(asked["languages"])] if asked["languages"] else []
    show(is_json, document, *map(plain, asked["advice"]), slices, *languages)


def _slices(found: Mapping[str, Any]) -> Any:
    from app.words.messages import table
    from model_updates.gate.report import points

    def cell(one: Mapping[str, Any] | None) -> str:
        if one is None:
            return "–"
        return f"{one['recall']:.1f}" + ("" if one["change"] is None else f" ({points(one['change'])})")

    columns = [f"{one['release']}{' ●' if one['is_live'] else ''}" for one in found["columns"]]
    rows = [(f"{line['language']}/{line['domain']}", *map(cell, line["measures"])) for line in found["lines"]]
    return table(("slice", *columns), rows)


def _asked(languages: Sequence[Mapping[str, Any]]) -> Any:
    from app.words.messages import table

    header = ("asked in", "queries", "share", "probably nothing found", "learned")
    return table(
        header,
        [
            (
                one["language"],
                one["queries"],
                f"{100 * one['share']:.0f} %",
                one["unanswered"],
                "yes" if one["is_learned"] else "no",
            )
            for one in languages
        ],
    )


def feedback(
    to: ProposalOption = None,
    leave_out: LeaveOutOption = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show what people said of answers, and the chunk that it proposes."""
    if to is not None:
        require_place(to, "--to")
    with workspace_for(home) as workspace:
        from app.feedback.asked import language_of
        from app.feedback.proposal import chosen_pairs, propose, write_proposal
        from app.feedback.votes import votes
        from app.query.snapshot import Snapshot

        snapshot = Snapshot.load(workspace)
        counted = votes(workspace.catalog.feedback.all())
        found = propose(workspace, lambda text: language_of(text, snapshot))
        document: dict[str, Any] = {"votes": [asdict(one) for one in counted], "proposal": asdict(found)}
        if to is not None:
            chosen = chosen_pairs(found, kept_pairs(document["proposal"], leave_out))
            document["file"] = str(write_proposal(workspace, chosen, to))
            document["written"] = len(chosen)
    show_feedback(document, is_json=is_json)


def kept_pairs(proposal: Mapping[str, Any], leave_out: Sequence[str] | None) -> set[str]:
    """Returns the ids of the proposed pairs that stay.

    Raises:
        UsageProblem: one that is to be left out is not proposed.
    """
    ids = {pair["id"] for pair in proposal["pairs"]}
    strange = sorted(set(leave_out or ()) - ids)
    if strange:
        raise UsageProblem(
            f"Pair {strange[0][:40]!r} is not proposed (any more). Look at the proposal again; it has {len(ids)}."
        )
    return ids - set(leave_out or ())


def show_feedback(document: Mapping[str, Any], *, is_json: bool) -> None:
    """Shows votes and proposed pairs, and where they were written."""
    from app.words.messages import plain

    said = [_voted(one) for one in document["votes"]] or ["Nobody has voted between two releases yet."]
    if "file" in document:
        file, pairs = document["file"], document["written"]
        said.append(plain(f"{pairs} pairs are in {file}. Look at it, then `python -m app ingest {file}`."))
    pairs = document["proposal"]["pairs"]
    show(is_json, document, *said, _proposed(pairs) if pairs else "No pair is proposed yet.")


def _voted(one: Mapping[str, Any]) -> str:
    share = (
        "" if one["share_b"] is None else f" {one['share_b']:.0f} % ({one['low']:.0f} to {one['high']:.0f} %)"
    )
    return (
        f"{one['b']} was preferred to {one['a']} by {one['for_b']} of {one['for_a'] + one['for_b']} votes{share}; "
        f"ties {one['ties']}, both bad {one['both_bad']}."
    )


def _proposed(pairs: Sequence[Mapping[str, Any]]) -> Any:
    from app.words.messages import table

    header = ("id", "query", "language", "picture", "split", "up", "down")
    fields = ("id", "text", "language", "image_id", "split", "up", "down")
    return table(
        header,
        [[pair[name][:ID_SHOWN] if name == "image_id" else pair[name] for name in fields] for pair in pairs],
    )
