"""The words of the System tab: jobs, what the doctor found, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.settings import Described
from app.ui.drawn import Markup, tag
from app.ui.wording import escaped, moment
from ingest.records import JobRecord

KINDS = {
    "update": "Update",
    "ingest": "Upload",
    "gallery": "Gallery made whole",
    "removal": "Chunk removed",
    "doctor": "Doctor",
}
JOB_HEADERS = ["job", "what", "state", "begun (UTC)", "took", "by", "about"]
_LEVELS = {"ok": "✓ fine", "warn": "! look", "error": "✗ broken"}
_HOUR = 3600
_MINUTE = 60


def job_rows(jobs: Sequence[JobRecord]) -> list[list[str]]:
    """Returns the table of jobs, a row each, in the given order."""
    return [
        [
            job.id,
            KINDS.get(job.kind, job.kind),
            job.state,
            moment(job.started or job.created),
            took(job),
            str(job.arguments.get("by") or "–"),
            job.error or said_of(job),
        ]
        for job in jobs
    ]


def said_of(job: JobRecord) -> str:
    """Says in a sentence how a job ended, or where it is."""
    if job.result.get("sentence"):
        return str(job.result["sentence"])
    report = job.result.get("report")
    if report:
        counts = f"{report['new_pairs']} new pairs, {report['held']} held, {report['rejected']} rejected"
        return f"{report['name']}: {counts}"
    return str(job.progress.get("message") or job.arguments.get("why") or "")


def took(job: JobRecord) -> str:
    """Says how long a job ran: `4 s`, `3 min`, `1 h 12 min`; a dash while it runs."""
    if not (job.started and job.finished):
        return "–"
    between = datetime.fromisoformat(job.finished) - datetime.fromisoformat(job.started)
    seconds = int(between.total_seconds())
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min"
    return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min"


def job_view(job: JobRecord) -> str:
    """Returns what is known of one job."""
    lines = [f"## {KINDS.get(job.kind, escaped(job.kind))} `{escaped(job.id)}`: {escaped(job.state)}"]
    if job.error:
        lines.append(f"**{escaped(job.error)}**")
    lines.append(escaped(said_of(job)))
    asked = [
        f"- {escaped(name.replace('_', ' '))}: {escaped(value)}"
        for name, value in job.arguments.items()
        if value not in (None, "", {}, []) and not isinstance(value, dict)
    ]
    return "\n\n".join([*filter(None, lines), "\n".join(asked)])


def examination_line(job: JobRecord | None) -> str:
    """Says when the doctor last looked, and what came of it."""
    if job is None:
        return "Nobody has looked yet."
    if job.state != "succeeded":
        about = job.error or job.progress.get("message") or "waiting for its turn"
        return f"Looking ({escaped(job.id)}, {escaped(job.state)}): {escaped(about)}"
    how = "every byte" if job.arguments.get("every_byte", True) else "sizes only"
    said = escaped(job.result["sentence"])
    return f"**{said}** Looked at {moment(job.finished)} UTC ({how}, {took(job)})."


def examination_view(result: Mapping[str, Any]) -> Markup:
    """Returns a table of what the doctor found, the worst first."""
    order = list(_LEVELS)
    found = sorted(result["found"], key=lambda one: -order.index(one["level"]))
    rows = [
        tag(
            "tr",
            tag("td", _LEVELS[one["level"]], class_=f"level {one['level']}"),
            tag("th", one["check"], scope="row"),
            tag(
                "td",
                tag("span", one["sentence"]),
                tag("em", f" {one['advice']}") if one["advice"] else "",
            ),
        )
        for one in found
    ]
    return _table(("level", "looked at", "found"), rows)


def settings_view(settings: Sequence[Described]) -> Markup:
    """Returns a table of all settings; what differs from the default is marked."""
    rows = []
    for one in settings:
        is_own = one.value != one.default
        value = tag("strong", one.value) if is_own else one.value
        rows.append(
            tag(
                "tr",
                tag("th", one.name, scope="row"),
                tag("td", value),
                tag("td", one.default if is_own else "the same"),
                tag("td", one.says),
            )
        )
    return _table(("setting", "here", "default", "means"), rows)


def _table(header: Sequence[str], rows: Sequence[Markup]) -> Markup:
    head = tag("tr", [tag("th", name, scope="col") for name in header])
    return tag("table", tag("thead", head), tag("tbody", list(rows)))
