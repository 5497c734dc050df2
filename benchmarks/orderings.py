"""Writes docs/results/strategies.md and the pages under it: a summary, the claims, and a page for each protocol.

    python benchmarks/orderings.py --cells benchmarks/results --report docs/results/strategies.md

Reads finished cells alone (`protocols.py` runs them) and the claims of `orderings.toml`; it trains nothing. A cell of
an older version of its sequence counts as not run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evergreen_bars import PARTS, bars
from orderings_claims import Judged, claims_page, in_short, judge_all, read_claims, tally
from protocols import CELLS, CLAIMS, HERE, SEQUENCES, planned, with_seeds
from strategies_plot import Dot, drawing, recall_with_interval

from app.bench.findings import DEFAULT, SequenceFindings
from app.bench.report import findings_in
from app.bench.sequence import read_sequence
from app.bench.tables import explained, figure, notes_of, tables_of
from model_updates.references import REFERENCES
from model_updates.strategies import strategy_named
from model_updates.strategy import Replay

REPORT = HERE.parent / "docs" / "results" / "strategies.md"
PROTOCOLS: Mapping[str, tuple[str, Sequence[str]]] = {
    "languages": (
        "Languages",
        (
            "languages",
            "languages-towers",
            "languages-36",
            "languages-36-together",
            "languages-36-joint",
            "languages-parts",
            "photographs",
        ),
    ),
    "domains": ("Domains", ("domains",)),
    "mixed": ("Languages and domains in turn", ("mixed",)),
    "stream": (
        "Stream from scratch",
        ("stream-4-classes", "stream-4-random", "stream-8-classes", "stream-8-random"),
    ),
    "growing": ("Growing gallery", ("growing", "growing-memory")),
    "second-dataset": ("Second dataset", ("second-dataset",)),
    "photographs": (
        "Photographs as features",
        ("photo-languages", "photo-domains", "photo-second", "photo-classes"),
    ),
}
"""By page, its title and its sequences."""
IN_SUMMARY = (
    "languages-36",
    "languages-36-together",
    "domains",
    "mixed",
    "stream-4-classes",
    "growing",
    "second-dataset",
)
"""The sequences of the summary's table."""
DRAWN = ("languages", "domains")
"""The sequences of the summary's drawing: most strategies ran there."""
NAMED = 12
"""Of a panel's dots, so many have their names beside them: the best, and those that the table names."""
JOINT = ("joint", "cll-clip+joint")
HEAD = """# Strategies compared

Written by `python benchmarks/orderings.py`; do not edit. Six protocols teach some fifty strategies the same chunks in
the same order. Every figure is of small encoders and small chunks: orderings can be compared with the papers', sizes
cannot.

![Recall against what was lost, for each strategy](strategies/recall-loss-cost.svg)

*Recall of what was taught after the last step (text to image, R@1, language and domain told), against what was lost of
it since it was taught. Bars are 95 % intervals over seeds and things, thin where there is one seed and the interval is
over things alone. The larger a disc, the more processor time. Up and to the left is better. A name that is not there is
in the tables of [languages](strategies/languages.md) and [domains](strategies/domains.md).*
"""
RUN = """## How it was run

Where a protocol leaves it open:

- An epoch is chosen by the new chunk's validation captions alone, as in the papers. An update of the product lets a
  strategy that can forget choose by old captions, too.
- Each strategy has the learning rate that served best where rates were tuned ([tuning](tuning.md)); a claim about a
  part of a strategy, or about averaging weights, is measured with the same rate on both sides. What serves best at the
  end may be what learns least: mod-x, lwf and ties are at a thirtieth and a tenth of their default rates.
- What a claim or a promise of `evergreen` compares has three seeds, on the second dataset and in the parts of TEIR
  five; other rows are context and have the first.
- Whose picture is of which domain is told, as an upload tells it, also where a query's language is not.
- What the encoder knew before the first step weighs nothing in ewc, oewc, si, mas, rwalk and afec: no update of theirs
  has measured it. lwf, mod-x, zscl and teir hold to it from the first step on.
- On features of photographs every rate is the one that was tuned for `perennial-tiny` elsewhere; none was tried there.
- Of mla, p-tuning and lora (also with teir) the columns *searched* were made by the rule of before 2026-11-24, under
  which a picture scored by its best reading alone; rates of zscl and moe-adapters were chosen before they were mended
  on that day ([log](../log.md)).

```
python benchmarks/tuning.py --data ../shared/data --work WORK       # options, on languages and domains kept apart
python benchmarks/protocols.py --data ../shared/data --work WORK    # the cells that are not finished; resumable
python benchmarks/orderings.py                                      # these pages
```
"""


