"""Runs other programs and Perennial by turns on one machine and writes docs/results/peers.md.

    make bench-peers                  # or: python benchmarks/peers.py [--work FOLDER] [--sizes 10000 100000]

Environments of the others are made in the work folder once. Each measurement is a line of
benchmarks/results/peers.jsonl: a run that was stopped goes on. `--again` measures anew, `--page` only writes the page.
Galleries and models are removed when all is measured; `--keep` leaves them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from peers_bare import queries
from peers_programs import (
    CLIENTS,
    FILLED,
    INSTALLED,
    UNASKED,
    Program,
    install,
    programs,
    write_model,
    write_vectors,
)
from speed_timing import ROOT, photo

KEPT = ROOT / "benchmarks" / "results" / "peers.jsonl"
REPORT = ROOT / "docs" / "results" / "peers.md"
OURS = "Perennial"
BYTES_EACH = 18_000  # on disk, of a vector in all programs together
TAKEN_IN, GROWN = 50, 50  # pictures

Record = dict[str, Any]
Value = Callable[[Record], float]
# What is behind others, and why; by row and measure, for the page.
_OTHER_WORK = "clocks of a machine with other work; the processor time of a query is the figure to go by"
_LOADED = "the catalog and the settings come beside the graph: SQLAlchemy takes .1 s to load, pydantic and typer .15 s"
_REFUSED = "who cannot be answered soon is refused, and asks again here every .2 s"
_ONE_CORE = "rclip is at work on one and a half cores, Perennial on one"
WHY: dict[tuple[str, str], str] = {
    ("search", "processor time, s"): _LOADED,
    ("search", "clock, s"): _LOADED,
    (
        "search",
        "peak memory, MB",
    ): "FAISS and the catalog come beside the graph; rclip keeps vectors in SQLite alone",
    ("serve", "processor time until ready, s"): "the web pages are made, too",
    ("serve", "p99, 64 clients, ms"): _REFUSED,
    ("take in", "pictures a second"): _ONE_CORE,
    ("take in", "clock, s"): _ONE_CORE,
    (
        "grow",
        "pictures a second",
    ): "embedding is quicker, and publishing a release with its checks takes the rest",
    ("grow", "clock, s"): "embedding is quicker, and publishing a release with its checks takes the rest",
    ("grow", "peak memory, MB"): "the index of before is opened and every byte of it checked",
}


def main() -> None:
    """Measures what is not kept yet, and writes the page."""
    asked = _arguments()
    if asked.again:
        asked.kept.unlink(missing_ok=True)
    if not asked.page:
        asked.work.mkdir(parents=True, exist_ok=True)
        _measure(asked)
        if not asked.keep:
            for folder in (FILLED, "model", "pictures"):
                shutil.rmtree(asked.work / folder, ignore_errors=True)
            (asked.work / "random.safetensors").unlink(missing_ok=True)
    asked.report.write_text(page(known(asked.kept)), encoding="utf-8")


def _measure(asked: argparse.Namespace) -> None:
    """Fills every program, and measures by turns what no line of the file says yet."""
    fits = [size for size in asked.sizes if size * BYTES_EACH <= asked.room * 1e9]
    for size in set(asked.sizes) - set(fits):
        needed = size * BYTES_EACH / 1e9
        note(
            asked.kept,
            row="left out",
            size=size,
            why=f"all of them need {needed:.0f} GB, and {asked.room:.0f} may be",
        )
    plan = [(row, size) for row in ("search", "serve") for size in fits] + [
        ("take in", 0),
        ("grow", max(fits)),
    ]
    done = {_key(one) for one in known(asked.kept)}
    for number in range(asked.rounds):
        for row, size in plan:
            for program in programs(asked.work):
                key = (row, size, program.name, number)
                if row not in program.rows or key in done:
                    continue
                values: Record = {"why": program.cannot.get(row)}
                if not values["why"]:
                    install(asked.work)
                    write_model(asked.work)
                    _fill(asked.work, program, size)
                    print(time.strftime("%H:%M:%S", time.gmtime()), *key, flush=True)
                    values = measured(program, row, size, number, asked)
                note(asked.kept, row=row, size=size, program=program.name, round=number, **values)


def measured(program: Program, row: str, size: int, number: int, asked: argparse.Namespace) -> Record:
    """Measures a row of a program once."""
    if row == "search":
        return vars(program.search(size, next(queries())))
    if row == "serve":
        return program.serve(size, asked.seconds)
    pictures = asked.work / "pictures" / f"{row} {number}"
    count = TAKEN_IN if row == "take in" else GROWN
    if not pictures.exists():
        pictures.mkdir(parents=True)
        for n in range(count):
            (pictures / f"{n}.jpg").write_bytes(photo(10**6 + 2 * (number * 1000 + n) + (row == "grow")))
    return vars(program.add(size, pictures)) | {"count": count}


def _fill(work: Path, program: Program, size: int) -> None:
    mark = program.folder / f"{size}.filled"
    if not mark.exists():
        vectors = work / FILLED / f"{size}.npy"
        if not vectors.exists():
            vectors.parent.mkdir(exist_ok=True)
            write_vectors(vectors, size)
        print(time.strftime("%H:%M:%S", time.gmtime()), "filling", program.name, size, flush=True)
        program.fill(size, vectors)
        mark.touch()


def note(kept: Path, **values: Any) -> None:
    """Adds a line to the file, with when and beside how much other work it was measured."""
    values |= {"date": time.strftime("%Y-%m-%d", time.gmtime()), "busy": round(os.getloadavg()[0], 1)}
    with kept.open("a", encoding="utf-8") as file:
        file.write(json.dumps(values | {"machine": machine()}) + "\n")


def known(kept: Path) -> list[Record]:
    """Returns the lines of the file; the last of several about the same."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    return list({_key(one): one for one in map(json.loads, lines)}.values())


