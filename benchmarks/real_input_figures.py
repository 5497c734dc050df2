"""Figures of the report with their intervals, and how they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_updates.evaluation import average_recall, forgetting

Values = Mapping[str, Any]
Runs = dict[str, list[Values]]
"""The runs of one part by their name, each in the order of seeds."""

KINDS = ("trained", "held-out")
RESAMPLES = 1000


def hits_of(text: str) -> NDArray[np.float64]:
    """Returns a string of 0 and 1 as numbers."""
    return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.float64) - ord("0")


def recall_matrix(table: Sequence[Values], depth: str = "1") -> list[list[float]]:
    """Returns `a[j][i]`: recall in percent of language i after update j; row 0 is before the first update."""
    return [[100.0 * float(hits_of(hits[depth]).mean()) for hits in row.values()] for row in table]


def chain_interval(tables: Sequence[Sequence[Values]], depth: str = "1") -> dict[str, tuple[float, float]]:
    """Returns 95 % intervals of AR and F over concepts, the seeds averaged.

    A resample draws concepts, the same ones in every language, at every time and for every seed: names of one
    concept rise and fall together.
    """
    stacks = [[np.stack([hits_of(h[depth]) for h in row.values()]) for row in table] for table in tables]
    concepts = stacks[0][0].shape[1]
    drawn = _resampled(concepts)
    # One product per table row: recalls of all resamples at once, (languages, resamples).
    recalls = [[100.0 * rows @ drawn for rows in stack] for stack in stacks]
    found: dict[str, list[float]] = {"AR": [], "F": []}
    for n in range(RESAMPLES):
        matrices = [[rows[:, n].tolist() for rows in stack] for stack in recalls]
        found["AR"].append(float(np.mean([average_recall(m) for m in matrices])))
        found["F"].append(float(np.mean([forgetting(m) or 0.0 for m in matrices])))
    return {k: (float(np.quantile(v, 0.025)), float(np.quantile(v, 0.975))) for k, v in found.items()}


def change_interval(before: Sequence[str], after: Sequence[str]) -> tuple[float, float, float]:
    """Returns after minus before in points with its 95 % interval over concepts, the seeds averaged."""
    change = np.mean([hits_of(b) - hits_of(a) for a, b in zip(before, after, strict=True)], axis=0) * 100
    means = change @ _resampled(len(change))
    return float(change.mean()), float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


@cache
def _resampled(concepts: int) -> NDArray[np.float64]:
    """Returns the weight of each concept in each resample, (concepts, RESAMPLES); columns add up to 1."""
    chances = np.full(concepts, 1 / concepts)
    counts = np.random.default_rng(0).multinomial(concepts, chances, size=RESAMPLES)
    return np.asarray(counts.T / concepts, dtype=np.float64)


def table_of(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return (
        "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        + "\n"
    )


def figure(by_seed: Sequence[float], interval: tuple[float, float]) -> str:
    """Returns the mean over seeds, half their range and the interval as text."""
    spread = f" ± {(max(by_seed) - min(by_seed)) / 2:.1f}" if len(by_seed) > 1 else ""
    low, high = (f"{bound:.1f}".replace("-0.0", "0.0") for bound in interval)
    return f"{np.mean(by_seed):.1f}{spread} [{low}, {high}]"


def signed(value: float) -> str:
    """Returns a change with its sign."""
    return "0.0" if abs(value) < 0.05 else f"{value:+.1f}".replace("-", "−")


def bar(holds: bool, sentence: str) -> str:
    """Returns a line that says whether a bar holds."""
    return f"- {'holds' if holds else '**does not hold**'}: {sentence}"
