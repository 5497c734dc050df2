"""High water: how versions that were live rank today's pairs, measured again; and debt, which lowers it.

An update may not take longer with each that came before it, so that of many versions some are measured (`chosen`).
Debt is what people accepted to lose by making a release live in spite of a review.
"""

import logging
from collections.abc import Collection, Sequence

import numpy as np

from app.desk.errors import AppError
from app.desk.jobs import counted
from app.home.commits import Debt
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.language.reading import Reader
from app.learning.outcomes import Tell, say_nothing
from app.learning.routes import picture_routes
from index.generation import Generation
from ingest.pair import BASE_LANGUAGE
from ingest.sentence import phrase
from model_updates.errors import ModelUpdateError
from model_updates.evaluation import SliceResult
from model_updates.features import FeatureCache
from model_updates.gate.report import GateReport, Verdict, owed
from model_updates.gate.rules import Past
from model_updates.measurement import HeldOut, Measured, Results, Side, measure_views
from model_updates.routes import BASE, loudness
from model_updates.search_encoder import SearchEncoder

logger = logging.getLogger(__name__)

RECENT = 4  # versions before the live one that are all measured


def side_of(
    workspace: Workspace,
    encoder: SearchEncoder,
    languages: Sequence[str],
    slices: Sequence[HeldOut],
    generation: Generation,
    cache: FeatureCache | None = None,
) -> Side:
    """Returns a version as a searcher meets it; how it reads texts is kept in the home's features, or in `cache`.

    Pictures whose domain nobody stated keep the route they have in `generation`, the live one.
    """
    ids = sorted({image_id for one in slices for image_id in one.gallery})
    routes = picture_routes(workspace, encoder, workspace.catalog.domains_of(ids), generation)
    own = {*encoder.image_routes, BASE}
    return Side(
        encoder,
        Reader(encoder, languages or (BASE_LANGUAGE,), cache or workspace.features),
        {image_id: route for image_id, route in routes.items() if loudness(route)[0] in own},
    )


def past_results(
    workspace: Workspace,
    slices: Sequence[HeldOut],
    release: ReleaseRecord,
    live: tuple[Side, Results],
    *,
    but: str = "",
    progress: Tell = say_nothing,
) -> dict[Measured, Past]:
    """Measures other versions that were live (`chosen`) on today's old slices.

    A version says nothing of a language that it had not learned. What it reads and sees with the same parameters as
    live it ranks alike, and is not measured.

    Of old slices that some version ranks otherwise than live, the answer has those versions with their results, and
    what was accepted to be lost. The version `but` is left out.
    """
    generation = workspace.open_generation(release.generation)
    found: dict[Measured, list[tuple[str, SliceResult]]] = {}
    ever = list(_ever_live(workspace, {release.version, but}).items())
    earlier = [ever[place] for place in chosen(len(ever))]
    for number, (version, languages) in enumerate(earlier):
        told = phrase("earlier version {count} of {all}", count=number + 1, all=len(earlier))
        progress(counted("earlier", told, number, len(earlier)))
        asked = [one for one in slices if not one.is_new and one.key.language in languages]
        encoder = _opened(workspace, version) if asked else None
        if encoder is None:
            continue
        side = side_of(workspace, encoder, languages, asked, generation)
        measured = measure_views(
            side, asked, workspace.load_image, workspace.features, known=live, ranks_alone=True
        )
        for key, result in measured.items():
            if not np.array_equal(result.text_ranks, live[1][key].text_ranks):
                found.setdefault(key, []).append((version, result))
    accepted = debts(workspace, release)
    past = {}
    for one in slices:
        debt = accepted.get((str(one.key), str(one.view)), 0.0)
        if not one.is_new and one.measured in live[1] and (debt or one.measured in found):
            past[one.measured] = Past(tuple(found.get(one.measured, ())), debt)
    return past


def chosen(count: int) -> list[int]:
    """Returns which of `count` earlier versions are measured, by their places in the order of going live, from 0.

    They are the first, the newest, and one of each age of 4 to 7, 8 to 15, 16 to 31 … versions, so that what many
    updates lost little by little shows. None comes back that was left out before: how each reads the captions that came
    meanwhile is kept.
    """
    places = {*range(min(1, count)), *range(max(0, count - RECENT), count)}
    step = RECENT
    while step < count:
        places.add((count // step - 1) * step)
        step *= 2
    return sorted(places)


def debt_of(release: ReleaseRecord, *, who: str, why: str) -> tuple[Debt, ...]:
    """Returns what making a release live accepts to lose: nothing unless its gate asked for a review."""
    if release.manifest.verdict != Verdict.REVIEW or not release.manifest.gate:
        return ()
    report = GateReport.from_json(release.manifest.gate)
    return tuple(Debt(row.slice, row.view, round(lost, 3), who, why) for row, lost in owed(report))


def debts(workspace: Workspace, live: ReleaseRecord) -> dict[tuple[str, str], float]:
    """Returns by slice and view the points that were accepted on the way to a release.

    Debts count while the release that brought them is what the live one was made from: going back gives them up.
    """
    line = {record.id for record in workspace.releases.line(live)}
    # A release that went live twice is owed once.
    by_release = {c.release: c.debt for c in workspace.releases.history() if c.debt and c.release in line}
    total: dict[tuple[str, str], float] = {}
    for accepted in by_release.values():
        for one in accepted:
            total[one.slice, one.view] = total.get((one.slice, one.view), 0.0) + one.points
    return total


def _ever_live(workspace: Workspace, but: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Returns the versions that were ever live, oldest first, each with its languages."""
    versions: dict[str, tuple[str, ...]] = {}
    for commit in workspace.releases.history():
        record = workspace.releases.readable(commit.release)
        if record is not None and record.pruned is None and record.version not in but:
            versions.setdefault(record.version, record.manifest.languages)
    return versions


def _opened(workspace: Workspace, version: str) -> SearchEncoder | None:
    try:
        return workspace.open_encoder(version)
    except (AppError, ModelUpdateError, OSError) as error:
        logger.warning("version %s is left out of the high water: %s", version, error)
        return None
