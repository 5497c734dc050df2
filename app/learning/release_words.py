"""A person's word on a release: reject a candidate with a note, keep it, pin what is live.

A pin says that what is live stays live: what an update or a removal makes waits as a candidate, and promoting another
version by hand asks to unpin first. Pictures are added all the same, and going back stays possible whatever is pinned.
"""

from app.desk.errors import UsageProblem
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from ingest.release_words import JUDGEMENTS, PINS, ReleaseWord
from ingest.sentence import joined, phrase


def judge_release(workspace: Workspace, release: str, said: str, *, why: str, by: str) -> ReleaseWord:
    """Keeps or rejects a candidate; the newest word counts. One that is rejected leaves the shadow, too.

    `said` is `kept` or `rejected`; a rejection needs a note.

    Raises:
        UsageProblem: it is live.
        UnknownRelease, BadOption: there is no such release or word, or a rejection has no reason.
    """
    record = workspace.releases.release(release)
    commit = workspace.releases.current()
    if said == "rejected" and commit is not None and commit.release == record.id:
        raise UsageProblem(
            phrase("{release} is live. Go back to another release first, then reject it.", release=record.id)
        )
    word = workspace.catalog.release_words.say(record.id, said, by=by, why=why)
    if said == "rejected":
        workspace.catalog.shadows.stop(record.id, by=by, why=phrase("it was rejected"))
    return word


def judgement(workspace: Workspace, release: str) -> ReleaseWord | None:
    """Returns the newest word that keeps or rejects a release, if any."""
    words = workspace.catalog.release_words.all()
    return next((one for one in words if one.release == release and one.said in JUDGEMENTS), None)


def pin(workspace: Workspace, *, why: str, by: str) -> ReleaseWord:
    """Pins what is live.

    Raises:
        UsageProblem: nothing is live, or it is pinned already.
    """
    commit = workspace.releases.current()
    if commit is None:
        raise UsageProblem(phrase("Nothing is live, so nothing can be pinned."))
    standing = pinned(workspace)
    if standing is not None:
        raise UsageProblem(joined((pin_sentence(standing), phrase("There is nothing to do."))))
    return workspace.catalog.release_words.say(commit.release, "pinned", by=by, why=why)


def unpin(workspace: Workspace, *, why: str, by: str) -> ReleaseWord:
    """Takes the pin away.

    Raises:
        UsageProblem: nothing is pinned.
    """
    standing = pinned(workspace)
    if standing is None:
        raise UsageProblem(phrase("Nothing is pinned: what passes may go live."))
    return workspace.catalog.release_words.say(standing.release, "unpinned", by=by, why=why)


def pinned(workspace: Workspace) -> ReleaseWord | None:
    """Returns the pin that holds the live version, if there is one; a pin on what is not live holds nothing."""
    newest = next((one for one in workspace.catalog.release_words.all() if one.said in PINS), None)
    commit = workspace.releases.standing().commit  # a home without an intact commit is mended by promoting
    if newest is None or newest.said != "pinned" or commit is None:
        return None
    held = workspace.releases.readable(newest.release)
    live = workspace.releases.readable(commit.release)
    same = held is not None and live is not None and held.version == live.version
    return newest if same else None


def require_free(workspace: Workspace, record: ReleaseRecord, *, force: bool) -> None:
    """Refuses to promote past a pin, and what a person rejected unless with `force`.

    Raises:
        UsageProblem: the sentence says whose word stands against it, and what to do.
    """
    standing = pinned(workspace)
    if standing is not None:
        held = workspace.releases.release(standing.release)
        if held.version != record.version:
            first = phrase("Unpin it first: `perennial unpin`, or on the Releases page.")
            raise UsageProblem(joined((pin_sentence(standing), first)))
    word = judgement(workspace, record.id)
    if word is not None and word.said == "rejected" and not force:
        raise UsageProblem(
            f"{word.by} rejected {record.id}: {word.why} Promote it with --force in spite of this."
        )


def pin_sentence(word: ReleaseWord) -> str:
    """Says what is pinned, by whom and why."""
    since = word.created[:16].replace("T", " ")
    said = {"release": word.release, "name": word.by, "time": since}
    if not word.why:
        return phrase("{release} is pinned by {name} since {time} UTC.", **said)
    return phrase("{release} is pinned by {name} since {time} UTC: {why}.", **said, why=word.why.rstrip("."))
