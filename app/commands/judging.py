"""Verbs about what answers are worth: quality, feedback, canaries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.answers import ID_SHOWN
from app.commands.options import ProbesOption, option
from app.commands.terminal import require_place
from app.commands.verb import Shown, verb
from app.desk.errors import UsageProblem
from app.words.messages import table

if TYPE_CHECKING:
    from app.desk.desk import Desk
    from app.desk.opinions import AskedLanguage, Proposal, ProposedPair, Votes
    from app.desk.verdicts import Measure, QualityTable

_NOT_MEASURED = (
    "No release was measured in this view on pairs of your own yet: an update measures the part of its captions that "
    "is held out. `--probes` shows the built-in checks."
)


@verb
def quality(
    desk: Desk,
    metric: Annotated[str, typer.Option(help="t2i_r1, t2i_r5, t2i_r10 or t2i_mean.")] = "t2i_r10",
    view: Annotated[str, typer.Option(help="own, mixed or memory.")] = "own",
    probes: ProbesOption = False,
) -> Shown:
    """Show recall by slice and version.

    Also which languages are asked for.
    """
    found = desk.quality(metric, view, probes)
    slices = _slices(found.table) if found.table.lines else _NOT_MEASURED
    languages = [_asked(found.asked.languages)] if found.asked.languages else []
    return found, *found.asked.advice, slices, *languages


def _slices(found: QualityTable) -> Any:
    from model_updates.gate.report import points

    def cell(one: Measure | None) -> str:
        if one is None:
            return "–"
        return f"{one.recall:.1f}" + ("" if one.change is None else f" ({points(one.change)})")

    columns = [f"{one.release}{' ●' if one.is_live else ''}" for one in found.columns]
    rows = [(f"{line.language}/{line.domain}", *map(cell, line.measures)) for line in found.lines]
    return table(("slice", *columns), rows)


def _asked(languages: Sequence[AskedLanguage]) -> Any:
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


@verb
def feedback(
    desk: Desk,
    to: Annotated[Path | None, option("--to", says="Write the proposed chunk into this zip.")] = None,
    leave_out: Annotated[
        list[str] | None, option(says="A pair by its id, as listed; may be repeated.")
    ] = None,
) -> Shown:
    """Show what people said of answers.

    Also the chunk that it proposes.
    """
    if to is not None:
        require_place(to, "--to")
    counted = desk.feedback(1).votes
    found = desk.proposal()
    document: dict[str, Any] = {"votes": list(counted), "proposal": found}
    said = [_voted(one) for one in counted] or ["No votes between two releases yet."]
    if to is not None:
        chosen = _kept_pairs(found, leave_out)
        to.write_bytes(desk.proposal_file(chosen))
        document |= {"file": str(to), "written": len(chosen)}
        said.append(f"{len(chosen)} pairs are in {to}. Look at it, then `perennial add {to}`.")
    return document, *said, _proposed(found.pairs) if found.pairs else "No pairs are proposed yet."


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
    header = ("id", "query", "language", "picture", "split", "up", "down")
    rows = [
        (one.id, one.text, one.language, one.image_id[:ID_SHOWN], one.split, one.up, one.down)
        for one in pairs
    ]
    return table(header, rows)


@verb
def canaries(
    desk: Desk,
    remove: Annotated[
        str | None, option("--remove", says="Take this one away, in the words it was pinned in.")
    ] = None,
    language: Annotated[str, option(says="Of the query, where it is pinned in several.")] = "",
) -> Shown:
    """List queries that updates must not lose.

    They are the canaries: updates must keep their first answer. One can be taken away.
    """
    if remove is not None:
        gone = desk.remove_canary(remove, language)
        said = f"{gone.query!r} is no canary in {gone.language} any more: updates need not keep its picture."
        return gone, said
    found = desk.canaries()
    rows = [(one.query, one.language, one.image_id[:ID_SHOWN]) for one in found]
    none = "There are none yet. `search --pin` and a person's word on the Feedback page make them."
    return found, table(("query", "language", "picture"), rows) if rows else none
