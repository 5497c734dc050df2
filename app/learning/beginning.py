"""A home's first release: an encoder that nothing was taught to, and no picture. An embedded one needs no torch."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.desk.errors import UsageProblem
from app.desk.troubles import saying_what_is_missing
from app.home.commits import CommitRecord, now
from app.home.manifest import ReleaseManifest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import gallery
from app.learning.probes import write_probes
from app.learning.quality import summaries
from app.learning.yardstick import held_out
from model_updates.embedded import TINY, base_languages, embedded_version, lacking
from model_updates.measurement import Measured, Results, measure
from model_updates.search_encoder import SearchEncoder


def initialise(
    settings: Settings,
    *,
    model: str = TINY,
    pretrained: str | None = None,
    texts: str | None = None,
    languages: Sequence[str] = (),
) -> CommitRecord:
    """Makes a home: the base encoder as its first version, drawn probe slices, an empty gallery, the first release.

    `model`, `pretrained`, `texts` and `languages` are as `open_encoder` takes them.

    Raises:
        UsageProblem: the home already has a release.
        UnknownModel, UnsafeWeights, WeightsMismatch: the encoder cannot be opened.
        NeedsLearning: torch has to open it, and is not installed.
    """
    write = version_writer(model, pretrained, texts, languages)
    with Workspace.create(settings) as workspace, workspace.releases.updater_lock("making the home"):
        if workspace.releases.standing().highest:
            raise UsageProblem(f"{settings.home} already has releases; `perennial status` shows them.")
        known = base_languages(model, languages)
        staged = workspace.home.staging / f"version-{time.time_ns()}"
        facts = {"strategy": None, "languages": list(known), "parent": None, "root": None, "created": now()}
        try:
            write(staged, facts)
            version = workspace.releases.publish_version(staged)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        del write  # with hundreds of megabytes; what is left to do the graphs do
        searcher = workspace.open_searcher(version)
        write_probes(workspace, searcher)
        probes = held_out(workspace, known, [chunk.id for chunk in workspace.catalog.standings()])
        results = measure(searcher, probes, workspace.load_image, workspace.features)
        measured = {Measured(key): result for key, result in results.items()}
        release = _published(workspace, version, searcher, known, measured)
        why = ". ".join(filter(None, [f"base encoder {model}", lacking(model)]))
        return workspace.releases.commit(release, parent=None, reason="init", why=why, by="init")


def version_writer(
    model: str, pretrained: str | None = None, texts: str | None = None, languages: Sequence[str] = ()
) -> Callable[[Path, Mapping[str, Any]], object]:
    """Returns what writes the version into a folder with what is said of it, by torch where it has to be asked.

    Arguments and errors as `initialise`.
    """
    if pretrained is None and texts is None and not languages:
        own = embedded_version(model)
        if own is not None:
            return own.write
    with saying_what_is_missing():
        from model_updates.opening import open_encoder
        from model_updates.versions import write_version
    encoder = open_encoder(model, pretrained, texts=texts, languages=languages)
    return lambda folder, facts: write_version(folder, encoder, facts, portable=True)


def _published(
    workspace: Workspace, version: str, encoder: SearchEncoder, languages: tuple[str, ...], results: Results
) -> str:
    """Publishes the first release of a home, its gallery embedded by the base encoder, and returns its id."""
    embedded = gallery.embed_gallery(workspace, encoder, previous=None, version=version)
    opened = workspace.open_generation(embedded.generation)
    figures = gallery.require_own(workspace, opened, encoder, embedded.pictures)
    return workspace.releases.publish_release(
        ReleaseManifest(
            version=version,
            generation=embedded.generation,
            languages=languages,
            mode="full",
            images_embedded=embedded.images_embedded,
            integrity=figures,
            slices=summaries(results),
            created=now(),
        )
    )
