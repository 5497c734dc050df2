"""Judging a candidate: measured beside what is live and the best there ever was, then the gate."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from app.errors import ReleaseDamaged, UnknownRelease
from app.learning.canaries import canaries
from app.learning.lessons import Lesson
from app.learning.outcomes import Stage, Tell
from app.learning.slices import best_versions, held_out
from app.releases.store import ReleaseRecord
from app.workspace import Workspace
from ingest.pair import SliceKey
from model_updates.encoder import Encoder
from model_updates.evaluation import SliceResult
from model_updates.gate.rules import GateReport, Past, judge
from model_updates.measurement import HeldOut, measure

logger = logging.getLogger(__name__)


def judge_candidate(
    workspace: Workspace, lesson: Lesson, candidate: Encoder, record: ReleaseRecord, progress: Tell
) -> tuple[GateReport, dict[SliceKey, SliceResult]]:
    """Measures candidate, live and best-ever versions on the newest held-out pairs, and judges."""
    slices = held_out(workspace, set(lesson.languages_after))
    progress(
        Stage("measure", f"{len(slices)} slices, {sum(len(s.captions) for s in slices)} held-out captions")
    )
    results = measure(candidate, slices, workspace.load_image, workspace.features)
    live = measure(workspace.open_encoder(record.version), slices, workspace.load_image, workspace.features)
    best = _best_ever(workspace, slices, record)
    progress(Stage("gate", "judging what was learned and what was kept"))
    report = judge(
        candidate=results,
        live=live,
        new_slices=[key for key in results if key in lesson.taught],
        taught_languages=lesson.taught_languages,
        canaries=canaries(workspace, candidate, record),
        policy=workspace.settings.gate.policy(),
        past={key: Past((one,)) for key, one in best.items() if key not in lesson.taught},
    )
    return report, results


def _best_ever(
    workspace: Workspace, slices: Sequence[HeldOut], live: ReleaseRecord
) -> dict[SliceKey, tuple[str, SliceResult]]:
    """Returns for slices at which an earlier version was better than live: that version, measured again today."""
    best: dict[SliceKey, tuple[str, SliceResult]] = {}
    for version, keys in best_versions(workspace, slices, live).items():
        try:
            encoder = workspace.open_encoder(version)
        except (ReleaseDamaged, UnknownRelease) as error:
            logger.warning("left out of the best there ever was: %s", error)
            continue
        chosen = [one for one in slices if one.key in keys]
        measured = measure(encoder, chosen, workspace.load_image, workspace.features)
        best |= {key: (version, result) for key, result in measured.items()}
    return best
