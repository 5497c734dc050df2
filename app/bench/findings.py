"""What a set of cells says: figures of each strategy over seeds, and how they differ from a reference."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.bench.comparison import LEVEL, Criterion, NotComparable, PairedDifference, difference
from app.bench.figures import MAIN, Spread, by_strategy, over_seeds
from app.bench.results import VIEWS, Cell
from app.bench.sequence import LIVE, OWN, BenchSequence
from model_updates.references import REFERENCES

DEFAULT = "evergreen"
GROUPS = ("trained", "held-out", "unseen")
COMPARED = ("r1", "r10", "bwt")


@dataclass(frozen=True, eq=False)
class SequenceFindings:
    """What the cells of one sequence say."""

    sequence: str  # its name
    about: str  # one sentence, or ""
    command: str  # that runs it
    cells: Mapping[str, Sequence[Cell]]  # by strategy, the best first, each strategy's by seed
    figures: Mapping[str, Mapping[str, Spread]]  # by strategy and figure, over seeds
    reference: str  # what the others are compared with; "" without a cell
    # of every other strategy from it, by strategy and measure
    differences: Mapping[str, Mapping[Criterion, PairedDifference]]
    # strategies with cells of another version of the sequence, and their seeds
    left_out: tuple[str, ...] = ()
    # strategies with cells that the sequence asks for and that are not there, the same way
    not_run: tuple[str, ...] = ()
    # sentences on strategies that were not asked the same captions as the reference
    not_compared: tuple[str, ...] = ()

    @property
    def made_on(self) -> str:
        """One sentence on machine, versions and days."""
        made = [cell.made for own in self.cells.values() for cell in own]
        if not made:
            return "No cell has been run."
        days = sorted({one["date"] for one in made})
        machines = sorted(
            {
                f"{one['machine']}, {one['cores']} CPU cores, {one['threads']} torch threads, "
                f"Python {one['python']}, torch {one['torch']}"
                for one in made
            }
        )
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        return f"Measured on {'; '.join(machines)}; {when}."

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of all cells."""
        return tuple(sorted({cell.seed for own in self.cells.values() for cell in own}))

    @property
    def has_base(self) -> bool:
        """Whether the encoder knew slices before the first step that count in averages."""
        return any(
            run.since == 0 and not run.unseen
            for own in self.cells.values()
            for cell in own
            for run in cell.slices
        )

    def to_json(self) -> dict[str, Any]:
        """Returns plain values."""
        return {
            "sequence": self.sequence,
            "about": self.about,
            "command": self.command,
            "made_on": self.made_on,
            "seeds": list(self.seeds),
            "base_in_averages": self.has_base,
            "strategies": [
                {
                    "label": label,
                    "options": dict(own[0].options),
                    "figures": {name: spread.to_json() for name, spread in self.figures[label].items()},
                }
                for label, own in self.cells.items()
            ],
            "reference": self.reference,
            "level": LEVEL,
            "differences": [
                {"strategy": label, "measure": measure.name, **found.to_json()}
                for label, row in self.differences.items()
                for measure, found in row.items()
            ],
            "left_out": list(self.left_out),
            "not_run": list(self.not_run),
            "not_compared": list(self.not_compared),
        }


def findings_of(
    name: str,
    cells: Iterable[Cell],
    *,
    about: str = "",
    command: str = "",
    left_out: Sequence[str] = (),
    not_run: Sequence[str] = (),
) -> SequenceFindings:
    """Returns what cells of one sequence say.

    `about`, `command`, `left_out` and `not_run` are what to say beside the figures of the finished cells.
    """
    groups = by_strategy(cells)
    figures = {label: over_seeds(own) for label, own in groups.items()}
    best_first = sorted(
        groups, key=lambda label: -figures[label][MAIN].mean if MAIN in figures[label] else 1.0
    )
    reference = _reference(best_first)
    differences, not_compared = _from_reference(groups, best_first, reference)
    return SequenceFindings(
        name,
        about,
        command,
        {label: groups[label] for label in best_first},
        {label: figures[label] for label in best_first},
        reference,
        differences,
        tuple(left_out),
        tuple(not_run),
        not_compared,
    )


def command_of(sequence: BenchSequence) -> str:
    """Returns the command that runs a sequence, as far as the sequence knows it."""
    named = [step.chunks[0] for step in sequence.steps if step.chunks]
    if sequence.name == OWN:
        said = [f"--chunk {shlex.quote(name)}" for name in named]
        said += [f"--strategy {shlex.quote(one.label)}" for one in sequence.strategies]
        said += [f"--seeds {len(sequence.seeds)}"] if len(sequence.seeds) > 1 else []
        said += [f"--epochs {sequence.epochs}"] if sequence.epochs else []
        said += [f"--encoder {shlex.quote(sequence.encoder)}"] if sequence.encoder != LIVE else []
        return " ".join(["perennial bench", *said])
    return f"perennial bench {sequence.name}.toml"


def _reference(best_first: Sequence[str]) -> str:
    if DEFAULT in best_first:
        return DEFAULT
    learned = [label for label in best_first if label not in REFERENCES]
    return next(iter([*learned, *best_first]), "")


def _from_reference(
    groups: Mapping[str, Sequence[Cell]], labels: Sequence[str], reference: str
) -> tuple[dict[str, dict[Criterion, PairedDifference]], tuple[str, ...]]:
    """Compares every other strategy; one that answered other captions is named instead."""
    differences, sentences = {}, []
    for label in labels:
        if label != reference:
            try:
                differences[label] = _differences(groups[label], groups[reference])
            except NotComparable as error:
                sentences.append(str(error))
    return differences, tuple(sentences)


def _differences(ours: Sequence[Cell], reference: Sequence[Cell]) -> dict[Criterion, PairedDifference]:
    measures = [
        Criterion(kind, view, figure)
        for kind in GROUPS
        for view in VIEWS
        for figure in COMPARED
        if kind != "unseen" or figure != "bwt"
    ]
    found = {measure: difference(ours, reference, measure) for measure in measures}
    return {measure: said for measure, said in found.items() if said is not None}
