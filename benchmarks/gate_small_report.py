"""Writes what docs/results/gate.md says of small chunks, from the trials of `gate_small.py`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gate_report import SMALL, WORDS, table

Values = dict[str, Any]
GAINS, NOTHING, HARM = 2.0, 0.5, 1.0
"""True points from which a clean chunk is good, below which nothing was gained, and from which a loss is harm."""
WORTHS = {
    "good": f"clean, truly gains ≥ {GAINS:g} points",
    "little": f"clean, truly gains < {GAINS:g} points",
    "useless": "exchanged captions",
    "harmful": f"old captions truly lose ≥ {HARM:g} points",
}


def write_small(work: Path, report: Path) -> None:
    """Writes the section anew."""
    trials = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((work / "results").glob("*.json"))
    ]
    before = report.read_text(encoding="utf-8").partition(SMALL)[0].rstrip()
    report.write_text("\n".join([before, "", *_section(trials)]) + "\n", encoding="utf-8")


def worth(trial: Values) -> str:
    """Returns what a chunk was in truth, whatever was done to it."""
    if trial["lost"] >= HARM:
        return "harmful"
    if trial["trial"]["kind"] in ("good", "pushing"):
        return "good" if trial["gain"] >= GAINS else "little"
    return "useless"


def _section(trials: Sequence[Values]) -> list[str]:
    asked = "; ".join(_named(t) for t in trials if worth(t) == "good" and t["verdict"] != "promote") or "none"
    columns = ["taught", "chunks", "true gain", "gain that copies showed", "old captions' true loss"]
    return [
        SMALL,
        "",
        "A home with `perennial-photo` has 1,500 photographs and two emoji styles in its gallery, and was taught one",
        "of these. Chunks are captions of photographs in languages that the encoder reads, names of emoji, and texts",
        "in Hindi, Czech and Ukrainian; each is drawn anew: clean, with all captions exchanged, with the captions of",
        "old pictures, or clean and taught without stepping aside. What a chunk truly gains is measured on 400",
        "photographs or 200 emoji that no chunk has, what old captions truly lose on all of them. All are taught by",
        "`evergreen`, those of old captions and those without stepping aside by trained adapters. Rules and numbers",
        f"were fixed before; {len(trials)} chunks (`benchmarks/gate_small.py`).",
        "",
        "Went live / a person was asked / rejected:",
        "",
        *_counts(trials),
        "",
        *table(columns, _by_world(trials)),
        "",
        f"Good ones about which a person was asked: {asked}.",
        "",
        *table(["what stood in the way of good chunks", "chunks"], _stopped(trials)),
    ]


def _counts(trials: Sequence[Values]) -> list[str]:
    sizes = sorted({trial["trial"]["pairs"] for trial in trials})
    rows = []
    for name, words in WORTHS.items():
        own = [trial for trial in trials if worth(trial) == name]
        by_size = [[t for t in own if t["trial"]["pairs"] == size] for size in sizes]
        rows.append([words, *(_counted(some) for some in (*by_size, own))])
    wrong = [t for t in trials if t["verdict"] == "promote" and (t["gain"] < NOTHING or t["lost"] >= HARM)]
    bar = [t for t in trials if worth(t) == "good" and t["trial"]["pairs"] >= 200]
    live = sum(t["verdict"] == "promote" for t in bar)
    named = "".join(f"; {_named(trial)}" for trial in wrong)
    return [
        *table(["in truth", *(f"n = {size}" for size in sizes), "all"], rows),
        "",
        f"Of {len(bar)} clean chunks of 200 to 800 that truly gain ≥ {GAINS:g} points {live} went live "
        f"({100 * live / max(1, len(bar)):.0f} %). False promotions (gained < {NOTHING:g} points, or old captions lost "
        f"≥ {HARM:g}): {len(wrong)}{named}.",
    ]


def _counted(trials: Sequence[Values]) -> str:
    found = [trial["verdict"] for trial in trials]
    return " / ".join(str(found.count(word)) for word in WORDS) if found else ""


def _named(trial: Values) -> str:
    what = trial["trial"]
    return (
        f"{what['kind']} {what['language']}/{what['domain']} of {what['pairs']} "
        f"({trial['gain']:+.1f}, old captions {-trial['lost']:+.1f})"
    )


def _stopped(trials: Sequence[Values]) -> list[list[str]]:
    found: dict[str, int] = {}
    for trial in trials:
        if worth(trial) == "good" and trial["verdict"] != "promote":
            rules = [rule["rule"] for rule in trial["gate"]["rules"] if rule["verdict"] != "promote"]
            found[", ".join(rules)] = found.get(", ".join(rules), 0) + 1
    return [[rules, str(count)] for rules, count in sorted(found.items(), key=lambda one: -one[1])]


def _by_world(trials: Sequence[Values]) -> list[list[str]]:
    grouped: dict[tuple[str, str], list[Values]] = {}
    for trial in trials:
        what = trial["trial"]
        new = what["language"] in ("hi", "cs", "uk")
        world = "a new language" if new else ("photographs" if what["domain"] == "photographs" else "emoji")
        grouped.setdefault((what["kind"], world), []).append(trial)
    return [
        [f"{kind}, {world}", str(len(some)), *(f"{mean:+.1f}" for mean in _means(some))]
        for (kind, world), some in sorted(grouped.items())
    ]


def _means(trials: Sequence[Values]) -> list[float]:
    shown = [
        row["difference"]
        for trial in trials
        for row in trial["gate"]["rows"]
        if row["role"] == "new" and row["view"] == "own"
    ]
    columns = [trial["gain"] for trial in trials], shown, [trial["lost"] for trial in trials]
    return [sum(values) / max(1, len(values)) for values in columns]
