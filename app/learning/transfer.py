"""A release carried from one home to another: the encoder travels, each home embeds its own gallery.

Vectors stay behind on purpose. They are of the pictures of the home that made them, and an index file from outside is
nothing to be opened; so whoever takes a release in pays for embedding, and gets vectors that nobody can have made up.
What came in is a release like any other and not live: it can be compared, measured and promoted.
"""

import json
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.desk.errors import PackageDamaged, ReleaseDamaged, UsageProblem
from app.desk.jobs import Stage
from app.desk.releases import Exported, Imported
from app.desk.troubles import saying_what_is_missing
from app.home.commits import CommitRecord, now
from app.home.durable import room, sha256_of
from app.home.enough import require_room
from app.home.foreign import ORIGIN, require_plain
from app.home.manifest import ReleaseManifest
from app.home.package import place_of, read_package, write_package
from app.home.releases import ReleaseRecord
from app.home.settings import Settings
from app.home.shared import MANIFEST
from app.home.workspace import Workspace
from app.learning import gallery, going_live
from app.learning.apart import try_package
from app.learning.outcomes import Tell, say_nothing
from app.learning.probes import write_probes
from app.learning.quality import summaries
from app.learning.yardstick import held_out, usable_chunks
from ingest.sentence import phrase
from model_updates.errors import ModelUpdateError, NeedsLearning
from model_updates.measurement import Measured, measure
from model_updates.portable_encoder import PortableEncoder, is_portable
from model_updates.search_encoder import SearchEncoder
from model_updates.version_files import read_manifest

REPORT = "report.md"
_ON_DISK, _IN_MEMORY = 2, 4  # copies of a package, at most, while it is tried and then taken in
_PROCESS_BYTES = 1000 << 20  # of a process that has loaded what opens an encoder


def export_release(workspace: Workspace, release: str, target: Path) -> Exported:
    """Writes a release into one file, after every byte of it was compared with its manifests.

    `target` is the file, or a folder that it goes into under its id (`app.home.package.place_of`).

    Raises:
        UnknownRelease, ReleaseDamaged, NoSpace: nothing was written.
        UsageProblem: the file is there already, or the folder above it is not.
    """
    record = workspace.releases.verify_release(release)
    target = place_of(record.id, target)
    version = workspace.releases.version_folder(record.version)
    names = [MANIFEST, *workspace.version_manifest(record.version)["files"]]  # type: ignore[misc]
    files = {f"version/{name}": version / name for name in names}
    files |= {f"release/{name}": record.folder / name for name in (MANIFEST, *record.manifest.files)}
    require_room(phrase("This export"), target.parent, disk=room(*files.values()))
    facts = {"release": record.id, "version": record.version, "languages": list(record.manifest.languages)}
    sha256 = write_package(target, files, facts)
    return Exported(record.id, target, target.stat().st_size, sha256)


def export_to_open_clip(workspace: Workspace, release: str, target: Path) -> Exported:
    """Writes a release's encoder into a folder that plain open_clip opens, without Perennial.

    The folder is not there yet, or empty.

    Raises:
        UnknownRelease, ReleaseDamaged, NotPlain, NoSpace: nothing was written.
        UsageProblem: something is there already, or the folder above it is not.
    """
    from model_updates.open_clip_folder import WEIGHTS, require_plain, write_open_clip_folder

    record = workspace.releases.verify_release(release)
    require_new_folder(target)
    encoder = workspace.open_encoder(record.version)
    require_plain(encoder)
    size = sum(value.nbytes for value in encoder.model.state_dict().values())
    require_room(phrase("This export"), target.parent, disk=size)
    target.mkdir(exist_ok=True)
    write_open_clip_folder(encoder, target)
    weights = target / WEIGHTS
    return Exported(record.id, target, weights.stat().st_size, sha256_of(weights))


def require_new_folder(target: Path) -> None:
    """Refuses a place that is neither an empty folder nor a new one in a folder that exists.

    Raises:
        UsageProblem: it is something else.
    """
    is_taken = target.exists() and (not target.is_dir() or any(target.iterdir()))
    if is_taken or not target.absolute().parent.is_dir():
        raise UsageProblem(
            f"{target} is no empty folder, nor a new one in a folder that exists; name another."
        )


