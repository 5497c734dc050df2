"""The runs of the benchmark: each drives the product as a user would and returns what it measured as plain values."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from real_input_data import (
    LANGUAGES,
    PHOTO_LANGUAGES,
    UploadRow,
    emoji_rows,
    emoji_splits,
    photo_rows,
    write_upload,
)

from app.desk.jobs import Stage, UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.language.detection import detect, handicaps, readings
from app.learning import adding, beginning, going_live, update_cycle
from app.learning.judging import Taught, judge_taught
from app.learning.lessons import choose_strategy
from app.learning.outcomes import UpdateOutcome
from app.learning.yardstick import held_out
from ingest.intake import IntakeOptions
from ingest.pair import SliceKey, Split
from model_updates.encoder import Encoder
from model_updates.evaluation import caption_ranks
from model_updates.features import image_features, text_features
from model_updates.gate.report import Policy
from model_updates.measurement import HeldOut, measure
from model_updates.readings import background
from model_updates.search_encoder import unit

# A chain must go on after an update that the default gate stops, so its home asks for a review of everything
# (no slice is ever large enough) and the benchmark says yes. The default gate's verdict is computed beside it.
PERMISSIVE = Policy(
    minimum_images=10**6, cross_fit=False, pooled_drop=100.0, slice_drop=100.0, samples=100, confidence=0.6
)
TRAINED, HELD_OUT = "trained", "held-out"
DEPTHS = (1, 10)
# The pictures that the languages' names are read on; the other styles share the English names.
DOMAIN = "noto"

Values = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """What every run needs.

    Attributes:
        data: folder of the evaluation data.
        work: where homes and results are kept.
        limit: number of concepts when only trying things out.
        photos: training photos of part (c).
        say: prints a line of progress.
    """

    data: Path
    work: Path
    limit: int | None
    photos: int
    say: Callable[[str], None]

    def settings(self, name: str, *, permissive: bool = True) -> Settings:
        """Returns the settings of one of the benchmark's homes."""
        gate = PERMISSIVE if permissive else Policy()
        return Settings(home=self.work / "homes" / name, device="cpu", gate=gate)


@dataclass
class Chain:
    """A strategy and its options as a chain of language updates."""

    name: str
    strategy: str
    options: dict[str, str | float | int | bool] = field(default_factory=dict)


CHAINS = (
    Chain("language-tables", "language-tables"),
    Chain("cll-clip", "cll-clip"),
    Chain("teir", "teir"),
    Chain("teir-update", "teir", {"apply_to": "update"}),
)
STYLES = (
    Chain("finetune", "finetune"),
    Chain("c-clip-both", "c-clip", {"towers": "both"}),
    Chain("c-clip-image", "c-clip", {"towers": "image"}),
)


# ------------------------------------------------------------------------------------- (a) seven languages


def emoji_template(bench: Bench) -> Path:
    """Returns a home with the English and the seven languages' chunks taken in, made once."""
    settings = bench.settings("emoji-template")
    done = settings.home.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(settings.home, ignore_errors=True)
        beginning.initialise(settings)
        splits = emoji_splits(bench.data, bench.limit)
        with Workspace.open(settings) as workspace:
            english = add(bench, workspace, "en", emoji_rows(bench.data, splits, "en", ("noto", "fluent3d")))
            why = "what the base encoder was trained on must be kept"
            workspace.catalog.set_standing(english, "accepted", by="benchmark", why=why, measures=True)
            for language in LANGUAGES:
                add(bench, workspace, language, emoji_rows(bench.data, splits, language, (DOMAIN,)))
        done.touch()
    return settings.home


def run_languages(bench: Bench, chain: Chain, seed: int, languages: Sequence[str] = LANGUAGES) -> Values:
    """Teaches the languages one after another with one strategy and measures all of them after each."""
    settings = bench.settings(f"{chain.name}-{seed}")
    _copy_home(emoji_template(bench), settings.home)
    steps: list[Values] = []
    with Workspace.open(settings) as workspace:
        chunks = {chunk.name: chunk.id for chunk in workspace.catalog.chunks()}
        learned = ["en"]
        hits = {
            kind: [names_hits(workspace, live_encoder(workspace), learned, kind)]
            for kind in (TRAINED, HELD_OUT)
        }
        for language in languages:
            request = UpdateRequest(
                chunk=chunks[language],
                strategy=chain.strategy,
                options=chain.options,
                seed=seed,
                by="benchmark",
            )
            step = {"language": language, **teach(workspace, request, [*learned, language])}
            learned.append(language)
            for kind, table in hits.items():
                table.append(names_hits(workspace, live_encoder(workspace), learned, kind))
            steps.append(step)
            bench.say(f"{chain.name} seed {seed} {language}: {summary(step, hits)}")
        detection = None
        if chain.strategy == "language-tables":
            detection = {k: detection_hits(workspace, live_encoder(workspace), learned, k) for k in hits}
    if chain.strategy != "language-tables":  # part (b) goes on from that one
        shutil.rmtree(settings.home)
    else:
        settings.home.with_suffix(".done").touch()
    return {"languages": learned, "steps": steps, "hits": hits, "detection": detection}


