"""Writes docs/results/real-input.md from the finished runs; figures say how many seeds are behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_updates.evaluation import average_recall, forgetting

Values = Mapping[str, Any]
Runs = dict[str, list[Values]]
"""The runs of one part by their name, each in the order of seeds."""

CHAIN_NAMES = {
    "cll-clip": "`cll-clip`",
    "teir": "`teir`",
    "teir-update": "`teir`, `apply_to=update`",
    "language-tables": "`language-tables`",
}
STYLE_NAMES = {
    "finetune": "`finetune`",
    "c-clip-both": "`c-clip`, `towers=both`",
    "c-clip-image": "`c-clip`, `towers=image`",
}
KINDS = ("trained", "held-out")
RESAMPLES = 1000
KEPT_GAIN = 0.7  # of finetune's gain, the share that c-clip must keep

INTRODUCTION = """# Perennial on real input

Written by `benchmarks/real_input.py`; do not edit. Everything went through the product: uploads of pictures and
`captions.csv`, `initialise`, `add_chunk`, `update`. The encoder is `perennial-tiny`; recall is text-to-image, percent.

*Trained* names are those in the training split, each looked up among all pictures outside the held-out concepts;
*held-out* names, of concepts left out of training in every style and language, among the held-out pictures. Chains ran
under a gate that lets everything pass, so that a stopped update did not end them; the verdicts shown are those of the
default gate on the same measurements. Brackets are 95 % intervals from resampling concepts; ± is half the range over
seeds.
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
        _languages(by_part.get("emoji-languages", {})),
        _styles(by_part.get("emoji-styles", {})),
        _photos(by_part.get("flickr", {}).get("default", [])),
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(section for section in sections if section), encoding="utf-8")


# --------------------------------------------------------------------------------------------- figures


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


# ------------------------------------------------------------------------------------------- (a) languages


def _languages(runs: Runs) -> str:
    if not runs:
        return ""
    shown = [name for name in CHAIN_NAMES if name in runs]
    parts = ["## (a) Emoji: seven languages one after another\n", _chains_table(runs, shown), _bars(runs)]
    for kind in KINDS:
        for depth in ("1", "10"):
            parts.append(_per_language(runs, shown, kind, depth))
    if "language-tables" in runs:
        parts.append(_detection(runs["language-tables"]))
    parts.append(_updates(runs, shown))
    return "\n".join(parts)


def _chains_table(runs: Runs, shown: Sequence[str]) -> str:
    header = ["strategy", "seeds"]
    header += [f"{what}, {kind}" for kind in KINDS for what in ("AR R@1", "F R@1", "AR R@10")]
    header += ["seconds an update", "of it training", "images embedded again"]
    rows = []
    for name in shown:
        row = [CHAIN_NAMES[name], str(len(runs[name]))]
        for kind in KINDS:
            tables = [run["hits"][kind] for run in runs[name]]
            intervals = chain_interval(tables)
            matrices = [recall_matrix(table) for table in tables]
            row.append(_figure([average_recall(m) for m in matrices], intervals["AR"]))
            row.append(_figure([forgetting(m) or 0.0 for m in matrices], intervals["F"]))
            deep = [average_recall(recall_matrix(table, "10")) for table in tables]
            row.append(_figure(deep, chain_interval(tables, "10")["AR"]))
        steps = [step for run in runs[name] for step in run["steps"]]
        row += [f"{np.mean([step[k] for step in steps]):.0f}" for k in ("seconds", "training_seconds")]
        row.append(str(sum(step["images_embedded"] + step["image_forwards"] for step in steps)))
        rows.append(row)
    return (
        "AR is the average over English and the languages learned after the last update; F is forgetting (METHODS\n"
        "C.2), the mean over languages of the best recall since learning minus the last.\n\n"
        + table_of(header, rows)
    )


def _bars(runs: Runs) -> str:
    def both(name: str, kind: str) -> tuple[float, float]:
        matrices = [recall_matrix(run["hits"][kind]) for run in runs[name]]
        return (
            float(np.mean([average_recall(m) for m in matrices])),
            float(np.mean([forgetting(m) or 0.0 for m in matrices])),
        )

    lines = []
    for kind in KINDS:
        known = {name: both(name, kind) for name in CHAIN_NAMES if name in runs}
        if "cll-clip" in known and "teir" in known:
            (ar_cll, f_cll), (ar_teir, f_teir) = known["cll-clip"], known["teir"]
            holds = f_teir < f_cll and ar_teir >= ar_cll
            lines.append(
                _bar(
                    holds,
                    f"{kind}: `teir` forgets less than `cll-clip` ({f_teir:.2f} against {f_cll:.2f}) at no lower AR "
                    f"({ar_teir:.2f} against {ar_cll:.2f}).",
                )
            )
        if "teir" in known and "teir-update" in known:
            first, second = known["teir"][1], known["teir-update"][1]
            said = f"{kind}: `apply_to=update` forgets less than `teir` ({second:.2f} against {first:.2f})."
            lines.append(_bar(second < first, said))
        if "language-tables" in known:
            lost = known["language-tables"][1]
            lines.append(_bar(lost == 0.0, f"{kind}: `language-tables` forgets nothing ({lost:.2f})."))
    if "language-tables" in runs:
        verdicts = [step["verdict"] for run in runs["language-tables"] for step in run["steps"]]
        passed = verdicts.count("promote")
        said = (
            f"the default for a new language passes the default gate ({passed} of {len(verdicts)} updates)."
        )
        lines.append(_bar(passed == len(verdicts), said))
    return "\n".join(lines) + "\n"


