"""What mends a home whose newest release is damaged: its index is made again, or the release before it goes live.

An index is made of vectors that are kept; only pictures of which none are kept are embedded. Weights that no teaching
has changed are those of the installed encoder. Others cannot be made again: the newest release whose version is whole
takes the place, with all pictures of today. Nothing is removed; what is put back from a backup can be promoted again.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.desk.health import RepairPlan
from app.desk.jobs import Stage
from app.home.durable import FileSystem, sha256_of
from app.home.in_bucket import put_back
from app.home.releases import ReleaseRecord
from app.home.store import Standing
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.adding import extend_gallery
from app.learning.beginning import version_writer
from app.learning.gallery import sound
from app.learning.outcomes import Tell, say_nothing
from ingest.sentence import joined, phrase
from model_updates.embedded import EMBEDDED
from model_updates.errors import ModelUpdateError, NeedsLearning
from model_updates.features import IMAGE, NoCache, trunk_features
from model_updates.search_encoder import SearchEncoder
from model_updates.version_files import GRAPHS, MANIFEST, read_manifest

_LOOKED_UP = 256  # pictures that tell how many vectors are kept
_EMBEDDED = 3  # pictures that tell how long one takes


@dataclass(frozen=True, slots=True)
class Mended:
    """What mending did."""

    release: str  # that is live now
    images_embedded: int
    sentence: str


def plan(workspace: Workspace) -> RepairPlan:
    """Says what mending would do and how long it would take; reads every byte of what is live.

    Raises:
        NoRelease: nothing can be served, and nothing is left to make it of.
    """
    standing = _standing(workspace)
    if not standing.skipped:
        return RepairPlan()
    version, lost = _lost_files(workspace)
    if lost:
        said = phrase(
            "{count} damaged files of {version} are taken from the installed encoder, where it has them.",
            count=len(lost),
            version=version,
        )
        return RepairPlan((standing.skipped[0].why, said))
    _, record = going_live.live_but_for_its_index(workspace)
    held = sound(workspace, record.generation)
    ids = workspace.catalog.gallery_ids()
    lacking = ids if held is None else [one for one in ids if one not in set(held.among(ids))]
    embedded, seconds = _forecast(workspace, workspace.open_searcher(record.version), lacking)
    steps = [
        phrase(
            "Commit {number} is damaged: {why}",
            number=standing.skipped[0].number,
            why=standing.skipped[0].why,
        )
    ]
    if _is_older(workspace, standing, record):
        steps.append(phrase("{release} goes live in its place.", release=record.id))
    if lacking:
        steps.append(
            phrase(
                "{count} pictures become searchable again in about {seconds} s; {embedded} of them are embedded anew.",
                count=len(lacking),
                seconds=f"{seconds:.0f}" if seconds >= 1 else "1",
                embedded=embedded,
            )
        )
    return RepairPlan(tuple(steps), len(lacking), embedded, seconds)


def mend(workspace: Workspace, *, by: str, told: str = "", progress: Tell = say_nothing) -> Mended:
    """Mends what is live; what is `told` already of the catalog comes first in what it says.

    Raises:
        NoRelease: nothing can be served, and nothing is left to make it of.
        ParentMoved: other releases kept going live meanwhile.
    """
    skipped = _standing(workspace).skipped
    if skipped and _fetched_again(workspace, progress):
        skipped, told = (
            _standing(workspace).skipped,
            joined(filter(None, [told, phrase("What was damaged was fetched again.")])),
        )
    embedded = 0
    if skipped and not (_made_whole(workspace, progress) and not _standing(workspace).skipped):
        why = f"commit {skipped[0].number} is damaged"
        _, embedded = extend_gallery(workspace, why=why, by=by, progress=progress, in_place=True)
        standing = workspace.releases.standing()
        if standing.skipped and standing.commit is not None:  # it has all pictures already
            commit = standing.commit
            workspace.releases.commit(commit.release, parent=commit.number, reason="rollback", why=why, by=by)
    live = going_live.live_release(workspace)[1].id
    bucket = put_back(workspace.home, workspace.catalog)
    if skipped:
        said = phrase("{release} is live with all pictures; nothing of it is damaged.", release=live)
    else:
        said = phrase("Nothing of {release} is damaged; there was nothing to mend.", release=live)
    told_of = [told, said if skipped or not bucket else "", bucket]
    return Mended(live, embedded, joined(filter(None, told_of)))


def _standing(workspace: Workspace) -> Standing:
    """Returns what the commit log says once every byte of what is live was read, and of what was marked before it."""
    releases = workspace.releases
    sound = ""
    for one in releases.history()[-1:]:
        record = releases.readable(one.release)
        # It may have been put back; until it is read, nobody trusts it.
        if record is not None and record.pruned is None and not releases.find_damage(record):
            sound = record.id
            for name in (record.id, record.version, record.generation):
                releases.damage.forget(name)
    return releases.read_through(sound)


def _fetched_again(workspace: Workspace, progress: Tell) -> bool:
    """Fetches what is damaged of the newest release, where other machines have it; says whether anything was."""
    newest = workspace.releases.history()[-1:]
    record = workspace.releases.readable(newest[0].release) if newest else None
    if record is None or record.pruned is not None:
        return False
    progress(Stage("repair", phrase("looking for what is damaged where it was published")))
    fetched = workspace.releases.fetch_damaged(record)
    workspace.forget_version(record.version)
    return bool(fetched)


def _lost_files(workspace: Workspace) -> tuple[str, list[str]]:
    """Returns the version of what went live last, and its damaged files; none where only the index is."""
    newest = workspace.releases.history()[-1:]
    record = workspace.releases.readable(newest[0].release) if newest else None
    if record is None or not (workspace.home.versions / record.version / MANIFEST).is_file():
        return "", []
    folder = workspace.home.versions / record.version
    try:
        digests = {name: said["sha256"] for name, said in read_manifest(folder)["files"].items()}
    except (ModelUpdateError, KeyError, TypeError, AttributeError):  # it is the manifest that is damaged
        return "", []
    return record.version, [
        name
        for name, digest in digests.items()
        if not name.startswith(GRAPHS)
        and not ((folder / name).is_file() and sha256_of(folder / name) == digest)
    ]


def _made_whole(workspace: Workspace, progress: Tell) -> bool:
    """Takes damaged files of the newest version from the encoder that is installed; says whether it had all.

    What no teaching has changed is the same there to the byte, and an encoder that nobody taught is so as a whole.
    """
    version, lost = _lost_files(workspace)
    folder, files = workspace.home.versions / version, FileSystem()
    if not lost or (said := read_manifest(folder))["architecture"] not in EMBEDDED:
        return False
    try:
        write = version_writer(said["architecture"])
    except NeedsLearning:  # who has no torch restores a backup
        return False
    progress(Stage("repair", phrase("taking damaged files from the installed encoder")))
    with tempfile.TemporaryDirectory(dir=workspace.home.staging) as place:
        write(Path(place), {})
        for name in lost:
            made = Path(place) / name
            if made.is_file() and sha256_of(made) == said["files"][name]["sha256"]:
                files.fsync_file(made)
                files.rename(made, folder / name)  # other versions that have the damaged one keep it
                files.fsync_dir(folder)
    workspace.forget_version(version)
    return not _lost_files(workspace)[1]


def _is_older(workspace: Workspace, standing: Standing, record: ReleaseRecord) -> bool:
    newest = standing.skipped[0].number
    return all(one.release != record.id for one in workspace.releases.history() if one.number == newest)


def _forecast(workspace: Workspace, encoder: SearchEncoder, ids: Sequence[str]) -> tuple[int, float]:
    """Returns how many of some pictures have to be embedded, and seconds for all, by trying a few of each kind."""
    some = ids[:: max(1, len(ids) // _LOOKED_UP)]
    if not some:
        return 0, 0.0
    started = time.perf_counter()
    _, known = workspace.features.get(encoder.trunk_fingerprint(), IMAGE, some, encoder.trunk_dim)
    each_kept = (time.perf_counter() - started) / len(some)
    unknown = [one for one, is_known in zip(some, known.tolist(), strict=True) if not is_known]
    embedded = round(len(ids) * len(unknown) / len(some))
    each_embedded = 0.0
    if unknown:
        tried = unknown[:_EMBEDDED]
        started = time.perf_counter()
        trunk_features(encoder, tried, workspace.load_image, NoCache())
        each_embedded = (time.perf_counter() - started) / len(tried)
    return embedded, len(ids) * each_kept + embedded * each_embedded
