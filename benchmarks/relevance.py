"""Measures what relevance says of what is in a gallery and of what is not; writes docs/results/relevance.md.

    python benchmarks/photographs.py --data ../shared/data --work WORK --seeds 0     # makes WORK/homes/template
    python benchmarks/relevance.py --data ../shared/data --work WORK

The home is that of the photograph benchmark with its English captions alone, taught by the product. All queries go
through the product's levels; nothing here decides what is strong, weak or nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from photographs_runs import ENGLISH
from real_input import machine, say
from real_input_data import emoji_rows, emoji_splits, read_tsv
from real_input_figures import table_of
from real_input_runs import Bench, add, run_update

from app.desk.hits import Relevance
from app.desk.jobs import UpdateRequest
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.standing import withdraw
from app.query.gauges import Gauges
from app.query.relevance import Calibration
from app.query.snapshot import Snapshot
from ingest.pair import Split
from model_updates.features import text_features
from model_updates.search_encoder import unit

REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "relevance.md"
NAMED = ("en", "de", "fr", "ja", "zh", "ru", "ar", "tr", "hi", "cs", "uk")
CAPTIONED = ("en", "de", "fr", "pt", "ar", "hi", "cs", "uk")
THINGS = {"Animals & Nature", "Food & Drink", "Travel & Places", "Activities", "Objects"}
OFTEN = 8  # pictures with a caption that names a thing
MOST = 400
STYLE, DRAWN = "line", 400  # a second domain, and how many of its names are taught
NOUNS = (
    "boat",
    "horse",
    "bicycle",
    "bike",
    "snow",
    "beach",
    "guitar",
    "car",
    "motorcycle",
    "ball",
    "camera",
    "kayak",
    "skateboard",
    "pool",
    "surfboard",
    "rope",
    "umbrella",
    "train",
    "mountain",
    "soccer",
    "hockey",
    "helmet",
    "sand",
    "tennis",
    "football",
    "swing",
    "slide",
    "cat",
    "bird",
    "cow",
    "sheep",
    "fish",
)

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """Queries as they are read: how near captions and pictures are, and what the best picture is worth."""

    near: Scores  # (n,) above what is nothing
    cosine: Scores  # (n,) of the best picture, or of the right one
    worth: list[Relevance]  # (n) of that picture

    def share(self, level: Relevance) -> str:
        """Returns how many in a hundred are worth so much."""
        return f"{100 * self.worth.count(level) / max(1, len(self.worth)):.0f}"


class World:
    """A home with photographs, and the words of all their English captions."""

    def __init__(self, workspace: Workspace, data: Path) -> None:
        self.workspace, self.snapshot = workspace, Snapshot.load(workspace)
        self.calibration = Calibration(workspace)
        self.ids = [i for i in self.snapshot.generation.ids if i not in self.snapshot.hidden]
        self.pictures = self.snapshot.generation.vectors(self.ids)
        self.place = {image_id: n for n, image_id in enumerate(self.ids)}
        self.words: dict[str, set[str]] = {}
        self.captions = [
            one for one in workspace.catalog.pairs(language=ENGLISH) if one.image_id in self.place
        ]
        for pair in self.captions:
            self.words.setdefault(pair.image_id, set()).update(_words(pair.text))
        self.data = data

    def vectors(self, texts: Sequence[str], language: str) -> NDArray[np.float32]:
        """Returns (n, dim) unit rows."""
        return unit(text_features(self.snapshot.encoder, texts, language, self.workspace.features))

    def asked(
        self,
        texts: Sequence[str],
        language: str,
        *,
        right: Sequence[str] | None = None,
        without: str = "",
    ) -> Asked:
        """Asks texts, of the whole gallery or without what captions name so; `right` are the pictures that count."""
        gauge, pictures = self.gauge(language, without)
        if without:
            pictures = pictures[[without not in self.words.get(i, ()) for i in self.ids]]
        rows = self.vectors(texts, language)
        levels = [gauge.levels(text, row) for text, row in zip(texts, rows, strict=True)]
        cosines = rows @ pictures.T
        best = cosines.max(axis=1)
        if right is not None:
            best = cosines[np.arange(len(rows)), [self.place[i] for i in right]]
        near = np.array([_nearness(gauge, text, row) for text, row in zip(texts, rows, strict=True)])
        worth = [level.of(float(cosine)) for level, cosine in zip(levels, best, strict=True)]
        return Asked(near, best.astype(np.float64), worth)

    def gauge(self, language: str, without: str = "") -> tuple[Gauges, NDArray[np.float32]]:
        """Returns what is known of a language, without the captions of pictures that a word names, and the pictures."""
        gauges = self.calibration.gauge(self.snapshot, language)
        if gauges is None:
            raise SystemExit(f"Relevance is not known in {language}: the home has too few held-out captions.")
        if not without:
            return gauges, self.pictures
        said = sorted({p.text for p in self.captions if without in self.words[p.image_id]})
        gone = self.vectors(said, ENGLISH).astype(np.float16).astype(np.float32)
        found = []
        for one in gauges.each:
            kept = [(block @ gone.T).max(axis=1) < 0.9995 for block in np.array_split(one.known, 8)]
            found.append(replace(one, known=one.known[np.concatenate(kept)]))
        return Gauges(tuple(found)), self.pictures


def _nearness(gauges: Gauges, text: str, row: NDArray[np.float32]) -> float:
    """Returns how far a query's captions are above what is nothing, in the domain that has most to say to it.

    1 where they are as near as those of three in four.
    """
    found: list[float] = []
    for one in gauges.each:
        few, much = one.scale(text)[:2]
        found.append((float(one.near(row[None])[0]) - few) / max(much - few, 1e-6))
    return max(found)


def main() -> None:
    """Makes the home, measures and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the evaluation data")
    parser.add_argument("--work", type=Path, required=True, help="work folder of the photograph benchmark")
    parser.add_argument("--report", type=Path, default=REPORT)
    arguments = parser.parse_args()
    settings = load_settings(home=arguments.work / "homes" / "relevance")
    if not settings.home.exists():
        _prepare(arguments.work / "homes" / "template", settings.home)
    with Workspace.open(settings) as workspace:
        world = World(workspace, arguments.data)
        started = time.monotonic()
        world.calibration.prepare(world.snapshot)
        report = _report(world, time.monotonic() - started)
    report += f"\n{_two_domains(settings, Bench(arguments.data, arguments.work, None, 0, say))}"
    arguments.report.write_text(report, encoding="utf-8")


