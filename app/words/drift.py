"""What a terminal shows of the drift between two releases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.words.messages import table
from ingest.sentence import phrase
from model_updates.prospect import listed


def drift_lines(found: Mapping[str, Any]) -> list[Any]:
    """Returns a sentence and two tables: how far the towers turned, and what changed between vectors."""
    drift = found["drift"]
    said = phrase(
        "{count} held-out pairs in {languages}, as {before} and {after} see them. Angles in "
        "degrees, shares in percent.",
        count=found["pairs"],
        languages=listed(found["languages"]),
        before=found["before"],
        after=found["after"],
    )
    turned = [("pictures turned (RAM)", drift["ram_pictures"]), ("texts turned (RAM)", drift["ram_texts"])]
    changed = [
        ("among pictures (SAM)", drift["sam_pictures"]),
        ("among texts (SAM)", drift["sam_texts"]),
        ("text to its picture, if found (ImAM)", drift["imam_text_to_image"]),
        ("picture to its text, if found (ImAM)", drift["imam_image_to_text"]),
    ]
    shown = [said, _spread("how far", turned), _spread("change of the angle", changed)]
    if "finds" in drift:  # a server of before 2026-11-24 does not say it
        shown.append(finds_words(found["before"], found["after"], drift["finds"]))
    return shown


def finds_words(before: str, after: str, finds: Mapping[str, float]) -> str:
    """Returns how many texts find their picture under two releases, and with the pictures left as they were."""
    return phrase(
        "Texts that find their picture first: {found_before} % in {before}, {found_after} % in {after}, and {mixed} % "
        "where those of {after} look among the pictures of {before}, as if no picture were embedded again.",
        before=before,
        after=after,
        found_before=f"{finds['before']:.1f}",
        found_after=f"{finds['after']:.1f}",
        mixed=f"{finds['mixed']:.1f}",
    )


def _spread(title: str, rows: list[tuple[str, Mapping[str, Any]]]) -> Any:
    edges = rows[0][1]["edges"]
    bins = [phrase("to {count}", count=f"{edge:.0f}") for edge in edges] + [
        phrase("above {count}", count=f"{edges[-1]:.0f}")
    ]
    return table(
        (title, "angles", "mean", *bins),
        [
            (
                name,
                angles["count"],
                "–" if angles["mean"] is None else f"{angles['mean']:.1f}",
                *(f"{share:.1f}" for share in angles["shares"]),
            )
            for name, angles in rows
        ],
    )
