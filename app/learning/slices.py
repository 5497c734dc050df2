"""What is measured: the held-out slices of today, what a release says of them, which version was best at which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.releases.manifest import SliceSummary
from app.releases.store import ReleaseRecord
from app.workspace import Workspace
from ingest.pair import SliceKey, Split
from model_updates.evaluation import SliceResult
from model_updates.measurement import HeldOut
from model_updates.recalls import TEXT_RECALLS

BEST_VERSIONS = 2  # how many versions besides live are measured again for "best ever"


def held_out(workspace: Workspace, languages: set[str]) -> list[HeldOut]:
    """Returns every slice of the languages with today's held-out pairs, each among its domain's held-out pictures."""
    galleries: dict[str, tuple[str, ...]] = {}
    slices = []
    for key in workspace.catalog.slices():
        if key.language in languages:
            if key.domain not in galleries:
                galleries[key.domain] = tuple(workspace.catalog.test_images(key.domain))
            pairs = workspace.catalog.pairs(language=key.language, domain=key.domain, split=Split.TEST)
            captions = tuple((pair.image_id, pair.text) for pair in pairs)
            slices.append(HeldOut(key, galleries[key.domain], captions))
    return slices


def summaries(results: Mapping[SliceKey, SliceResult]) -> tuple[SliceSummary, ...]:
    """Returns what a release's manifest says of each slice."""
    return tuple(
        SliceSummary(
            language=key.language,
            domain=key.domain,
            images=result.groups,
            captions=len(result.text_ranks),
            recalls={name: round(value, 3) for name, value in result.recalls().items()},
        )
        for key, result in sorted(results.items())
    )


def best_versions(
    workspace: Workspace, slices: Sequence[HeldOut], live: ReleaseRecord
) -> dict[str, set[SliceKey]]:
    """Returns which earlier versions were best at which slices, as their releases recorded it; live left out."""
    best: dict[SliceKey, tuple[float, str]] = {}
    wanted = {held.key for held in slices}
    for commit in workspace.releases.history():
        record = workspace.releases.readable(commit.release)
        if record is None:
            continue
        for summary in record.manifest.slices:
            key = SliceKey(summary.language, summary.domain)
            score = sum(summary.recalls[metric] for metric in TEXT_RECALLS)
            if key in wanted and score > best.get(key, (-1.0, ""))[0]:
                best[key] = (score, record.version)
    by_version: dict[str, set[SliceKey]] = {}
    for key, (_, version) in best.items():
        if version != live.version:
            by_version.setdefault(version, set()).add(key)
    chosen = sorted(by_version, key=lambda version: -len(by_version[version]))[:BEST_VERSIONS]
    return {version: by_version[version] for version in chosen}
