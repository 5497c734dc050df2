"""Writes docs/results/real-input.md from the finished runs; figures say how many seeds are behind them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from real_input_figures import Runs, Values
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
    """Writes the report from all result files.

    Args:
        results: folder of `part.run.seed.json`.
        target: the Markdown file.
    """
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"))]
    by_part: dict[str, Runs] = {}
    for values in sorted(files, key=lambda v: int(v["seed"])):
        by_part.setdefault(values["part"], {}).setdefault(values["run"], []).append(values)
    sections = [
        INTRODUCTION,
        _measured_on(files),
        languages_section(by_part.get("emoji-languages", {})),
        styles_section(by_part.get("emoji-styles", {})),
        photos_section(by_part.get("flickr", {}).get("default", [])),
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(section for section in sections if section), encoding="utf-8")


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