def _key(one: Record) -> tuple[Any, ...]:
    return one["row"], one["size"], one.get("program"), one.get("round")


def machine() -> str:
    """Says what the figures were measured on."""
    return f"{platform.machine()}, {os.cpu_count()} CPU cores, Python {platform.python_version()}"


def measures(row: str) -> dict[str, tuple[Value, bool]]:
    """Returns what a row shows: how it is read from a record, and whether more is better."""
    if row == "serve":
        found: dict[str, tuple[Value, bool]] = {}
        for n in map(str, CLIENTS):
            clients = f"{n} client{'s' if n != '1' else ''}"
            found[f"p50, {clients}, ms"] = (lambda one, n=n: one["load"][n]["p50"], False)  # type: ignore[misc]
            found[f"p99, {clients}, ms"] = (lambda one, n=n: one["load"][n]["p99"], False)  # type: ignore[misc]
            found[f"processor time a query, {clients}, ms"] = (lambda one, n=n: one["load"][n]["cpu"], False)  # type: ignore[misc]
            found[f"queries a second, {clients}"] = (lambda one, n=n: one["load"][n]["rate"], True)  # type: ignore[misc]
        return found | {
            "memory afterwards, MB": (lambda one: one["memory"], False),
            "processor time until ready, s": (lambda one: one["ready"], False),
        }
    clock: dict[str, tuple[Value, bool]] = {
        "processor time, s": (lambda one: one["cpu"], False),
        "clock, s": (lambda one: one["wall"], False),
        "peak memory, MB": (lambda one: one["peak"], False),
    }
    if row == "search":
        return clock
    return {"pictures a second": (lambda one: one["count"] / one["wall"], True)} | clock


TITLES = {
    "search": "A search from the command line, nothing running, {size:,} vectors",
    "serve": "A server, {size:,} vectors",
    "take in": f"Taking {TAKEN_IN} pictures into an empty library",
    "grow": f"Adding {GROWN} pictures to {{size:,}}",
}


