"""What an update will take and took, in words, the same for terminal and page."""

from __future__ import annotations

from app.desk.jobs import Forecast, Taken
from app.words.messages import duration, size
from ingest.sentence import joined, phrase, template

_STAGES = {
    "features": template("reading {time}"),
    "train": template("learning {time}"),
    "measure": template("measuring {time}"),
    "examine": template("examining copies {time}"),
    "embed": template("embedding {time}"),
}


def forecast_sentences(found: Forecast) -> list[str]:
    """Returns what an update will take: time with its parts, memory and disk, and what that rests on."""
    parts = joined(
        (
            phrase(_STAGES[stage], time=duration(seconds))
            for stage, seconds in found.seconds.items()
            if seconds and stage in _STAGES
        ),
        ", ",
    )
    whole = duration(max(1.0, found.total_seconds))
    said = phrase(
        "About {time} for {pairs} pairs in {epochs} epochs; {memory} of memory, {disk} on disk.",
        time=phrase("{time} ({parts})", time=whole, parts=parts) if parts else whole,
        pairs=found.pairs,
        epochs=found.epochs,
        memory=size(found.peak_bytes),
        disk=size(found.disk_bytes),
    )
    if not found.copies:
        return [said, found.based_on]
    copies = phrase(
        "Too few pairs are held out to decide, so {count} copies are trained too; each is examined on pairs it has not "
        "learned.",
        count=found.copies,
    )
    return [said, copies, found.based_on]


def compared_sentence(found: Forecast, took: Taken) -> str:
    """Returns what was forecast beside what was taken."""
    said = {
        "time": duration(took.seconds),
        "disk": size(took.disk_bytes),
        "a": duration(found.total_seconds),
        "b": size(found.peak_bytes),
        "c": size(found.disk_bytes),
    }
    if not took.peak_bytes:
        return phrase("It took {time}, {disk} on disk; the forecast was {a}, {b} and {c}.", **said)
    return phrase(
        "It took {time} and {memory} of memory, {disk} on disk; the forecast was {a}, {b} and {c}.",
        memory=size(took.peak_bytes),
        **said,
    )
