"""Draws the pictures of docs/gate.md from numbers: the real gate on made-up ranks, the real checks on drawn scenes.

    python benchmarks/gate_pictures.py

No measured data is in them; docs/results/ has those. It takes about ten seconds.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from gate_drawing import COLOURS, INK, PALE, Bound, Drawing, changes, chart
from numpy.typing import NDArray

from ingest.samples.scene_captions import caption
from ingest.samples.scene_grid import all_scenes
from model_updates.evaluation import SliceResult, View
from model_updates.gate.examined import CrossFitted, judge_examined
from model_updates.gate.report import GateReport, GateRow, Policy
from model_updates.gate.rules import Past, judge
from model_updates.trust.evidence import Evidence, UploadedPairs
from model_updates.trust.row_shift import moved

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
Ranks = NDArray[np.int64]
Slices = Mapping[tuple[str, View], tuple[Ranks, Ranks]]
NEW = "sw/icons"
SHIFTED_BY = 1


def main() -> None:
    """Writes all pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--to", type=Path, default=IMAGES)
    folder = parser.parse_args().to
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        draw().write(folder / f"gate-{name}.svg")


def ranks(right: float, things: int = 400) -> Ranks:
    """Ranks of which a share is right and the rest far off."""
    return np.where(np.arange(things) < round(right * things), 0, 99)


def judged(slices: Slices, *, past: Mapping[str, Sequence[Ranks]] | None = None) -> GateReport:
    """Asks the gate about made-up ranks, given as (live, candidate); `NEW` is what was taught."""
    live = {key: _result(*key, before) for key, (before, _) in slices.items()}
    candidate = {key: _result(*key, after) for key, (_, after) in slices.items()}
    versions = {
        (name, View.OWN): Past(
            [(f"v{n}", _result(name, View.OWN, one)) for n, one in enumerate(known, start=1)]
        )
        for name, known in (past or {}).items()
    }
    return judge(
        candidate=candidate,
        live=live,
        new_slices=[key for key in slices if key[0] == NEW],
        taught_pairs={NEW: 1000},
        canaries=(),
        policy=Policy(),
        past=versions,
    )


def _result(name: str, view: View, found: Ranks) -> SliceResult:
    language, domain = name.split("/")
    at = np.arange(len(found))
    return SliceResult(language, domain, tuple(f"{domain}{n}" for n in at), at, found, found, at, view=view)


def _row(report: GateReport, name: str, view: View = View.OWN) -> GateRow:
    return next(row for row in report.rows if row.slice == name and row.view == view)


def _bound(name: str, row: GateRow) -> Bound:
    return Bound(name, row.difference, row.low, row.verdict, f"{row.verdict}: {row.note}")


def learned() -> Drawing:
    """Four updates that taught one language: certain, doubtful, nothing, worse."""
    perhaps = ranks(0.5), ranks(0.5)
    perhaps[0][:10], perhaps[1][390:] = 99, 99
    perhaps[0][300:308], perhaps[1][300:308] = 0, 99
    updates = {
        "update A": (ranks(0.05), ranks(0.3)),
        "update B": perhaps,
        "update C": (ranks(0.2), ranks(0.2)),
        "update D": (ranks(0.3), ranks(0.2)),
    }
    old = {("en/icons", View.OWN): (ranks(0.6), ranks(0.6))}
    bounds = [
        _bound(name, _row(judged(old | {(NEW, View.OWN): pair}), NEW)) for name, pair in updates.items()
    ]
    return changes("What was taught must gain for certain", bounds, limit=0, limit_name="", span=(-15, 30))


def visible() -> Drawing:
    """One update measured twice: alone it learned, among everything nobody finds it."""
    slices = {
        ("en/icons", View.OWN): (ranks(0.6), ranks(0.6)),
        (NEW, View.OWN): (ranks(0.07), ranks(0.38)),
        (NEW, View.MIXED): (ranks(0.0), ranks(0.0)),
    }
    report = judged(slices)
    found = judged(slices | {(NEW, View.MIXED): (ranks(0.0), ranks(0.26))})
    bounds = [
        _bound("own gallery", _row(report, NEW)),
        _bound("among all (A)", _row(report, NEW, View.MIXED)),
        _bound("among all (B)", _row(found, NEW, View.MIXED)),
    ]
    says = "What was taught must be found among all pictures too"
    return changes(says, bounds, limit=0, limit_name="", span=(-5, 40))