def page(records: Sequence[Record]) -> str:
    """Returns the page in Markdown."""
    rows = dict.fromkeys((one["row"], one["size"]) for one in records if one["row"] in TITLES)
    dates, machines = (sorted({one[name] for one in records}) for name in ("date", "machine"))
    rounds = max((one.get("round", -1) for one in records), default=-1) + 1
    loads = [one["busy"] for one in records]
    others = ", ".join(
        one for names in (*INSTALLED.values(), *UNASKED.values()) for one in names if "==" in one
    )
    lines = [
        "# Beside other programs, in one run",
        "",
        "Written by `make bench-peers`; do not edit. The same machine, the same ViT-B/32 at 256 pixels with random",
        "weights (others come from hubs, and speed does not depend on them), the same vectors; each program as it is",
        f"installed, by turns, {rounds} rounds. Figures are medians; ratios are of the same round, with their range.",
        "The bare loop is onnxruntime and an index library in one process: no server, catalog or thumbnails. It and",
        "the others read a text as 77 tokens, padding and all; Perennial ends where the text does, so it can be ahead.",
        "Clocks meet whatever else the machine does; processor time hardly. OpenMP has one thread in every program.",
        "",
        f"{'; '.join(machines)}; load of the machine {min(loads, default=0)} to {max(loads, default=0)}; "
        f"{', '.join(dates)}. {others}.",
    ]
    for row, size in sorted(rows, key=lambda one: (list(TITLES).index(one[0]), one[1])):
        lines += [
            "",
            f"## {TITLES[row].format(size=size)}",
            "",
            *_table(row, [one for one in records if _of(one, row, size)]),
        ]
    left = [one for one in records if one["row"] == "left out"]
    lines += ["", *(f"Not measured: {one['size']:,} vectors; {one['why']}." for one in left)]
    return "\n".join(lines).rstrip() + "\n"


def _of(one: Record, row: str, size: int) -> bool:
    return (one["row"], one["size"]) == (row, size)


def _table(row: str, records: Sequence[Record]) -> Iterator[str]:
    by_name: dict[str, list[Record]] = {}
    for one in records:
        by_name.setdefault(one["program"], []).append(one)
    ran = {name: found for name, found in by_name.items() if not found[0].get("why")}
    bare = [name for name in ran if name.startswith("bare")]
    yield f"| | {' | '.join(ran)} | beside programs | beside the bare loop |"
    yield f"|{' --- |' * (len(ran) + 3)}"
    behind = []
    for what, (value, more) in measures(row).items():
        cells = [_figure(statistics.median(map(value, found))) for found in ran.values()]
        peers = [name for name in ran if name != OURS and name not in bare]
        beside = [_standing(ran, names, value, more) for names in (peers, bare)]
        yield f"| {what} | {' | '.join([*cells, *beside])} |"
        if beside[0].startswith("**behind"):
            behind.append(f"- {what}: {_why(row, what)}.")
    yield from ["", *behind] if behind else []
    yield from (
        "",
        *(f"{name}: {found[0]['why']}." for name, found in by_name.items() if found[0].get("why")),
    )


def _standing(ran: dict[str, list[Record]], names: Sequence[str], value: Value, more: bool) -> str:
    """Says how far ahead of the best of some programs ours is, or behind; the range over the rounds they share."""
    sign = 1 if more else -1
    best = max(names, key=lambda name: sign * statistics.median(map(value, ran[name])), default=None)
    if best is None or OURS not in ran:
        return "–"
    theirs = {one["round"]: value(one) for one in ran[best]}
    ratios = [(value(one) / theirs[one["round"]]) ** sign for one in ran[OURS] if one["round"] in theirs]
    ahead = statistics.median(ratios) >= 1
    low, middle, high = sorted(one if ahead else 1 / one for one in _ends(ratios))
    if best.startswith("bare"):
        return f"{middle:.2f}x {'better' if ahead else 'worse'} than {best} ({low:.2f}–{high:.2f})"
    if low < 1:
        return f"level with {best}, {'ahead' if ahead else 'behind'} {middle:.2f}x ({low:.2f}–{high:.2f})"
    return f"{f'ahead of {best}' if ahead else f'**behind {best}** by'} {middle:.2f}x ({low:.2f}–{high:.2f})"


def _why(row: str, what: str) -> str:
    is_of_clock = row == "serve" and what.startswith(("p50", "p99", "queries"))
    return WHY.get((row, what), _OTHER_WORK if is_of_clock else "not looked into yet")


def _ends(ratios: Sequence[float]) -> tuple[float, float, float]:
    return min(ratios), statistics.median(ratios), max(ratios)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "peers")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--room", type=float, default=6.0, help="gigabytes that galleries may take")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each number of clients")
    parser.add_argument("--kept", type=Path, default=KEPT)
    parser.add_argument("--report", type=Path, default=REPORT)
    for flag in ("again", "page", "keep"):
        parser.add_argument(f"--{flag}", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