# ----------------------------------------------------------------------------------------- (b) a new style


def run_style(bench: Bench, chain: Chain, seed: int) -> Values:
    """Teaches the style `line` to the end state of language-tables; measures the style and all languages."""
    end_state = bench.settings(f"language-tables-{seed}").home
    settings = bench.settings(f"style-{chain.name}-{seed}")
    _copy_home(end_state, settings.home)
    learned = ["en", *LANGUAGES]
    with Workspace.open(settings) as workspace:
        rows = emoji_rows(bench.data, emoji_splits(bench.data, bench.limit), "en", ("line",))
        chunk = add(bench, workspace, "line", rows)
        before = live_encoder(workspace)
        request = UpdateRequest(
            chunk=chunk, strategy=chain.strategy, options=chain.options, seed=seed, by="benchmark"
        )
        step = teach(workspace, request, learned)
        after = workspace.open_encoder(step["version"])
        hits = {
            kind: {
                when: {
                    "line": names_hits(workspace, encoder, ["en"], kind, domain="line"),
                    DOMAIN: names_hits(workspace, encoder, learned, kind),
                }
                for when, encoder in (("before", before), ("after", after))
            }
            for kind in (TRAINED, HELD_OUT)
        }
    shutil.rmtree(settings.home)
    bench.say(f"style {chain.name} seed {seed}: {step['verdict']} in {step['seconds']} s")
    return {"languages": learned, "step": step, "hits": hits}


# -------------------------------------------------------------------------------------- (c) photographs


def run_photos(bench: Bench, seed: int) -> Values:
    """Teaches English photographs, then four languages on them, with the defaults and the default gate."""
    settings = bench.settings(f"flickr-{seed}", permissive=False)
    shutil.rmtree(settings.home, ignore_errors=True)
    beginning.initialise(settings)
    steps = []
    with Workspace.open(settings) as workspace:
        for language in ("en", *PHOTO_LANGUAGES):
            chunk = add(bench, workspace, language, photo_rows(bench.data, language, photos=bench.photos))
            name, why = choose_strategy(workspace, chunk)
            outcome = run_update(workspace, UpdateRequest(chunk=chunk, seed=seed, by="benchmark"))
            candidate = workspace.open_encoder(outcome.version)
            taught = held_out(workspace, {language}, [chunk])
            results = measure(candidate, taught, workspace.load_image, workspace.features)
            result = results[SliceKey(language, "photo")]
            step = {
                "language": language,
                "default": name,
                "why": why,
                **outcome_values(outcome),
                "recalls": result.recalls(),
                "chance_r1": 100 * result.chance("t2i_r1"),
                "rows": list(outcome.gate["rows"]),
            }
            steps.append(step)
            bench.say(f"flickr seed {seed} {language} ({name}): {outcome.verdict}; {outcome.sentence}")
    shutil.rmtree(settings.home)
    return {"steps": steps, "photos": bench.photos}


# ------------------------------------------------------------------------------------------- the product


