"""Writes docs/results/gate.md from the finished parts of `gate_power.py`, its last section from `gate_small.py`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Values = dict[str, Any]
WORDS = ("promote", "review", "reject")
SMALL = "## Small chunks"
GAINS, NOTHING, HARM = (
    2.0,
    0.5,
    1.0,
)  # true points from which a chunk is good; below which useless; lost, harmful


def write_report(work: Path, report: Path) -> None:
    """Writes the report of all parts in the work folder."""
    parts = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in work.glob("*.json")}
    if not parts:
        return
    any_part = next(iter(parts.values()))
    for name in [name for name in parts if name.startswith("home-")]:
        parts |= {name.replace("home", kind, 1): parts[name][kind] for kind in ("benign", "slice", "pool")}
    lines = [
        "# What the gate lets through",
        "",
        "Written by `python benchmarks/gate_power.py` "
        f"({any_part['date']}, {any_part['runs']} runs each, seeds from 0, CPU only).",
        "Every verdict is the real gate's on made-up ranks of homes whose truth is known",
        "(`benchmarks/gate_worlds.py`): K old slices of n held-out things each, measured in their own gallery and",
        "among everything, and 200 things of each that were trained on; *sd* is how much a caption's score (mean of",
        "R@1, 5 and 10) differs between two versions by chance; *after 8* means that eight harmless candidates went",
        "live before.",
        "",
        *_bars(parts),
        "",
        "## Harmless updates: nothing lost, a clear gain",
        "",
        "Promoted / rejected, percent of runs; the rest went to a person.",
        "",
        *_grid(
            parts,
            "benign",
            lambda values: f"{_share(values, 'promote'):.0f} / {_share(values, 'reject'):.0f}",
        ),
        "",
        "## Harm: one slice loses 8 points, or all lose 3",
        "",
        "Promoted, percent of runs: one slice / all.",
        "",
        *_harm(parts),
        "",
        "## By size of the loss and of the gain",
        "",
        "8 old slices of 150 things, sd 0.15, first update. Percent promoted / review / reject.",
        "",
        *_losses(parts),
        "",
        *_gains(parts),
        "",
        "## Drift: twenty candidates in a row",
        "",
        "*french*: one slice moves by −2.0 a step. *least*: whatever stands highest moves by −1.5 a step. A candidate",
        "that is not promoted is tried again, newly trained. Ever more than 5 points (slice) or 2 (pool) below the",
        "high water:",
        "",
        *_drifts(parts),
        "",
        *_words(),
    ]
    report.parent.mkdir(parents=True, exist_ok=True)
    before = report.read_text(encoding="utf-8") if report.exists() else ""
    kept = [SMALL + before.partition(SMALL)[2]] if SMALL in before else []
    report.write_text("\n".join([*lines, *(["", *kept] if kept else [])]).rstrip() + "\n", encoding="utf-8")


def _share(values: Values, verdict: str) -> float:
    counts = values["verdicts"]
    whole: int = sum(counts.values())
    return 100.0 * float(counts.get(verdict, 0)) / whole


def _key(name: str) -> tuple[int, int, float, int]:
    _, slices, things, deviation, promotions = name.split("-")
    return int(slices), int(things), float(deviation), int(promotions)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a table's lines of Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _is_home(name: str, *kinds: str) -> bool:
    return name.split("-")[0] in kinds and name.count("-") == 4


def _grid(parts: dict[str, Values], kind: str, cell: Any) -> list[str]:
    found = {_key(name): values for name, values in parts.items() if _is_home(name, kind)}
    columns = sorted({(deviation, promotions) for _, _, deviation, promotions in found})
    header = [
        "K",
        "n",
        *(f"sd {deviation}{', after 8' if promotions else ''}" for deviation, promotions in columns),
    ]
    rows = []
    for slices, things in sorted({key[:2] for key in found}):
        cells = [found.get((slices, things, *column)) for column in columns]
        rows.append([str(slices), str(things), *("" if values is None else cell(values) for values in cells)])
    return table(header, rows)


def _harm(parts: dict[str, Values]) -> list[str]:
    both = {
        name.replace("slice-", "harm-", 1): {"slice": values, "pool": parts[name.replace("slice", "pool", 1)]}
        for name, values in parts.items()
        if name.startswith("slice-") and name.count("-") == 4 and name.replace("slice", "pool", 1) in parts
    }
    return _grid(
        both,
        "harm",
        lambda pair: f"{_share(pair['slice'], 'promote'):.0f} / {_share(pair['pool'], 'promote'):.0f}",
    )


def _losses(parts: dict[str, Values]) -> list[str]:
    drops = sorted(float(name.rsplit("-", 1)[1]) for name in parts if name.startswith("slice-drop-"))
    rows = [
        [f"{drop:g}", *(_three(parts.get(f"{kind}-drop-{drop}")) for kind in ("slice", "pool"))]
        for drop in drops
    ]
    return table(["true loss, points", "of one slice", "of all"], rows)


def _gains(parts: dict[str, Values]) -> list[str]:
    names = [name.split("-")[1:] for name in parts if name.startswith("gain-")]
    things = sorted({int(n) for _, n in names})
    rows = [
        [f"{gain:g}", *(_three(parts.get(f"gain-{gain}-{n}")) for n in things)]
        for gain in sorted({float(gain) for gain, _ in names})
    ]
    return table(["true gain, points", *(f"n = {n}" for n in things)], rows)


def _three(values: Values | None) -> str:
    return "" if values is None else " / ".join(f"{_share(values, word):.0f}" for word in WORDS)


def _stayed(values: Values) -> list[bool]:
    """Whether each run stayed within the policy; a hair is allowed for sums of tenths."""
    stands = zip(values["slices"], values["pools"], strict=True)
    return [slices <= 5.0 + 1e-9 and pool <= 2.0 + 1e-9 for slices, pool in stands]


def _drifts(parts: dict[str, Values]) -> list[str]:
    rows = []
    for name in sorted(name for name in parts if name.startswith("drift-")):
        _, attack, slices, things, _, memory = name.split("-")
        values = parts[name]
        runs = len(values["slices"])
        beyond = runs - sum(_stayed(values))
        rows.append(
            [
                attack,
                slices,
                f"{things} + {memory}",
                f"{beyond} of {runs}",
                f"{max(values['slices']):.1f}",
                f"{max(values['pools']):.2f}",
                f"{sum(values['promoted']) / runs:.1f}",
            ]
        )
    header = [
        "attack",
        "K",
        "held out + trained on",
        "beyond the policy",
        "worst slice",
        "worst pool",
        "promoted of 20",
    ]
    return table(header, rows)


def _bars(parts: dict[str, Values]) -> list[str]:
    benign = {_key(name): values for name, values in parts.items() if _is_home(name, "benign")}
    named = {key: values for key, values in benign.items() if key[1] >= 150 and key[2] <= 0.15}
    harm = [_share(values, "promote") for name, values in parts.items() if _is_home(name, "slice", "pool")]
    drifts = [_stayed(values) for name, values in parts.items() if name[:5] == "drift" and name[-2:] != "-0"]
    rows = []
    if named:
        shares = {key: _share(values, "promote") for key, values in named.items()}
        worst = min(shares, key=lambda key: shares[key])
        rows.append(
            [
                "harmless promoted ≥ 90 %: sd ≤ 0.15, up to 60 slices of 150 things, after 8 promotions too",
                f"least {shares[worst]:.0f} % (K = {worst[0]}, n = {worst[1]}, sd {worst[2]}, after {worst[3]}); "
                f"mean {sum(shares.values()) / len(shares):.1f} %",
            ]
        )
    if benign:
        most = max(_share(values, "reject") for values in benign.values())
        rows.append(["harmless rejected ≤ 2 % anywhere", f"most {most:.1f} %"])
    if harm:
        found = f"promoted at most {max(harm):.1f} %, mean {sum(harm) / len(harm):.1f} %"
        rows.append(["one slice −8, or the pool −3: not promoted in ≥ 95 %", found])
    if drifts:
        least = 100 * min(sum(stayed) / len(stayed) for stayed in drifts)
        rows.append(["no drift beyond 5 (slice) or 2 (pool) in 95 % of the runs", f"least {least:.0f} %"])
    return table(["bar", "found"], rows)


def _words() -> list[str]:
    return [
        "## What no rule could do better",
        "",
        "With one old slice of 150 things and sd 0.15 the standard error of its change is 1.2 points. A rule that",
        "promotes a true loss of 3 points in at most 5 % of the cases then promotes a harmless candidate in at most",
        "79 % (Neyman and Pearson); the 200 things that were trained on make it 98 %. Updates of `evergreen` leave",
        "old ranks as they are, to the last one, and pass with any number of slices.",
    ]