def _per_language(runs: Runs, shown: Sequence[str], kind: str, depth: str) -> str:
    languages = runs[shown[0]][0]["languages"]
    rows = []
    for name in shown:
        last = [run["hits"][kind][-1] for run in runs[name]]
        learned = [_when_learned(run, kind) for run in runs[name]]
        cells = []
        for language in languages:
            now = float(np.mean([100 * hits_of(row[language][depth]).mean() for row in last]))
            then = float(np.mean([100 * hits_of(row[language][depth]).mean() for row in learned]))
            cells.append(f"{now:.1f} ({now - then:+.1f})" if abs(now - then) > 0.005 else f"{now:.1f} (0)")
        rows.append([CHAIN_NAMES[name], *cells])
    return (
        f"R@{depth} of {kind} names after the last update (change since the language was learned):\n\n"
        + table_of(["strategy", *languages], rows)
    )


def _when_learned(run: Values, kind: str) -> dict[str, Values]:
    """Returns each language's hits right after it was learned."""
    first: dict[str, Values] = {}
    for row in run["hits"][kind]:
        for language, hits in row.items():
            first.setdefault(language, hits)
    return first


def _detection(runs: Sequence[Values]) -> str:
    languages = runs[0]["languages"]
    rows = []
    for kind in KINDS:
        for depth in ("1", "10"):
            for label, pick in (("given", _given), ("detected", _detected)):
                values = [
                    float(np.mean([100 * hits_of(pick(run, kind, lang)[depth]).mean() for run in runs]))
                    for lang in languages
                ]
                cells = [f"{value:.1f}" for value in (float(np.mean(values)), *values)]
                rows.append([f"{kind} R@{depth}", label, *cells])
    for key, label in (("sure_and_right", "sure and right"), ("among_two", "right one of two")):
        shares = [
            float(np.mean([run["detection"]["trained"][lang][key] for run in runs])) for lang in languages
        ]
        rows.append(["names", label, *(f"{100 * v:.0f} %" for v in (float(np.mean(shares)), *shares))])
    return (
        "What detection costs `language-tables`, with all languages learned: the language told, and guessed from the\n"
        "name alone as search does it (unsure queries are read as the two likeliest, the better score counts):\n\n"
        + table_of(["", "language", "mean", *languages], rows)
    )


def _given(run: Values, kind: str, language: str) -> Values:
    found: Values = run["hits"][kind][-1][language]
    return found


def _detected(run: Values, kind: str, language: str) -> Values:
    found: Values = run["detection"][kind][language]
    return found


def _updates(runs: Runs, shown: Sequence[str]) -> str:
    rows = []
    for name in shown:
        for n, first in enumerate(runs[name][0]["steps"]):
            steps = [run["steps"][n] for run in runs[name]]
            rows.append(
                [
                    CHAIN_NAMES[name],
                    first["language"],
                    ", ".join(step["verdict"] for step in steps),
                    first["reason"],
                    " / ".join(f"{step['seconds']:.0f}" for step in steps),
                    f"{first['kept_epoch']} of {first['epochs']}",
                    " ".join(first["notes"]),
                ]
            )
    header = [
        "strategy",
        "language",
        "default gate, by seed",
        "first reason (seed 0)",
        "seconds",
        "epoch kept",
        "notes",
    ]
    return "Each update:\n\n" + table_of(header, rows)


# ----------------------------------------------------------------------------------------------- (b) style


def _styles(runs: Runs) -> str:
    if not runs:
        return ""
    shown = [name for name in STYLE_NAMES if name in runs]
    parts = [
        "## (b) Emoji: the style `line` after the seven languages\n\n"
        "The start is each seed's end state of `language-tables`. English names teach the style; the towers that move\n"
        "serve all languages.\n"
    ]
    for kind in KINDS:
        for depth in ("1", "10"):
            parts.append(_style_table(runs, shown, kind, depth))
    parts.append(_style_bars(runs))
    parts.append(_style_updates(runs, shown))
    return "\n".join(parts)


def _style_table(runs: Runs, shown: Sequence[str], kind: str, depth: str) -> str:
    languages = runs[shown[0]][0]["languages"]
    rows = []
    for name in shown:
        line = _style_change(runs[name], kind, "line", "en", depth)
        cells = [_style_change(runs[name], kind, "noto", language, depth) for language in languages]
        rows.append(
            [STYLE_NAMES[name], str(len(runs[name]))]
            + [f"{_signed(c)} [{_signed(a)}, {_signed(b)}]" for c, a, b in (line, *cells)]
        )
    header = ["strategy", "seeds", "gain on line, en", *(f"noto, {language}" for language in languages)]
    return f"Change of R@{depth} of {kind} names in points:\n\n" + table_of(header, rows)