def add(bench: Bench, workspace: Workspace, name: str, rows: Sequence[UploadRow]) -> str:
    """Uploads rows as one chunk and returns its id."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=bench.work) as folder:
        upload = write_upload(Path(folder) / name, rows)
        report = adding.add_chunk(workspace, upload, IntakeOptions(name=name), by="benchmark").report
    bench.say(
        f"chunk {name}: {report.new_pairs} pairs, {report.new_images} pictures, {report.held} held, "
        f"{report.rejected} rejected, {time.monotonic() - started:.1f} s"
    )
    return report.chunk_id


def run_update(workspace: Workspace, request: UpdateRequest) -> UpdateOutcome:
    """Runs one update of the product in a scratch folder of its own."""
    scratch = workspace.home.staging / f"update-{time.time_ns()}"

    def ignore(_: Stage) -> None:
        """Progress is for people; the benchmark reports each update once."""

    try:
        return update_cycle.update(workspace, request, scratch=scratch, progress=ignore)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def teach(workspace: Workspace, request: UpdateRequest, languages: Sequence[str]) -> Values:
    """Updates, says yes to the review that the permissive gate asks for, and asks the default gate."""
    _, record = going_live.live_release(workspace)
    taught = {SliceKey(p.language, p.domain) for p in workspace.catalog.pairs(chunk=request.chunk)}
    outcome = run_update(workspace, request)
    case = Taught(request.chunk, dict.fromkeys(taught, 1), tuple(languages), outcome.version)
    report, _ = judge_taught(workspace, case, workspace.open_encoder(outcome.version), record, Policy())
    if outcome.release is not None and outcome.commit is None:
        going_live.promote(workspace, outcome.release, why="benchmark", by="benchmark", force=True)
    values = outcome_values(outcome)
    values |= {"verdict": str(report.verdict), "reason": report.first_reason}
    values["rules"] = [[rule.rule, str(rule.verdict), list(rule.reasons)] for rule in report.rules]
    return values


def outcome_values(outcome: UpdateOutcome) -> Values:
    """Returns what the report needs of an outcome."""
    training = outcome.training
    return {
        "version": outcome.version,
        "strategy": outcome.strategy,
        "verdict": outcome.verdict,
        "reason": outcome.sentence,
        "promoted": outcome.commit is not None,
        "mode": outcome.mode,
        "images_embedded": outcome.images_embedded,
        "seconds": outcome.seconds,
        "training_seconds": round(float(training["seconds"]), 1),
        "image_forwards": training["image_forwards"],
        "training_pairs": training["training_pairs"],
        "english_share": training["english_share"],
        "kept_epoch": training["kept_epoch"],
        "epochs": len(training["history"]),
        "notes": list(training["notes"]),
        "rules": [[r["rule"], r["verdict"], list(r["reasons"])] for r in outcome.gate.get("rules", [])],
    }


def live_encoder(workspace: Workspace) -> Encoder:
    """Returns the encoder that is live."""
    return workspace.open_encoder(going_live.live_release(workspace)[1].version)


# ----------------------------------------------------------------------------------------- measuring names


def names_slice(workspace: Workspace, language: str, kind: str, domain: str = DOMAIN) -> HeldOut:
    """Returns one language's names on one style, in the order of the picture ids.

    *Trained* names are those of the training split, looked up among all pictures that are not held out (the
    validation pictures are among them); *held-out* names are looked up among the held-out pictures.
    """
    catalog = workspace.catalog
    if kind == HELD_OUT:
        splits, gallery = [Split.TEST], catalog.test_images(domain)
    else:
        splits = [Split.TRAIN]
        seen = [
            *catalog.pairs(domain=domain, split=Split.TRAIN),
            *catalog.pairs(domain=domain, split=Split.VALIDATION),
        ]
        gallery = [pair.image_id for pair in seen]
    pairs = [p for split in splits for p in catalog.pairs(language=language, domain=domain, split=split)]
    captions = sorted({(pair.image_id, pair.text) for pair in pairs})
    return HeldOut(SliceKey(language, domain), tuple(sorted(set(gallery))), tuple(captions))


def names_hits(
    workspace: Workspace, encoder: Encoder, languages: Sequence[str], kind: str, domain: str = DOMAIN
) -> Values:
    """Returns for each language and depth a string of 0 and 1: which names found their picture."""
    slices = [names_slice(workspace, language, kind, domain) for language in languages]
    results = measure(encoder, slices, workspace.load_image, workspace.features)
    return {key.language: as_hits(result.text_ranks) for key, result in results.items()}


def as_hits(ranks: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> dict[str, str]:
    """Returns hits at each depth as a string of 0 and 1."""
    return {str(depth): "".join("1" if rank < depth else "0" for rank in ranks) for depth in DEPTHS}


def detection_hits(workspace: Workspace, encoder: Encoder, learned: Sequence[str], kind: str) -> Values:
    """Returns hits with the language detected as search does it, and how often it was right or unsure."""
    found: Values = {}
    for language in learned:
        held_out = names_slice(workspace, language, kind)
        texts = [text for _, text in held_out.captions]
        chosen = [readings(detect(text, learned, encoder.profiles), encoder.text_route) for text in texts]
        lowered = [handicaps(read, encoder.similarity_scale) for read in chosen]
        images = unit(image_features(encoder, held_out.gallery, workspace.load_image, workspace.features))
        similarities = np.full((len(texts), len(images)), -2.0, dtype=np.float32)
        for table in learned:
            less = {
                n: by
                for n, read in enumerate(chosen)
                for reading, by in zip(read, lowered[n], strict=True)
                if reading.language == table
            }
            if less:
                rows = list(less)
                vectors = unit(text_features(encoder, [texts[n] for n in rows], table, workspace.features))
                scores = vectors @ images.T
                by = np.asarray(list(less.values()), dtype=np.float32) - background(scores)
                scores += by[:, None]
                similarities[rows] = np.maximum(similarities[rows], scores)
        place = {image_id: n for n, image_id in enumerate(held_out.gallery)}
        own = np.asarray([place[image_id] for image_id, _ in held_out.captions], dtype=np.int64)
        named = [[reading.language for reading in read] for read in chosen]
        found[language] = as_hits(caption_ranks(similarities, own, tolerance=1e-6)) | {
            "sure_and_right": sum(tables == [language] for tables in named) / len(texts),
            "among_several": sum(len(tables) > 1 and language in tables for tables in named) / len(texts),
            "tables": sum(map(len, named)) / len(texts),
        }
    return found


def summary(step: Values, hits: Values) -> str:
    """Returns a line for the log."""

    def mean(kind: str) -> str:
        last = hits[kind][-1]
        return " ".join(
            f"{lang} {100 * last[lang]['1'].count('1') / len(last[lang]['1']):.1f}" for lang in last
        )

    return (
        f"{step['seconds']} s (training {step['training_seconds']}), epoch {step['kept_epoch']}, "
        f"default gate: {step['verdict']}; R@1 trained {mean(TRAINED)}; held-out {mean(HELD_OUT)}"
    )


def _copy_home(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