def small() -> Drawing:
    """One chunk of 200 pairs by its 30 held-out ones, by copies, and with its captions exchanged."""
    drawn = np.random.default_rng(5)
    before = np.minimum(drawn.geometric(0.06, 200) - 1, 60)
    after = np.where(drawn.random(200) < 0.25, before // 6, before)
    useless = np.maximum(before + drawn.integers(-4, 5, 200), 0)
    old = {("en/icons", View.OWN): (ranks(0.6), ranks(0.6))}
    held = _row(judged(old | {(NEW, View.OWN): (before[:30], after[:30])}), NEW)
    few = f"{held.verdict}: {held.images} are too few"
    bounds = [Bound("30 held out", held.difference, held.low, held.verdict, few)]
    for name, found in (("200 by copies", after), ("… exchanged", useless)):
        copies = CrossFitted(_result(NEW, View.OWN, found), _result(NEW, View.OWN, before), pictures=40)
        _, [(compared, verdict, note)] = judge_examined([copies], {"sw": 200}, Policy(), 1)
        bounds.append(Bound(name, compared.change, compared.low, verdict, f"{verdict}: {note}"))
    says = "All pairs of a small chunk speak, each by a copy that had not learned it"
    return changes(says, bounds, limit=1, limit_name="needed", span=(-10, 30))


def kept() -> Drawing:
    """Every slice loses three points: none too much, all together too much."""
    names = [f"{tag}/icons" for tag in ("de", "en", "fr", "ja")]
    slices = {(name, View.OWN): (ranks(0.6, 2000), ranks(0.57, 2000)) for name in names}
    report = judged(slices | {(NEW, View.OWN): (ranks(0.0), ranks(0.5))})
    rule = next(rule for rule in report.rules if rule.rule == "kept")
    change, low = (
        float(number.replace("−", "-")) for number in re.findall(r"[−+][\d.]+", rule.reasons[0])[:2]
    )
    bounds = [_bound(name, _row(report, name)) for name in names]
    together = Bound("together", change, low, rule.verdict, f"{rule.verdict}: lost")
    limit = -report.policy.pooled_drop
    says = "Old slices together may lose little on average"
    return changes(says, [*bounds, together], limit=limit, limit_name="all together", span=(-8, 2))


def worst_slice() -> Drawing:
    """One slice pays for the others."""
    drops = {"de/icons": 0.0, "en/icons": 0.0, "fr/icons": 0.012, "ja/icons": 0.1, "pt/icons": 0.045}
    slices = {(name, View.OWN): (ranks(0.6), ranks(0.6 - drop)) for name, drop in drops.items()}
    report = judged(slices | {(NEW, View.OWN): (ranks(0.0), ranks(0.5))})
    bounds = [_bound(name, _row(report, name)) for name in drops]
    limit = -report.policy.slice_drop
    says = "No old slice may lose more than the policy allows"
    return changes(says, bounds, limit=limit, limit_name="any one slice", span=(-16, 2))


def high_water() -> Drawing:
    """Slow drift: twelve updates that each take two points, without and with a memory of the best."""
    start, step, updates = 46.0, 2.0, 12
    drawing, at = chart(
        "Against the version before, a slow loss passes; against the best so far it does not",
        height=280,
        across=(0, updates),
        up=(20, 50),
        labels=("updates that each would take 2 points of French", "French, percent"),
    )
    levels = [start - step * n for n in range(updates + 1)]
    drawing.path([at(n, level) for n, level in enumerate(levels)], ink=COLOURS["reject"])
    x, y = at(updates / 2, levels[updates // 2])
    drawing.text(x + 10, y - 4, "held against the version before alone", size=12, ink=COLOURS["reject"])
    stopped, verdict = _stopped(start / 100, step / 100, updates)
    stands = [start - step * min(n, stopped) for n in range(updates + 1)]
    drawing.path([at(n, level) for n, level in enumerate(stands)], ink=COLOURS["promote"])
    x, y = at(stopped + 1, stands[-1])
    drawing.dot(x, y, ink=COLOURS["review"])
    drawing.text(x + 120, y + 18, f"{verdict}: a person is asked", size=12, ink=COLOURS["review"])
    drawing.line(*at(0, start), *at(updates, start), ink=COLOURS["plain"], dash="4 3")
    drawing.text(*at(updates, start + 1.2), "high water", size=12, ink=COLOURS["plain"], anchor="end")
    return drawing


def _stopped(start: float, step: float, updates: int) -> tuple[int, str]:
    """After how many promotions the gate no longer promotes by itself, and what it says then."""
    history = [ranks(start, 1000)]
    for done in range(updates):
        after = ranks(start - step * (done + 1), 1000)
        slices = {("fr/icons", View.OWN): (history[-1], after), (NEW, View.OWN): (ranks(0.0), ranks(0.5))}
        others = {
            (f"{tag}/icons", View.OWN): (ranks(0.6, 1000), ranks(0.6, 1000))
            for tag in ("de", "en", "ja", "pt")
        }
        report = judged(slices | others, past={"fr/icons": history[:-1]})
        if report.verdict != "promote":
            return done, str(report.verdict)
        history.append(after)
    return updates, "promote"


def canaries() -> Drawing:
    """Pinned queries before and after, and the share that may be lost."""
    drawing = Drawing(120, "Pinned queries keep their answer")
    share = Policy().canary_share
    for n, (lost, verdict) in enumerate(((1, "promote"), (2, "reject"))):
        y = 34 + 46 * n
        for query in range(20):
            drawing.dot(40 + 20 * query, y, ink=COLOURS["reject" if query < lost else "promote"], radius=6)
        said = f"{lost} of 20 lost ({5 * lost} %): {verdict}"
        drawing.text(450, y + 5, said, ink=COLOURS[verdict])
    drawing.text(
        34, 112, f"A dot is a pinned query; {100 * share:.0f} % may lose their answer.", size=12, ink=PALE
    )
    return drawing


def attempts() -> Drawing:
    """How often luck alone passes when the same thing is tried again and again."""
    most = 20
    drawing, at = chart(
        "Who tries twenty times must not pass by luck",
        height=250,
        across=(1, most),
        up=(0, 80),
        labels=(
            "candidates held against the same live version",
            "chance that luck alone passes once, percent",
        ),
    )
    tries = range(1, most + 1)
    each = [100 * (1 - 0.95**n) for n in tries]
    alphas = [Policy().gain_alpha(n) for n in tries]
    spent = [100 * (1 - float(np.prod([1 - alpha for alpha in alphas[:n]]))) for n in tries]
    for values, words, ink in ((each, "5 % each", "reject"), (spent, "2.5 % spent", "promote")):
        drawing.path([at(n, value) for n, value in zip(tries, values, strict=True)], ink=COLOURS[ink])
        x, y = at(most, values[-1])
        drawing.text(x + 8, y + 4, f"{words}: {values[-1]:.0f} %", size=12, ink=COLOURS[ink])
    return drawing


def yardstick() -> Drawing:
    """What a chunk's held-out pairs and training pairs are used for, by its standing."""
    columns = ("is searched", "may teach", "judges its update", "judges others")
    rows = {
        "new": (1, 1, 1, 0),
        "held": (1, 0, 0, 0),
        "accepted": (1, 1, 1, 0),
        "accepted, measures": (1, 1, 1, 1),
        "went live": (1, 1, 1, 1),
        "rejected by the gate": (1, 1, 1, 0),
        "withdrawn": (0, 0, 0, 0),
    }
    drawing = Drawing(52 + 30 * len(rows), "What a chunk counts for, by its standing")
    for column, name in enumerate(columns):
        drawing.text(215 + 128 * column, 22, name, size=12, ink=PALE, anchor="middle")
    for n, (standing, used) in enumerate(rows.items()):
        y = 52 + 30 * n
        drawing.line(10, y - 20, 670, y - 20)
        drawing.text(14, y, standing)
        for column, is_used in enumerate(used):
            ink = COLOURS["promote"] if is_used else PALE
            drawing.text(
                215 + 128 * column, y + 1, "●" if is_used else "–", ink=ink, anchor="middle", size=14
            )
    return drawing


def checks() -> Drawing:
    """A chunk whose captions slipped by one row, heard at every offset."""
    scenes = random.Random(0).sample(list(all_scenes()), 300)
    english = [caption(scene, "en") for scene in scenes]
    german = [caption(scene, "de") for scene in scenes]
    names = [f"picture {n}" for n in range(len(scenes))]
    slipped = [german[n - SHIFTED_BY] for n in range(len(german))]
    evidence = Evidence(UploadedPairs(texts=slipped, images=names, groups=names, beside=english))
    order = np.arange(len(names))
    offsets = range(-5, 6)
    strengths = [evidence.strength(moved(len(names), order, rows)) for rows in offsets]
    most = max(strengths)
    drawing, at = chart(
        "Captions that slipped by one row fit their pictures one row further down",
        height=250,
        across=(-5.5, 5.5),
        up=(0, 20 * np.ceil(most / 20)),
        labels=(
            "captions heard so many rows further down; 0 as uploaded",
            "strength of the agreement with the pictures' words",
        ),
    )
    for rows, strength in zip(offsets, strengths, strict=True):
        x, y = at(rows, max(0.0, strength))
        _, zero = at(rows, 0)
        ink = COLOURS["promote"] if strength == most else COLOURS["reject"] if rows == 0 else COLOURS["plain"]
        drawing.box(x - 13, y, 26, max(1.5, zero - y), ink=ink)
        drawing.text(x, zero + 16, f"{rows:+d}" if rows else "0", size=11, ink=INK, anchor="middle")
    return drawing


PICTURES = {
    "learned": learned,
    "small": small,
    "visible": visible,
    "kept": kept,
    "worst-slice": worst_slice,
    "high-water": high_water,
    "canaries": canaries,
    "attempts": attempts,
    "yardstick": yardstick,
    "checks": checks,
}

if __name__ == "__main__":
    main()
