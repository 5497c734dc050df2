"""Writes docs/results/bad-chunks.md from the benchmark's result files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from bad_chunks_worlds import ALONE, DOMAIN, LEARNED, MORE, NEW

Values = dict[str, Any]
PRODUCT = "## Through the product"
KINDS = (LEARNED, MORE, NEW, ALONE, DOMAIN)
SLIPS = (
    "last 62 % of the rows moved by 1",
    "rows from 30 to 70 % moved by 2",
    "sorted table, last 62 % moved by 1",
    "sorted table, last 75 % moved by 2",
)
BARRED = (
    "shuffled 30 %",
    "shuffled 60 %",
    "shuffled 100 %",
    "rows moved by 1",
    "rows moved by 3",
    "training rows moved by 1",
    "training rows moved by 3",
    *SLIPS,
    "10 % in another language",
    "30 % in another language",
    "English under a foreign tag (learned)",
    "English under a foreign tag (not learned)",
    "another language under a learned tag",
    "a near language under a tag",
    "one caption for all",
    "held-out near copies",
)
BY_KIND = (
    "shuffled 30 %",
    "shuffled 60 %",
    "shuffled 100 %",
    "rows moved by 1",
    "training rows moved by 1",
    *SLIPS,
    "10 % in another language",
    "30 % in another language",
    "wrong names in training",
    "two words exchanged",
)
AT_ALL = ("clean", "sorted table", "shuffled 10 %", "shuffled 15 %")


def write_report(results: Path, report: Path) -> None:
    """Writes the report from all files there are; nothing where there is none."""
    cells = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*.json"))]
    checked = [cell for cell in cells if "runs" in cell and cell["runs"]]
    product = [cell for cell in cells if "product" in cell]
    if not checked and not product:
        return
    report.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Bad chunks: what their checks make of them",
        "",
        "Written by `python benchmarks/bad_chunks.py --data ../shared/data` (and `--train` for the last table, of "
        "the last such run). A "
        "chunk of drawn scenes, emoji names or photographs is damaged, and its checks are run as "
        "`app.learning.adding.add_chunk` runs them. *Right* means held with the finding that names the damage. "
        "The bars: what has 30 % and more of its captions shuffled, moved rows, wrong tags, one caption or a stuffed "
        "held-out part is held in at least 95 % with the right sentence, and a tenth in another language is listed; "
        "clean chunks, also in sorted tables, are held in at most 5 %.",
        "",
        *_summary(checked),
        *_by_kind(checked),
        *_doubtful(checked),
        *_untold(checked),
        *(_product(product) or _as_it_stood(report)),
    ]
    report.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _as_it_stood(report: Path) -> list[str]:
    """Returns the page's last table of an earlier run, where the work folder has none of the product's results."""
    old = report.read_text(encoding="utf-8") if report.exists() else ""
    at = old.find(PRODUCT)
    return [] if at < 0 else old[at:].rstrip("\n").split("\n")


def _runs(cells: Iterable[Values], damage: str, **wanted: object) -> list[Values]:
    return [
        run | {"cell": cell}
        for cell in cells
        if all(cell[name] == value for name, value in wanted.items())
        for run in cell["runs"]
        if run["damage"] == damage
    ]


def _share(runs: Sequence[Values], of: str) -> str:
    if not runs:
        return "–"
    count = sum(bool(run["held"]) if of == "held" else run["right"] for run in runs)
    return f"{100 * count / len(runs):.0f} ({count}/{len(runs)})"


def _summary(cells: Sequence[Values]) -> list[str]:
    encoders = sorted({cell["encoder"] for cell in cells})
    lines = ["## Held, all worlds together", "", "Percent (and counts) held with the right sentence.", ""]
    lines += [f"| damage | {' | '.join(encoders)} |", f"|---|{'---|' * len(encoders)}"]
    lines += [
        f"| {damage}, held at all | {' | '.join(_share(_runs(cells, damage, encoder=e), 'held') for e in encoders)} |"
        for damage in AT_ALL
    ]
    lines += [
        f"| {damage} | {' | '.join(_share(_runs(cells, damage, encoder=e), 'right') for e in encoders)} |"
        for damage in ("wrong names in training", "two words exchanged", *BARRED)
    ]
    twelve = [_share(_runs(cells, "12 pairs", encoder=encoder), "held") for encoder in encoders]
    lines.append(f"| 12 pairs, held for that | {' | '.join(twelve)} |")
    return [*lines, ""]


def _by_kind(cells: Sequence[Values]) -> list[str]:
    lines = ["## By what the chunk brings", ""]
    lines.append(
        f"Percent held with the right sentence; {', '.join(f'*{name}*' for name in AT_ALL)} are held at all."
    )
    columns = (*AT_ALL, *BY_KIND)
    for encoder in sorted({cell["encoder"] for cell in cells}):
        lines += ["", f"### {encoder}", "", f"| world | pairs | {' | '.join(columns)} |"]
        lines.append(f"|---|--:|{'--:|' * len(columns)}")
        for kind in KINDS:
            found = {
                (c["collection"], c["size"]) for c in cells if c["encoder"] == encoder and c["kind"] == kind
            }
            for collection, size in sorted(found):
                some = [
                    _share(
                        _runs(cells, d, encoder=encoder, kind=kind, collection=collection, size=size),
                        "held" if d in AT_ALL else "right",
                    )
                    for d in columns
                ]
                lines.append(f"| {kind}: {collection} | {size:,} | {' | '.join(some)} |")
    return [*lines, ""]


def _doubtful(cells: Sequence[Values]) -> list[str]:
    lines = ["## Which pairs: 5 % shuffled", ""]
    lines += [
        "| world | pairs | AUC | precision of the list | listed | estimated share |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    keys = sorted({(c["encoder"], c["kind"], c["collection"], c["size"]) for c in cells})
    for encoder, kind, collection, size in keys:
        runs = [
            run
            for run in _runs(
                cells, "shuffled 5 %", encoder=encoder, kind=kind, collection=collection, size=size
            )
            if "auc" in run
        ]
        if runs:
            listed = [run["precision"] for run in runs if run["precision"] is not None]
            precision = f"{fmean(listed):.2f}" if listed else "–"
            lines.append(
                f"| {encoder}: {kind}, {collection} | {size:,} | {fmean(r['auc'] for r in runs):.3f} | {precision} | "
                f"{fmean(r['listed'] for r in runs):.0f} | "
                f"{fmean(r['figures']['mismatched_share'] for r in runs):.2f} |"
            )
    return [*lines, ""]


def _untold(cells: Sequence[Values]) -> list[str]:
    lines = [
        "## Where no statistic can tell",
        "",
        "The check answers *unknown* there, says so, and leaves the chunk to the gate. Power is the share of captions "
        "of other pictures that a picture's own outscores: 0.5 is chance.",
        "",
        "| world | pairs | clean chunks told | power, clean | estimated share, clean | 30 % shuffled |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    keys = sorted({(c["encoder"], c["kind"], c["collection"], c["size"]) for c in cells})
    for encoder, kind, collection, size in keys:
        where = {"encoder": encoder, "kind": kind, "collection": collection, "size": size}
        runs = [run for run in _runs(cells, "clean", **where) if "power" in run.get("figures", {})]
        third = [run for run in _runs(cells, "shuffled 30 %", **where) if "power" in run.get("figures", {})]
        if runs:
            told = sum(run["match"] != "unknown" for run in runs)
            lines.append(
                f"| {encoder}: {kind}, {collection} | {size:,} | {told} of {len(runs)} | "
                f"{fmean(r['figures']['power'] for r in runs):.2f} | "
                f"{fmean(r['figures']['mismatched_share'] for r in runs):.2f} | "
                f"{fmean(r['figures']['mismatched_share'] for r in third) if third else float('nan'):.2f} |"
            )
    return [*lines, ""]


def _product(cells: Sequence[Values]) -> list[str]:
    if not cells:
        return []
    lines = [PRODUCT, "", "Uploads, checks, and an update for what the checks let pass.", ""]
    lines += [
        "| encoder | seed | upload | standing | held by | update | what was seen |",
        "|---|--:|---|---|---|---|---|",
    ]
    for cell in sorted(cells, key=lambda cell: (cell["encoder"], cell["seed"], cell["order"])):
        lines.append(
            f"| {cell['encoder']} | {cell['seed']} | {cell['product']} | {cell['standing']} | "
            f"{', '.join(cell['held'])} | {cell.get('verdict') or '–'} | {cell['seen']} |"
        )
    return [*lines, ""]
