"""What every released version reaches on each slice, what it lost against those before, and what there is to measure.

The figures are those that were measured when a release was made, so nothing is computed here. Held-out pairs come and
go between two measurements; where their number differs, a change is also that of the pairs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from app.desk.errors import UsageProblem
from app.desk.probes import shown_slices
from app.desk.slices import SliceSummary
from app.desk.verdicts import Coverage, Measure, QualityTable, SliceLine, VersionColumn
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from ingest.pair import SliceKey, Split
from model_updates.evaluation import SliceResult, View
from model_updates.measurement import Measured
from model_updates.recalls import MEAN, QUERY_METRICS, mean_text_recall


def summaries(results: Mapping[Measured, SliceResult]) -> tuple[SliceSummary, ...]:
    """Returns what a release's manifest says of each slice in each view.

    Of a slice that is known and was taught more, what has more captions is told.
    """
    chosen: dict[tuple[str, str, str], SliceResult] = {}
    for measured, result in sorted(results.items()):
        key = (measured.key.language, measured.key.domain, str(measured.view))
        if key not in chosen or len(result.text_ranks) > len(chosen[key].text_ranks):
            chosen[key] = result
    return tuple(
        SliceSummary(
            language=language,
            domain=domain,
            view=view,
            images=result.groups,
            captions=len(result.text_ranks),
            recalls={name: round(value, 3) for name, value in result.recalls().items()},
        )
        for (language, domain, view), result in chosen.items()
    )


def quality_table(
    workspace: Workspace, *, metric: str = "t2i_r10", view: str = "own", probes: bool = False
) -> QualityTable:
    """Returns what each released version reached on each slice; with `probes` on those of the built-in checks too.

    Raises:
        UsageProblem: there is no such metric or view.
    """
    if metric not in QUERY_METRICS or view not in set(View):
        raise UsageProblem(
            f"There is no metric {metric[:40]!r} in the view {view[:40]!r}. "
            f"Metrics: {', '.join(QUERY_METRICS)}. Views: {', '.join(View)}."
        )
    columns, records = _columns(workspace)
    measured = [
        {
            SliceKey(one.language, one.domain): one
            for one in shown_slices(record.manifest.slices, probes=probes)
            if one.view == view
        }
        for record in records
    ]
    keys = sorted({key for column in measured for key in column})
    lines = tuple(
        SliceLine(key.language, key.domain, _line([column.get(key) for column in measured], columns, metric))
        for key in keys
    )
    return QualityTable(metric, view, columns, lines, *_summed(columns, lines))


def coverage(workspace: Workspace, *, probes: bool = False) -> list[Coverage]:
    """Returns what there is to learn from and to measure by, of each language and domain; probes only if asked for."""
    counts = workspace.catalog.pairs_by_split()
    commit = workspace.releases.current()
    live = workspace.releases.readable(commit.release) if commit else None
    languages = live.manifest.languages if live else ()
    measured = {
        SliceKey(one.language, one.domain): one.images
        for one in (live.manifest.slices if live else ())
        if one.view == View.OWN
    }
    least = workspace.settings.gate.minimum_images
    return [
        Coverage(
            key.language,
            key.domain,
            counts.get((key, Split.TRAIN), 0),
            counts.get((key, Split.VALIDATION), 0),
            counts.get((key, Split.TEST), 0),
            measured.get(key),
            key.language in languages,
            measured.get(key, 0) >= least,
        )
        for key in sorted(set(shown_slices((key for key, _ in counts), probes=probes)))
    ]


def _columns(workspace: Workspace) -> tuple[tuple[VersionColumn, ...], list[ReleaseRecord]]:
    """Versions in the order they were first released, and of each the newest release that was measured."""
    first: dict[str, ReleaseRecord] = {}
    newest: dict[str, ReleaseRecord] = {}
    for record in workspace.releases.releases():
        if record.manifest.slices:
            first.setdefault(record.version, record)
            newest[record.version] = record
    went_live = {commit.release for commit in workspace.releases.history()}
    versions_live = {record.version for record in workspace.releases.releases() if record.id in went_live}
    commit = workspace.releases.current()
    live = workspace.releases.readable(commit.release) if commit else None
    columns = tuple(
        VersionColumn(
            version,
            newest[version].id,
            record.manifest.created or "",
            record.manifest.strategy or "",
            newest[version].manifest.languages,
            version in versions_live,
            live is not None and live.version == version,
        )
        for version, record in first.items()
    )
    return columns, [newest[column.version] for column in columns]


def _line(
    found: Sequence[SliceSummary | None], columns: Sequence[VersionColumn], metric: str
) -> tuple[Measure | None, ...]:
    line: list[Measure | None] = []
    best: tuple[float, str] | None = None
    for summary, column in zip(found, columns, strict=True):
        if summary is None:
            line.append(None)
            continue
        measure = Measure(
            mean_text_recall(summary.recalls) if metric == MEAN else summary.recalls[metric],
            summary.images,
            summary.captions,
        )
        if best is not None:
            measure = replace(measure, change=measure.recall - best[0], best=best[1])
        line.append(measure)
        if column.was_live and (best is None or measure.recall > best[0]):
            best = measure.recall, column.release
    return tuple(line)


def _summed(
    columns: Sequence[VersionColumn], lines: Sequence[SliceLine]
) -> tuple[float | None, float | None]:
    place = next((n for n, column in enumerate(columns) if column.is_live), None)
    if place is None:
        return None, None
    lost, gained = [], []
    for line in lines:
        now = line.measures[place]
        before = [one for one in line.measures[:place] if one is not None]
        if now is not None and before:
            gained.append(now.recall - before[0].recall)
            if now.change is not None:
                lost.append(-now.change)
    return _mean(lost), _mean(gained)


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None