def import_release(
    workspace: Workspace, source: Path, *, sha256: str | None = None, progress: Tell = say_nothing
) -> Imported:
    """Takes a release in: checks every byte, embeds the gallery with its encoder, and publishes it; it is not live.

    `sha256` is what its export named; None trusts the package to be what it says.

    Raises:
        PackageDamaged, NewerFormat: the file is not what an export wrote.
        UsageProblem: this home has that encoder already.
        NoRelease, UpdateRunning, NoSpace: nothing was taken in.
    """
    _require_file(source)
    with workspace.releases.updater_lock("importing a release"):
        live = going_live.live_release(workspace)[1]
        return _tried_and_taken_in(workspace, source, sha256, live, progress)


def begin_with(
    settings: Settings, source: Path, *, sha256: str | None = None, progress: Tell = say_nothing
) -> CommitRecord:
    """Makes a home whose first release is one of another home; a version with graphs needs no torch for it.

    Raises:
        PackageDamaged, NewerFormat: the file is not what an export wrote; the home has no release.
        UsageProblem: there is no such file, or the home already has a release.
    """
    _require_file(source)
    with Workspace.create(settings) as workspace, workspace.releases.updater_lock("making the home"):
        if workspace.releases.standing().highest:
            raise UsageProblem(f"{settings.home} already has releases; `perennial status` shows them.")
        write_probes(workspace)
        came = _tried_and_taken_in(workspace, source, sha256, None, progress)
        why = f"{came.origin} of another home"
        return workspace.releases.commit(came.release, parent=None, reason="init", why=why, by="init")


def _require_file(source: Path) -> None:
    if not source.is_file():
        raise UsageProblem(f"There is no file {source}; name one that `perennial export` wrote.")


def _tried_and_taken_in(
    workspace: Workspace, source: Path, sha256: str | None, live: ReleaseRecord | None, progress: Tell
) -> Imported:
    size = source.stat().st_size
    require_room(
        phrase("Taking this release in"),
        workspace.home.root,
        disk=_ON_DISK * size,
        memory=2 * _PROCESS_BYTES + _IN_MEMORY * size,  # of the process that tries it, and of this one
    )
    progress(Stage("import", phrase("trying {name} apart", name=source.name)))
    _read_apart(workspace, source, sha256)
    try_package(workspace.settings, source)
    return take_in(workspace, source, sha256, live, progress)


def _read_apart(workspace: Workspace, source: Path, sha256: str | None) -> None:
    """Refuses a package by what it says of itself, or that is here already, before a process is started for it."""
    with tempfile.TemporaryDirectory(dir=workspace.home.staging) as place:
        read_package(source, Path(place), sha256=sha256)
        require_plain(source.name, Path(place))
        _require_new(workspace, workspace.releases.known_version(Path(place) / "version"), source)


def take_in(
    workspace: Workspace,
    source: Path,
    sha256: str | None = None,
    live: ReleaseRecord | None = None,
    progress: Tell = say_nothing,
) -> Imported:
    """Takes a package in that was tried, or is being tried; what follows `live`, where something is."""
    staged = workspace.home.staging / f"import-{uuid.uuid4().hex}"
    staged.mkdir()
    try:
        progress(Stage("import", phrase("checking {name}", name=source.name)))
        facts = read_package(source, staged, sha256=sha256)
        require_plain(source.name, staged)
        came = _manifest_of(staged, source)
        version = _publish(workspace, staged, source)
        extras = {ORIGIN: (staged / "release" / MANIFEST).read_bytes()}
        if (staged / "release" / REPORT).is_file():
            extras[REPORT] = (staged / "release" / REPORT).read_bytes()
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    origin = str(facts.get("release", ""))
    manifest = _embedded(workspace, version, origin, came, live, progress)
    release = workspace.releases.publish_release(manifest, extras)
    return Imported(release, version, origin, manifest.languages, manifest.images_embedded or 0)


def taken_in(workspace: Workspace, told: Mapping[str, str]) -> Imported | None:
    """Returns the release that an earlier worker took in before it died, by what it `told` shortly before."""
    for one in workspace.releases.releases():
        if one.version == told["version"] and one.pruned is None:
            said = one.manifest
            return Imported(one.id, one.version, told["origin"], said.languages, said.images_embedded or 0)
    return None


