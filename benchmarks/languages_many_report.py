"""Parts of docs/results/languages.md: the bars against the figures, and the product with many languages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from languages_many import OWN, UNSEEN, VIEWS, loss
from real_input_figures import Values, bar, hits_of, signed, table_of


def bars_of(runs: Mapping[str, Values], many: Values | None) -> str:
    """Returns a line for each bar that its run is there for."""
    lines = []
    if many is not None:
        change, low, high = loss(many["views"][OWN])
        lines.append(
            bar(
                change >= -1.5,
                f"the product at {len(many['languages'])} languages, held-out names: R@1 changes by {signed(change)} "
                f"[{signed(low)}, {signed(high)}] points when the language is not told (bar: a loss of at most 1.5).",
            )
        )
        tables = many["tables"][OWN]
        lines += _detection_bars("the product", {tag: dict(values) for tag, values in tables.items()})
    if "detection-36" in runs:
        lines += _detection_bars("detection alone", runs["detection-36"]["held_out"])
    if "unlearned" in runs:
        refused, tags = runs["unlearned"]["refused"], runs["unlearned"]["unlearned"]
        least = min(100 * refused[tag] for tag in tags)
        each = ", ".join(f"{tag} {100 * refused[tag]:.1f}" for tag in tags)
        lines.append(
            bar(least >= 90, f"names in five scripts said to be in no learned language, %: {each} (bar: 90).")
        )
    if "footprint" in runs:
        at = runs["footprint"]["36"]
        lines.append(
            bar(
                at["seconds"] <= 2 and at["megabytes_later"] <= 60,
                f"loading at 36 languages: {at['seconds']:.2f} s and {at['megabytes']:.0f} MB, "
                f"{at['megabytes_later']:.0f} MB after queries in all (bars: 2 s, 60 MB), before the swap: "
                "`Snapshot.load` warms up, then one assignment swaps.",
            )
        )
    return "\n".join(["## The bars\n", *lines, ""])


def _detection_bars(what: str, found: Mapping[str, Mapping[str, float]]) -> list[str]:
    searched = 100 * float(np.mean([values["searched"] for values in found.values()]))
    tables = float(np.mean([values["tables"] for values in found.values()]))
    own = {tag: 100 * found[tag]["searched"] for tag in ("en", "zh", "ja")}
    return [
        bar(
            searched >= 95 and own["en"] >= 92 and own["zh"] >= 95 and own["ja"] >= 95,
            f"{what}, held-out names of {len(found)} languages: the right table is among those searched for "
            f"{searched:.1f} %, English {own['en']:.1f}, zh {own['zh']:.1f}, ja {own['ja']:.1f} "
            "(bars: 95, 92, 95, 95).",
        ),
        bar(tables <= 2.2, f"{what}: {tables:.2f} tables searched on average (bar: 2.2)."),
    ]


def many_part(run: Values) -> str:
    """Returns the part on the product after all languages of the data."""
    languages = run["languages"]
    by_view = run["views"]
    lines, rows = [], []
    for view in VIEWS:
        change, low, high = loss(by_view[view])
        told, found = (
            float(np.mean([100 * hits_of(by_view[view][tag][how]["1"]).mean() for tag in languages]))
            for how in ("told", "detected")
        )
        tables = run["tables"][view]
        lines.append(
            [
                view,
                f"{told:.1f}",
                f"{found:.1f}",
                f"{signed(change)} [{signed(low)}, {signed(high)}]",
                f"{100 * float(np.mean([tables[tag]['searched'] for tag in languages])):.1f}",
                f"{float(np.mean([tables[tag]['tables'] for tag in languages])):.2f}",
            ]
        )
    for tag in sorted(languages, key=lambda tag: loss({tag: by_view[UNSEEN][tag]})[0]):
        cells = [tag]
        for view in VIEWS:
            change, low, high = loss({tag: by_view[view][tag]})
            told = 100 * hits_of(by_view[view][tag]["told"]["1"]).mean()
            cells.append(f"{told:.1f} {signed(change)} [{signed(low)}, {signed(high)}]")
        rows.append([*cells, f"{100 * run['tables'][OWN][tag]['searched']:.1f}"])
    return "\n".join(
        [
            f"## The product after {len(languages)} languages (one home, one seed)\n",
            "`perennial-tiny`; every language taught by `evergreen`, the default, with all its epochs, one after "
            f"another; each name looked up\nas a search does twice, told the language and not. Gallery: *own*, the "
            f"held-out pictures; else all {run['pictures']} pictures, other styles\nof the same concept left out. "
            "*Unseen*: trained names, detected by profiles that have not seen them (five folds): the hardest.\n"
            "95 % intervals over concepts, a concept's names in all languages drawn together.\n",
            table_of(
                ["names", "R@1 told", "not told", "change", "right table searched, %", "tables searched"],
                lines,
            ),
            "R@1 told and its change when not told, by language; the last column on held-out names.\n",
            table_of(["language", *VIEWS, "right table searched, %"], rows),
        ]
    )
