"""What is live, and how that changes by hand: promote, roll back, measure.

Each changes one small file at most, so search follows in seconds; none needs the updater lock.
"""

from collections.abc import Collection
from functools import cache

from app.desk.errors import NoRelease, NothingBefore, ReleaseDamaged, UsageProblem
from app.home.commits import CommitRecord, now
from app.home.foreign import ORIGIN
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning import gallery
from app.learning.apart import try_release
from app.learning.past import debt_of, side_of
from app.learning.release_words import require_free
from app.learning.untaught import known_to
from app.learning.yardstick import ALL_VIEWS, Yardstick
from index.errors import GenerationDamaged
from ingest.sentence import phrase
from model_updates.errors import VersionDamaged
from model_updates.evaluation import View
from model_updates.gate.report import points
from model_updates.measurement import Results, measure_views


def promote(workspace: Workspace, release: str, *, why: str, by: str, force: bool = False) -> CommitRecord:
    """Makes a published release live.

    What a release loses whose gate asked for a review is recorded in the commit as accepted (`app.learning.past`).

    Raises:
        UsageProblem: it is live already; its gate asked for a review, or a person rejected it, and `force` is not
            given; its gate asked for a review, and no reason is given; or what is live is pinned.
        UnknownRelease, ReleaseDamaged, ParentMoved: nothing changed.
    """
    record = workspace.releases.release(release).require_kept()
    # Not `current`: this is how a home without an intact one is mended.
    live = workspace.releases.standing().commit
    if live is not None and live.release == record.id:
        raise UsageProblem(phrase("{release} is live already.", release=record.id))
    if record.manifest.verdict == "review":
        _require_accepted(record, why=why, force=force)
    require_free(workspace, record, force=force)
    debt = debt_of(record, who=by, why=why)
    record = _opened_cold(workspace, record)
    parent = None if live is None else live.number
    return workspace.releases.commit(record.id, parent=parent, reason="promote", why=why, by=by, debt=debt)


def _require_accepted(record: ReleaseRecord, *, why: str, force: bool) -> None:
    lost = "; ".join(
        f"{one.slice} ({one.view}) {points(-one.points)}" for one in debt_of(record, who="", why="")
    )
    if not force:
        raise UsageProblem(
            f"The gate asked a person to look at {record.id} before it goes live. "
            + (f"Making it live accepts to lose, in points: {lost}. " if lost else "")
            + f'Read `perennial gate {record.id}`, then `perennial promote {record.id} --force --why "…"`.',
            exit_code=4,
        )
    if not why.strip():
        raise UsageProblem(
            phrase(
                "The gate asked a person to decide on {release}: say why it may go live all the same. The reason is "
                "kept with your name.",
                release=record.id,
            )
        )


def rollback(workspace: Workspace, release: str | None = None, *, why: str, by: str) -> CommitRecord:
    """Makes an earlier release live again; without a name, the one that was live before the live one.

    Raises:
        NoRelease: nothing is live.
        NothingBefore: there is nothing to go back to.
        UsageProblem: the release that is named is live already, or never was.
    """
    live, _ = live_release(workspace)
    if release is None:
        release = before(workspace, live)
        if release is None:
            raise NothingBefore(
                phrase(
                    "No release of another encoder that was live before {release} is kept; there is nothing to go "
                    "back to. Name the release to change to one of the same encoder.",
                    release=live.release,
                )
            )
    record = workspace.releases.release(release).require_kept()
    if record.id == live.release:
        raise UsageProblem(
            phrase("{release} is live already; name another release to go back to.", release=record.id)
        )
    if all(commit.release != record.id for commit in workspace.releases.history()):
        raise UsageProblem(
            phrase(
                "{release} was never live, so nobody can go back to it. `perennial promote {release}` makes it live.",
                release=record.id,
            )
        )
    record = _opened_cold(workspace, record)
    return workspace.releases.commit(record.id, parent=live.number, reason="rollback", why=why, by=by)


def left_out(workspace: Workspace, release: str) -> int:
    """Returns how many pictures of the gallery a release does not hold, because they were taken in after it."""
    generation = workspace.open_generation(workspace.releases.release(release).generation)
    return len(set(workspace.catalog.gallery_ids()) - set(generation.ids))


def evaluate(
    workspace: Workspace, release: str | None = None, *, views: Collection[View] = ALL_VIEWS
) -> Results:
    """Measures a release's version (live when None) on today's trusted pairs of the languages it has learned."""
    live = live_release(workspace)[1]
    record = live if release is None else workspace.releases.release(release).require_kept()
    slices = Yardstick(workspace, live).old(record.manifest.languages, views=views)
    generation, encoder = workspace.open_generation(live.generation), workspace.open_searcher(record.version)
    side = side_of(workspace, encoder, record.manifest.languages, slices, generation)
    return measure_views(side, slices, workspace.load_image, workspace.features)


