"""Writes docs/results/strategies.md: per protocol the table of strategies, then what the five papers claim against it.

    python benchmarks/orderings.py --cells benchmarks/results --report docs/results/strategies.md

Reads finished cells alone (`protocols.py` runs them) and the claims of `orderings.toml`; it trains nothing. A cell of
an older version of its sequence counts as not run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evergreen_bars import bars
from orderings_claims import CONTRADICTS, Claim, Judged, Side, judge, read_claims, tally
from protocols import CELLS, CLAIMS, HERE, SEQUENCES, planned

from app.bench.comparison import FEWEST_SEEDS, ZERO
from app.bench.figures import Spread
from app.bench.findings import SequenceFindings
from app.bench.report import findings_in
from app.bench.sequence import read_sequence
from app.bench.tables import change, explained, figure, notes_of, tables_of

REPORT = HERE.parent / "docs" / "results" / "strategies.md"
PROTOCOLS: Mapping[str, Sequence[str]] = {
    "1. Languages": (
        "languages",
        "languages-towers",
        "languages-36",
        "languages-36-together",
        "languages-36-joint",
        "languages-parts",
        "photographs",
    ),
    "2. Domains": ("domains",),
    "3. Stream": ("stream-4-classes", "stream-4-random", "stream-8-classes", "stream-8-random"),
    "4. Growing gallery": ("growing", "growing-memory"),
    "5. Second dataset": ("second-dataset",),
}
METRICS = {
    "r1": "R@1 at the end",
    "r10": "R@10 at the end",
    "rm": "Rm (mean of R@1, 5, 10, both directions) at the end",
    "learned": "R@1 just after each step",
    "bwt": "R@1 at the end less just after each step",
    "forgetting": "forgetting",
    "probe_drop": "accuracy on the probe, before less after",
    "drift/ram_pictures": "RAM less SAM of pictures, degrees a step",
    "drift/ram_texts": "RAM less SAM of texts, degrees a step",
    "drift/imam_text_to_image": "ImAM, degrees a step",
}
HEAD = """# Strategies compared: five protocols, and what five papers claim

Written by `python benchmarks/orderings.py`; do not edit. The cells behind it are under `benchmarks/results/`, the
sequences under `benchmarks/sequences/`; [tuning.md](tuning.md) says how options were chosen. Every figure is of a tiny
encoder and small chunks: orderings can be compared with the papers', sizes cannot.

How it was run, where a protocol leaves it open:

- An epoch is chosen by the new chunk's validation captions alone, as in the papers. An update of the product lets a
  strategy that can forget choose by old captions, too.
- Each strategy has the learning rate that served best where rates were tuned; a claim about a part of a strategy, or
  about averaging weights, is measured with the same rate on both sides. What serves best at the end may be what learns
  least: mod-x, lwf and ties are at a thirtieth and a tenth of their default rates, where they change little.
- What a claim or a promise of `evergreen` compares has three seeds, on the second dataset and in the parts of TEIR
  five; other rows are context and have the first.
- Whose picture is of which domain is told, as an upload tells it, also where a query's language is not.
- What the encoder knew before the first step weighs nothing in ewc, oewc, si, mas, rwalk and afec: no update of theirs
  has measured it. lwf, mod-x, zscl and teir hold to it from the first step on.
- Of mla, p-tuning and lora (also with teir) the columns *searched* were made by the rule of before 2026-11-24, under
  which a picture scored by its best reading alone; rates of zscl and moe-adapters were chosen before they were mended
  on that day (docs/log.md).
"""
COMMANDS = """## Commands

```
python benchmarks/tuning.py --data ../shared/data --work WORK       # options, on languages and domains kept apart
python benchmarks/protocols.py --data ../shared/data --work WORK    # the cells that are not finished; resumable
python benchmarks/orderings.py                                      # this page
```
"""


def main() -> int:
    """Writes the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=Path, default=CELLS)
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--claims", type=Path, default=CLAIMS)
    parser.add_argument("--sequences", type=Path, default=SEQUENCES)
    asked = parser.parse_args()
    found = all_findings(asked.cells, asked.sequences, asked.claims)
    judged = [judge(claim, found) for claim in read_claims(asked.claims)]
    asked.report.write_text(page(found, judged), encoding="utf-8")
    sys.stdout.write(f"{asked.report}: {tally(judged)}\n")
    return 0


def all_findings(cells: Path, sequences: Path, claims: Path = CLAIMS) -> dict[str, SequenceFindings]:
    """Returns what the cells of each protocol's sequences say; sequences without a file are left out."""
    found = {}
    for name in (name for names in PROTOCOLS.values() for name in names):
        path = sequences / f"{name}.toml"
        if path.exists():
            sequence = read_sequence(path)
            command = f"python benchmarks/protocols.py --only {name}"
            found[name] = findings_in(sequence, cells, command, planned(sequence, claims))
    return found


