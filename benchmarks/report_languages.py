"""Part (a) of the report: seven languages, one after another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from real_input_figures import (
    KINDS,
    Runs,
    Values,
    bar,
    chain_interval,
    figure,
    hits_of,
    recall_matrix,
    table_of,
)

from model_updates.evaluation import average_recall, forgetting

CHAIN_NAMES = {
    "cll-clip": "`cll-clip`",
    "teir": "`teir`",
    "teir-update": "`teir`, `apply_to=update`",
    "language-tables": "`language-tables`",
}


def languages_section(runs: Runs) -> str:
    """Returns the seven languages: figures, bars, one line per update; empty without runs."""
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
            row.append(figure([average_recall(m) for m in matrices], intervals["AR"]))
            row.append(figure([forgetting(m) or 0.0 for m in matrices], intervals["F"]))
            deep = [average_recall(recall_matrix(table, "10")) for table in tables]
            row.append(figure(deep, chain_interval(tables, "10")["AR"]))
        steps = [step for run in runs[name] for step in run["steps"]]
        row += [f"{np.mean([step[k] for step in steps]):.0f}" for k in ("seconds", "training_seconds")]
        row.append(str(sum(step["images_embedded"] + step["image_forwards"] for step in steps)))
        rows.append(row)
    return (
        "AR is the average over English and the languages learned after the last update; F is forgetting:\n"
        "the mean over languages of the best recall since learning minus the last.\n\n"
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
                bar(
                    holds,
                    f"{kind}: `teir` forgets less than `cll-clip` ({f_teir:.2f} against {f_cll:.2f}) at no lower AR "
                    f"({ar_teir:.2f} against {ar_cll:.2f}).",
                )
            )
        if "teir" in known and "teir-update" in known:
            first, second = known["teir"][1], known["teir-update"][1]
            said = f"{kind}: `apply_to=update` forgets less than `teir` ({second:.2f} against {first:.2f})."
            lines.append(bar(second < first, said))
        if "language-tables" in known:
            lost = known["language-tables"][1]
            lines.append(bar(lost == 0.0, f"{kind}: `language-tables` forgets nothing ({lost:.2f})."))
    if "language-tables" in runs:
        verdicts = [step["verdict"] for run in runs["language-tables"] for step in run["steps"]]
        passed = verdicts.count("promote")
        said = (
            f"the default for a new language passes the default gate ({passed} of {len(verdicts)} updates)."
        )
        lines.append(bar(passed == len(verdicts), said))
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
    for key, label in (("sure_and_right", "sure and right"), ("among_several", "right one of several")):
        shares = [
            float(np.mean([run["detection"]["trained"][lang].get(key, 0.0) for run in runs]))
            for lang in languages
        ]
        rows.append(["names", label, *(f"{100 * v:.0f} %" for v in (float(np.mean(shares)), *shares))])
    return (
        "What detection costs `language-tables`, with all languages learned: the language told, and guessed from the\n"
        "name alone as search does it (unsure queries are read in several languages; languages.md says more):\n\n"
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
