"""Measures which near-copies intake finds and what it merges wrongly; writes docs/results/near-copies.md.

    python benchmarks/near_copies.py --data ../shared/data

Every picture of a collection is another thing, so whatever is merged within one is looked at by a person: the
report names it. Copies are made of a part of each collection in fifteen ways.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance

from ingest.images import decode, thumbnail
from ingest.limits import Limits
from ingest.same_picture import Detail, detail_of, same_picture
from ingest.samples.scenes import all_scenes, draw
from ingest.sketch import SKETCH_BYTES, as_rows, likely, sketch_of

REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "near-copies.md"
LOOKED_AT = 4
COPIED = 150  # pictures of a collection that copies are made of
NAMED = 30

Named = tuple[str, Image.Image]


def encoded(image: Image.Image, format: str, quality: int, scale: float = 1.0) -> Image.Image:
    """Scales, encodes and decodes a picture."""
    size = (round(image.width * scale), round(image.height * scale))
    data = io.BytesIO()
    image.resize(size, Image.Resampling.BICUBIC).save(data, format, quality=quality)
    return Image.open(data).convert("RGB")


def cropped(image: Image.Image, share: float) -> Image.Image:
    """Cuts half of a share off each side."""
    x, y = max(1, round(image.width * share / 2)), max(1, round(image.height * share / 2))
    return image.crop((x, y, image.width - x, image.height - y))


def tinted(image: Image.Image) -> Image.Image:
    """Multiplies red by 1.06 and blue by 0.92."""
    bands = zip(image.split(), (1.06, 1.0, 0.92), strict=True)
    return Image.merge(
        "RGB", [band.point([min(255, round(v * by)) for v in range(256)]) for band, by in bands]
    )


CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "JPEG 95": lambda image: encoded(image, "JPEG", 95),
    "JPEG 60": lambda image: encoded(image, "JPEG", 60),
    "JPEG 40": lambda image: encoded(image, "JPEG", 40),
    "WebP 50": lambda image: encoded(image, "WEBP", 50),
    "75 %, JPEG 40": lambda image: encoded(image, "JPEG", 40, 0.75),
    "50 %, PNG": lambda image: encoded(image, "PNG", 0, 0.5),
    "50 %, JPEG 60": lambda image: encoded(image, "JPEG", 60, 0.5),
    "crop 2 %": lambda image: cropped(image, 0.02),
    "crop 2 % of one side": lambda image: image.crop((max(1, round(image.width * 0.02)), 0, *image.size)),
    "crop 4 %, JPEG 60": lambda image: encoded(cropped(image, 0.04), "JPEG", 60),
    "12 % brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.12),
    "12 % darker": lambda image: ImageEnhance.Brightness(image).enhance(0.88),
    "15 % more contrast": lambda image: ImageEnhance.Contrast(image).enhance(1.15),
    "20 % paler": lambda image: ImageEnhance.Color(image).enhance(0.8),
    "warmer": tinted,
}


def main() -> None:
    """Measures all collections and writes the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True, help="the evaluation data")
    parser.add_argument("--limit", type=int, help="only so many pictures of a collection, to try things out")
    parser.add_argument("--report", type=Path, default=REPORT)
    arguments = parser.parse_args()
    collections: dict[str, Iterator[Named]] = {
        **{
            f"emoji, {style}": _files(arguments.data / "emoji" / style)
            for style in ("noto", "fluent3d", "line")
        },
        "photographs": _files(arguments.data / "flickr8k" / "images"),
        "drawn scenes": _scenes(),
    }
    found = {}
    for name, pictures in collections.items():
        kept = [
            picture for number, picture in enumerate(pictures) if number < (arguments.limit or number + 1)
        ]
        found[name] = _measured(kept)
        print(name, found[name][:-1], flush=True)
    arguments.report.write_text(_report(found, _matching_seconds()), encoding="utf-8")


Found = tuple[int, list[str], dict[str, float], dict[str, float]]
"""Pictures, names of the merged ones, times in ms, and the share of copies that are found by change."""


