"""Debt: what people accepted to lose by making a release live in spite of a review. It alone lowers the high water."""

from app.home.commits import Debt
from app.home.store import ReleaseRecord
from app.home.workspace import Workspace
from model_updates.gate.report import GateReport, Verdict, owed


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
