"""Writes docs/results/languages.md from the finished runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from languages_many_report import bars_of, many_part
from real_input_figures import KINDS, Values, bar, change_interval, hits_of, signed, table_of

INTRODUCTION = """# Which language a query is in

Written by `benchmarks/languages.py`; do not edit. A query's language is told by profiles of one to four letters that
updates learn from the captions they teach (`model_updates/language_profiles.py`), multiplied with lingua's likelihood
(`app/language/detection.py`). The fewest token tables that have 95 % of the posterior are searched, at most six, by one
forward pass, and their results are fused by cosine + log odds of the language / scale of the encoder, each table's
cosines less half of its tenth-best (`model_updates/readings.py`). Data: short names of emoji; *held-out* names are in
no profile and no training; *trained* names are in both.
"""


def write_report(results: Path, target: Path) -> None:
    """Writes the report from all result files."""
    runs = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*-*.json"))
    }
    runs = {name: run for name, run in runs.items() if isinstance(run, dict)}
    for name in ("unlearned", "footprint"):
        path = results / f"{name}.json"
        if path.exists():
            runs[name] = json.loads(path.read_text(encoding="utf-8"))
    if not runs:
        return
    many = runs.pop("product-36", None)
    products = [run for name, run in runs.items() if name.startswith("product-")]
    machines = sorted({f"{run['machine']}; {run['date']}" for run in [*runs.values(), *filter(None, [many])]})
    parts = [INTRODUCTION, *(f"Measured on {machine}." for machine in machines), ""]
    parts += [bars_of(runs, many)]
    parts += [many_part(many)] if many else []
    parts += [_product(products)] if products else []
    parts += [_rules(runs["rules-0"])] if "rules-0" in runs else []
    parts += [_detection(runs)]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")


def _product(runs: Sequence[Values]) -> str:
    languages = runs[0]["languages"]
    rows, lines = [], []
    for kind in KINDS:
        told, found = ([run[how][kind] for run in runs] for how in ("told", "detected"))
        for depth in ("1", "10"):
            for label, values in (("told", told), ("not told", found)):
                cells = [_recall(values, tag, depth) for tag in languages]
                rows.append([f"{kind} R@{depth}", label, *_cells([float(np.mean(cells)), *cells])])
        joined = [
            ["".join(value[tag]["1"] for tag in languages) for value in values] for values in (told, found)
        ]
        change, low, high = change_interval(*joined)
        lines.append(
            bar(
                change >= -1.0,
                f"{kind} names: R@1 changes by {signed(change)} [{signed(low)}, {signed(high)}] points when the "
                f"language is not told, {len(languages)} languages, {_seeds(runs)} "
                "(bar: a loss of at most 1.0; 1.7 before).",
            )
        )
        for key, label in (
            ("sure_and_right", "only the right table"),
            ("among_several", "right one of several"),
        ):
            shares = [100 * float(np.mean([value[tag][key] for value in found])) for tag in languages]
            rows.append([f"{kind}, %", label, *_cells([float(np.mean(shares)), *shares])])
        tables = [float(np.mean([value[tag]["tables"] for value in found])) for tag in languages]
        rows.append([kind, "tables searched", *(f"{v:.2f}" for v in (float(np.mean(tables)), *tables))])
    header = ["", "language", "mean", *languages]
    return "\n".join(
        [
            f"## The product after seven languages ({_seeds(runs)})\n",
            "`perennial-tiny`, `language-tables`, one language after another; text to image, percent.\n",
            *lines,
            "",
            table_of(header, rows),
        ]
    )


def _recall(values: Sequence[Values], tag: str, depth: str) -> float:
    return float(np.mean([100 * hits_of(value[tag][depth]).mean() for value in values]))


def _seeds(runs: Sequence[Values]) -> str:
    return "one seed" if len(runs) == 1 else f"{len(runs)} seeds"


def _cells(values: Sequence[float]) -> list[str]:
    return [f"{value:.1f}" for value in values]


def _rules(run: Values) -> str:
    recalls: Mapping[str, Mapping[str, float]] = run["r1"]
    languages = list(recalls["told"])
    told = [recalls["told"][tag] for tag in languages]
    rows = [["told", *_cells([float(np.mean(told)), *told])]]
    for rule, by_language in recalls.items():
        if rule != "told":
            changes = [by_language[tag] - recalls["told"][tag] for tag in languages]
            rows.append([rule, *(f"{v:+.2f}" for v in (float(np.mean(changes)), *changes))])
    return (
        "## How readings are fused\n\nChange of R@1 on trained names in points, seed 0, the posterior from profiles "
        "that have not seen the\nname (five folds): harder than what a searcher meets, and what the rule was chosen "
        "on.\n\n" + table_of(["rule", "mean", *languages], rows)
    )


def _detection(runs: Mapping[str, Values]) -> str:
    parts = ["## Detection alone\n", _counts(runs)]
    for name, write in (
        ("detection-36", _by_language),
        ("unlearned", _unlearned),
        ("shared-letters", _shared_letters),
        ("shared-table", _shared_table),
        ("footprint", _footprint),
    ):
        if name in runs:
            parts += write(runs[name])
    return "\n".join(parts)


def _counts(runs: Mapping[str, Values]) -> str:
    rows = []
    for count in ("8", "36"):
        run = runs.get(f"detection-{count}")
        for key, label in (("cross_validated", "trained, five folds"), ("held_out", "held-out")):
            if run is not None:
                rows.append([count, label, *_summary(run[key])])
    header = ["languages", "names", "likeliest is right, %", "right one searched, %", "en", "zh", "ja"]
    return table_of([*header, "tables searched", "log loss", "ms a query"], rows)


def _by_language(run: Values) -> list[str]:
    found = run["held_out"]
    size = float(np.mean(list(run["profile_bytes"].values()))) / 1000
    ordered = sorted(found, key=lambda tag: found[tag]["searched"])
    searched = ["right one searched, %", *(f"{100 * found[tag]['searched']:.0f}" for tag in ordered)]
    tables = ["tables", *(f"{found[tag]['tables']:.1f}" for tag in ordered)]
    return [
        f"A language's profile takes {size:.0f} kB of the version. Held-out names, 36 languages:\n",
        table_of(["", *ordered], [searched, tables]),
    ]


def _unlearned(run: Values) -> list[str]:
    refused, unlearned = run["refused"], run["unlearned"]
    others = [share for tag, share in refused.items() if tag not in unlearned]
    each = ", ".join(f"{tag} {100 * refused[tag]:.1f}" for tag in unlearned)
    return [
        f"Names in five scripts, with the other 31 languages learned: said to be in none of them, % of names: "
        f"{each}; of the learned languages' own names {100 * float(np.mean(others)):.2f} %.\n"
    ]


def _shared_letters(run: Values) -> list[str]:
    cells = [
        [learned, *(f"{100 * values[key]:.1f}" for key, _ in SHARED_LETTERS)]
        for learned, values in run["found"].items()
    ]
    return [
        "Texts in the letters of a learned language that may be in none (`unfamiliar`), % said so. Names are held "
        "out; captions are\nof photographs, in languages known from names of emoji alone (en, de, fr, pt, cs). "
        "At 36, *others* are each language in\nturn, left out of the learned ones.\n",
        table_of(["learned", *(label for _, label in SHARED_LETTERS)], cells),
    ]


def _shared_table(run: Values) -> list[str]:
    cells = [[name, f"{100 * v['searched']:.1f}", f"{v['tables']:.2f}"] for name, v in run["found"].items()]
    return [
        "Languages of which sixteen share `perennial-photo`'s table (profiles from the names of emoji) while cs, "
        "hi and uk\nhave their own (profiles from 2,535 captions each), on test captions of photographs:\n",
        table_of(["language", "right table searched, %", "tables searched"], cells),
    ]


def _footprint(run: Values) -> list[str]:
    rows = [[count, *(f"{run[count][key]:.{digits}f}" for key, digits in FOOTPRINT)] for count in ("8", "36")]
    return [
        "What it takes, in a fresh process (profiles and lingua's quick models):\n",
        table_of(["languages", "seconds to load", "MB", "MB after all queries", "ms a query"], rows),
    ]


SHARED_LETTERS = (
    ("names", "own names"),
    ("names_worst", "worst language"),
    ("other_names", "others' names"),
    ("captions", "own captions"),
    ("captions_worst", "worst language"),
    ("other_captions", "others' captions"),
)
FOOTPRINT = (("seconds", 2), ("megabytes", 0), ("megabytes_later", 0), ("milliseconds", 2))


def _summary(found: Mapping[str, Mapping[str, float]]) -> list[str]:
    def mean(key: str) -> float:
        return float(np.mean([values[key] for values in found.values()]))

    own = [f"{100 * found[tag]['searched']:.1f}" for tag in ("en", "zh", "ja")]
    return [
        f"{100 * mean('first'):.1f}",
        f"{100 * mean('searched'):.1f}",
        *own,
        f"{mean('tables'):.2f}",
        f"{mean('log_loss'):.3f}",
        f"{mean('milliseconds'):.1f}",
    ]
