"""Writes docs/results/drip.md and its drawings from the steps of `drip.py`."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from drip_plan import DOMAINS
from gate_drawing import COLOURS, chart

Step = Mapping[str, Any]
Points = list[tuple[float, float]]

QUERY, MEMORY, FLAT, LOAD = 1.15, 1.5, 1.25, 2.0
VIEWS = {"own": COLOURS["promote"], "mixed": COLOURS["plain"], "memory": COLOURS["review"]}
COLUMNS = (
    "chunk",
    "languages",
    "domains with an adapter",
    "pictures",
    "query of the first, ms",
    "of the newest",
    "tables read",
    "load of the first, s",
    "of the newest",
    "memory, MB",
    "version, MB",
    "its own, MB",
    "home, MB",
)
LEARNING = {
    "start",
    "plan",
    "features",
    "train",
    "examine",
}  # stages whose seconds follow the size of the chunk
HEAD = """# A home that learns for years

Written by `benchmarks/drip.py`; do not edit. Chunks of 40 to 1,000 pairs are dripped into one home of `perennial-tiny`:
new languages, new domains, more of what is known, pictures that drift into the dark, repeated chunks and bad ones
(`benchmarks/drip_plan.py`). Each is taken in and taught with the default strategy and the default gate, in a process of
its own; where the gate asks for a person, the person knows which chunks are bad. Data: names of 1,185 emoji in 36
languages. Times are of the processor, ratios of times taken in turn in one process.

