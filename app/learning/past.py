"""High water: how every version that was ever live ranks today's pairs, measured again."""

import logging
from collections.abc import Collection, Sequence

import numpy as np

from app.desk.errors import AppError
from app.home.store import ReleaseRecord
from app.home.workspace import Workspace
from app.language.reading import Reader
from app.learning.debt import debts
from app.learning.routes import picture_routes
from index.generation import Generation
from ingest.pair import BASE_LANGUAGE
from model_updates.encoder import Encoder
from model_updates.errors import ModelUpdateError
from model_updates.evaluation import SliceResult
from model_updates.gate.rules import Past
from model_updates.inserts import BASE
from model_updates.measurement import HeldOut, Measured, Results, Side, measure_views

logger = logging.getLogger(__name__)


def side_of(
    workspace: Workspace,
    encoder: Encoder,
    languages: Sequence[str],
    slices: Sequence[HeldOut],
    generation: Generation,
) -> Side:
    """Returns a version as a searcher meets it.

    Pictures whose domain nobody stated keep the route they have in `generation`, the live one.
    """
    ids = sorted({image_id for one in slices for image_id in one.gallery})
    routes = picture_routes(workspace, encoder, ids, generation)
    own = {*encoder.image_routes, BASE}
    return Side(
        encoder,
        Reader(encoder, languages or (BASE_LANGUAGE,), workspace.features),
        {image_id: route for image_id, route in routes.items() if route in own},
    )


def past_results(
    workspace: Workspace,
    slices: Sequence[HeldOut],
    release: ReleaseRecord,
    live: tuple[Side, Results],
    *,
    but: str = "",
) -> dict[Measured, Past]:
    """Measures every other version that was ever live on today's old slices.

    A version says nothing of a language that it had not learned. What it reads and sees with the same parameters as
    live it ranks alike, and is not measured.

    Of old slices that some version ranks otherwise than live, the answer has those versions with their results, and
    what was accepted to be lost. The version `but` is left out.
    """
    generation = workspace.open_generation(release.generation)
    found: dict[Measured, list[tuple[str, SliceResult]]] = {}
    for version, languages in _ever_live(workspace, {release.version, but}).items():
        asked = [one for one in slices if not one.is_new and one.key.language in languages]
        encoder = _opened(workspace, version) if asked else None
        if encoder is None:
            continue
        side = side_of(workspace, encoder, languages, asked, generation)
        measured = measure_views(side, asked, workspace.load_image, workspace.features, known=live)
        for key, result in measured.items():
            if not np.array_equal(result.text_ranks, live[1][key].text_ranks):
                found.setdefault(key, []).append((version, result))
    owed = debts(workspace, release)
    past = {}
    for one in slices:
        debt = owed.get((str(one.key), str(one.view)), 0.0)
        if not one.is_new and one.measured in live[1] and (debt or one.measured in found):
            past[one.measured] = Past(tuple(found.get(one.measured, ())), debt)
    return past


def _ever_live(workspace: Workspace, but: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Returns the versions that were ever live, oldest first, each with its languages."""
    versions: dict[str, tuple[str, ...]] = {}
    for commit in workspace.releases.history():
        record = workspace.releases.readable(commit.release)
        if record is not None and record.version not in but:
            versions.setdefault(record.version, record.manifest.languages)
    return versions


def _opened(workspace: Workspace, version: str) -> Encoder | None:
    try:
        return workspace.open_encoder(version)
    except (AppError, ModelUpdateError, OSError) as error:
        logger.warning("version %s is left out of the high water: %s", version, error)
        return None
