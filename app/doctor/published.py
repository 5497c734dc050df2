"""What is published and live: commits, checksums, fingerprints, coverage, vectors."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import numpy as np

from app.desk.errors import ReleaseDamaged, ReleasePruned
from app.desk.health import Diagnosis, Level
from app.desk.troubles import OWN_ERRORS
from app.home.releases import ReleaseRecord
from app.home.store import ReleaseStore
from app.home.workspace import Workspace
from app.learning import gallery, going_live
from index.errors import FingerprintMismatch
from index.vectors import SHORTEST_LENGTH
from ingest.sentence import phrase

EXACT_LENGTH, ROUNDED_LENGTH = 1e-3, 5e-2  # how far from 1 a stored vector may be; quantised ones are rounded
_MADE_AGAIN = phrase("Its graphs are made again of its weights when it is next opened.")
_ADD = phrase(
    "The next `perennial add` makes what the live index lost again; going back to this release does it, too."
)
_MEND = phrase("Mend it with `perennial repair`, or restore the folder from a backup.")


def commits(releases: ReleaseStore) -> Iterator[Diagnosis]:
    """Looks at the commit log: what is live, and what had to be skipped to say so."""
    standing = releases.standing()
    for one in standing.skipped:
        advice = phrase(
            "An older commit is live instead. Mend it with `perennial repair`, or restore the file from a backup."
        )
        yield Diagnosis(
            "commits",
            Level.ERROR,
            phrase("Commit {count} is skipped: {why}", count=one.number, why=one.why),
            advice,
        )
    if standing.commit is None:
        yield Diagnosis(
            "commits",
            Level.ERROR,
            phrase("Nothing is live."),
            phrase("Promote an intact release, or restore a backup."),
        )
    else:
        said = phrase(
            "{release} is live since commit {number} of {all}.",
            release=standing.commit.release,
            number=standing.commit.number,
            all=standing.highest,
        )
        yield Diagnosis("commits", Level.OK, said, figures={"commits": standing.highest})


def checksums(releases: ReleaseStore, *, every_byte: bool) -> Iterator[Diagnosis]:
    """Compares every published release with its manifests."""
    intact = 0
    for name in releases.names():
        try:
            if not releases.is_here(name):  # of a home that machines share: it is checked as it is fetched
                continue
            releases.verify_release(name, every_byte=every_byte)
            intact += 1
        except ReleasePruned:
            continue
        except ReleaseDamaged as error:
            level, advice = _what_to_do(releases, name, every_byte=every_byte)
            yield Diagnosis("checksums", level, f"{name}: {error.message}", advice)
    said = (
        phrase("Every byte of {count} releases is as it was written.", count=intact)
        if every_byte
        else phrase("Every file's size of {count} releases is as it was written.", count=intact)
    )
    yield Diagnosis("checksums", Level.OK, said, figures={"releases": intact})


def _what_to_do(releases: ReleaseStore, name: str, *, every_byte: bool) -> tuple[Level, str]:
    """Returns how bad it is that a release is damaged, and what helps."""
    for with_index, level, advice in ((True, Level.WARN, _MADE_AGAIN), (False, Level.ERROR, _ADD)):
        with suppress(ReleaseDamaged):
            releases.verify_release(name, every_byte=every_byte, with_graphs=False, with_index=with_index)
            return level, advice
    return Level.ERROR, _MEND


def fingerprints(workspace: Workspace) -> Iterator[Diagnosis]:
    """Compares what made the live vectors with the live encoder, and that with what its version says it is."""
    _, live = going_live.live_release(workspace)
    encoder, generation = workspace.open_searcher(live.version), workspace.open_generation(live.generation)
    try:
        generation.require_made_by(encoder.image_fingerprint)
    except FingerprintMismatch as error:
        yield Diagnosis("fingerprints", Level.ERROR, str(error), _MEND)
        return
    said = workspace.version_manifest(live.version)
    written = (said.get("image_fingerprint"), said.get("text_fingerprint"))
    if written != (encoder.image_fingerprint(), encoder.text_fingerprint()):
        sentence = phrase(
            "Version {version} was written with other fingerprints than its encoder has here: "
            "this program, or a library under it, computes something else than the one that "
            "wrote it.",
            version=live.version,
        )
        yield Diagnosis(
            "fingerprints", Level.ERROR, sentence, phrase("Use the versions of `constraints.txt`.")
        )
        return
    routes = len(generation.fingerprints)
    sentence = (
        phrase("One encoder made all live vectors, on 1 route.")
        if routes == 1
        else phrase("One encoder made all live vectors, on {count} routes.", count=routes)
    )
    yield Diagnosis("fingerprints", Level.OK, sentence, figures={"routes": routes})


def loading(workspace: Workspace) -> Iterator[Diagnosis]:
    """Loads what is live by what a server loads it, and looks something up."""
    from app.query.finder import Finder
    from app.query.question import Question
    from app.query.snapshot import Snapshot

    _, live = going_live.live_release(workspace)
    try:
        snapshot = Snapshot.load(workspace, live.id)
        Finder(workspace).find(snapshot, Question.of("two red boats", 3, language=snapshot.languages[0]))
    except Exception as error:  # noqa: BLE001 - whatever it is, a server meets it too
        why = error if isinstance(error, OWN_ERRORS) else repr(error)
        said = phrase("A server cannot load {release}: {why}", release=live.id, why=why)
        yield Diagnosis("loading", Level.ERROR, said, _MEND)
        return
    yield Diagnosis(
        "loading", Level.OK, phrase("A server can load {release}, and search answers.", release=live.id)
    )


def coverage(workspace: Workspace) -> Iterator[Diagnosis]:
    """Compares the pictures that search should find with those the live index holds."""
    _, live = going_live.live_release(workspace)
    held, wanted = set(workspace.open_generation(live.generation).ids), set(workspace.catalog.gallery_ids())
    missing, gone = wanted - held, held - wanted
    figures = {"gallery": len(wanted), "indexed": len(held), "missing": len(missing), "withdrawn": len(gone)}
    if missing:
        said = phrase(
            "{count} of {all} pictures of the gallery are not in {release} and are not found.",
            count=f"{len(missing):,}",
            all=f"{len(wanted):,}",
            release=live.id,
        )
        advice = phrase("The next `perennial add` adds them, and so does promoting a release.")
        yield Diagnosis("coverage", Level.ERROR, said, advice, figures)
    if gone:
        said = phrase(
            "{count} pictures in {release} were withdrawn since; search hides them.",
            count=f"{len(gone):,}",
            release=live.id,
        )
        yield Diagnosis(
            "coverage", Level.WARN, said, phrase("The next ingest or update takes them out."), figures
        )
    if not missing and not gone:
        said = phrase(
            "All {count} pictures of the gallery are in {release}, and no others.",
            count=f"{len(wanted):,}",
            release=live.id,
        )
        yield Diagnosis("coverage", Level.OK, said, figures=figures)


def vectors(workspace: Workspace) -> Iterator[Diagnosis]:
    """Looks at every live vector: finite, of length one, and what its encoder gives for its picture."""
    _, live = going_live.live_release(workspace)
    generation = workspace.open_generation(live.generation)
    rows = generation.vectors(generation.ids)
    finite = np.isfinite(rows).all(axis=1)
    lengths = np.linalg.norm(rows[finite].astype(np.float64), axis=1)
    allowed = EXACT_LENGTH if generation.manifest.get("factory") == "Flat" else ROUNDED_LENGTH
    zero = int((lengths < SHORTEST_LENGTH).sum())
    other = int((np.abs(lengths - 1) > allowed).sum()) - zero
    infinite = int((~finite).sum())
    figures = {"vectors": len(rows), "non_finite": infinite, "zero": zero, "unnormalised": other}
    if infinite or zero or other:
        said = phrase(
            "Of {count} vectors of {generation}, {infinite} are not finite, {zero} are zero and "
            "{other} are not of length one.",
            count=f"{len(rows):,}",
            generation=live.generation,
            infinite=infinite,
            zero=zero,
            other=other,
        )
        yield Diagnosis("vectors", Level.ERROR, said, _MEND, figures)
        return
    yield from _own_vectors(workspace, live, figures)


def _own_vectors(workspace: Workspace, live: ReleaseRecord, figures: dict[str, int]) -> Iterator[Diagnosis]:
    encoder, generation = workspace.open_searcher(live.version), workspace.open_generation(live.generation)
    try:
        measured = gallery.require_own(workspace, generation, encoder)
    except ReleaseDamaged as error:
        said = error.message[0].upper() + error.message[1:]
        yield Diagnosis("vectors", Level.ERROR, f"{said}.", _MEND, figures)
        return
    said = phrase(
        "All {count} vectors are finite and of length one; a sample is what the encoder gives, "
        "and search agrees with exact search on {share} % of answers.",
        count=f"{figures['vectors']:,}",
        share=f"{100 * measured['agreement']:.1f}",
    )
    yield Diagnosis("vectors", Level.OK, said, figures=figures | measured)


LIVE_CHECKS: dict[str, Callable[[Workspace], Iterable[Diagnosis]]] = {
    "fingerprints": fingerprints,
    "loading": loading,
    "coverage": coverage,
    "vectors": vectors,
}
