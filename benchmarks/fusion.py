"""What CTP's fusion encoder is good for: re-ranking a search, and multi-modal retrieval by mAP@N as in the paper.

    python benchmarks/fusion.py --work WORK [--seeds 3]

A home with `perennial-tiny` gets 1,000 drawn chalk scenes with an English caption each and is taught them by `ctp` with
`fusion=yes`, ten epochs, through the product's own update. Held-out scenes then ask twice: their captions for their
pictures, by the towers alone and with the first 50 re-ranked; and each as an item of text and picture for the items of
its subject (CTP, section 5.1), by fused features and by the mean of its two vectors. Needs no evaluation data.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from protocol_data import drawn_upload
from protocols import CELLS, say

from app.desk.jobs import UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import adding, beginning, update_cycle
from app.query.ranking import FIRST
from app.query.reranking import Reranker
from ingest.intake import IntakeOptions
from ingest.pair import Split
from model_updates.encoder import Encoder
from model_updates.features import LoadImage, image_features, text_features
from model_updates.fusion.retrieval import fusion_features, mean_features, retrieval_map
from model_updates.pairs import TrainingPair
from model_updates.search_encoder import Rows

REPORT = CELLS.parent / "fusion.md"
STYLE, EPOCHS, BATCH = "chalk", 10, 64
DEPTHS = (1, 5, 10)
ROWS = {
    "towers": "towers alone",
    "odds": f"first {FIRST} by the fusion encoder's log-odds alone",
    "both": f"first {FIRST} by scale * cosine + log-odds, as search does",
    "words": "mean of the fused words",
    "token": "the token that the matching head reads",
    "vectors": "mean of picture and text vector, no fusion",
}
HEAD = """# The fusion encoder of CTP: as a re-ranker, and by mAP@N

Written by `python benchmarks/fusion.py --work WORK`, {date}, {seeds} seeds, 2 shared CPU cores. {about}
"""


def main() -> int:
    """Teaches and measures each seed, and writes the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="where homes are made")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--report", type=Path, default=REPORT)
    asked = parser.parse_args()
    found = [measured(asked.work / f"fusion-{seed}", seed) for seed in range(asked.seeds)]
    asked.report.write_text(page(found), encoding="utf-8")
    say(str(asked.report))
    return 0


def measured(home: Path, seed: int) -> dict[str, tuple[float, ...]]:
    """Returns what one seed finds, percent: R@1 and R@5 of searches, mAP@1, 5 and 10 of items."""
    settings = Settings(home=home, device="cpu")
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        beginning.initialise(settings, model="perennial-tiny")
    with Workspace.open(settings) as workspace:
        chunk = _chunk(workspace, home)
        options = {"epochs": EPOCHS, "batch_size": BATCH, "fusion": True}
        request = UpdateRequest(chunk=chunk, strategy="ctp", options=options, seed=seed, by="benchmark")
        made = update_cycle.update(workspace, request, scratch=home / "scratch", progress=lambda _: None)
        say(f"seed {seed}: {made.seconds:.0f} s, {made.verdict}")
        encoder = workspace.open_encoder(made.version)
        pairs = workspace.catalog.pairs(chunk=chunk, split=Split.TEST)
        items = [TrainingPair(pair.image_id, pair.text, pair.language, pair.domain) for pair in pairs]
        groups = workspace.catalog.groups({item.image_id for item in items})
        subjects = [groups[item.image_id].partition("-")[0] for item in items]
        return _figures(workspace, encoder, items, subjects)


def _chunk(workspace: Workspace, home: Path) -> str:
    """Returns the id of the chunk of drawings, uploaded where the home has none."""
    named = [one.id for one in workspace.catalog.chunks() if one.name.startswith(STYLE)]
    if not named:
        source = drawn_upload(STYLE, home.parent / f"{home.name}-{STYLE}")
        named = [adding.add_chunk(workspace, source, IntakeOptions(), by="benchmark").report.chunk_id]
    return named[-1]


def _figures(
    workspace: Workspace, encoder: Encoder, items: Sequence[TrainingPair], subjects: Sequence[str]
) -> dict[str, tuple[float, ...]]:
    load, cache = workspace.load_image, workspace.features
    images = [item.image_id for item in items]
    pictures = image_features(encoder, images, load, cache)
    texts = text_features(encoder, [item.text for item in items], items[0].language, cache)
    found = _searches(encoder, items, _unit(texts) @ _unit(pictures).T, load)
    features = {
        "words": fusion_features(encoder, items, load),
        "token": fusion_features(encoder, items, load, whole=True),
        "vectors": mean_features(pictures, texts),
    }
    maps = {name: retrieval_map(rows, subjects, DEPTHS) for name, rows in features.items()}
    return found | {name: tuple(values[depth] for depth in DEPTHS) for name, values in maps.items()}


def _searches(
    encoder: Encoder, items: Sequence[TrainingPair], cosines: Rows, load: LoadImage
) -> dict[str, tuple[float, ...]]:
    """Returns R@1 and R@5 of every caption among the held-out pictures, in three orders of its first hits."""
    reranker = Reranker.of(encoder, load, {})
    if reranker is None:
        raise SystemExit("the update has left no fusion encoder")
    places: dict[str, list[int]] = {"towers": [], "odds": [], "both": []}
    for row, item in enumerate(items):
        order = np.argsort(-cosines[row], kind="stable")
        first = order[:FIRST]
        odds = reranker.log_odds(item.text, item.language, [items[n].image_id for n in first])
        both = encoder.similarity_scale * cosines[row][first] + odds
        for name, ranked in (
            ("towers", order),
            ("odds", np.concatenate([first[np.argsort(-odds, kind="stable")], order[FIRST:]])),
            ("both", np.concatenate([first[np.argsort(-both, kind="stable")], order[FIRST:]])),
        ):
            places[name].append(int(np.flatnonzero(ranked == row)[0]))
    return {
        name: tuple(100 * float(np.mean(np.asarray(found) < depth)) for depth in (1, 5))
        for name, found in places.items()
    }


def _unit(rows: Rows) -> Rows:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def page(found: Sequence[dict[str, tuple[float, ...]]]) -> str:
    """Returns the page: means over seeds, ± half of their range."""

    def cells(name: str) -> str:
        columns = np.asarray([one[name] for one in found])
        halves = np.ptp(columns, axis=0) / 2
        said = [f"{mean:.1f} ± {half:.1f}" for mean, half in zip(columns.mean(axis=0), halves, strict=True)]
        return " | ".join([ROWS[name], *said])

    about = " ".join((__doc__ or "").split("\n\n")[2].split())
    head = HEAD.format(date=dt.datetime.now(tz=dt.UTC).date().isoformat(), seeds=len(found), about=about)
    searches = "\n".join(f"| {cells(name)} |" for name in ("towers", "odds", "both"))
    items = "\n".join(f"| {cells(name)} |" for name in ("vectors", "words", "token"))
    return (
        f"{head}\n| a caption asks for its picture, by | R@1 | R@5 |\n| --- | --- | --- |\n{searches}\n\n"
        "| an item asks for items of its subject, by | "
        + " | ".join(f"mAP@{depth}" for depth in DEPTHS)
        + " |\n"
        f"| --- |{' --- |' * len(DEPTHS)}\n{items}\n\n"
        "Why matching features find subjects worse than the towers' own vectors, and what was tried: docs/log.md.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
