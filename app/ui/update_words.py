"""The words of the Update tab: what an upload held, where a job is, what an update cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.desk.jobs import seconds_left
from app.ui.wording import escaped, moment
from app.ui.words import ENGLISH, Words
from app.words.gate import VERDICTS
from app.words.messages import duration, paced
from ingest.records import ChunkRecord, JobRecord
from ingest.sentence import phrase

_BAR = 24


def intake_view(report: Mapping[str, Any], say: Words = ENGLISH) -> str:
    """Returns the counts of an intake."""
    counts = (
        say("**{count}** new pairs", count=report["new_pairs"]),
        say("**{count}** new pictures", count=report["new_images"]),
        say("{count} known", count=report["known_pairs"]),
        say("**{count}** held", count=report["held"]),
        say("**{count}** rejected", count=report["rejected"]),
    )
    lines = [" · ".join(counts)]
    if report["per_slice"]:
        header = (say("slice"), say("train"), say("validation"), say("test"))
        rows = [
            f"| {escaped(key)} | {counts['train']} | {counts['validation']} | {counts['test']} |"
            for key, counts in report["per_slice"].items()
        ]
        lines.append("\n".join([f"| {' | '.join(header)} |", "|---|---:|---:|---:|", *rows]))
    if report["english_share"] is not None:
        share = f"{100 * report['english_share']:.0f}"
        lines.append(say("{share} % of the pairs have an English caption, too.", share=share))
    return "\n\n".join([*lines, *(escaped(say.said(note)) for note in report["notes"])])


REPORT_HEADERS = ["outcome", "where", "reason", "what it means"]


def report_rows(report: Mapping[str, Any], say: Words = ENGLISH) -> list[list[str]]:
    """Returns the held and rejected rows of an intake."""
    return [
        [
            say.said(row["outcome"]),
            row["where"],
            say.said(row["code"].replace("_", " ")),
            say.said(row["sentence"]),
        ]
        for row in report["rows"]
        if row["outcome"] != "accepted"
    ]


def chunk_label(chunk: ChunkRecord, say: Words = ENGLISH) -> str:
    """Returns how a menu names a chunk."""
    languages = ", ".join(chunk.languages) or say("no captions")
    standing = "" if chunk.standing == "new" else f" · {say.said(chunk.standing)}"
    return f"{chunk.id} · {chunk.name} · {say('{count} pairs', count=chunk.pairs)} · {languages}{standing}"


def progress_view(state: str, progress: Mapping[str, Any], say: Words = ENGLISH) -> str:
    """Returns where a job is: stage, a bar, the message, and the losses by name."""
    name = str(progress.get("name") or state)
    fraction = progress.get("fraction")
    lines = [f"## {say.said(STAGES.get(name, name.capitalize()))}"]
    if fraction is not None:
        filled = round(_BAR * min(1.0, max(0.0, float(fraction))))
        lines.append(f"`{'█' * filled}{'░' * (_BAR - filled)}` {100 * float(fraction):.0f} %")
    lines.append(escaped(say.said(paced(progress.get("message") or _WAITING, progress.get("details")))))
    terms = (progress.get("details") or {}).get("terms") or {}
    if terms:
        losses = " · ".join(f"{escaped(term)} {float(value):.3f}" for term, value in terms.items())
        lines.append(f"{say('loss')}: {losses}")
    return "\n\n".join(lines)


def run_view(job: JobRecord, say: Words = ENGLISH) -> str:
    """Returns where an update is, or how it ended when nothing was judged."""
    if job.state in _ENDED:
        why = [] if job.state == "cancelled" else [escaped(say.said(job.error or job.state))]
        unchanged = say("Nothing live has changed.")
        if job.state != "failed":
            unchanged += " " + say("What it has learned so far is kept for a week.")
        return "\n\n".join([f"## {say.said(_ENDED[job.state])}", *why, unchanged])
    if job.result.get("verdict"):
        ended = {"name": "ended", "message": job.result.get("sentence"), "fraction": 1}
        return progress_view("ended", ended, say)
    left = seconds_left(job)
    shown = progress_view(job.state, job.progress, say)
    if left is None:
        return shown
    return f"{shown}\n\n{say('About {time} left until it is judged.', time=duration(left))}"


_WAITING = phrase("Waiting to start.")
_ENDED = {
    "cancelled": phrase("Stopped"),
    "failed": phrase("It failed"),
    "interrupted": phrase("Interrupted"),
}
STAGES = {
    "ingest": phrase("Reading the upload"),
    "import": phrase("Checking the file"),
    "queued": phrase("Starting"),
    "running": phrase("Starting"),
    "interrupted": phrase("Interrupted: starting again"),
    "start": phrase("Starting"),
    "plan": phrase("Planning"),
    "features": phrase("Reading the chunk"),
    "train": phrase("Learning"),
    "measure": phrase("Measuring on held-out pairs"),
    "examine": phrase("Examining copies"),
    "earlier": phrase("Measuring earlier versions"),
    "gate": phrase("Judging"),
    "check": phrase("Judging the captions"),
    "embed": phrase("Embedding the gallery"),
    "index": phrase("Checking the index"),
    "release": phrase("Publishing the release"),
    "commit": phrase("Going live"),
    "ended": phrase("Done"),
}


def outcome_line(result: Mapping[str, Any], say: Words = ENGLISH) -> str:
    """Returns what an update cost, and what became of it."""
    seconds = f"{float(result.get('seconds', 0)):.0f} s"
    release = result.get("release")
    if not release:
        return f"{say('What was live stays live')} · {seconds}"
    is_live = result.get("commit") is not None
    became = (
        say("`{release}` went live", release=release)
        if is_live
        else say("`{release}` is ready", release=release)
    )
    count = result.get("images_embedded", 0)
    embedded = [say("{count} pictures embedded again", count=count)] if count else []
    return " · ".join([became, seconds, *embedded])


def past_choices(jobs: Iterable[JobRecord], say: Words = ENGLISH) -> list[tuple[str, str]]:
    """Returns the menu of the updates among jobs that were judged, in their order."""
    judged = (job for job in jobs if job.kind == "update" and job.result.get("gate"))
    return [(past_label(job, say), job.id) for job in judged]


def past_label(job: JobRecord, say: Words = ENGLISH) -> str:
    """Returns how a menu names an update that was judged."""
    verdict = str(job.result.get("verdict") or job.result["gate"].get("verdict"))
    parts = (
        job.id,
        say.said(VERDICTS.get(verdict, verdict)),
        job.result.get("strategy") or say("an update"),
        job.arguments.get("chunk", "?"),
        moment(job.finished or job.created),
    )
    return " · ".join(parts)
