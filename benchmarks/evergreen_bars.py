"""What the default strategy was promised to do, held against the cells; lines of docs/results/strategies.md."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from orderings_claims import DRAWS, FEW, NOT_RUN

from app.bench.comparison import FEWEST_SEEDS, ZERO, Criterion, PairedDifference, difference, student
from app.bench.figures import Spread
from app.bench.findings import DEFAULT, SequenceFindings
from app.bench.results import Cell
from app.bench.tables import change

ALL, TOGETHER, AGAIN, DOMAINS = "languages-36", "languages-36-together", "languages-36-joint", "domains"
MIXED, BOTH_TOWERS = "mixed", "joint"
JOINT = "cll-clip+joint"
# Joint training is not done after the five epochs that every strategy of a sequence has: it is given fifteen, too.
LONGER = ",epochs=15"
MOST_FORGOTTEN, SHARE = 0.5, 0.2
# Strategies of `domains` that train again on old pictures, and references that learn nothing.
REPLAYING = ("joint", "finetune+er", "tic", "zero-shot")
# What the default composes: where a chunk needs one part alone, that part is the same strategy by another name.
PARTS = ("domain-adapters", "language-tables", "new-words")


def promised(sequence: str, label: str) -> int:
    """Returns with how many seeds a row of a table runs at least, because a promise compares it; 1 where none does."""
    together = {TOGETHER: {JOINT, JOINT + LONGER}, MIXED: {BOTH_TOWERS}}
    compared = {DEFAULT} | together.get(sequence, set())
    return FEWEST_SEEDS if label in compared else 1


def bars(found: Mapping[str, SequenceFindings]) -> str:
    """Returns the section: each promise, whether it holds, and by how much."""
    lines = [*_recalls(found), _forgetting(found), _cost(found), *_domains(found), _still(found)]
    lines += _mixed(found)
    said = "\n".join(f"- {line}" for line in lines)
    return (
        f"## What {DEFAULT} was promised to do\n\n"
        "35 languages taught after English, 300 of 918 taught names of each looked up, the language *not* told,\n"
        "against joint training of one token table; domains against every strategy that does not train on old\n"
        f"pictures again and is no part of {DEFAULT}, whose part `domain-adapters` alone finds\n"
        f"{_alone(found)}; four languages and four domains in turn against training both towers on everything\n"
        f"after each.\n\n{said}\n"
    )


def _alone(found: Mapping[str, SequenceFindings]) -> str:
    """Returns what the part of the default that teaches domains finds by itself."""
    spreads = [_figure(found, DOMAINS, PARTS[0], f"trained/{view}/r1") for view in ("told", "searched")]
    told, searched = (f"{spread.mean:.0f} %" if spread else "–" for spread in spreads)
    return f"{told} in the own gallery and {searched} in the mixed one"


def _recalls(found: Mapping[str, SequenceFindings]) -> list[str]:
    lines = []
    for kind, options in itertools.product(("trained", "held-out"), ("", LONGER)):
        longer = " of three times the epochs" if options else ""
        what = f"36 languages, {kind} names, not told: R@1 at the end no lower than joint training's{longer}"
        ours, joint = _cells(found, ALL, DEFAULT), _cells(found, TOGETHER, JOINT + options)
        lines.append(_no_lower(what, ours, joint, Criterion(kind, "searched", "r1")))
    return lines


def _no_lower(what: str, ours: Sequence[Cell], joint: Sequence[Cell], by: Criterion) -> str:
    gained = difference(ours, joint, by, draws=DRAWS) if ours and joint else None
    if gained is None:
        return _line(NOT_RUN, what, "")
    # Surely lower would break the promise; where the interval spans zero it is said so.
    verdict = "holds" if gained.low >= 0 else "does not hold" if gained.high < -gained.error else ZERO
    verdict = verdict if _is_enough(gained) else FEW
    return _line(verdict, what, f"{change(gained, words=False)}, {_seeds(len(gained.seeds))}")


def _mixed(found: Mapping[str, SequenceFindings]) -> list[str]:
    ours, joint = _cells(found, MIXED, DEFAULT), _cells(found, MIXED, BOTH_TOWERS)
    names = {"told": "told", "searched": "not told, in the mixed gallery"}
    lines = [
        _no_lower(
            f"languages and domains in turn, {kind} names, {names[view]}: R@1 no lower than joint training's",
            ours,
            joint,
            Criterion(kind, view, "r1"),
        )
        for kind, view in itertools.product(("trained", "held-out"), names)
    ]
    what = "languages and domains in turn: at most a fifth of joint training's processor time"
    again, once = (_figure(found, MIXED, BOTH_TOWERS, name) for name in ("cpu_seconds", "cpu_seconds_last"))
    return [*lines, _cheaper(what, _figure(found, MIXED, DEFAULT, "cpu_seconds"), again, once)]


def _is_enough(gained: PairedDifference) -> bool:
    return len(gained.seeds) >= FEWEST_SEEDS


def _forgetting(found: Mapping[str, SequenceFindings]) -> str:
    what = f"36 languages, not told: forgets at most {MOST_FORGOTTEN} points"
    spread = _figure(found, ALL, DEFAULT, "trained/searched/forgetting")
    if spread is None:
        return _line(NOT_RUN, what, "")
    half = _half(spread)
    low, high = spread.mean - half, spread.mean + half
    verdict = "holds" if high <= MOST_FORGOTTEN else "does not hold" if low > MOST_FORGOTTEN else ZERO
    said = f"{spread.mean:.2f} [{low:.2f}, {high:.2f}] over seeds, {_seeds(len(spread.by_seed))}"
    if not math.isfinite(half):
        verdict, said = FEW, f"{spread.mean:.2f}, {_seeds(len(spread.by_seed))}"
    return _line(
        verdict, what, f"{said}; how readings are added was chosen on these cells (docs/log.md, 2026-11-24)"
    )


def _half(spread: Spread) -> float:
    values = np.asarray(list(spread.by_seed.values()))
    if len(values) < FEWEST_SEEDS:
        return math.inf
    return float(student(len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))


def _cost(found: Mapping[str, SequenceFindings]) -> str:
    what = "36 languages: at most a fifth of joint training's processor time, which trains again for each language"
    again, once = (_figure(found, name, JOINT, "cpu_seconds") for name in (AGAIN, TOGETHER))
    return _cheaper(what, _figure(found, ALL, DEFAULT, "cpu_seconds"), again, once)


def _cheaper(what: str, ours: Spread | None, again: Spread | None, once: Spread | None) -> str:
    """Returns the line of a cost beside that of joint training after each step, and once at the end."""
    if ours is None or again is None:
        return _line(NOT_RUN, what, "")
    said = f"{ours.mean:.0f} s against {again.mean:.0f} s"
    said += f" (once, at the end: {once.mean:.0f} s)" if once is not None else ""
    return _line("holds" if ours.mean <= SHARE * again.mean else "does not hold", what, said)


def _domains(found: Mapping[str, SequenceFindings]) -> list[str]:
    lines = []
    absent = _absent(found)
    for view, where in (("told", "own"), ("searched", "mixed")):
        for kind in ("trained", "held-out"):
            what = f"domains, {kind} names, {where} gallery: best of those without replay of pictures"
            figures = _of_all(found, f"{kind}/{view}/r1")
            if DEFAULT not in figures or len(figures) < 2:
                lines.append(_line(NOT_RUN, what, ""))
                continue
            rival = max((label for label in figures if label != DEFAULT), key=lambda label: figures[label])
            said = f"{figures[DEFAULT]:.1f}, next {rival} {figures[rival]:.1f}"
            cells = _cells(found, DOMAINS, DEFAULT), _cells(found, DOMAINS, rival)
            gained = difference(*cells, Criterion(kind, view, "r1"), draws=DRAWS)
            verdict = "holds" if figures[DEFAULT] > figures[rival] else "does not hold"
            if gained is not None:
                said += f", {change(gained, words=False)}, {_seeds(len(gained.seeds))}"
                verdict = (verdict if gained.is_clear else ZERO) if _is_enough(gained) else FEW
            if absent and verdict == "holds":
                verdict, said = NOT_RUN, f"so far {said}; {len(absent)} of the rivals have no cell"
            lines.append(_line(verdict, what, said))
    return lines


def _still(found: Mapping[str, SequenceFindings]) -> str:
    what = "domains: no vector of a picture of another domain moves"
    cells = _cells(found, DOMAINS, DEFAULT)
    if not cells:
        return _line(NOT_RUN, what, "")
    drift = [step.get("drift", {}).get("ram_pictures", 0.0) for cell in cells for step in cell.steps]
    most = max(drift, default=0.0)
    return _line(
        "holds" if most == 0 else "does not hold", what, f"largest mean angle of a step {most:.3f} degrees"
    )


def _of_all(found: Mapping[str, SequenceFindings], name: str) -> dict[str, float]:
    if DOMAINS not in found:
        return {}
    return {
        label: spreads[name].mean
        for label, spreads in found[DOMAINS].figures.items()
        if name in spreads and label.split(",")[0] not in (*REPLAYING, *PARTS)
    }


def _absent(found: Mapping[str, SequenceFindings]) -> list[str]:
    """Returns the rivals of the domains without a finished cell: who is best of all is not known before they ran."""
    if DOMAINS not in found:
        return []
    said = {one.rpartition(" (")[0] for one in (*found[DOMAINS].left_out, *found[DOMAINS].not_run)}
    return sorted(
        label
        for label in said - found[DOMAINS].figures.keys()
        if label.split(",")[0] not in (DEFAULT, *REPLAYING, *PARTS)
    )


def _cells(found: Mapping[str, SequenceFindings], sequence: str, label: str) -> Sequence[Cell]:
    return found[sequence].cells.get(label, ()) if sequence in found else ()


def _figure(found: Mapping[str, SequenceFindings], sequence: str, label: str, name: str) -> Spread | None:
    return found[sequence].figures.get(label, {}).get(name) if sequence in found else None


def _line(verdict: str, what: str, said: str) -> str:
    mark = f"**{verdict}**" if verdict == "does not hold" else verdict
    return f"{mark}: {what}" + (f": {said}." if said else ".")


def _seeds(count: int) -> str:
    return f"{count} seed{'s' * (count > 1)}"