def _manifest_of(staged: Path, source: Path) -> ReleaseManifest:
    try:
        said: dict[str, Any] = json.loads((staged / "release" / MANIFEST).read_bytes())
        return ReleaseManifest.from_json(said)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PackageDamaged(f"{source.name} is refused: its release cannot be read ({error!r}).") from error


def _publish(workspace: Workspace, staged: Path, source: Path) -> str:
    """Publishes the version in a package after its encoder was opened and is what it says."""
    try:
        encoder, said = _opened(staged / "version"), read_manifest(staged / "version")
    except NeedsLearning:
        raise
    except (ModelUpdateError, KeyError, TypeError, ValueError, OSError) as error:
        raise PackageDamaged(
            f"{source.name} is refused: its encoder cannot be opened here ({error})."
        ) from error
    if (said.get("image_fingerprint"), said.get("text_fingerprint")) != (
        encoder.image_fingerprint(),
        encoder.text_fingerprint(),
    ):
        raise PackageDamaged(
            f"{source.name} is refused: its encoder computes something else here than where it was made. "
            "Use the same version of Perennial and the packages of its `constraints.txt`."
        )
    version = workspace.releases.publish_version(staged / "version")
    _require_new(workspace, version, source)
    return version


def _require_new(workspace: Workspace, version: str | None, source: Path) -> None:
    known = [one.id for one in workspace.releases.releases() if one.version == version and one.pruned is None]
    if known:
        raise UsageProblem(f"This home has the encoder of {source.name} already: {', '.join(known)}.")


def _opened(folder: Path) -> SearchEncoder:
    """Opens a version that lies nowhere in the home yet.

    Graphs that come along are compared with the weights, where torch is installed. Where it is not, they are all that
    is ever read here, and the checksum of the package stands for them.
    """
    if is_portable(folder) and find_spec("torch") is None:
        return PortableEncoder(folder)
    with saying_what_is_missing():
        from model_updates.portable_writer import require_same
        from model_updates.versions import load_version
    encoder = load_version(folder).encoder
    if is_portable(folder):
        require_same(folder, encoder)
    return encoder


def _embedded(
    workspace: Workspace,
    version: str,
    origin: str,
    came: ReleaseManifest,
    live: ReleaseRecord | None,
    progress: Tell,
) -> ReleaseManifest:
    """Embeds this home's gallery with the encoder, measures it on this home's pairs, and says so."""
    encoder = workspace.open_searcher(version)
    previous = None if live is None else workspace.open_generation(live.generation)
    progress(Stage("embed", phrase("embedding this home's gallery")))
    embedded = gallery.embed_gallery(workspace, encoder, previous=previous, tell=progress, version=version)
    figures = _sound(workspace, embedded, encoder)
    message, told = (
        phrase("measuring it on this home's held-out pairs"),
        {"version": version, "origin": origin},
    )
    progress(Stage("measure", message, details={"outcome": told}))
    slices = held_out(workspace, came.languages, usable_chunks(workspace, *filter(None, [live])))
    results = measure(encoder, slices, workspace.load_image, workspace.features)
    here = {chunk.id for chunk in workspace.catalog.standings()}
    return ReleaseManifest(
        version=version,
        generation=embedded.generation,
        languages=came.languages,
        chunks=tuple(chunk for chunk in came.chunks if chunk in here),
        strategy=came.strategy,
        options=came.options,
        seed=came.seed,
        mode=embedded.mode,
        images_embedded=embedded.images_embedded,
        integrity=figures,
        training=came.training,
        slices=summaries({Measured(key): result for key, result in results.items()}),
        created=now(),
    )


def _sound(
    workspace: Workspace, made: gallery.PublishedGeneration, encoder: SearchEncoder
) -> dict[str, float]:
    generation = workspace.open_generation(made.generation)
    try:
        return gallery.require_own(workspace, generation, encoder, made.pictures)
    except ReleaseDamaged as error:
        raise PackageDamaged(f"The imported encoder makes no usable index: {error.message}.") from error