def _prepare(template: Path, home: Path) -> None:
    shutil.copytree(template, home)
    with Workspace.open(load_settings(home=home)) as workspace:
        for chunk in workspace.catalog.chunks()[1:]:
            if chunk.name != ENGLISH:
                withdraw(workspace, chunk.id, why="photographs alone", by="benchmark")
        _taught(workspace, next(one.id for one in workspace.catalog.chunks() if one.name == ENGLISH))


def _taught(workspace: Workspace, chunk: str) -> None:
    outcome = run_update(workspace, UpdateRequest(chunk=chunk, seed=0, by="benchmark"))
    say(outcome.sentence)
    if outcome.release is not None and outcome.commit is None:
        going_live.promote(workspace, outcome.release, why="benchmark", by="benchmark", force=True)


def _two_domains(known: Settings, bench: Bench) -> str:
    """Photographs and names of drawn things, both taught, in one gallery."""
    settings = known.model_copy(update={"home": known.home.with_name("relevance-two")})
    rows = emoji_rows(bench.data, emoji_splits(bench.data, DRAWN), ENGLISH, (STYLE,))
    if not settings.home.exists():
        shutil.copytree(known.home, settings.home)
        with Workspace.open(settings) as workspace:
            _taught(workspace, add(bench, workspace, STYLE, rows))
    with Workspace.open(settings) as workspace:
        world = World(workspace, bench.data)
        drawn = {pair.text: pair for pair in world.captions if pair.domain == STYLE}
        photographs = [pair for pair in world.captions if pair.domain != STYLE and pair.split is Split.TEST]
        words = {word for pair in world.captions for word in _words(pair.text)}
        spoken = {word for pair in photographs for word in _words(pair.text)}
        names = [
            row["name"] for row in read_tsv(bench.data / "emoji" / "names.tsv") if row["lang"] == ENGLISH
        ]
        single = [name for name in names if len(_words(name)) == 1]
        gone = world.asked([one for one in single if not {one.lower(), f"{one.lower()}s"} & words], ENGLISH)
        asked = {
            "captions of photographs": photographs,
            f"names of {STYLE} that were taught": [p for p in drawn.values() if p.split is Split.TRAIN],
            f"held-out names of {STYLE}": [p for p in drawn.values() if p.split is Split.TEST],
        }
        found = {
            what: world.asked([p.text for p in some][:MOST], ENGLISH, right=[p.image_id for p in some][:MOST])
            for what, some in asked.items()
        }
        shown = [one for one in single if one.lower() in spoken and one not in drawn]
        found["names of things in test photographs"] = world.asked(shown, ENGLISH)
        table = [
            [what, str(len(one.worth)), f"{100 * auc(one.near, gone.near):.0f}", *map(one.share, Relevance)]
            for what, one in found.items()
        ]
        table.append(
            [
                "names of what is in neither",
                str(len(gone.worth)),
                "",
                *(gone.share(level) for level in Relevance),
            ]
        )
    header = ["query", "number", "AUC against what is in neither", *(str(level) for level in Relevance)]
    return (
        "## Two domains in one gallery\n\n"
        f"Then {DRAWN} names of one emoji style (`{STYLE}`) were taught beside the photographs. What a query's own\n"
        "picture is worth, or its best one where names are asked; English. In a hundred:\n\n"
        + table_of(header, table)
    )


