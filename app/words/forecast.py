"""What an update will take and took, in words, the same for terminal and page."""

from __future__ import annotations

from app.desk.jobs import Forecast
from app.learning.forecast import Taken
from app.words.messages import size

_STAGES = {"features": "reading", "train": "learning", "measure": "measuring", "embed": "embedding"}


def forecast_sentences(found: Forecast) -> list[str]:
    """Returns what an update will take: time with its parts, memory and disk, and what that rests on."""
    parts = ", ".join(
        f"{_STAGES.get(stage, stage)} {duration(seconds)}"
        for stage, seconds in found.seconds.items()
        if seconds
    )
    whole = duration(found.total_seconds)
    about = whole.capitalize() if found.total_seconds < 1 else f"About {whole}"
    return [
        f"{about}{f' ({parts})' if parts else ''} for {found.pairs} pairs in "
        f"{found.epochs} epochs; {size(found.peak_bytes)} of memory, {size(found.disk_bytes)} on disk.",
        found.based_on,
    ]


def compared_sentence(found: Forecast, took: Taken) -> str:
    """Returns what was forecast beside what was taken."""
    memory = f" and {size(took.peak_bytes)} of memory" if took.peak_bytes else ""
    return (
        f"It took {duration(took.seconds)}{memory}, {size(took.disk_bytes)} on disk; forecast were "
        f"{duration(found.total_seconds)}, {size(found.peak_bytes)} and {size(found.disk_bytes)}."
    )


def duration(seconds: float) -> str:
    """Returns seconds as people say them: "8 s", "3 min", "1 h 20 min"."""
    if seconds < 1:
        return "under a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
