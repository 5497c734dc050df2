"""The words of the System tab: jobs, what the doctor found, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.desk.health import Described, IndexStatus
from app.ui.drawn import Markup, tag
from app.ui.wording import escaped, moment
from app.ui.words import ENGLISH, Words
from app.words.messages import size
from ingest.records import JobRecord
from ingest.sentence import phrase

KINDS = {
    "update": phrase("Update"),
    "ingest": phrase("Upload added"),
    "folder": phrase("Folder checked again"),
    "gallery": phrase("Gallery completed"),
    "removal": phrase("Chunk removed"),
    "import": phrase("Release imported"),
    "doctor": phrase("Doctor"),
    "repair": phrase("Repair"),
}
NOBODY = phrase("Not checked yet.")
JOB_HEADERS = ["job", "what", "state", "started (UTC)", "took", "by", "about"]
FOUND_HEADERS = ("level", "checked", "found")
INDEX_HEADERS = (
    "release",
    "kind",
    "why",
    "pictures",
    "segments",
    "taken out",
    "a search takes",
    "kept",
    "size",
)
SETTING_HEADERS = ("setting", "here", "default", "meaning")
ARGUMENTS = (
    "chunk", "strategy", "seed", "promote", "why", "by", "source", "name", "held", "held why", "check", "every byte",
)  # fmt: skip
"""What jobs are told; other names, such as sha256, are the same in every language."""
_LEVELS = {"ok": ("✓", phrase("fine")), "warn": ("!", phrase("look")), "error": ("✗", phrase("broken"))}
_HOUR = 3600
_MINUTE = 60


def job_rows(jobs: Sequence[JobRecord], say: Words = ENGLISH) -> list[list[str]]:
    """Returns the table of jobs, a row each, in the given order."""
    return [
        [
            job.id,
            _kind(job, say),
            say.said(job.state),
            moment(job.started or job.created),
            say.said(took(job)),
            str(job.arguments.get("by") or "–"),
            say.said(job.error) if job.error else said_of(job, say),
        ]
        for job in jobs
    ]


def said_of(job: JobRecord, say: Words = ENGLISH) -> str:
    """Says in a sentence how a job ended, or where it is; a person's reason as it was written."""
    if job.result.get("sentence"):
        return say.said(job.result["sentence"])
    report = job.result.get("report")
    if report:
        counts = say(
            "{new} new pairs, {held} held, {rejected} rejected",
            new=report["new_pairs"],
            held=report["held"],
            rejected=report["rejected"],
        )
        return f"{report['name']}: {counts}"
    message = job.progress.get("message")
    return say.said(message) if message else str(job.arguments.get("why") or "")


def took(job: JobRecord) -> str:
    """Says how long a job ran: `4 s`, `3 min`, `1 h 12 min`; a dash while it runs."""
    if not (job.started and job.finished):
        return "–"
    between = datetime.fromisoformat(job.finished) - datetime.fromisoformat(job.started)
    seconds = int(between.total_seconds())
    if seconds < _MINUTE:
        return phrase("{count} s", count=seconds)
    if seconds < _HOUR:
        return phrase("{count} min", count=seconds // _MINUTE)
    return phrase("{count} h {minutes} min", count=seconds // _HOUR, minutes=seconds % _HOUR // _MINUTE)


def job_view(job: JobRecord, say: Words = ENGLISH) -> str:
    """Returns what is known of one job."""
    lines = [f"## {escaped(_kind(job, say))} `{escaped(job.id)}`: {escaped(say.said(job.state))}"]
    if job.error:
        lines.append(f"**{escaped(say.said(job.error))}**")
    lines.append(escaped(said_of(job, say)))
    asked = [
        f"- {escaped(say.header(name.replace('_', ' ')))}: {_argument(value, say)}"
        for name, value in job.arguments.items()
        if value not in (None, "", {}, []) and not isinstance(value, dict)
    ]
    return "\n\n".join([*filter(None, lines), "\n".join(asked)])


def examination_line(job: JobRecord | None, say: Words = ENGLISH) -> str:
    """Says when the doctor last looked, and what came of it."""
    if job is None:
        return say.said(NOBODY)
    if job.state != "succeeded":
        about = job.error or job.progress.get("message") or phrase("waiting for its turn")
        return escaped(say("Checking ({job}, {state}): {why}", job=job.id, state=job.state, why=about))
    is_whole = job.arguments.get("every_byte", True)
    how = phrase("every byte") if is_whole else phrase("sizes only")
    looked = say("Checked {time} UTC ({how}, {took}).", time=moment(job.finished), how=how, took=took(job))
    return f"**{escaped(say.said(job.result['sentence']))}** {looked}"


def examination_view(result: Mapping[str, Any], say: Words = ENGLISH) -> Markup:
    """Returns a table of what the doctor found, the worst first."""
    order = list(_LEVELS)
    found = sorted(result["found"], key=lambda one: -order.index(one["level"]))
    rows = [
        tag(
            "tr",
            tag("td", _level(one["level"], say), class_=f"level {one['level']}"),
            tag("th", say.said(one["check"]), scope="row"),
            tag(
                "td",
                tag("span", say.said(one["sentence"])),
                tag("em", f" {say.said(one['advice'])}") if one["advice"] else "",
            ),
        )
        for one in found
    ]
    return _table(FOUND_HEADERS, rows, say)


def settings_view(settings: Sequence[Described], say: Words = ENGLISH) -> Markup:
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
                tag("td", one.default if is_own else say("the same")),
                tag("td", say.said(one.says)),
            )
        )
    return _table(SETTING_HEADERS, rows, say)


def index_view(found: IndexStatus, say: Words = ENGLISH) -> Markup:
    """Returns a table of what the live index is like."""
    taken = "–" if found.milliseconds is None else f"{found.milliseconds:g} ms"
    kept = "–" if found.kept is None else f"{100 * found.kept:.1f} %"
    out = f"{100 * found.taken_out_share:.1f} %"
    cells = (found.kind, say.said(found.why), f"{found.pictures:,}", len(found.segments), out, taken, kept)
    row = tag(
        "tr",
        tag("th", found.release, scope="row"),
        [tag("td", str(one)) for one in (*cells, size(found.bytes))],
    )
    return _table(INDEX_HEADERS, [row], say)


def _kind(job: JobRecord, say: Words) -> str:
    return say.said(KINDS[job.kind]) if job.kind in KINDS else job.kind


def _argument(value: object, say: Words) -> str:
    return escaped((say("yes") if value else say("no")) if isinstance(value, bool) else value)


def _level(level: str, say: Words) -> str:
    mark, word = _LEVELS[level]
    return f"{mark} {say.said(word)}"


def _table(header: Sequence[str], rows: Sequence[Markup], say: Words) -> Markup:
    head = tag("tr", [tag("th", say.header(name), scope="col") for name in header])
    return tag("table", tag("thead", head), tag("tbody", list(rows)))
