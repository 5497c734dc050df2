"""Zero-shot classification: does an encoder still tell things apart that no update has taught it?

A class is a name in several prompts; its vector is the mean of the prompts' unit vectors, made unit again (the prompt
ensemble of CLIP, Radford et al., 2021, 3.1.4). A picture belongs to the class that its vector is nearest to. C-CLIP
(ICLR 2025) watches this accuracy from update to update, and sums it up as PD, performance degradation: the accuracy of
the encoder before the first update less that after the last, on the same pictures, classes and prompts.

A tie counts against the encoder, as in `evaluation`: one that maps everything to one vector has an accuracy of 0.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_updates.evaluation import TIE_TOLERANCE, FloatArray, IntArray, caption_ranks, pd
from model_updates.features import FeatureCache, LoadImage, NoCache, image_features, text_features
from model_updates.search_encoder import Rows, SearchEncoder, unit

PROMPTS = (
    "{}",
    "a picture of {}",
    "an image of {}",
    "a photo of {}",
    "a drawing of {}",
    "this is {}",
    "a small picture of {}",
)
"""In the manner of CLIP's short ensemble, for things as well as for photographs."""


@dataclass(frozen=True)
class Probe:
    """Labelled pictures, a fixed list of classes and the prompts that name them."""

    name: str  # what reports call it
    image_ids: tuple[str, ...]  # the pictures
    labels: tuple[int, ...]  # the number of each picture's class
    classes: tuple[str, ...]  # names, in a fixed order
    prompts: tuple[str, ...] = PROMPTS  # each with one pair of braces where the name goes
    language: str = "en"  # of names and prompts
    domain: str = ""  # of the pictures; decides their route

    def __post_init__(self) -> None:
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise ValueError(f"probe {self.name!r} needs at least 2 classes, each named once")
        if not self.image_ids or len(self.labels) != len(self.image_ids):
            raise ValueError(
                f"probe {self.name!r} has {len(self.image_ids)} pictures and {len(self.labels)} labels; "
                "it needs one label for each of at least one picture"
            )
        if min(self.labels) < 0 or max(self.labels) >= len(self.classes):
            raise ValueError(
                f"probe {self.name!r} has {len(self.classes)} classes; its labels go from {min(self.labels)} "
                f"to {max(self.labels)}"
            )
        wrong = [prompt for prompt in self.prompts if prompt.count("{}") != 1]
        if wrong or not self.prompts:
            raise ValueError(
                f"probe {self.name!r} needs prompts with one {{}} each, where the name goes; got {wrong or 'none'}"
            )

    @cached_property
    def digest(self) -> str:
        """Sha256 (hex) of everything that an accuracy depends on beside the encoder."""
        said = [self.image_ids, self.labels, self.classes, self.prompts, self.language, self.domain]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class ZeroShotResult:
    """How one encoder classifies the pictures of a probe."""

    probe: str  # its name
    digest: str  # of the probe; results of two encoders are compared under one digest only
    classes: tuple[str, ...]  # names, in order
    labels: IntArray  # (n,) int64, the right class of each picture
    # (n,) int64, how many classes are at least as near to a picture as the right one
    ranks: IntArray = field(repr=False)

    @property
    def accuracy(self) -> float:
        """Percent of the pictures whose nearest class is the right one."""
        return self.accuracy_at(1)

    def accuracy_at(self, depth: int) -> float:
        """Percent of the pictures whose right class is among the nearest so many."""
        return 100.0 * float(np.mean(self.ranks < depth))

    @property
    def query_scores(self) -> FloatArray:
        """(n,) 1 where a picture was classified rightly: what paired comparisons resample."""
        return np.asarray(self.ranks < 1, dtype=np.float64)

    @property
    def chance(self) -> float:
        """Percent that guessing would reach."""
        return 100.0 / len(self.classes)

    def by_class(self) -> dict[str, float]:
        """Returns the accuracy in percent of each class that has a picture."""
        right = self.ranks < 1
        return {
            self.classes[int(label)]: 100.0 * float(right[self.labels == label].mean())
            for label in np.unique(self.labels)
        }

    def to_json(self) -> dict[str, Any]:
        """Returns plain values, ready for `json.dumps`."""
        return {
            "probe": self.probe,
            "digest": self.digest,
            "classes": list(self.classes),
            "labels": self.labels.tolist(),
            "ranks": self.ranks.tolist(),
        }


def class_vectors(encoder: SearchEncoder, probe: Probe, cache: FeatureCache | None = None) -> Rows:
    """Returns (classes, dim) float32 unit vectors: each class the mean of its prompts' unit vectors."""
    texts = [prompt.format(name) for name in probe.classes for prompt in probe.prompts]
    rows = unit(text_features(encoder, texts, probe.language, cache or NoCache()))
    return unit(rows.reshape(len(probe.classes), len(probe.prompts), -1).mean(axis=1))


def classify(image_vectors: Rows, classes: Rows, labels: Sequence[int]) -> NDArray[np.int64]:
    """Returns (n,) how many classes are at least as near to each picture as its own, which is not counted.

    Image vectors (n, dim) and classes (classes, dim) are unit rows; labels (n,) are numbers of the right classes.

    Raises:
        ValueError: on NaN, or when the shapes do not fit.
    """
    return caption_ranks(
        image_vectors @ classes.T, np.asarray(labels, dtype=np.int64), tolerance=TIE_TOLERANCE
    )


def measure(
    encoder: SearchEncoder, probe: Probe, load_image: LoadImage, cache: FeatureCache | None = None
) -> ZeroShotResult:
    """Classifies a probe's pictures with an encoder."""
    kept = cache or NoCache()
    route = encoder.image_route(probe.domain)
    routes = dict.fromkeys(probe.image_ids, route)
    images = unit(image_features(encoder, probe.image_ids, load_image, kept, routes=routes))
    ranks = classify(images, class_vectors(encoder, probe, kept), probe.labels)
    labels = np.asarray(probe.labels, dtype=np.int64)
    return ZeroShotResult(probe.name, probe.digest, probe.classes, labels, ranks)


def performance_degradation(results: Sequence[ZeroShotResult]) -> list[float]:
    """Returns PD after each update, in points: the accuracy before the first less that after each; lower is better.

    The results are of the encoder before the first update, and after each in turn.

    Raises:
        ValueError: fewer than one result, or results of different pictures, classes or prompts.
    """
    if not results:
        raise ValueError("a degradation needs the result of the encoder before the first update")
    if len({result.digest for result in results}) > 1:
        raise ValueError(
            f"these are results of different probes ({', '.join(sorted({r.probe for r in results}))}); a degradation "
            "compares encoders on the same pictures, classes and prompts"
        )
    return [pd(results[0].accuracy, result.accuracy) for result in results[1:]]