def _measured(pictures: list[Named]) -> Found:
    images = [image for _, image in pictures]
    started = time.perf_counter()
    sketches = [sketch_of(image) for image in images]
    times = {"sketch": 1000 * (time.perf_counter() - started) / len(images)}
    told = [n for n, sketch in enumerate(sketches) if sketch]
    rows = as_rows([sketches[n] for n in told])
    details: dict[int, Detail] = {}

    def detail(number: int) -> Detail:
        if number not in details:
            details[number] = _detail(images[number])
        return details[number]

    started = time.perf_counter()
    pairs = {(min(a, b), max(a, b)) for a, b in likely(rows, rows, LOOKED_AT + 1) if a != b}
    merged = [pair for pair in sorted(pairs) if same_picture(detail(told[pair[0]]), detail(told[pair[1]]))]
    times["compare"] = 1000 * (time.perf_counter() - started) / len(images)
    chosen = range(0, len(images), max(1, len(images) // COPIED))
    shares = {
        change: float(
            np.mean([_is_found(images[n], make(images[n]), sketches[n], detail(n)) for n in chosen])
        )
        for change, make in CHANGES.items()
    }
    names = [f"{pictures[told[a]][0]} = {pictures[told[b]][0]}" for a, b in merged]
    return len(images), names, times, shares


def _is_found(image: Image.Image, copy: Image.Image, sketch: bytes, detail: Detail) -> bool:
    other = sketch_of(copy)
    if not sketch or not other or not likely(as_rows([other]), as_rows([sketch]), 1):
        return False
    return same_picture(detail, _detail(copy))


def _detail(image: Image.Image) -> Detail:
    with Image.open(io.BytesIO(thumbnail(image))) as small:
        return detail_of(small.convert("RGB"))


def _matching_seconds() -> float:
    """Returns how long 3,000 sketches take among 100,000 random ones."""
    rng = np.random.default_rng(0)
    rows = rng.normal(0, 0.5, (103_000, SKETCH_BYTES)).astype(np.float32)
    started = time.perf_counter()
    likely(rows[:3000], rows[3000:], LOOKED_AT)
    return time.perf_counter() - started


def _files(folder: Path) -> Iterator[Named]:
    for path in sorted(folder.iterdir()):
        yield path.stem, decode(path.read_bytes(), Limits(allow_flat=True)).image


def _scenes() -> Iterator[Named]:
    scenes = list(all_scenes())
    for offset, style in enumerate(("flat", "gouache", "ink")):
        for number, scene in enumerate(scenes[offset::12]):
            yield f"{scene.identity} {style}", draw(scene, style, size=256, seed=number)


def _report(found: dict[str, Found], matching: float) -> str:
    lines = [
        "# Near-copies",
        "",
        "Written by `python benchmarks/near_copies.py --data ../shared/data`. Every picture of a collection is drawn",
        "or taken by itself; what is merged within one is named below. Times are a picture's, on a machine with other",
        "work; *compare* is looking up and laying over each other within the collection.",
        "",
        "| collection | pictures | pairs merged | sketch ms | compare ms |",
        "|---|---|---|---|---|",
    ]
    for name, (count, merged, times, _) in found.items():
        lines.append(
            f"| {name} | {count:,} | {len(merged)} | {times['sketch']:.2f} | {times['compare']:.2f} |"
        )
    lines += [
        "",
        f"3,000 sketches among 100,000 others: {matching:.1f} s.",
        "",
        "## Copies found, in percent",
        "",
    ]
    lines += [f"| change | {' | '.join(found)} |", "|---|" + "---|" * len(found)]
    for change in CHANGES:
        lines.append(
            f"| {change} | {' | '.join(f'{100 * shares[change]:.0f}' for *_, shares in found.values())} |"
        )
    lines += ["", "## Merged within a collection", ""]
    for name, (_, merged, _, _) in found.items():
        more = f" and {len(merged) - NAMED} more" if len(merged) > NAMED else ""
        lines.append(f"- {name}: {', '.join(merged[:NAMED]) or 'none'}{more}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
