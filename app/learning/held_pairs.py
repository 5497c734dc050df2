"""A person decides on single pairs: held ones join the chunk of their upload or stay out, others are taken out of it.

That is possible until something was taught from the chunk: from then on it is what a release says it learned.
"""

from collections.abc import Sequence

from app.desk.chunks import Decided, ShownAside
from app.desk.errors import UsageProblem
from app.desk.operation import grown
from app.desk.probes import is_probes
from app.home import holding
from app.home.workspace import Workspace
from ingest.deciding import accept_pairs
from ingest.records import AsidePair, ChunkRecord
from ingest.sentence import joined, phrase
from ingest.standing import WITHDRAWN

MOST_AT_ONCE = 500


def decide(
    workspace: Workspace,
    chunk: str,
    *,
    by: str,
    accept: Sequence[int] = (),
    leave_out: Sequence[int] = (),
    take_out: Sequence[int] = (),
    language: str | None = None,
    why: str = "",
) -> Decided:
    """Accepts some held pairs of a chunk, leaves out others, and takes out pairs that the chunk has.

    `accept` and `leave_out` are numbers of held pairs. `take_out` are numbers of captions of the chunk, as its checks'
    examples have them; they may be accepted again. `language` is of accepted captions that state none.

    Raises:
        UnknownChunk: none or several match.
        UsageProblem: a pair is none of those that wait, or the chunk has been taught from.
        BadOption, UnknownLanguage: a pair cannot be taken in as it is.
    """
    record = workspace.catalog.chunk(chunk)
    if take_out and (accept or leave_out):
        raise UsageProblem(
            "Take pairs out of the chunk by themselves, and decide on held ones before or after."
        )
    wanted = [] if take_out else _wanted(workspace, record, accept, leave_out)
    accepted = [pair for pair in wanted if pair.id in set(accept)]
    left = [pair for pair in wanted if pair.id in set(leave_out)]
    new_pictures = 0
    if accepted or take_out:
        require_untaught(workspace, record)
    before = len(workspace.catalog.gallery_ids()) if accepted else 0
    out = workspace.catalog.take_out(record.id, take_out, by=by, why=why) if take_out else []
    if accepted:
        with holding.intake(workspace.home):
            accept_pairs(
                workspace.catalog, workspace.blobs, record, accepted, language=language, by=by, why=why
            )
        # A picture may be known to the home and new to the gallery.
        new_pictures = len(workspace.catalog.gallery_ids()) - before
    if left:
        workspace.catalog.aside.decide([pair.id for pair in left], "left_out", by=by, why=why)
    now = workspace.catalog.aside.named([*(pair.id for pair in wanted), *out])
    sentence = _sentence(record, accepted, left, new_pictures)
    if out:
        sentence = joined((_taken_out(out, record.id), sentence))
    shown = tuple(grown(ShownAside, pair) for pair in now)
    return Decided(workspace.catalog.chunk(record.id), shown, new_pictures, bool(accepted or out), sentence)


def require_untaught(workspace: Workspace, chunk: ChunkRecord) -> None:
    """Refuses to change a chunk's pairs once it has taught, or is teaching.

    Raises:
        UsageProblem: it has.
    """
    if is_probes(chunk):
        raise UsageProblem(
            f"Chunk {chunk.id} holds the built-in checks that every update is measured by; "
            "its pairs stay what they were."
        )
    learned = [one.id for one in workspace.releases.releases() if chunk.id in one.manifest.chunks]
    if learned:
        raise UsageProblem(
            phrase(
                "{releases} learned from chunk {chunk}, so its pairs stay what they were. Upload "
                "these as a chunk of their own.",
                releases=", ".join(learned),
                chunk=chunk.id,
            )
        )
    for state in ("queued", "running"):
        for job in workspace.catalog.jobs(state=state):
            if job.kind == "update" and job.arguments.get("chunk") == chunk.id:
                raise UsageProblem(
                    phrase(
                        "Job {job} is learning from chunk {chunk}. Decide when it has ended.",
                        job=job.id,
                        chunk=chunk.id,
                    )
                )


def _wanted(
    workspace: Workspace, chunk: ChunkRecord, accept: Sequence[int], leave_out: Sequence[int]
) -> list[AsidePair]:
    """Returns the pairs that are named, after refusing what cannot be decided."""
    asked = {*accept, *leave_out}
    if not asked:
        raise UsageProblem(phrase("No pair is named: say which to accept, and which to leave out."))
    if len(asked) > MOST_AT_ONCE:
        raise UsageProblem(
            phrase(
                "{count} pairs are named; decide at most {most} at once.", count=len(asked), most=MOST_AT_ONCE
            )
        )
    both = sorted({*accept} & {*leave_out})
    if both:
        raise UsageProblem(f"Pair {_listed(both)} is named to be accepted and to be left out; say which.")
    if chunk.standing == WITHDRAWN:
        raise UsageProblem(
            phrase(
                "Chunk {chunk} is withdrawn ({why}): nothing of it is decided.",
                chunk=chunk.id,
                why=chunk.standing_why,
            )
        )
    found = {pair.id: pair for pair in workspace.catalog.aside.named(asked)}
    strange = sorted(n for n in asked if n not in found or found[n].chunk != chunk.id)
    if strange:
        raise UsageProblem(
            phrase(
                "Chunk {chunk} has no held pair {pairs}. `perennial held {chunk}` lists those it has.",
                chunk=chunk.id,
                pairs=_listed(strange),
            )
        )
    for pair in found.values():
        if pair.outcome == "rejected":
            raise UsageProblem(
                phrase(
                    "Pair {pair} was rejected and cannot be taken in: {why} Correct it and upload it again.",
                    pair=pair.id,
                    why=pair.sentence,
                )
            )
        if pair.decided == "accepted":
            raise UsageProblem(
                phrase(
                    "Pair {pair} was accepted already, by {name} ({time} UTC).",
                    pair=pair.id,
                    name=pair.decided_by,
                    time=pair.decided_at[:16],
                )
            )
    return list(found.values())


def _sentence(
    chunk: ChunkRecord, accepted: Sequence[AsidePair], left: Sequence[AsidePair], new_pictures: int
) -> str:
    said = []
    if len(accepted) == 1:
        said.append(phrase("Pair {pair} belongs to chunk {chunk} now.", pair=accepted[0].id, chunk=chunk.id))
    elif accepted:
        ids = _listed([pair.id for pair in accepted])
        said.append(phrase("Pairs {pairs} belong to chunk {chunk} now.", pairs=ids, chunk=chunk.id))
    if len(left) == 1:
        said.append(phrase("Pair {pair} is left out.", pair=left[0].id))
    elif left:
        said.append(phrase("Pairs {pairs} are left out.", pairs=_listed([pair.id for pair in left])))
    if new_pictures:
        said.append(phrase("New pictures: {count}; search finds them in a moment.", count=new_pictures))
    return joined(said)


def _taken_out(ids: Sequence[int], chunk: str) -> str:
    if len(ids) == 1:
        return phrase("Pair {pair} taken out of chunk {chunk}.", pair=ids[0], chunk=chunk)
    return phrase("Pairs {pairs} taken out of chunk {chunk}.", pairs=_listed(ids), chunk=chunk)


def _listed(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:10]))
    return phrase("{names} and {count} more", names=shown, count=len(ids) - 10) if len(ids) > 10 else shown