def _report(world: World, seconds: float) -> str:
    known = sum(len(one.known) for one in world.gauge(ENGLISH)[0].each)
    return (
        "# Relevance: what is there, and what is not\n\n"
        "Written by `python benchmarks/relevance.py --data ../shared/data --work WORK`.\n"
        f"{machine(1)}. flickr8k is for research only.\n\n"
        f"{len(world.ids):,} photographs, of which English captions were taught; no other language was.\n"
        f"Measuring all learned languages took {seconds:.1f} s; {known:,} captions are compared with.\n"
        "AUC: how often a query for what is there scores above one for what is not, in a hundred; 50 is chance.\n\n"
        f"{_names(world)}\n{_captions(world)}\n{_taken_away(world)}"
    )


def _names(world: World) -> str:
    """Short queries: names of things that captions of the photographs mention, and of things that none does."""
    groups = {row["key"]: row["group"] for row in read_tsv(world.data / "emoji" / "concepts.tsv")}
    names: dict[str, dict[str, str]] = {}
    for row in read_tsv(world.data / "emoji" / "names.tsv"):
        names.setdefault(row["lang"], {})[row["key"]] = row["name"]
    counts = Counter(word for words in world.words.values() for word in words)
    single = {
        key: _words(name)[0]
        for key, name in names[ENGLISH].items()
        if groups[key] in THINGS and len(_words(name)) == 1
    }
    seen = {key: max(counts[word], counts[f"{word}s"]) for key, word in single.items()}
    there, gone = [k for k, n in seen.items() if n >= OFTEN], [k for k, n in seen.items() if n == 0]
    rows = []
    for language in NAMED:
        present, absent = (
            world.asked([names[language][k] for k in keys if k in names[language]], language)
            for keys in (there, gone)
        )
        rows.append([language, *_figures(present, absent)])
    return (
        "## Names of things\n\n"
        f"{len(there)} things that captions of at least {OFTEN} photographs name in one word, and {len(gone)} that\n"
        "none does, by the names that people gave them in each language (Unicode CLDR). In a hundred:\n\n"
        + table_of(["language", *_HEADER], rows)
    )


