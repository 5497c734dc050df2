"""Removing what a chunk taught: the line is rebuilt from the last version before it, without it.

Withdrawing a chunk stops it from teaching and measuring; what encoders learned of it stays in them. Here the chunks
that were taught after it are taught again, in their order, with their strategies, options and seeds, to the last
release that had not learned from it. Each step passes the gate like any update. What comes out goes live when every
step passed and nobody pinned what is live; else it waits for a person, or nothing is published. Until then what is live
stays live. Pictures that come meanwhile are added to what comes out; another version that goes live meanwhile stops it.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from app.desk.errors import ParentMoved, UsageProblem
from app.desk.jobs import Stage, UpdateRequest
from app.home.commits import CommitRecord
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning import adding, going_live, update_cycle
from app.learning.outcomes import Tell, committing
from app.learning.release_words import pin_sentence, pinned
from ingest.sentence import joined, phrase
from ingest.standing import WITHDRAWN


@dataclass(frozen=True)
class Removal:
    """How a removal ended."""

    chunk: str  # that was removed
    begun_at: str  # the last release that had not learned from it
    taught: tuple[str, ...]  # chunks that were taught again
    verdict: str  # promote, review or reject; the worst of all steps
    release: str | None  # what came out; None when a step was rejected
    commit: int | None  # its commit when it went live
    images_embedded: int  # pictures that were embedded again
    sentence: str  # for people


@dataclass(frozen=True)
class Plan:
    """From which release to begin, and what to teach again, oldest first."""

    begin: ReleaseRecord
    again: tuple[UpdateRequest, ...]


def plan(workspace: Workspace, chunk: str, *, by: str) -> Plan:
    """Returns how to rebuild what is live without a chunk.

    Raises:
        UsageProblem: what is live has not learned from it, or a release before it cannot be read.
        ReleaseDamaged: what went live last cannot be served.
    """
    record = workspace.catalog.chunk(chunk)
    live = going_live.live_release(workspace)[1]
    going_live.require_newest(workspace, live.id)
    if record.id not in live.manifest.chunks:
        raise UsageProblem(
            f"{live.id}, which is live, has not learned from chunk {record.id}, so there is nothing to rebuild. "
            "Withdrawing it takes its pictures out of search and its pairs out of every later update."
        )
    again: list[UpdateRequest] = []
    one = live
    while record.id in one.manifest.chunks:
        before = workspace.releases.readable(one.manifest.parent or "")
        if before is None:
            raise UsageProblem(
                f"{one.id} has learned from chunk {record.id}, and the release it was made from "
                f"({one.manifest.parent or 'none is named'}) is not here. Use `perennial rollback` instead."
            )
        last = one.manifest.chunks[-1]
        taught_now = one.manifest.chunks != before.manifest.chunks
        known = workspace.catalog.chunk(last)
        # Of a chunk whose every picture was taken out, nothing is left to teach.
        if taught_now and last != record.id and known.standing != WITHDRAWN and known.pairs:
            said = one.manifest
            again.append(
                UpdateRequest(last, said.strategy, dict(said.options), said.seed or 0, promote=False, by=by)
            )
        one = before
    if one.pruned is not None:
        raise UsageProblem(
            f"{one.id}, the last release that had not learned from chunk {record.id}, was pruned, so there is nothing "
            "to begin at. What was learned stays learned."
        )
    return Plan(one, tuple(reversed(again)))


def rebuild_without(
    workspace: Workspace,
    chunk: str,
    *,
    why: str,
    by: str,
    scratch: Path,
    progress: Tell,
    made: Removal | None = None,
) -> Removal:
    """Rebuilds what is live without a withdrawn chunk, and makes it live when every step passed and nothing is pinned.

    What an earlier worker `made` live before it died is not rebuilt; only its pictures are still to be left out.

    Raises:
        UsageProblem: as `plan`; or the chunk is not withdrawn.
        UpdateRunning, NoSpace, ParentMoved: what is live stays live.
    """
    record = workspace.catalog.chunk(chunk)
    if record.standing != WITHDRAWN:
        raise UsageProblem(f'Withdraw it first: `perennial withdraw {record.id} --why "…"`.')
    why = f"rebuilt without chunk {record.id}: {why}"
    ended = made
    if ended is None:
        with workspace.releases.updater_lock(f"rebuilding without chunk {record.id}"):
            ended = _rebuilt(workspace, record.id, why=why, by=by, scratch=scratch, progress=progress)
    # Whatever came out, what is live loses the pictures that only this chunk had.
    extended, embedded = adding.extend_gallery(workspace, why=why, by=by, progress=progress)
    if ended.commit is not None and extended is not None:
        ended = replace(ended, release=extended.release, commit=extended.number)
    return replace(ended, images_embedded=ended.images_embedded + embedded)


def _rebuilt(
    workspace: Workspace, chunk: str, *, why: str, by: str, scratch: Path, progress: Tell
) -> Removal:
    live, _ = going_live.live_release(workspace)
    todo = plan(workspace, chunk, by=by)
    record, embedded, verdict = todo.begin, 0, "promote"
    for number, request in enumerate(todo.again, start=1):
        progress(
            Stage(
                "removal",
                phrase(
                    "teaching chunk {chunk}, {count} of {all}",
                    chunk=request.chunk,
                    count=number,
                    all=len(todo.again),
                ),
            )
        )
        folder = scratch / request.chunk
        folder.mkdir(exist_ok=True)
        outcome = update_cycle.teach_onto(workspace, request, record, live, scratch=folder, progress=progress)
        embedded += outcome.images_embedded
        if outcome.release is None:
            said = phrase(
                "Teaching chunk {chunk} again was rejected, nothing changed: {why}",
                chunk=request.chunk,
                why=outcome.sentence,
            )
            return _ended(todo, chunk, "reject", None, None, embedded, said)
        verdict = "review" if outcome.verdict == "review" else verdict
        record = workspace.releases.release(outcome.release)
    if verdict != "promote":
        said = phrase(
            "{release} has not learned from chunk {chunk}; a step asks for a review, so it is not live.",
            release=record.id,
            chunk=chunk,
        )
        return _ended(todo, chunk, verdict, record.id, None, embedded, said)
    taught = phrase("nothing had to be taught again")
    if todo.again:
        count = len(todo.again)
        taught = (
            phrase("1 chunk was taught again")
            if count == 1
            else phrase("{count} chunks were taught again", count=count)
        )
    said = phrase(
        "What is live has not learned from chunk {chunk}: begun at {release}, {what}.",
        chunk=chunk,
        release=todo.begin.id,
        what=taught,
    )
    ended = _ended(todo, chunk, verdict, record.id, None, embedded, said)
    return _bring_live(workspace, ended, record, live, why=why, by=by, progress=progress)


def _bring_live(
    workspace: Workspace,
    ended: Removal,
    record: ReleaseRecord,
    live: CommitRecord,
    *,
    why: str,
    by: str,
    progress: Tell,
) -> Removal:
    """Makes what came out live, unless a person pinned what is; pictures that came meanwhile hold nothing up."""
    version = workspace.releases.release(live.release).version
    reason = "promote" if ended.taught else "rollback"
    for _ in range(update_cycle.ATTEMPTS):
        pin = pinned(workspace)
        if pin is not None:
            unlearned = phrase(
                "{release} has not learned from chunk {chunk}.", release=record.id, chunk=ended.chunk
            )
            waits = phrase("It waits, not live: {why}", why=pin_sentence(pin))
            return replace(ended, sentence=joined((unlearned, waits)))
        progress(committing(asdict(ended), live))
        try:
            commit = workspace.releases.commit(record.id, parent=live.number, reason=reason, why=why, by=by)
        except ParentMoved:
            live, newer = going_live.live_release(workspace)
            if newer.version != version:  # it may have learned what was not taught again
                raise
        else:
            return replace(ended, commit=commit.number)
    raise ParentMoved(f"Other releases kept going live while {why}. Try again.")


def _ended(
    todo: Plan,
    chunk: str,
    verdict: str,
    release: str | None,
    commit: int | None,
    embedded: int,
    sentence: str,
) -> Removal:
    taught = tuple(request.chunk for request in todo.again)
    return Removal(chunk, todo.begin.id, taught, verdict, release, commit, embedded, sentence)