def main() -> int:
    """Writes the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=Path, default=CELLS)
    parser.add_argument(
        "--report", type=Path, default=REPORT, help="the summary; its pages lie in a folder beside it"
    )
    parser.add_argument("--claims", type=Path, default=CLAIMS)
    parser.add_argument("--sequences", type=Path, default=SEQUENCES)
    asked = parser.parse_args()
    found = all_findings(asked.cells, asked.sequences, asked.claims)
    judged = judge_all(read_claims(asked.claims), found)
    for path, text in pages(found, judged, asked.report).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{asked.report}: {tally(judged)}\n")
    return 0


def all_findings(cells: Path, sequences: Path, claims: Path = CLAIMS) -> dict[str, SequenceFindings]:
    """Returns what the cells of each protocol's sequences say; sequences without a file are left out."""
    found = {}
    for name in (name for _, names in PROTOCOLS.values() for name in names):
        path = sequences / f"{name}.toml"
        if path.exists():
            sequence = with_seeds(read_sequence(path), claims)
            command = f"python benchmarks/protocols.py --only {name}"
            found[name] = findings_in(sequence, cells, command, planned(sequence, claims))
    return found


def pages(found: Mapping[str, SequenceFindings], judged: Sequence[Judged], report: Path) -> dict[Path, str]:
    """Returns the text of each file: the summary, its drawing, the claims and the protocols."""
    folder = report.with_suffix("")
    return {
        report: summary(found, judged),
        folder / "recall-loss-cost.svg": drawing({name: _dots(found.get(name)) for name in DRAWN}),
        folder / "claims.md": claims_page(judged),
        **{
            folder / f"{page}.md": "\n".join(
                [f"# {title}\n", *(_sequence(one, found.get(one)) for one in names)]
            )
            for page, (title, names) in PROTOCOLS.items()
        },
    }


def summary(found: Mapping[str, SequenceFindings], judged: Sequence[Judged]) -> str:
    """Returns the page that a person reads."""
    links = " · ".join(f"[{title}](strategies/{page}.md)" for page, (title, _) in PROTOCOLS.items())
    return "\n".join(
        [
            HEAD,
            _protocols(found),
            f"All tables: {links}. Others' strategies: [leaderboard](leaderboard.md).\n",
            bars(found),
            in_short(judged),
            RUN,
        ]
    )


def _protocols(found: Mapping[str, SequenceFindings]) -> str:
    """Returns the table of the summary: of each sequence the default, the best beside it, joint, in sequence."""
    header = "sequence", "strategy", "R@1 taught", "R@1 held-out", "forgetting", "processor, s", "seeds"
    figures = "trained/told/r1", "held-out/told/r1", "trained/told/forgetting"
    rows = []
    for name, one in ((name, found[name]) for name in IN_SUMMARY if name in found):
        for label in _shown(one):
            said = one.figures[label]
            cost = figure(said.get("cpu_seconds"), digits=0)
            rows.append(
                [name, label, *(figure(said.get(key)) for key in figures), cost, str(len(one.cells[label]))]
            )
    lines = [header, ["---"] * len(header), *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return (
        f"## In one table\n\nOf each sequence: `{DEFAULT}` where it ran, the best beside it that trains on nothing "
        "old again, joint training, and training in sequence. Percent, mean over "
        f"seeds ± half of their range; processor time of all updates.\n\n{table}\n"
    )


def _shown(one: SequenceFindings) -> list[str]:
    """Returns the labels of the summary's rows, each once."""
    labels = list(one.figures)
    first = [label for label in labels if label == DEFAULT]
    rivals = [label for label in labels if label != DEFAULT and _replays_nothing(label.split(",")[0])]
    joint = [label for label in labels if label in JOINT]
    plain = [label for label in labels if label in ("finetune", "cll-clip")]
    return list(dict.fromkeys([*first, *rivals[:1], *joint[:1], *plain[:1]]))


def _replays_nothing(name: str) -> bool:
    """Whether a strategy is no reference, no part of the default, and trains on nothing old."""
    if name in REFERENCES or name in PARTS:
        return False
    kind = strategy_named(name)
    return kind.replay is Replay.NONE and not kind.trains_on_all


def _dots(one: SequenceFindings | None) -> list[Dot]:
    if one is None:
        return []
    shown = _shown(one)
    named = {*shown, *[label for label in one.cells if label not in REFERENCES][: NAMED - len(shown)]}
    dots = []
    for label, cells in one.cells.items():
        recall, lost = (recall_with_interval(cells, figure) for figure in ("r1", "bwt"))
        if label not in REFERENCES and recall is not None and lost is not None:
            dots.append(Dot(label, recall, lost, one.figures[label]["cpu_seconds"].mean, label in named))
    return dots


def _sequence(name: str, found: SequenceFindings | None) -> str:
    if found is None or not found.cells:
        return f"## {name}\n\nNot run yet.\n"
    cells = [cell for own in found.cells.values() for cell in own]
    hours = sum(step["cpu_seconds"] for cell in cells for step in cell.steps) / 3600
    said = f"{len(cells)} cells, {hours:.1f} hours of processor time in their updates."
    head = f"## {name}\n\n{found.about} {found.made_on} {said} `{found.command}`\n\n{explained(found)}\n"
    return "\n".join([head, *notes_of(found), *(table.markdown(level=3) for table in tables_of(found))])


if __name__ == "__main__":
    sys.exit(main())
