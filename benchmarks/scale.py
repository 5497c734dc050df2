"""Measures a catalog in a file and in PostgreSQL as it grows, and engines for vectors; writes docs/results/scale.md.

    python benchmarks/scale.py [--most 100000]

`make scale-test` runs it last. The pictures are rows alone, each with a caption of drawn words.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import scale_embedding
import scale_engines
import scale_training
from speed import machine
from speed_timing import ROOT, timed

from ingest.carrying import carry
from ingest.catalog import Catalog
from ingest.engines import Place, open_engine, writing
from ingest.pair import Split
from ingest.postgres import look_at_tables
from ingest.records import NewChunk, NewImage
from tests.postgres_server import schema_for

REPORT = ROOT / "docs" / "results" / "scale.md"
INTRODUCTION = """# More than one machine, measured

Written by `make scale-test`; do not edit. A catalog in a file (SQLite) and in a database (PostgreSQL on the same
machine, over a socket), with one caption a picture. Times in milliseconds, the middle of {turns}, each with the slope
at which it grows from the last size but one to the last (0: not at all, 1: with the pictures). Last, engines that
hold vectors, and embedding and training by several processes.
"""
TURNS, AT_ONCE, PAGE = 9, 10_000, 24
_WORDS = [
    f"{a}{b}"
    for a in ("ka", "lo", "mi", "re", "su", "ta", "vo", "ze")
    for b in ("bar", "den", "fin", "gol", "hus")
]


def chunk(number: int, size: int) -> NewChunk:
    """Returns a chunk of drawn rows; every second caption has the word `often`, one in a thousand `seldom`."""
    draw = random.Random(number)
    ids = [hashlib.sha256(f"{number} {n}".encode()).hexdigest() for n in range(size)]
    pictures = [NewImage(one, f"domain-{n % 7}", Split.TRAIN, 640, 480, "JPEG") for n, one in enumerate(ids)]
    texts = (
        " ".join([*draw.choices(_WORDS, k=8), *["often"] * (n % 2), *["seldom"] * (n % 1000 == 0)])
        for n in range(size)
    )
    captions = [(one, "en", text) for one, text in zip(ids, texts, strict=True)]
    return NewChunk(
        hashlib.sha256(str(number).encode()).hexdigest()[:12], f"chunk {number}", True, pictures, captions
    )


def asked(catalog: Catalog) -> dict[str, Callable[[], object]]:
    """Returns what is measured, by what it is called."""
    ids = catalog.gallery_ids()[-PAGE:]
    turn = iter(range(10**6))
    return {
        "a page of hits": lambda: catalog.shown(ids, languages=["en"], captions=2),
        "captions with a rare word": lambda: catalog.find_captions("seldom"),
        "captions like a text with a common word": lambda: catalog.captioned_like("kabar often", limit=80),
        "ids of a domain": lambda: catalog.ids_where(domains=["domain-3"]),
        "a write": lambda: catalog.set_pin(f"query {next(turn)}", "en", ids[0]),
    }


def grown(places: dict[str, Place], sizes: list[int]) -> Iterator[tuple[str, str, list[float]]]:
    """Yields what was measured, where, and its milliseconds at each size."""
    open_catalogs = {
        name: Catalog(open_engine(place, read_only=False), place) for name, place in places.items()
    }
    found: dict[tuple[str, str], list[float]] = {}
    have = 0
    for size in sizes:
        for start in range(have, size, AT_ONCE):
            rows = chunk(start, min(AT_ONCE, size - start))
            for name, catalog in open_catalogs.items():
                took = timed(partial(catalog.record_chunk, rows)) / len(rows.images) * 1000
                if start + AT_ONCE >= size:  # the last ones of a size stand for it
                    found.setdefault(("taking a picture in", name), []).append(took)
        have = size
        with writing(open_catalogs["database"]._engine) as connection:
            look_at_tables(connection)
        for name, catalog in open_catalogs.items():
            for what, call in asked(catalog).items():
                call()
                times = [timed(call) for _ in range(TURNS)]
                found.setdefault((what, name), []).append(statistics.median(times) * 1000)
    for catalog in open_catalogs.values():
        catalog.close()
    yield from ((what, where, times) for (what, where), times in sorted(found.items()))


def main() -> int:
    """Measures, and writes the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--most", type=int, default=100_000)
    sizes = [10**n for n in range(3, 7) if 10**n <= parser.parse_args().most]
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "catalog.sqlite", Path(folder) / "carried.sqlite"
        address = schema_for(folder)
        for place in (first, second):
            Catalog(open_engine(place, read_only=False), place).close()
        carry(second, address, lambda: None)
        rows = list(grown({"file": first, "database": address}, sizes))
        moved = timed(lambda: carry(first, schema_for(f"{folder} again"), lambda: None))
    lines = [
        "",
        f"| what | where | {' | '.join(f'{size:,}' for size in sizes)} | slope |",
        "| --- " * (len(sizes) + 3) + "|",
    ]
    for what, where, times in rows:
        slope = math.log10(times[-1] / times[-2])
        lines.append(f"| {what} | {where} | {' | '.join(f'{one:.2f}' for one in times)} | {slope:.2f} |")
    lines += [
        "",
        f"Carrying the catalog of {sizes[-1]:,} pictures from the file into the database takes {moved:.0f} s.",
    ]
    today = time.strftime("%Y-%m-%d", time.gmtime())
    lines += scale_engines.lines(scale_engines.measure(f"{machine(1)}, {today}"))
    with tempfile.TemporaryDirectory() as folder:
        lines += scale_embedding.lines(Path(folder) / "home")
        lines += scale_training.lines(Path(folder) / "training" / "home")
    lines += ["", f"{machine(1)}, {today}."]
    REPORT.write_text(INTRODUCTION.format(turns=TURNS) + "\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