def live_release(workspace: Workspace) -> tuple[CommitRecord, ReleaseRecord]:
    """Returns what is live.

    Raises:
        NoRelease: nothing is.
    """
    commit = workspace.releases.current()
    if commit is None:
        raise NoRelease(phrase("This home has no live release yet. Run `perennial init`."))
    return commit, workspace.releases.release(commit.release)


def live_but_for_its_index(workspace: Workspace) -> tuple[int | None, ReleaseRecord]:
    """Returns the commit that is live, and the release whose version is: that of a later commit whose index is lost.

    Raises:
        NoRelease: nothing is.
    """
    last = workspace.releases.standing(with_index=False).commit
    if last is None:
        live_release(workspace)  # which says why
        raise NoRelease("Nothing is live.")
    live = workspace.releases.standing().commit
    return live.number if live else None, workspace.releases.release(last.release)


def require_newest(workspace: Workspace, release: str, *, with_index: bool = True) -> None:
    """Refuses to build on a release that answers in the place of a newer, damaged one, or is damaged itself.

    What goes live after both would take the place of the newer one, and what that had learned would be gone unsaid. A
    damaged index counts where it is `with_index`; else it is made again of what is kept.

    Raises:
        ReleaseDamaged: the sentence says what is damaged; it is marked.
    """
    record = workspace.releases.release(release)
    try:
        workspace.open_searcher(record.version)
    except VersionDamaged:
        if not workspace.releases.find_damage(record):
            raise
    skipped = workspace.releases.standing(with_index=with_index).skipped
    if skipped:
        raise ReleaseDamaged(
            phrase(
                "What went live last cannot be served: {why} Nothing is built on the release before it: run `perennial "
                "repair`, then this again.",
                why=skipped[0].why,
            )
        )


def before(workspace: Workspace, live: CommitRecord) -> str | None:
    """Returns the kept release that was live before the live version came, if any; gallery deltas are skipped.

    A rollback takes back everything since the version it went to was last live, so that going back twice goes back
    further; what was damaged, and passed over by pictures that came, is not gone back to.
    """

    @cache
    def version_of(release: str) -> str:
        record = workspace.releases.readable(release)
        return release if record is None else record.version

    trail: list[CommitRecord] = []
    for commit in workspace.releases.history():
        if commit.number > live.number:
            break
        if commit.reason == "rollback":
            version = version_of(commit.release)
            back = (at for at in reversed(range(len(trail))) if version_of(trail[at].release) == version)
            del trail[next(back, len(trail)) :]
        elif commit.reason == "ingest" and commit.parent is not None:
            while trail and trail[-1].number > commit.parent:
                trail.pop()
        trail.append(commit)
    for commit in reversed(trail):
        record = workspace.releases.readable(commit.release)
        if record is not None and record.pruned is None and record.version != version_of(live.release):
            return record.id
    return None


def publish_pictures(
    workspace: Workspace, record: ReleaseRecord, embedded: gallery.PublishedGeneration
) -> str:
    """Publishes a release of the same version as another with today's pictures, and returns its id."""
    figures = gallery.require_published(workspace, embedded, workspace.open_searcher(record.version), record)
    return workspace.releases.publish_release(
        record.manifest.successor(
            record.id,
            generation=embedded.generation,
            mode="delta",
            images_embedded=embedded.images_embedded,
            integrity=figures,
            gate=None,
            created=now(),
        )
    )


def _opened_cold(workspace: Workspace, record: ReleaseRecord) -> ReleaseRecord:
    """Loads a release cold, as a server would, before anything points at it; returns it.

    Where its index is damaged, returns one of the same version for which what is lost was made again.
    """
    # Another home made it, and this one may have taken it in untried.
    if ORIGIN in record.manifest.files and all(
        one.release != record.id for one in workspace.releases.history()
    ):
        workspace.releases.version_folder(record.version)  # it may have been taken in on another machine
        try_release(workspace.settings, record.id, workspace.releases.version_bytes(record.version))
    encoder = workspace.open_searcher(record.version)
    try:
        generation = workspace.open_generation(record.generation)
    except GenerationDamaged:
        left, known = gallery.sound(workspace, record.generation), known_to(workspace, record)
        embedded = gallery.embed_gallery(
            workspace, encoder, previous=left, known=known, version=record.version
        )
        return workspace.releases.release(publish_pictures(workspace, record, embedded))
    gallery.require_own(workspace, generation, encoder)
    return record
