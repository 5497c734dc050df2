"""What a version's manifest says of how it was made, so that the same can be made again: on what data, and by what."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path

import torch

from app import DISTRIBUTION
from app.learning.lessons import Lesson
from model_updates.pairs import TrainingPair

LIBRARIES = (DISTRIBUTION, "torch", "open_clip_torch", "numpy", "pillow", "onnxruntime")
_PROCESSORS = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Made:
    """What an update was made of, beside the parent, chunk, strategy, options and seed that a manifest names anyway."""

    pairs: str = ""  # sha256 (hex) of the training and validation pairs, in their order: of the splits, too
    beside: Mapping[str, int] = field(default_factory=dict)  # see `Lesson.beside`
    domains: tuple[str, ...] = ()  # of the chunk that the parent knew
    environment: Mapping[str, str] = field(default_factory=dict)  # see `environment`


def made_of(lesson: Lesson, device: str, processes: int) -> Made:
    """Returns what a lesson is made of, trained on a device, by so many processes like this one."""
    return Made(
        digest((*lesson.train, *lesson.validation)),
        dict(lesson.beside),
        tuple(sorted(lesson.known_domains)),
        environment(device, processes),
    )


def digest(pairs: Sequence[TrainingPair]) -> str:
    """Returns the sha256 (hex) of pairs in their order."""
    found = hashlib.sha256()
    for pair in pairs:
        found.update(json.dumps(asdict(pair)).encode())
    return found.hexdigest()


def environment(device: str, processes: int) -> dict[str, str]:
    """Returns what computes here, as far as it may change the last bits of a result: machine, threads, libraries."""
    return {
        "processor": _processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": str(torch.get_num_threads()),
        "processes": str(processes),
        "device": device,
        "python": platform.python_version(),
        **(
            {"card": f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"} if device == "cuda" else {}
        ),
        **{name: metadata.version(name) for name in LIBRARIES},
    }


def _processor() -> str:
    """Returns the processor's name as Linux tells it, or its kind."""
    try:
        lines = _PROCESSORS.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{platform.machine()} {next(names, platform.processor())}".strip()
