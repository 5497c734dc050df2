"""The tables of a benchmark: one set of rows for page, Markdown and terminal."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from app.bench.comparison import FEWEST_SEEDS, ZERO, PairedDifference
from app.bench.figures import RESEGMENTED, Spread
from app.bench.findings import SequenceFindings
from app.bench.results import TOLD, VIEWS
from model_updates.gate.report import points
from model_updates.recalls import LABELS

MEGABYTE = 1_000_000
NONE = "–"

COSTS = {
    "processor, s": ("cpu_seconds", 1, 0),
    "of the last step": ("cpu_seconds_last", 1, 0),
    "updates, s": ("seconds", 1, 0),
    "peak memory, MB": ("peak_bytes", MEGABYTE, 0),
    "stored, MB": ("stored_bytes", MEGABYTE, 2),
    "pictures re-embedded": ("re_embedded", 1, 0),
    "image forwards": ("image_forwards", 1, 0),
    "steps refused": ("refused", 1, 0),
    "cut otherwise, %": (RESEGMENTED, 1, 1),
}
"""Columns of the table of costs: the figure, what it is divided by, and its digits."""
RECALLS = {"r1": LABELS["t2i_r1"], "r10": LABELS["t2i_r10"]}
WORDS = {**RECALLS, "bwt": "transfer"}
EXPLAINED = (
    "Average recall at the end is over slices, text to image, percent, mean over seeds; ± is half of their range. "
    "*Told*: in the gallery of their own domain, the language told; *searched*: among all taught, or all held-out, "
    "pictures, the language not told. *Forgetting*: the best R@1 that a slice had from the step that taught it to the "
    "step before the last, less its R@1 at the end, mean over slices known before the last step; lower is better. "
    "*Transfer* (backward): at the end less just after it was taught; higher is better. *Rm*: the mean of R@1, 5 and "
    "10 in both directions."
)
BASE = {
    True: "The base, which the encoder knew before the first step, counts in every figure but *no base*.",
    False: "The encoder knew nothing of this before the first step.",
}
KINDS_SAID = {
    "trained": ("Trained: memory", "Captions that were taught, looked up again."),
    "held-out": ("Held-out: generalisation", "Captions of pictures that train in no step."),
}


@dataclass(frozen=True)
class Table:
    """Rows of text under a title."""

    title: str  # of the table
    note: str  # what its columns mean
    # of each column, the group that it belongs to ("" for none) and its name
    header: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]  # cells; the first is the strategy

    def markdown(self, level: int = 3) -> str:
        """Returns it as Markdown, title (a heading of that level) and note above."""
        names = [f"{group} {name}".strip() for group, name in self.header]
        lines = [names, ["---"] * len(names), *self.rows]
        table = "\n".join(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
        )
        note = f"{self.note}\n\n" if self.note else ""
        return f"{'#' * level} {self.title}\n\n{note}{table}\n"


def tables_of(findings: SequenceFindings) -> list[Table]:
    """Returns every table that has a figure."""
    tables = [*(_kind(findings, kind) for kind in KINDS_SAID), _unseen(findings), _costs(findings)]
    return [table for table in [*tables, _differences(findings)] if len(table.header) > 1 and table.rows]


def markdown_of(findings: SequenceFindings) -> str:
    """Returns the whole report as Markdown, for a page of docs."""
    head = [f"# Benchmark: {findings.sequence}\n"]
    if findings.about:
        head.append(f"{findings.about}\n")
    if findings.command:
        head.append(f"Written by `{findings.command}`; do not edit. {findings.made_on}\n")
    head.append(f"{explained(findings)}\n")
    return "\n".join([*head, *notes_of(findings), *(table.markdown() for table in tables_of(findings))])


def explained(findings: SequenceFindings) -> str:
    """Returns what the figures mean."""
    return f"{EXPLAINED} {BASE[findings.has_base]}"


def notes_of(findings: SequenceFindings) -> list[str]:
    """Returns sentences on what is missing, in Markdown paragraphs."""
    notes = []
    if findings.not_run:
        notes.append(f"Not run: {'; '.join(findings.not_run)}.\n")
    if findings.left_out:
        others = "; ".join(findings.left_out)
        notes.append(f"Left out, since they are of another version of the sequence: {others}.\n")
    return notes + [f"{sentence}\n" for sentence in findings.not_compared]


def figure(spread: Spread | None, scale: float = 1.0, digits: int = 1) -> str:
    """Returns a mean over seeds with half of their range, if there is one."""
    if spread is None:
        return NONE
    text = _number(spread.mean / scale, digits)
    half = spread.half_range
    return text if not half else f"{text} ± {half / scale:.{digits}f}"


def change(found: PairedDifference | None, *, words: bool = True) -> str:
    """Returns a difference with its interval, and whether it can be told from none."""
    if found is None:
        return NONE
    said = f" {ZERO}" if words and not found.is_clear else ""
    if not math.isfinite(found.low):
        return f"{points(found.mean)} [no interval below {FEWEST_SEEDS} seeds]{said}"
    return f"{points(found.mean)} [{points(found.low)}, {points(found.high)}]{said}"


def _kind(findings: SequenceFindings, kind: str) -> Table:
    """Recall at the end and forgetting of one kind of captions."""
    columns = {
        f"{kind}/{view}/{name}": (word, view)
        for name, word in {**RECALLS, "forgetting": "forgetting", "bwt": "transfer"}.items()
        for view in VIEWS
    }
    if findings.has_base:
        columns[f"{kind}/told/r1_taught"] = (f"{RECALLS['r1']}, no base", TOLD)
    columns[f"{kind}/told/rm"] = ("Rm", TOLD)
    title, note = KINDS_SAID[kind]
    return _table(findings, title, note, columns)


def _unseen(findings: SequenceFindings) -> Table:
    columns = {
        f"unseen/{view}/{name}{drop}": ("unseen", f"{word}{' drop' if drop else ''} {view}")
        for name, word in RECALLS.items()
        for view in VIEWS
        for drop in ("", "_drop")
    } | {"probe": ("probe", "accuracy"), "probe_drop": ("probe", "drop")}
    note = (
        "What no step teaches: captions looked up, and pictures classified by the names of their classes. *Drop*: "
        "before the first step less after the last; lower is better."
    )
    return _table(findings, "Never taught", note, columns)


def _costs(findings: SequenceFindings) -> Table:
    rows = [
        (
            label,
            str(len(findings.cells[label])),
            *(figure(figures.get(name), scale, digits) for name, scale, digits in COSTS.values()),
        )
        for label, figures in findings.figures.items()
    ]
    note = (
        "Sums over all steps; *processor*: processor time of the updates, and of the last one alone, which is all that "
        "training jointly takes where nothing was wanted before the end; *updates*: on the wall; *stored*: what the "
        "strategy carries and what the encoder has grown by, after the last; "
        "*refused*: steps that the strategy said it cannot learn from; *cut otherwise*: held-out captions of earlier "
        "steps that a grown vocabulary cuts into other tokens than when they were taught, after the last."
    )
    return Table("Cost", note, tuple(("", name) for name in ("strategy", "seeds", *COSTS)), tuple(rows))


def _differences(findings: SequenceFindings) -> Table:
    measures = list(dict.fromkeys(measure for row in findings.differences.values() for measure in row))
    shown = [measure for measure in measures if measure.figure != "r10"]
    rows = [
        (label, *(change(row.get(measure)) for measure in shown))
        for label, row in findings.differences.items()
    ]
    seeds = "seeds and things" if len(findings.seeds) > 1 else "things alone, since there is one seed"
    note = (
        f"Each strategy less {findings.reference}, paired per query and per seed, points; 95 % intervals over "
        f"{seeds}, one by one, not jointly. An interval that spans zero: {ZERO}."
    )
    header = (
        ("", "strategy"),
        *((measure.kind, f"{WORDS[measure.figure]} {measure.view}") for measure in shown),
    )
    return Table(f"Differences from {findings.reference}", note, header, tuple(rows))


def _table(
    findings: SequenceFindings, title: str, note: str, columns: Mapping[str, tuple[str, str]]
) -> Table:
    """A row a strategy; columns that no strategy has a figure for are left out."""
    shown = {
        name: said
        for name, said in columns.items()
        if any(name in figures for figures in findings.figures.values())
    }
    rows = [
        (label, *(figure(figures.get(name)) for name in shown)) for label, figures in findings.figures.items()
    ]
    return Table(title, note, (("", "strategy"), *shown.values()), tuple(rows))


def _number(value: float, digits: int) -> str:
    text = f"{abs(value):.{digits}f}"
    return text if value >= 0 or float(text) == 0 else f"−{text}"
