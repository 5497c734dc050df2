"""What a person says of a chunk: that it may teach, that it may measure, or that nothing of it shall count any more."""

from app.desk.chunks import Withdrawn
from app.desk.errors import ChunkHeld, UsageProblem
from app.desk.probes import is_probes
from app.home.workspace import Workspace
from app.learning import going_live
from ingest.findings import Outcome, findings_in
from ingest.records import ChunkRecord
from ingest.sentence import joined, phrase
from ingest.standing import WITHDRAWN


def withdraw(workspace: Workspace, chunk: str, *, why: str, by: str) -> Withdrawn:
    """Takes a chunk's pairs and pictures out of training, yardstick and gallery.

    The live index still holds its pictures until somebody makes the gallery whole (`adding.extend_gallery`). What
    encoders learned from it stays learned; the answer says which, and how to go back.

    Raises:
        UnknownChunk: none or several match.
        UsageProblem: it cannot be withdrawn, or no reason was given.
    """
    record = workspace.catalog.chunk(chunk)
    if record.standing == WITHDRAWN:
        raise UsageProblem(
            phrase("Chunk {chunk} is withdrawn already ({why}).", chunk=record.id, why=record.standing_why)
        )
    if is_probes(record) and record.id == workspace.catalog.standings()[0].id:
        raise UsageProblem(
            phrase(
                "Chunk {chunk} holds the built-in checks that every update is measured by; it cannot be withdrawn.",
                chunk=record.id,
            )
        )
    require_reason(why, f'perennial withdraw {record.id} --why "its captions are wrong"')
    before = workspace.catalog.gallery_size()
    record = workspace.catalog.set_standing(record.id, "withdrawn", by=by, why=why)
    workspace.blobs.drop_aside(workspace.catalog.aside.clear(record.id))
    pictures = before - workspace.catalog.gallery_size()
    learned = tuple(one.id for one in workspace.releases.releases() if record.id in one.manifest.chunks)
    back_to = _last_without(workspace, record.id)
    return Withdrawn(
        record, pictures, learned, back_to, _sentence(workspace, record, pictures, learned, back_to)
    )


def accept(workspace: Workspace, chunk: str, *, why: str, by: str, measure: bool = False) -> ChunkRecord:
    """Lets a chunk teach in spite of what its checks found; with `measure` its held-out pairs measure others at once.

    Raises:
        UnknownChunk: none or several match.
        UsageProblem: it is withdrawn, or no reason was given.
    """
    record = workspace.catalog.chunk(chunk)
    if record.standing == WITHDRAWN:
        raise UsageProblem(
            phrase(
                "Chunk {chunk} is withdrawn ({why}). Upload it again to take it in anew.",
                chunk=record.id,
                why=record.standing_why,
            )
        )
    require_reason(why, f'perennial accept {record.id} --why "I looked at its captions"')
    return workspace.catalog.set_standing(
        record.id, "accepted", by=by, why=why, measures=True if measure else None
    )


def require_teachable(chunk: ChunkRecord) -> None:
    """Refuses to learn from a chunk that waits for a person's word, or was withdrawn.

    Raises:
        ChunkHeld: with what its checks found, and what to do.
    """
    if chunk.standing == WITHDRAWN:
        raise ChunkHeld(
            phrase(
                "Chunk {chunk} is withdrawn ({why}). Upload it again to take it in anew.",
                chunk=chunk.id,
                why=chunk.standing_why,
            )
        )
    if chunk.standing != "held":
        return
    against = [f for f in findings_in(chunk.report) if f.outcome in (Outcome.HOLD, Outcome.REJECT)]
    found = joined(finding.sentence for finding in against) or chunk.standing_why
    raise ChunkHeld(
        phrase(
            "Chunk {chunk} is held and teaches nothing yet. {found} Look with `perennial check {chunk}`; then "
            '`perennial accept {chunk} --why "…"` lets it teach, '
            '`perennial withdraw {chunk} --why "…"` takes it out.',
            chunk=chunk.id,
            found=found,
        )
    )


def require_reason(why: str, example: str) -> None:
    """Refuses to say something of a chunk without a reason.

    Raises:
        UsageProblem: none was given; the example says how.
    """
    if not why.strip():
        raise UsageProblem(
            phrase("Say why: the reason is kept with the chunk. For example: {command}", command=example)
        )


def _last_without(workspace: Workspace, chunk: str) -> str | None:
    """Returns the newest release that was live without a chunk, if what is live has learned from it."""
    _, live = going_live.live_release(workspace)
    if chunk not in live.manifest.chunks:
        return None
    for commit in reversed(workspace.releases.history()):
        record = workspace.releases.readable(commit.release)
        if record is not None and chunk not in record.manifest.chunks:
            return record.id
    return None


def _sentence(
    workspace: Workspace, chunk: ChunkRecord, pictures: int, learned: tuple[str, ...], back_to: str | None
) -> str:
    said = (
        phrase(
            "Chunk {chunk} is withdrawn: nothing of it is trained on or measured by from now on, and {count} pictures "
            "leave the gallery.",
            chunk=chunk.id,
            count=pictures,
        )
        if pictures
        else phrase(
            "Chunk {chunk} is withdrawn: nothing of it is trained on or measured by from now on.",
            chunk=chunk.id,
        )
    )
    if not learned:
        return joined((said, phrase("No release learned from it.")))
    said += " " + phrase("Releases that learned from it: {releases}.", releases=", ".join(learned))
    if back_to is not None:
        live = going_live.live_release(workspace)[1].id
        said += " " + phrase(
            "{live}, which is live, is one of them: `perennial rollback {release}` goes back "
            "to the last one that is not, and gives up what was learned since; `perennial "
            'remove {chunk} --why "…"` teaches that again without this chunk.',
            live=live,
            release=back_to,
            chunk=chunk.id,
        )
    return said