def page(found: Mapping[str, SequenceFindings], judged: Sequence[Judged]) -> str:
    """Returns the whole page."""
    parts = [HEAD, _claims_in_short(judged)]
    for title, names in PROTOCOLS.items():
        parts.append(f"## {title}\n")
        parts += [_protocol(name, found.get(name)) for name in names]
    return "\n".join([*parts, bars(found), _orderings(judged), _budget(found), COMMANDS])


def _budget(found: Mapping[str, SequenceFindings]) -> str:
    """Returns what each sequence took: of cells that do not say what measuring took, the updates alone."""
    rows, total = [], 0.0
    for name, findings in found.items():
        cells = [cell for own in findings.cells.values() for cell in own]
        updates = sum(step["cpu_seconds"] for cell in cells for step in cell.steps) / 3600
        said = [cell for cell in cells if "cpu_seconds" in cell.made]
        whole = sum(cell.made["cpu_seconds"] for cell in said) / 3600
        rows.append(f"| {name} | {len(cells)} | {updates:.2f} | {len(said)} | {whole:.2f} |")
        total += updates
    head = "| sequence | cells | updates, hours | cells that say it | with measuring, hours |"
    lines = "\n".join([head, "| --- | --- | --- | --- | --- |", *rows])
    return f"## What it took\n\nProcessor time, one thread; updates of all cells: {total:.1f} hours.\n\n{lines}\n"


def _claims_in_short(judged: Sequence[Judged]) -> str:
    surprises = [
        one for one in judged if one.claim.confidence == "high" and one.verdict in {ZERO, CONTRADICTS}
    ]
    lines = [f"[What the papers claim](#what-the-papers-claim), in short: {tally(judged)}.\n"]
    if surprises:
        lines.append("Claims of high confidence that do not hold:\n")
        lines += [
            f"- {one.claim.claim} {metric_words(one.claim)}: {_change(one)}, {one.verdict}. {one.claim.remark}".rstrip()
            for one in surprises
        ]
        lines.append("")
    return "\n".join(lines)


def _protocol(name: str, found: SequenceFindings | None) -> str:
    if found is None or not found.cells:
        return f"### {name}\n\nNot run yet.\n"
    head = f"### {name}\n\n{found.about} {found.made_on} `{found.command}`\n\n{explained(found)}\n"
    return "\n".join([head, *notes_of(found), *(table.markdown(level=4) for table in tables_of(found))])


def _orderings(judged: Sequence[Judged]) -> str:
    header = [
        "claim",
        "the paper's numbers",
        "confidence",
        "measured by",
        "a",
        "b",
        "a less b",
        "verdict",
        "remark",
    ]
    rows = [
        [
            one.claim.claim,
            one.claim.paper,
            one.claim.confidence,
            metric_words(one.claim),
            _said(one.claim.a, one.a),
            _said(one.claim.b, one.b),
            _change(one),
            f"**{one.verdict}**" if one.verdict == CONTRADICTS else one.verdict,
            one.claim.remark or one.claim.not_run,
        ]
        for one in judged
    ]
    lines = [header, ["---"] * len(header), *rows]
    table = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return (
        "## What the papers claim\n\n"
        "Each claim of the papers that can show at this scale. *Confidence*: that it can show with encoders this\n"
        "small, said before any run; *not promised*: an ordering of a paper that nothing was said of. *a less b*:\n"
        "points, paired per query and per seed, 95 % interval over seeds and things; the probe's and drift's over\n"
        "seeds alone (Student). *Holds*: the interval is on the claimed side of zero; *contradicts*: on the other;\n"
        f"*{ZERO}*: it spans zero; below {FEWEST_SEEDS} seeds nothing is said. Intervals are one by one, not\n"
        f"jointly.\n\n{table}\n"
    )


def metric_words(claim: Claim) -> str:
    """Returns what a claim is measured by, in words."""
    if not claim.metric:
        return "–"
    kind, *rest = claim.metric.split("/")
    said = f"{kind}, {rest[0]}: {METRICS[rest[1]]}" if len(rest) == 2 else METRICS[claim.metric]
    return said if claim.against else f"{said}; a {claim.relation} b"


def _said(side: Side | None, spread: Spread | None) -> str:
    if side is None:
        return "–"
    named = f"{side.label} ({side.sequence})"
    return named if spread is None else f"{named}: {figure(spread)}"


def _change(one: Judged) -> str:
    if one.ours is None:
        return "–"
    count = len(one.ours.seeds)
    return f"{change(one.ours, words=False)}, {count} seed{'s' * (count > 1)}"


if __name__ == "__main__":
    sys.exit(main())
