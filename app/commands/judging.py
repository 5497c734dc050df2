"""Verbs about what answers are worth: quality, feedback, canaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.answers import ID_SHOWN
from app.commands.options import LeaveOutOption, MetricOption, ProposalOption, ViewOption
from app.commands.terminal import HomeOption, JsonOption, desk_for, require_place, show
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.desk.opinions import AskedLanguage, Proposal, ProposedPair, Votes
    from app.desk.verdicts import Measure, QualityTable
    from ingest.records import Pin

RemoveOption = Annotated[
    str | None,
    typer.Option("--remove", help="Take this one away, in the words it was pinned in.", show_default=False),
]
CanaryLanguage = Annotated[
    str, typer.Option("--language", help="Of the query, where it is pinned in several.", show_default=False)
]


def quality(
    context: typer.Context,
    metric: MetricOption = "t2i_r10",
    view: ViewOption = "own",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show what each released version reaches on each slice, and which languages are asked for."""
    from app.words.messages import plain

    with desk_for(context, home) as desk:
        found = desk.quality(metric, view)
    slices = _slices(found.table) if found.table.lines else "No release was measured in this view yet."
    languages = [_asked(found.asked.languages)] if found.asked.languages else []
    show(is_json, found, *map(plain, found.asked.advice), slices, *languages)


def _slices(found: QualityTable) -> Any:
    from app.words.messages import table
    from model_updates.gate.report import points

    def cell(one: Measure | None) -> str:
        if one is None:
            return "–"
        return f"{one.recall:.1f}" + ("" if one.change is None else f" ({points(one.change)})")

    columns = [f"{one.release}{' ●' if one.is_live else ''}" for one in found.columns]
    rows = [(f"{line.language}/{line.domain}", *map(cell, line.measures)) for line in found.lines]
    return table(("slice", *columns), rows)


def _asked(languages: Sequence[AskedLanguage]) -> Any:
    from app.words.messages import table

    header = ("asked in", "queries", "share", "probably nothing found", "learned")
    rows = [
        (
            one.language,
            one.queries,
            f"{100 * one.share:.0f} %",
            one.unanswered,
            "yes" if one.is_learned else "no",
        )
        for one in languages
    ]
    return table(header, rows)


def feedback(
    context: typer.Context,
    to: ProposalOption = None,
    leave_out: LeaveOutOption = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show what people said of answers, and the chunk that it proposes."""
    from app.words.messages import plain

    if to is not None:
        require_place(to, "--to")
    with desk_for(context, home) as desk:
        counted = desk.feedback(1).votes
        found = desk.proposal()
        document: dict[str, Any] = {"votes": list(counted), "proposal": found}
        said = [_voted(one) for one in counted] or ["Nobody has voted between two releases yet."]
        if to is not None:
            chosen = _kept_pairs(found, leave_out)
            to.write_bytes(desk.proposal_file(chosen))
            document |= {"file": str(to), "written": len(chosen)}
            said.append(
                plain(f"{len(chosen)} pairs are in {to}. Look at it, then `python -m app ingest {to}`.")
            )
    show(is_json, document, *said, _proposed(found.pairs) if found.pairs else "No pair is proposed yet.")


def _kept_pairs(proposal: Proposal, leave_out: Sequence[str] | None) -> list[str]:
    """Returns the ids of the proposed pairs that stay.

    Raises:
        UsageProblem: one that is to be left out is not proposed.
    """
    ids = {pair.id for pair in proposal.pairs}
    strange = sorted(set(leave_out or ()) - ids)
    if strange:
        raise UsageProblem(
            f"Pair {strange[0][:40]!r} is not proposed (any more). Look at the proposal again; it has {len(ids)}."
        )
    return sorted(ids - set(leave_out or ()))


def _voted(one: Votes) -> str:
    share = "" if one.share_b is None else f" {one.share_b:.0f} % ({one.low:.0f} to {one.high:.0f} %)"
    return (
        f"{one.b} was preferred to {one.a} by {one.for_b} of {one.for_a + one.for_b} votes{share}; "
        f"ties {one.ties}, both bad {one.both_bad}."
    )


def _proposed(pairs: Sequence[ProposedPair]) -> Any:
    from app.words.messages import table

    header = ("id", "query", "language", "picture", "split", "up", "down")
    rows = [
        (one.id, one.text, one.language, one.image_id[:ID_SHOWN], one.split, one.up, one.down)
        for one in pairs
    ]
    return table(header, rows)


def canaries(
    context: typer.Context,
    remove: RemoveOption = None,
    language: CanaryLanguage = "",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """List the canaries: queries whose first answer updates must keep. Or take one away."""
    with desk_for(context, home) as desk:
        if remove is None:
            _show_canaries(desk.canaries(), is_json=is_json)
        else:
            _show_removed(desk.remove_canary(remove, language), is_json=is_json)


def _show_canaries(found: Sequence[Pin], *, is_json: bool) -> None:
    from app.words.messages import table

    rows = [(one.query, one.language, one.image_id[:ID_SHOWN]) for one in found]
    none = "There are none yet. `search --pin` and a person's word on the Feedback page make them."
    show(is_json, found, table(("query", "language", "picture"), rows) if rows else none)


def _show_removed(gone: Pin, *, is_json: bool) -> None:
    from app.words.messages import plain

    said = f"{gone.query!r} is no canary in {gone.language} any more: updates need not keep its picture."
    show(is_json, gone, plain(said))
