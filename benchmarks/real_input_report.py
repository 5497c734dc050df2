"""Writes docs/results/real-input.md from the finished runs; figures say how many seeds are behind them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from real_input_figures import Runs, Values
from report_evergreen import evergreen_photos_section, evergreen_section
from report_languages import languages_section
from report_photos import photos_section
from report_styles import styles_section

INTRODUCTION = """# Perennial on real input

Written by `benchmarks/real_input.py`; do not edit. Everything went through the product: uploads of pictures and
`captions.csv`, `initialise`, `add_chunk`, `update`. The encoder is `perennial-tiny`; recall is text-to-image, percent.

*Trained* names are those in the training split, each looked up among all pictures outside the held-out concepts;
*held-out* names, of concepts left out of training in every style and language, among the held-out pictures. Chains ran
under a gate that lets everything pass, so that a stopped update did not end them; the verdicts shown are those of the
default gate on the same measurements. Brackets are 95 % intervals from resampling concepts; ± is half the range over
seeds. *Images embedded again* counts what the new index needed; the held-out pictures were embedded before, for the
gate.
"""


def write_report(results: Path, target: Path) -> None:
    """Writes the report; a part without a finished run here keeps what the report says of it.

    Args:
        results: folder of `part.run.seed.json`.
        target: the Markdown file.
    """
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"))]
    by_part: dict[str, Runs] = {}
    for values in sorted(files, key=lambda v: int(v["seed"])):
        by_part.setdefault(values["part"], {}).setdefault(values["run"], []).append(values)
    parts = ("evergreen", "evergreen-photos", "evergreen-languages")
    grown = [by_part.get(part, {}).get("default", []) for part in parts]
    older = [values for values in files if not values["part"].startswith("evergreen")]
    written = {
        "a": languages_section(by_part.get("emoji-languages", {})),
        "b": styles_section(by_part.get("emoji-styles", {})),
        "c": photos_section(by_part.get("flickr", {}).get("default", [])),
        "d": evergreen_section(grown[0], grown[2], _measured_on(grown[0])),
        "e": evergreen_photos_section(grown[1], _measured_on(grown[1])),
    }
    kept = _sections(target.read_text(encoding="utf-8")) if target.exists() else {}
    head = "\n".join([INTRODUCTION, _measured_on(older)]) if older or "" not in kept else kept[""]
    sections = [head, *(written[letter] or kept.get(letter, "") for letter in written)]
    target.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(section.strip("\n") + "\n" for section in sections if section)
    target.write_text(text, encoding="utf-8")


def _sections(text: str) -> dict[str, str]:
    """Returns the parts of a written report by their letter; what comes before the first under ``""``."""
    head, *parts = text.split("\n## (")
    return {"": head} | {part[0]: f"## ({part}" for part in parts}


def _measured_on(files: Sequence[Values]) -> str:
    machines = sorted({values["machine"] for values in files})
    dates = sorted({values["date"] for values in files})
    limits = sorted({str(values["limit"]) for values in files if values["limit"] is not None})
    lines = [
        f"{len(files)} finished runs, {' to '.join(dict.fromkeys((dates or ['no date'])[:1] + dates[-1:]))}.",
        *(f"Machine: {machine}." for machine in machines),
        "Command: `python benchmarks/real_input.py --data ../shared/data`.",
        *(f"**Only a trial, limited to {limit} concepts.**" for limit in limits),
    ]
    return " ".join(lines) + "\n"
