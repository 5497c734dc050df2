"""One cell of the benchmark: one strategy taught one sequence with one seed, measured after every step."""

import os
import platform
import resource
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from app.bench.material import HELD_OUT, Material, material_of
from app.bench.matrix import Looked, look_up
from app.bench.results import VIEWS, Cell, SliceRun
from app.bench.segmentation import Segmentation
from app.bench.sequence import BenchSequence, StrategyRun
from app.bench.sources import sources_of
from app.bench.teaching import Line, clock, start, teach
from app.home.workspace import Workspace
from model_updates import drift, zero_shot
from model_updates.batches import sampled as sampled_pairs
from model_updates.encoder import Encoder
from model_updates.features import FeatureCache, Overlay
from model_updates.pairs import TrainingPair
from model_updates.registry import GROUP

DRIFT_PAIRS = 400
# Whose versions a cell's figures may hang on, beside torch's.
PACKAGES = ("numpy", "open-clip-torch", "timm", "tokenizers", "peft", "pillow", "lingua-language-detector")
DRIFTS = ("sam_pictures", "sam_texts", "ram_pictures", "ram_texts", "imam_text_to_image")


def run_cell(
    workspace: Workspace, sequence: BenchSequence, compared: StrategyRun, seed: int, *, threads: int = 1
) -> Cell:
    """Runs a strategy through a sequence, and returns what is kept of it.

    Nothing is written to the workspace. The seed is that of orders, parts and every random choice.

    Raises:
        UsageProblem, BadStrategyOption, UnknownStrategy: it cannot be run at all.
    """
    _, began = clock()
    torch.set_num_threads(threads)
    material = material_of(workspace, sequence, seed)
    cache = Overlay(workspace.features)
    line = start(workspace, sequence, seed)
    line.taught.append(material.known)

    def look(step: int) -> dict[int, Looked]:
        name = compared.name
        return look_up(line.load, line.encoder, line.languages, sequence, material, step, cache, name)

    looked, probed = [look(0)], _probed(line, material, cache)
    segmentation = Segmentation(material)
    segmentation.after(line.encoder, 0)
    steps = []
    for number, lesson in enumerate(material.lessons, start=1):
        before = line.encoder
        record = teach(workspace, sequence, compared, lesson, line, material, cache, seed)
        drifted = _drift(line, before, material, number, cache)
        steps.append(replace(record, drift=drifted, resegmented=segmentation.after(line.encoder, number)))
        looked.append(look(number))
        probed += _probed(line, material, cache)
        cache.forget_but(
            _fingerprints(line.encoder, line.languages) | _fingerprints(line.base, line.languages)
        )
    return Cell(
        sequence.name,
        compared.label,
        seed,
        tuple(asdict(step) for step in steps),
        _slice_runs(material, looked),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        sequence.digest(compared),
        sequence.options_of(compared),
        tuple(probed),
        _made(compared.name, material, round(clock()[1] - began, 1)),
    )


def _slice_runs(material: Material, looked: Sequence[Mapping[int, Looked]]) -> tuple[SliceRun, ...]:
    """Returns how each slice fared, from how it was found after each step."""
    names = {name: n for n, name in enumerate(sorted({g for one in material.slices for g in one.groups}))}
    runs = []
    for number, one in enumerate(material.slices):
        found = [step[number] for step in looked if number in step]
        runs.append(
            SliceRun(
                one.key.language,
                one.key.domain,
                one.kind,
                one.since,
                one.unseen,
                one.digest,
                np.asarray([names[group] for group in one.groups], dtype=np.int64),
                {view: [after.recalls[view] for after in found] for view in VIEWS},
                found[0].first,
                found[-1].first,
                found[-1].ten,
                found[-1].six,
            )
        )
    return tuple(runs)


def _made(strategy: str, material: Material, cpu_seconds: float) -> dict[str, Any]:
    """Returns when, by which code and on what a run was made, of which data, and the processor time with measuring."""
    return {
        "date": date.today().isoformat(),  # noqa: DTZ011 - a day is enough, and it is the machine's own
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__.partition("+")[0],
        "cpu_seconds": cpu_seconds,
        "commit": _commit(),
        "sources": sources_of(strategy),
        "data": material.digest,
        "versions": {name: version(name) for name in PACKAGES},
        "package": _package(strategy),
    }


def _package(strategy: str) -> str:
    """Returns which package brings a strategy, and its version; "" for one of our own."""
    dists = [entry.dist for entry in entry_points(group=GROUP, name=strategy)]
    return ", ".join(f"{dist.name} {dist.version}" for dist in dists if dist is not None)


def _commit() -> str:
    """Returns the commit of the checkout that runs, with a plus where files differ from it; "" outside a checkout."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    asked = ["git", "-C", str(root), "describe", "--always", "--match", "", "--abbrev=40", "--dirty=+"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _probed(line: Line, material: Material, cache: FeatureCache) -> list[float]:
    """Returns the accuracy on the probe, percent, or nothing where there is no probe."""
    if material.probe is None:
        return []
    return [round(zero_shot.measure(line.encoder, material.probe, line.load, cache).accuracy, 2)]


def _drift(
    line: Line, before: Encoder, material: Material, number: int, cache: FeatureCache
) -> dict[str, float]:
    """Returns how far a step has turned what was known before it, mean angles in degrees."""
    known = [one for one in material.slices if one.kind == HELD_OUT and one.since < number and not one.unseen]
    pairs = [
        TrainingPair(image_id, text, one.key.language, one.key.domain)
        for one in known
        for image_id, text in one.captions
    ]
    chosen = sampled_pairs(pairs, DRIFT_PAIRS)
    if before is line.encoder or len(chosen) < 2:
        return {}
    sides = [drift.embedded(encoder, chosen, line.load, cache) for encoder in (before, line.encoder)]
    found = drift.drift(*sides)
    means = {name: getattr(found, name).mean for name in DRIFTS}
    return {name: round(mean, 3) for name, mean in means.items() if mean is not None}


def _fingerprints(encoder: Encoder, languages: Sequence[str]) -> set[str]:
    routes = ("", *encoder.image_routes)
    return (
        {encoder.text_fingerprint(language) for language in languages}
        | {encoder.trunk_fingerprint(route) for route in routes}
        | {encoder.image_fingerprint(route) for route in routes}
    )