def _captions(world: World) -> str:
    """Whole captions of the test photographs, and what their own picture is worth."""
    rows = []
    ids = _ids(world)
    for language in CAPTIONED:
        found = [
            (row["text"], ids[row["image"]])
            for row in read_tsv(world.data / "flickr8k" / "captions.tsv")
            if row["split"] == "test" and row["lang"] == language and row["image"] in ids
        ][:MOST]
        texts, right = [text for text, _ in found], [image for _, image in found]
        own, best = world.asked(texts, language, right=right), world.asked(texts, language)
        rows.append([language, *(own.share(level) for level in Relevance), best.share(Relevance.NOTHING)])
    header = ["language", *(f"own picture {level}" for level in Relevance), "best picture nothing"]
    return "## Captions of photographs that are there\n\nIn a hundred:\n\n" + table_of(header, rows)


def _taken_away(world: World) -> str:
    """Captions that name a thing, before and after all photographs and captions that name it were taken away."""
    pairs = [
        pair for pair in world.captions if pair.split is not Split.TRAIN and pair.image_id in world.place
    ]
    before, after = [], []
    for noun in NOUNS:
        texts = [pair.text for pair in pairs if noun in _words(pair.text)][:40]
        if texts:
            before.append(world.asked(texts, ENGLISH))
            after.append(world.asked(texts, ENGLISH, without=noun))
    rows = [["captions", *_figures(_together(before), _together(after))]]
    words = [(world.asked([noun], ENGLISH), world.asked([noun], ENGLISH, without=noun)) for noun in NOUNS]
    rows.append(
        ["the word alone", *_figures(_together([a for a, _ in words]), _together([b for _, b in words]))]
    )
    return (
        "## Things that were taken away\n\n"
        f"{sum(len(one.worth) for one in before):,} held-out captions that name one of {len(NOUNS)} things, and its\n"
        "name alone; then all photographs of which a caption names it are taken away, with their captions. Much\n"
        "that such a caption says is still there, and so are things much like it. Where only the caption's own\n"
        "photograph is taken away, neither tells it: another one stands in its place. In a hundred:\n\n"
        + table_of(["query", *_HEADER], rows)
    )


_HEADER = [
    "AUC by nearest captions",
    "AUC by best cosine",
    *(f"there: {level}" for level in Relevance),
    *(f"not there: {level}" for level in Relevance),
]


def _figures(present: Asked, absent: Asked) -> list[str]:
    return [
        f"{100 * auc(present.near, absent.near):.0f}",
        f"{100 * auc(present.cosine, absent.cosine):.0f}",
        *(one.share(level) for one in (present, absent) for level in Relevance),
    ]


def _together(some: Sequence[Asked]) -> Asked:
    return Asked(
        np.concatenate([one.near for one in some]),
        np.concatenate([one.cosine for one in some]),
        [worth for one in some for worth in one.worth],
    )


def _ids(world: World) -> dict[str, str]:
    """Returns by file name the ids of the test photographs in the gallery."""
    rows = read_tsv(world.data / "flickr8k" / "captions.tsv")
    names = sorted({row["image"] for row in rows if row["split"] == "test"})
    folder = world.data / "flickr8k" / "images"
    ids = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    return {name: image_id for name, image_id in ids.items() if image_id in world.place}


def auc(high: Scores, low: Scores) -> float:
    """Returns how often a value of `high` is above one of `low`, equal ones counted half."""
    above = (high[:, None] > low[None]).mean() + 0.5 * (high[:, None] == low[None]).mean()
    return float(above)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


if __name__ == "__main__":
    main()
