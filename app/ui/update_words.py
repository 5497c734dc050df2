"""The words of the Update tab: what an upload held, where a job is, what an update cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.learning.forecast import seconds_left
from app.ui.wording import escaped, moment
from app.ui.words import ENGLISH, Words
from app.words.forecast import duration
from app.words.gate import VERDICTS
from ingest.records import ChunkRecord, JobRecord

_BAR = 24


def intake_view(report: Mapping[str, Any], images_embedded: int | None = None) -> str:
    """Returns the counts of an intake."""
    lines = [
        f"**{report['new_pairs']}** new pairs · **{report['new_images']}** new pictures · "
        f"{report['known_pairs']} known · **{report['held']}** held · **{report['rejected']}** rejected"
    ]
    if images_embedded is not None:
        lines.append(f"{images_embedded} pictures were embedded and can be searched now.")
    if report["per_slice"]:
        lines += ["| slice | train | validation | test |", "|---|---:|---:|---:|"]
        lines += [
            f"| {escaped(key)} | {counts['train']} | {counts['validation']} | {counts['test']} |"
            for key, counts in report["per_slice"].items()
        ]
    if report["english_share"] is not None:
        lines.append(
            f"{100 * report['english_share']:.0f} % of the pairs have an English caption beside them."
        )
    lines += [escaped(note) for note in report["notes"]]
    return _paragraphs(lines)


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
    languages = ", ".join(chunk.languages) or say.said("no captions")
    standing = "" if chunk.standing == "new" else f" · {say.said(chunk.standing)}"
    return f"{chunk.id} · {chunk.name} · {say.said(f'{chunk.pairs} pairs')} · {languages}{standing}"


def progress_view(state: str, progress: Mapping[str, Any]) -> str:
    """Returns where a job is: stage, a bar, the message, and the losses by name."""
    name = str(progress.get("name") or state)
    fraction = progress.get("fraction")
    lines = [f"## {STAGES.get(name, name.capitalize())}"]
    if fraction is not None:
        filled = round(_BAR * min(1.0, max(0.0, float(fraction))))
        lines.append(f"`{'█' * filled}{'░' * (_BAR - filled)}` {100 * float(fraction):.0f} %")
    lines.append(escaped(progress.get("message") or "Waiting for the worker to start."))
    terms = (progress.get("details") or {}).get("terms") or {}
    if terms:
        lines.append(
            "loss: " + " · ".join(f"{escaped(term)} {float(value):.3f}" for term, value in terms.items())
        )
    return "\n\n".join(lines)


def run_view(job: JobRecord) -> str:
    """Returns where an update is, or how it ended when nothing was judged."""
    if job.state == "cancelled":
        return f"## Stopped\n\nNothing live has changed. {_GO_ON}"
    if job.state == "failed":
        return f"## It failed\n\n{escaped(job.error or job.state)}\n\nNothing live has changed."
    if job.state == "interrupted":
        return f"## Interrupted\n\n{escaped(job.error or job.state)}\n\nNothing live has changed. {_GO_ON}"
    if job.result.get("verdict"):
        return progress_view("ended", {"name": "ended", "message": job.result.get("sentence"), "fraction": 1})
    left = seconds_left(job)
    shown = progress_view(job.state, job.progress)
    return shown if left is None else f"{shown}\n\nAbout {duration(left)} left until it is judged."


_GO_ON = "What it has learned so far is kept for a week."
STAGES = {
    "ingest": "Reading the upload",
    "import": "Checking the file",
    "queued": "Starting",
    "running": "Starting",
    "interrupted": "Interrupted: starting again",
    "features": "Reading the chunk",
    "train": "Learning",
    "measure": "Measuring on held-out pairs",
    "gate": "Judging",
    "embed": "Embedding the gallery",
    "index": "Checking the index",
    "release": "Publishing the release",
    "commit": "Going live",
    "ended": "Done",
}


def outcome_line(result: Mapping[str, Any]) -> str:
    """Returns what an update cost, and what became of it."""
    embedded = result.get("images_embedded", 0)
    cost = f"{float(result.get('seconds', 0)):.0f} s · {embedded} pictures embedded again (mode {result.get('mode')})"
    if result.get("commit") is not None:
        return f"`{result['release']}` is live · {cost}"
    if result.get("release"):
        return f"`{result['release']}` is ready · {cost}"
    return f"What was live stays live · {float(result.get('seconds', 0)):.0f} s"


def past_label(job: JobRecord, say: Words = ENGLISH) -> str:
    """Returns how a menu names an update that was judged."""
    verdict = str(job.result.get("verdict") or job.result["gate"].get("verdict"))
    parts = (
        job.id,
        say.said(VERDICTS.get(verdict, verdict)),
        job.result.get("strategy") or say.said("an update"),
        job.arguments.get("chunk", "?"),
        moment(job.finished or job.created),
    )
    return " · ".join(parts)


def _paragraphs(lines: Sequence[str]) -> str:
    text = lines[0]
    for before, line in zip(lines, lines[1:], strict=False):
        # The lines of one table must not be torn apart.
        text += ("\n" if before.startswith("|") and line.startswith("|") else "\n\n") + line
    return text
