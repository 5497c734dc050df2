"""Pruning: old releases give up encoder and index, so that the disk has room; what they say of themselves stays.

Nothing goes that is live, would be gone back to, is pinned, in the shadow, looked at, or named by a job that is not
over; nor one of the newest. An encoder that the line of a kept release started from stays, as strategies go back to it.
What was live and is pruned is no longer measured beside candidates (`past.py`).
"""

from collections.abc import Collection, Iterator

from app.desk.errors import UsageProblem
from app.desk.releases import Going, PrunePlan, Staying
from app.home import garbage
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.release_words import pinned
from ingest.sentence import Sentence, phrase


def plan(workspace: Workspace, keep: int, *, in_use: Collection[str] = ()) -> PrunePlan:
    """Returns what pruning would remove where the `keep` newest releases stay; nothing is changed.

    Raises:
        NoRelease: nothing is live.
        ReleaseDamaged: a release cannot be read, so nobody knows what it needs.
    """
    records = [record for record in reversed(workspace.releases.releases()) if record.pruned is None]
    reasons = dict(_reasons(workspace, records, keep, in_use))
    going = [record for record in records if record.id not in reasons]
    folders = garbage.given_up_by(workspace.releases, {record.id for record in going})
    size = workspace.releases.freed_by(folders)
    said = phrase(
        "Of {all} releases {count} would go; their reports and their history stay.",
        all=len(records),
        count=len(going),
    )
    return PrunePlan(
        going=tuple(_going(workspace, going)),
        staying=tuple(Staying(record.id, reasons[record.id]) for record in records if record.id in reasons),
        folders=tuple(folder.name for folder in folders),
        bytes=size,
        sentence=said,
    )


def prune(
    workspace: Workspace,
    releases: Collection[str],
    keep: int,
    *,
    in_use: Collection[str] = (),
    why: str,
    by: str,
) -> PrunePlan:
    """Removes what a plan named: all of `releases` must be in today's plan; returns what was removed.

    Raises:
        UsageProblem: one of them stays, for the reason that is said; nothing was removed.
        UpdateRunning, NoRelease, ReleaseDamaged: nothing was removed.
    """
    with workspace.releases.updater_lock("pruning releases"):
        today = plan(workspace, keep, in_use=in_use)
        names = [workspace.releases.release(name).id for name in releases]
        stays = {one.release: one.why for one in today.staying}
        for name in names:
            if name in stays:
                raise UsageProblem(
                    phrase("{release} stays: {why} Nothing was pruned.", release=name, why=stays[name])
                )
        going = tuple(one for one in today.going if one.release in names)
        folders = garbage.given_up_by(workspace.releases, names)
        size = workspace.releases.freed_by(folders)
        for folder in folders:
            workspace.forget_version(folder.name)
        removed = garbage.prune(workspace.releases, [one.release for one in going], by=by, why=why)
    removed += workspace.drop_vectors()
    said = phrase("{count} releases were pruned; their reports and their history stay.", count=len(going))
    return PrunePlan(going, today.staying, tuple(removed), size, said)


def _reasons(
    workspace: Workspace, records: list[ReleaseRecord], keep: int, in_use: Collection[str]
) -> Iterator[tuple[str, Sentence]]:
    """Yields releases that stay, each with a reason; the last one said of a release counts."""
    commit, live = going_live.live_release(workspace)
    jobs = [job for job in workspace.catalog.jobs() if job.id in garbage.resumable([job])]
    named = str([[job.arguments, job.result] for job in jobs])
    for record in records:
        if record.id in named:
            yield record.id, phrase("a job that is not over names it.")
    for name in in_use:
        yield name, phrase("somebody compares it just now.")
    for record in records[:keep]:
        yield record.id, phrase("it is one of the {count} newest.", count=keep)
    if (shadow := workspace.catalog.shadows.active()) is not None:
        yield shadow.release, phrase("it is in the shadow.")
    if (back := going_live.before(workspace, commit)) is not None:
        yield back, phrase("going back would make it live.")
    if (pin := pinned(workspace)) is not None:
        yield pin.release, phrase("it is pinned.")
    yield live.id, phrase("it is live.")


def _going(workspace: Workspace, records: list[ReleaseRecord]) -> Iterator[Going]:
    was_live = {commit.release for commit in workspace.releases.history()}
    for record in records:
        yield Going(record.id, record.version, record.manifest.created or "", record.id in was_live)