Recall is what the gate measured for the release that is live. It falls though no vector moves: the gallery grows,
and names look among more and more pictures, of which several show the same thing.
"""


def write_report(steps: Sequence[Step], path: Path) -> None:
    """Writes the page and its drawings, which lie under images/ beside results/."""
    if not steps:
        return
    images = path.parent.parent / "images"
    drawings = list(_drawings(steps, images))
    parts = [HEAD, f"{len(steps)} of 100 chunks so far.\n" if len(steps) < 100 else ""]
    parts += ["## The bars\n", *(f"- {bar}" for bar in bars(steps)), ""]
    parts += ["## What grows\n", *(f"![{says}](../images/{name})\n" for name, says in drawings)]
    parts += ["## What became of the chunks\n", *_verdicts(steps), "", "## Looks\n", *_looks(steps), ""]
    path.write_text("\n".join(part for part in parts if part is not None), encoding="utf-8")


def bars(steps: Sequence[Step]) -> list[str]:
    """Returns a sentence for each bar, with what was measured."""
    looks = [step for step in steps if "looked" in step]
    last = looks[-1]
    query = last["looked"]["newest"] / last["looked"]["first"]
    languages = max(1, len(last["languages"]) - len(steps[0]["languages"]))
    memory = (last["newest"]["mb"] - last["first"]["mb"]) / languages
    load = last["newest"]["load_seconds"] / last["first"]["load_seconds"]
    around = [(step["number"], beside_training(step)) for step in steps if step.get("stages")]
    part = max(1, len(around) // 4)
    early, late = (statistics.median(s for _, s in some) for some in (around[:part], around[-part:]))
    strays = sum(len(stray(step)) for step in steps)
    number = last["number"]
    return [
        _bar(
            strays == 0,
            f"vectors of languages and domains that a chunk did not teach are bit-identical after all "
            f"{len(steps)} chunks ({strays} moved).",
        ),
        _bar(
            query <= QUERY,
            f"a query at chunk {number} takes {query:.2f} times that of the first release, whose gallery is smaller "
            f"(bar: {QUERY}){_alike(last['looked'])}.",
        ),
        _bar(
            memory <= MEMORY,
            f"memory of a server that has loaded the release: {memory:+.2f} MB a language (bar: {MEMORY}).",
        ),
        _bar(
            late / early <= FLAT,
            f"an update without its training: {late:.1f} s in the last quarter of the run, {early:.1f} s in the "
            f"first, {late / early:.2f} times (bar: {FLAT}); {_whole(steps)}.",
        ),
        _bar(
            load <= LOAD,
            f"loading the release takes {load:.2f} times as long (bar: {LOAD}): {last['newest']['load_seconds']:.2f} s "
            f"for {last['first']['load_seconds']:.2f}.",
        ),
    ]


def _alike(looked: Step) -> str:
    """Says what a query costs that both releases read by equally many tables, where that was measured."""
    alike = looked.get("alike") or {"texts": 0}
    if not alike["texts"]:
        return ""
    times, some = alike["newest"] / alike["first"], f"{alike['texts']} of {alike['of']} texts"
    return f"; {times:.2f} times for the {some} that both read by equally many tables"


def _whole(steps: Sequence[Step]) -> str:
    """Says what whole updates with a language take: the median of the first and of the last quarter of them."""
    took = [step["update_seconds"] for step in steps if step.get("stages") and step["kind"] == "language"]
    if not took:
        return "no language was taught"
    part = max(1, len(took) // 4)
    early, late = (statistics.median(some) for some in (took[:part], took[-part:]))
    return (
        f"whole updates that teach a language take {late:.0f} s, and {early:.0f} in the first quarter of them"
    )


def _bar(holds: bool, sentence: str) -> str:
    return f"{'holds' if holds else 'misses'}: {sentence}"


def beside_training(step: Step) -> float:
    """Returns the seconds of an update that do not follow the size of its chunk: measuring, judging, publishing."""
    return float(sum(seconds for name, seconds in step["stages"].items() if name not in LEARNING))


def stray(step: Step) -> set[str]:
    """Returns the learned languages and the domains whose vectors moved though the chunk is of others."""
    known = {*step["languages"], *DOMAINS}
    return known & set(step["moved"]) - {step["language"], step["domain"]}


def recall(step: Step, view: str, known: Sequence[str]) -> float | None:
    """Returns the mean R@10 of slices of some languages in a view; None without any."""
    found = [s[4]["t2i_r10"] for s in step["slices"] if s[2] == view and s[0] in known and s[3]]
    return statistics.mean(found) if found else None


def _drawings(steps: Sequence[Step], images: Path) -> Iterator[tuple[str, str]]:
    taught = [step for step in steps if step.get("stages")]
    looks = [step for step in steps if "looked" in step]
    early = steps[min(len(steps), 12) - 1]["languages"]
    lines: dict[str, tuple[str, str, dict[str, tuple[str, Points]]]] = {
        "recall": (
            f"Mean R@10 of the {len(early)} languages that came first",
            "R@10, %",
            {
                view: (ink, _points(steps, lambda step, view=view: recall(step, view, early)))  # type: ignore[misc]
                for view, ink in VIEWS.items()
            },
        ),
        "update": (
            "Processor seconds of an update without its training",
            "seconds",
            {"": (COLOURS["plain"], _points(taught, beside_training))},
        ),
        "peak": (
            "Memory of the process that updates",
            "MB",
            {"": (COLOURS["plain"], _points(taught, lambda step: step["peak_mb"]))},
        ),
        "query": (
            "Processor milliseconds of a query, median",
            "ms",
            {
                name: (ink, _points(looks, lambda step, name=name: step["looked"][name]))  # type: ignore[misc]
                for name, ink in (("first", COLOURS["promote"]), ("newest", COLOURS["plain"]))
            },
        ),
        "memory": (
            "Memory that a loaded release takes",
            "MB",
            {"": (COLOURS["plain"], _points(looks, lambda step: step["newest"]["mb"]))},
        ),
        "load": (
            "Processor seconds of loading a release",
            "seconds",
            {
                name: (ink, _points(looks, lambda step, name=name: step[name]["load_seconds"]))  # type: ignore[misc]
                for name, ink in (("first", COLOURS["promote"]), ("newest", COLOURS["plain"]))
            },
        ),
        "disk": (
            "A version on the disk: whole, and what only it has",
            "MB",
            {
                "whole": (COLOURS["plain"], _points(steps, lambda step: step["version_bytes"] / 2**20)),
                "its own": (COLOURS["review"], _points(steps, lambda step: step["own_bytes"] / 2**20)),
            },
        ),
    }
    for name, (says, unit, series) in lines.items():
        _draw(images / f"drip-{name}.svg", says, unit, series)
        yield f"drip-{name}.svg", says


def _points(steps: Sequence[Step], value: Callable[[Step], float | None]) -> Points:
    found = ((step["number"], value(step)) for step in steps)
    return [(float(number), known) for number, known in found if known is not None]


def _draw(path: Path, says: str, unit: str, series: Mapping[str, tuple[str, Points]]) -> None:
    drawn = [point for _, points in series.values() for point in points]
    highest = 1.1 * max((y for _, y in drawn), default=1.0) or 1.0
    step = 10 ** (len(str(int(highest))) - 2)
    highest = 100.0 if unit.endswith("%") else -(-highest // (4 * step)) * 4 * step
    drawing, at = chart(
        says,
        height=240,
        across=(0, max(x for x, _ in drawn)),
        up=(0, highest),
        labels=(f"{says}, chunks 0 to {max(x for x, _ in drawn):.0f}", unit),
    )
    for number, (name, (ink, points)) in enumerate(series.items()):
        drawing.path([at(*point) for point in points], ink=ink)
        for point in points:
            drawing.dot(*at(*point), ink=ink, radius=2)
        drawing.text(514, 40 + 20 * number, name, ink=ink)
    drawing.write(path)


def _verdicts(steps: Sequence[Step]) -> Iterator[str]:
    kinds = list(dict.fromkeys(step["kind"] for step in steps))
    seen = Counter((step["kind"], step["verdict"] or step["standing"]) for step in steps)
    names = sorted({name for _, name in seen})
    yield f"| kind | {' | '.join(names)} |"
    yield "|---|" + "---|" * len(names)
    for kind in kinds:
        yield f"| {kind} | {' | '.join(str(seen[kind, name]) for name in names)} |"


def _looks(steps: Sequence[Step]) -> Iterator[str]:
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|" + "---|" * len(COLUMNS)
    for s in (step for step in steps if "looked" in step):
        looked = s["looked"]
        yield (
            f"| {s['number']} | {len(s['languages'])} | {s['routes']} | {s['pictures']:,} | {looked['first']:.2f} | "
            f"{looked['newest']:.2f} | {looked['tables']['newest']:.2f} | {s['first']['load_seconds']:.2f} | "
            f"{s['newest']['load_seconds']:.2f} | {s['newest']['mb']:.1f} | {s['version_bytes'] / 2**20:.1f} | "
            f"{s['own_bytes'] / 2**20:.1f} | {s['home_bytes'] / 2**20:.0f} |"
        )
