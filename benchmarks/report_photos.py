"""Part (c) of the report: photographs."""

from __future__ import annotations

from collections.abc import Sequence

from real_input_figures import (
    Values,
    signed,
    table_of,
)

from model_updates.recalls import TEXT_RECALLS


def photos_section(runs: Sequence[Values]) -> str:
    """Returns the photographs, one line per update and the gate's numbers; empty without runs."""
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
                    *(f"{recalls[k]:.1f}" for k in TEXT_RECALLS),
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
            f"{signed(row['difference'])} [{signed(row['low'])}, {signed(row['high'])}]",
            f"{row['verdict']} {row['note']}".strip(),
        ]
        for row in step["rows"]
    ]
    header = ["slice", "role", "images", "live", "candidate", "change", "verdict"]
    return f"Gate on {step['language']} (seed 0), mean of R@1, 5 and 10:\n\n" + table_of(header, rows)
