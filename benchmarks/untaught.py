"""Measures what pictures that nobody taught take from what is known, and writes docs/results/untaught.md.

    python benchmarks/untaught.py --data ../shared/data

Five domains: photographs and four styles of emoji, of which one is drawn here from another (its outlines, filled). Each
line is a home of its own, through the product: `initialise`, `add_chunk`, `update` with the default strategy under the
default gate, in one order of the domains. After each step captions that were never uploaded, and names that were held
out, look for their pictures among all of the measured domains, once without the pictures of untaught domains and once
with them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from real_input import machine, say
from real_input_data import UploadRow, emoji_rows, emoji_splits, photo_rows, read_tsv, write_upload
from real_input_figures import table_of
from real_input_runs import Bench, live_encoder, run_update

from app.desk.jobs import UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import adding, beginning, going_live
from ingest.intake import IntakeOptions
from model_updates.evaluation import caption_ranks
from model_updates.features import text_features, trunk_features
from model_updates.gate.report import Policy
from model_updates.search_encoder import unit

REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "untaught.md"
PHOTO, SHAPES = "photo", "shapes"
STYLES = ("noto", "fluent3d", "line", SHAPES)
LANGUAGES = {PHOTO: ("en", "de", "fr", "hi", "cs"), "fluent3d": ("en", "de", "hi")}
ADD, TEACH, UNSTATED = "add", "teach", "add unstated"
# What is done in each line, in order.
LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "photographs taught, styles come": ((TEACH, PHOTO), *((ADD, one) for one in STYLES)),
    "the other way round": ((TEACH, PHOTO), *((ADD, one) for one in reversed(STYLES))),
    "styles first": (*((ADD, one) for one in STYLES), (TEACH, PHOTO)),
    "two taught, styles come": ((TEACH, PHOTO), (TEACH, "fluent3d"), (ADD, SHAPES), (ADD, "line"), (ADD, "noto")),
    "nothing stated": ((TEACH, PHOTO), (UNSTATED, "fluent3d")),
}  # fmt: skip

Values = dict[str, Any]


@dataclass(frozen=True)
class Data:
    """What is uploaded and what measures."""

    rows: Mapping[str, list[UploadRow]]  # by domain
    asked: Mapping[tuple[str, str], list[tuple[str, str]]]  # (picture's id, text) by domain and language


def prepared(data: Path, work: Path, photos: int, names: int | None) -> Data:
    """Reads the data, and draws the fifth domain into the work folder."""
    splits = emoji_splits(data, names)
    rows = {PHOTO: photo_rows(data, "en", photos=photos)}
    rows |= {style: emoji_rows(data, splits, "en", (style,)) for style in STYLES if style != SHAPES}
    rows[SHAPES] = [_filled(row, work / SHAPES) for row in rows["fluent3d"]]
    asked: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for line in read_tsv(data / "flickr8k" / "captions.tsv"):
        if line["split"] == "test" and line["lang"] in LANGUAGES[PHOTO]:
            picture = _id(data / "flickr8k" / "images" / line["image"])
            asked.setdefault((PHOTO, line["lang"]), []).append((picture, line["text"]))
    for language in LANGUAGES["fluent3d"]:
        for row in emoji_rows(data, splits, language, ("fluent3d",)):
            if row.split == "test":
                asked.setdefault(("fluent3d", language), []).append((_id(row.picture), row.caption))
    return Data(rows, asked)


def _filled(row: UploadRow, folder: Path) -> UploadRow:
    """Draws the outline of a picture, filled with black."""
    folder.mkdir(parents=True, exist_ok=True)
    to = folder / f"{row.picture.stem}.png"
    if not to.exists():
        with Image.open(row.picture) as picture:
            opaque = picture.convert("RGBA")
        white = Image.new("RGBA", opaque.size, "white")
        white.alpha_composite(opaque)
        white.convert("L").point(lambda value: 0 if value < 235 else 255).save(to)
    return replace(row, picture=to, domain=SHAPES)


def _id(picture: Path) -> str:
    return hashlib.sha256(picture.read_bytes()).hexdigest()


def template(settings: Settings, data: Data, work: Path) -> None:
    """Makes a home that has seen every picture and holds none: the image tower works once for all lines."""
    if settings.home.exists():
        return
    beginning.initialise(settings, model="perennial-photo")
    pictures = {_id(row.picture): row.picture for rows in data.rows.values() for row in rows}
    with Workspace.open(settings) as workspace:
        encoder = live_encoder(workspace)

        def load(image_id: str) -> Image.Image:
            with Image.open(pictures[image_id]) as picture:
                white = Image.new("RGBA", picture.size, "white")
                white.alpha_composite(picture.convert("RGBA"))
            return white.convert("RGB")

        trunk_features(encoder, sorted(pictures), load, workspace.features)


def walked(name: str, first: Settings, data: Data, bench: Bench) -> list[Values]:
    """Walks one line on a copy of the template, and measures after each step that follows the first lesson."""
    settings = first.model_copy(
        update={"home": bench.work / "homes" / name.replace(" ", "-").replace(",", "")}
    )
    shutil.rmtree(settings.home, ignore_errors=True)
    shutil.copytree(first.home, settings.home)
    taught: list[str] = []
    steps: list[Values] = []
    with Workspace.open(settings) as workspace:
        for what, domain in LINES[name]:
            started = time.monotonic()
            chunk = _added(bench, workspace, domain, data.rows[domain], stated=what != UNSTATED)
            values: Values = {"what": what, "domain": domain, "seconds": time.monotonic() - started}
            values["said"] = [f["sentence"] for f in workspace.catalog.chunk(chunk).report.get("findings", ())
                              if f["check"] in {"untaught_pictures", "opened_domain"}]  # fmt: skip
            values["domains"] = workspace.catalog.chunk(chunk).domains
            if what == TEACH:
                outcome = run_update(workspace, UpdateRequest(chunk=chunk, by="benchmark"))
                values["verdict"] = outcome.verdict
                if outcome.release is not None and outcome.commit is None:
                    going_live.promote(
                        workspace, outcome.release, why="benchmark", by="benchmark", force=True
                    )
                taught.append(domain)
            if taught:
                values["slices"] = measured(workspace, data, taught)
            steps.append(values)
            bench.say(f"{name}: {what} {domain}: {json.dumps(values, ensure_ascii=False)}")
    return steps


def _added(bench: Bench, workspace: Workspace, name: str, rows: Sequence[UploadRow], *, stated: bool) -> str:
    folder = bench.work / "uploads" / name
    shutil.rmtree(folder, ignore_errors=True)
    upload = write_upload(folder, rows if stated else [replace(row, domain="general") for row in rows])
    if not stated:
        table = upload / "captions.csv"
        table.write_text(table.read_text(encoding="utf-8").replace(",en,general,", ",en,,"), encoding="utf-8")
    return adding.add_chunk(workspace, upload, IntakeOptions(name=name), by="benchmark").report.chunk_id


def measured(workspace: Workspace, data: Data, taught: Sequence[str]) -> Values:
    """Returns for each slice of taught domains R(1, 5, 10) and R@10 without the untaught pictures and with them."""
    _, record = going_live.live_release(workspace)
    generation = workspace.open_generation(record.generation)
    encoder = workspace.open_encoder(record.version)
    records = workspace.catalog.images(generation.ids)
    photos = {picture for picture, _ in data.asked[PHOTO, "en"]}
    known = [
        i
        for i in generation.ids
        if records[i].domain in taught and (i in photos or records[i].domain != PHOTO)
    ]
    new = [i for i in generation.ids if records[i].domain not in taught]
    place = {image_id: n for n, image_id in enumerate(known)}
    alone, mixed = generation.vectors(known), generation.vectors([*known, *new])
    values: Values = {"routes": sorted({generation.routes.get(i, "") for i in new})}
    for (domain, language), captions in data.asked.items():
        if domain not in taught:
            continue
        own = np.asarray([place[picture] for picture, _ in captions])
        queries = unit(text_features(encoder, [text for _, text in captions], language, workspace.features))
        ranks = [caption_ranks(queries @ rows.T, own, tolerance=1e-6) for rows in (alone, mixed)]
        values[f"{domain}/{language}"] = [_recalls(one) for one in ranks]
    return values


def _recalls(ranks: Any) -> list[float]:
    return [round(float(100 * np.mean([ranks < k for k in depths])), 2) for depths in ((1, 5, 10), (10,))]


def report(lines: Mapping[str, list[Values]], facts: Values) -> str:
    """Writes what was found: per line and step the most that a slice lost, and each slice."""
    out = [
        "# Pictures that nobody taught\n",
        f"Written by `python benchmarks/untaught.py --data ../shared/data{facts.get('options', '')}`; "
        f"{facts['machine']}, {facts['date']}.",
        f"{(__doc__ or '').split(chr(10) * 2)[2]}\n",
        "Each figure is without → with the untaught pictures; R is the mean of R@1, R@5 and R@10, in percent. "
        "Captions in German, French, Hindi and Czech, and the names, are never uploaded in these languages.\n",
    ]
    for name, steps in lines.items():
        slices = list(
            dict.fromkeys(key for step in steps for key in step.get("slices", ()) if key != "routes")
        )
        rows = []
        for step in steps:
            found = step.get("slices", {})
            told = [
                f"{found[key][0][0]:.1f} → {found[key][1][0]:.1f}" if key in found else "" for key in slices
            ]
            losses = [found[key][0][0] - found[key][1][0] for key in slices if key in found]
            routes = ", ".join(f"`{route or 'base'}`" for route in found.get("routes", ())) or "–"
            doing = f"{step['what']} {step['domain']}"
            rows.append(
                [doing, step.get("verdict", ""), routes, *told, f"{max(losses):.1f}" if losses else ""]
            )
        header = ["step", "verdict", "untaught read", *(f"R {key}" for key in slices), "most lost"]
        out += [f"## {name[0].upper()}{name[1:]}\n", table_of(header, rows)]
        out += [f"- {step['domain']}: {said}" for step in steps for said in step["said"]] + [""]
    return "\n".join(out).rstrip() + "\n"


def main() -> None:
    """Walks the lines that are not walked yet and writes the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required="--report-only" not in sys.argv)
    parser.add_argument("--work", type=Path, default=Path("untaught-work"), help="homes and finished lines")
    parser.add_argument("--photos", type=int, default=1500, help="training photographs")
    parser.add_argument("--names", type=int, help="only so many names of a style, to try things out")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--lines", nargs="*", default=list(LINES), help="those to walk")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--report-only", action="store_true", help="write the report from the finished lines")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    results = asked.work / "results"
    results.mkdir(parents=True, exist_ok=True)
    if not asked.report_only:
        bench = Bench(asked.data, asked.work, None, asked.photos, say)
        first = Settings(home=asked.work / "homes" / "template", device="cpu", gate=Policy())
        data = prepared(asked.data, asked.work, asked.photos, asked.names)
        template(first, data, asked.work)
        options = f" --photos {asked.photos}" + (f" --names {asked.names}" if asked.names else "")
        facts = {
            "machine": machine(asked.threads),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "options": options,
        }
        for name in asked.lines:
            path = results / f"{name}.json"
            if not path.exists():
                found = facts | {"steps": walked(name, first, data, bench)}
                path.write_text(json.dumps(found, ensure_ascii=False, indent=1), encoding="utf-8")
    done = {name: json.loads(path.read_text(encoding="utf-8")) for name in LINES
            if (path := results / f"{name}.json").exists()}  # fmt: skip
    if done:
        facts = next(iter(done.values()))
        asked.report.write_text(report({n: one["steps"] for n, one in done.items()}, facts), encoding="utf-8")


if __name__ == "__main__":
    main()