def _style_change(
    runs: Sequence[Values], kind: str, domain: str, language: str, depth: str
) -> tuple[float, float, float]:
    before, after = (
        [run["hits"][kind][when][domain][language][depth] for run in runs] for when in ("before", "after")
    )
    return change_interval(before, after)


def _style_bars(runs: Runs) -> str:
    if "finetune" not in runs:
        return ""
    lines = []
    for kind in KINDS:
        gain, lost = (_style_change(runs["finetune"], kind, d, "en", "1")[0] for d in ("line", "noto"))
        for name in ("c-clip-both", "c-clip-image"):
            if name in runs:
                own, kept = (_style_change(runs[name], kind, d, "en", "1")[0] for d in ("line", "noto"))
                share = own / gain if gain else 0.0
                said = (
                    f"{kind}: {STYLE_NAMES[name]} moves noto English by {_signed(kept)} against {_signed(lost)} of "
                    f"`finetune`, and keeps {100 * share:.0f} % of its gain on line "
                    f"({_signed(own)} against {_signed(gain)})."
                )
                # The share is asked for on trained names; on held-out ones the order must not turn round.
                enough = own >= KEPT_GAIN * gain if kind == KINDS[0] else own > 0
                lines.append(_bar(kept > lost and enough, said))
    return "\n".join(lines) + "\n"


def _style_updates(runs: Runs, shown: Sequence[str]) -> str:
    rows = []
    for name in shown:
        steps = [run["step"] for run in runs[name]]
        rows.append(
            [
                STYLE_NAMES[name],
                ", ".join(step["verdict"] for step in steps),
                steps[0]["reason"],
                " / ".join(f"{step['seconds']:.0f}" for step in steps),
                str(steps[0]["images_embedded"]),
                f"{steps[0]['kept_epoch']} of {steps[0]['epochs']}",
            ]
        )
    header = [
        "strategy",
        "default gate, by seed",
        "first reason (seed 0)",
        "seconds",
        "images embedded again",
        "epoch kept",
    ]
    return table_of(header, rows)


# ------------------------------------------------------------------------------------------- (c) photographs


def _photos(runs: Sequence[Values]) -> str:
    if not runs:
        return ""
    rows, tables = [], []
    for run in runs:
        for step in run["steps"]:
            recalls = step["recalls"]
            rows.append(
                [
                    str(run["seed"]),
                    step["language"],
                    f"`{step['strategy']}`",
                    step["verdict"] + (", promoted" if step["promoted"] else ", not promoted"),
                    *(f"{recalls[k]:.1f}" for k in ("t2i_r1", "t2i_r5", "t2i_r10")),
                    f"{step['chance_r1']:.1f}",
                    f"{step['seconds']:.0f}",
                    str(step["images_embedded"]),
                    " ".join(
                        reason
                        for _, verdict, reasons in step["rules"]
                        if verdict == step["verdict"]
                        for reason in reasons[:2]
                    ),
                ]
            )
        if run is runs[0]:
            tables = [_gate_rows(step) for step in run["steps"]]
    header = ["seed", "language", "strategy (default)", "default gate", "R@1", "R@5", "R@10", "chance R@1"]
    header += ["seconds", "images embedded again", "deciding reasons"]
    return "\n".join(
        [
            f"## (c) Photographs: flickr8k, {runs[0]['photos']} training photos, one caption each\n\n"
            "Photographs are far from what the tiny encoder has seen. A candidate goes live only when the default\n"
            "gate passes it; recall is the candidate's, on all captions of the 243 test photos.\n",
            table_of(header, rows),
            *tables,
        ]
    )


def _gate_rows(step: Values) -> str:
    rows = [
        [
            row["slice"],
            row["role"],
            str(row["images"]),
            f"{row['live']:.1f}",
            f"{row['candidate']:.1f}",
            f"{_signed(row['difference'])} [{_signed(row['low'])}, {_signed(row['high'])}]",
            f"{row['verdict']} {row['note']}".strip(),
        ]
        for row in step["rows"]
    ]
    header = ["slice", "role", "images", "live", "candidate", "change", "verdict"]
    return f"Gate on {step['language']} (seed 0), mean of R@1, 5 and 10:\n\n" + table_of(header, rows)


# ---------------------------------------------------------------------------------------------------- text


def table_of(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return (
        "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        + "\n"
    )


def _figure(by_seed: Sequence[float], interval: tuple[float, float]) -> str:
    spread = f" ± {(max(by_seed) - min(by_seed)) / 2:.1f}" if len(by_seed) > 1 else ""
    low, high = (f"{bound:.1f}".replace("-0.0", "0.0") for bound in interval)
    return f"{np.mean(by_seed):.1f}{spread} [{low}, {high}]"


def _signed(value: float) -> str:
    return "0.0" if abs(value) < 0.05 else f"{value:+.1f}".replace("-", "−")


def _bar(holds: bool, sentence: str) -> str:
    return f"- {'holds' if holds else '**does not hold**'}: {sentence}"


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
