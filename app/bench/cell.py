"""One cell of the benchmark: one strategy taught one sequence with one seed, measured after every step."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from app.bench.material import HELD_OUT, Material, material_of
from app.bench.matrix import Looked, look_up
from app.bench.overlay import Overlay
from app.bench.segmentation import Segmentation
from app.bench.sequence import BenchSequence, Compared
from app.bench.teaching import Clock, Line, StepRecord, start, teach
from app.home.workspace import Workspace
from model_updates import drift, zero_shot
from model_updates.batches import sampled as sampled_pairs
from model_updates.encoder import Encoder
from model_updates.features import FeatureCache
from model_updates.pairs import TrainingPair

DRIFT_PAIRS = 400
DRIFTS = ("sam_pictures", "sam_texts", "ram_pictures", "ram_texts", "imam_text_to_image")


@dataclass(frozen=True)
class CellResult:
    """Everything one cell found.

    Attributes:
        material: what was taught and measured.
        steps: what each cost.
        looked: after each step, the base (0) included, how each slice known by then was ranked.
        peak_bytes: most memory that the process held.
        probe: accuracy on the probe before the first step and after each, percent; empty without one.
        cpu_seconds: processor time of the whole cell, measuring included.
    """

    material: Material
    steps: tuple[StepRecord, ...]
    looked: tuple[tuple[Looked, ...], ...]
    peak_bytes: int
    probe: tuple[float, ...] = ()
    cpu_seconds: float = 0.0


def run_cell(
    workspace: Workspace, sequence: BenchSequence, compared: Compared, seed: int, *, threads: int = 1
) -> CellResult:
    """Runs a strategy through a sequence.

    Args:
        workspace: opened for reading; nothing is written to it.
        sequence: what is taught and measured.
        compared: the strategy and its options.
        seed: of orders, parts and every random choice.
        threads: of torch.

    Raises:
        UsageProblem, BadStrategyOption, UnknownStrategy: it cannot be run at all.
    """
    began = Clock.now()
    torch.set_num_threads(threads)
    material = material_of(workspace, sequence, seed)
    cache = Overlay(workspace.features)
    line = start(workspace, sequence, seed)
    line.taught.append(material.known)

    def look(step: int) -> tuple[Looked, ...]:
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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    took = Clock.now().processor - began.processor
    return CellResult(material, tuple(steps), tuple(looked), peak, tuple(probed), round(took, 1))


def _probed(line: Line, material: Material, cache: FeatureCache) -> list[float]:
    """Returns the accuracy on the probe, percent, or nothing where there is no probe."""
    if material.probe is None:
        return []
    return [round(zero_shot.measure(line.encoder, material.probe, line.load, cache).accuracy, 2)]


def _drift(
    line: Line,
    before: Encoder,
    material: Material,
    number: int,
    cache: FeatureCache,
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
