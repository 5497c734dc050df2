"""Recall and forgetting: pure functions of similarity matrices and of ranks.

A rank is 0-based and pessimistic: everything that ties with the right answer counts as ahead of it, so an
encoder that maps all inputs to one vector scores 0 instead of the 100 % that a stable sort could give it.

`a[j][i]` is the score on task i after learning task j (the formulas' 1-based order), so row j of a matrix has
at least its first j + 1 entries; what lies right of them is never read. Where a formula divides by nothing
the value is None.

Sources: recall and R_m after CTP (its table's mean of six recalls), AR and F after CLL-CLIP, BWT after
IncCLIP and in its usual form, PD after C-CLIP.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.sentence import phrase
from model_updates.recalls import CONCEPT, ELSEWHERE, LABELS, MEAN, QUERY_METRICS, RECALL_DEPTHS

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Two equal vectors need not get equal dot products: a matrix product may sum in another order at its edges.
# Float32 cosines differ by a few 1e-7 there, so what is closer than this counts as a tie.
TIE_TOLERANCE = 1e-6

CONCEPT_DEPTH = 10
LABELLED = 0.2
"""Share of a slice's captions that must name a thing of several pictures for it to be judged by things, too."""


def caption_ranks(similarities: NDArray[Any], caption_image: IntArray, *, tolerance: float = 0.0) -> IntArray:
    """Returns the rank of each caption's own image among all images.

    Similarities are `(n_captions, n_images)`; `caption_image`, `(n_captions,)`, is the column of each caption's image.
    Others up to `tolerance` below the right image count as tied with it. Rank 0 means that the right image is alone in
    front.

    Raises:
        ValueError: on NaN, or when the shapes do not fit.
    """
    _check_similarities(similarities, caption_image)
    own = similarities[np.arange(len(caption_image)), caption_image]
    ahead_or_tied = np.count_nonzero(similarities >= (own - tolerance)[:, None], axis=1)
    return np.asarray(ahead_or_tied - 1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Shown:
    """What each picture of a gallery shows, for ranks by things."""

    order: IntArray  # (n_images,) pictures, those of one thing in one domain beside one another: a part
    parts: IntArray  # (n_parts,) where each part begins in that order, those of one thing beside one another
    things: IntArray  # (n_things,) the first part of each

    @classmethod
    def of(cls, shown: Sequence[int], domains: Sequence[str]) -> "Shown":
        """Takes for each picture the number of what it shows, and its domain."""
        _, domain = np.unique(np.asarray(domains), return_inverse=True)
        names, part = np.unique(np.stack([np.asarray(shown), domain]), axis=1, return_inverse=True)
        order = np.argsort(part.reshape(-1), kind="stable")
        begins = np.append(True, names[0, 1:] != names[0, :-1])
        return cls(
            order, np.flatnonzero(np.diff(part.reshape(-1)[order], prepend=-1)), np.flatnonzero(begins)
        )

    def ranks(
        self, similarities: NDArray[Any], caption_image: IntArray, *, tolerance: float = 0.0
    ) -> IntArray:
        """Returns ranks as `caption_ranks` does, but styles of one thing take no more places than one of them.

        Of each thing the domain counts that has most pictures ahead: who meets a wrong thing in a second style meets
        nothing else wrong.
        """
        _check_similarities(similarities, caption_image)
        rows = np.arange(len(caption_image))
        ahead = similarities >= (similarities[rows, caption_image] - tolerance)[:, None]
        ahead[rows, caption_image] = False
        pictures = ahead.T[self.order].astype(np.min_scalar_type(len(self.order)))
        counted = _over_runs(np.add, pictures, self.parts)
        return np.asarray(_over_runs(np.maximum, counted, self.things).sum(axis=0, dtype=np.int64))


def _over_runs(combine: np.ufunc, rows: NDArray[Any], begins: IntArray) -> NDArray[Any]:
    """Combines each run of rows (m, n) into one, (n_runs, n), as `combine.reduceat` does, in a fifth of its time."""
    lengths = np.diff(begins, append=len(rows))
    found = rows[begins]
    for step in range(1, int(lengths.max(initial=0))):
        longer = lengths > step
        found[longer] = combine(found[longer], rows[begins[longer] + step])
    return found


def image_ranks(
    similarities: NDArray[Any], caption_image: IntArray, *, tolerance: float = 0.0
) -> tuple[IntArray, IntArray]:
    """Returns the best rank that any caption of an image reaches among all captions.

    Captions of the same image never push one another back: an image is found as soon as one of them is.

    As in `caption_ranks`. Returns the ranks and the columns they belong to, both `(n_images_with_captions,)`, columns
    ascending.

    Raises:
        ValueError: on NaN, or when the shapes do not fit.
    """
    _check_similarities(similarities, caption_image)
    images = np.unique(caption_image)
    return _best_caption_ranks(similarities[:, images].T, caption_image, images, tolerance), images


def _best_caption_ranks(
    rows: NDArray[Any], caption_image: IntArray, images: IntArray, tolerance: float
) -> IntArray:
    """Ranks for `rows`, `(n, n_captions)`: the similarities of `images` (n,) to every caption."""
    is_own = caption_image[None, :] == images[:, None]
    best_own = np.where(is_own, rows, -np.inf).max(axis=1)
    others = (rows >= (best_own - tolerance)[:, None]) & ~is_own
    return np.asarray(np.count_nonzero(others, axis=1), dtype=np.int64)


def _check_similarities(similarities: NDArray[Any], caption_image: IntArray) -> None:
    if similarities.ndim != 2 or similarities.shape[0] != len(caption_image):
        raise ValueError(
            f"Similarities must have one row for each of the {len(caption_image)} captions; "
            f"found shape {similarities.shape}."
        )
    _check_positions(caption_image, similarities.shape[1])
    if np.isnan(similarities).any():
        raise ValueError(
            "Similarities contain NaN, so no rank is meaningful. The encoder that made them is broken; "
            "do not measure it."
        )


def _check_positions(caption_image: IntArray, n_images: int) -> None:
    if len(caption_image) == 0:
        raise ValueError("A slice without a single caption cannot be measured.")
    if caption_image.min() < 0 or caption_image.max() >= n_images:
        raise ValueError(
            f"Captions point at image positions {caption_image.min()} to {caption_image.max()}, "
            f"but the gallery has {n_images} images."
        )


def rank_slice(
    image_vectors: NDArray[np.float32],
    text_vectors: NDArray[np.float32],
    caption_image: IntArray,
    *,
    chunk: int = 1024,
) -> tuple[IntArray, IntArray, IntArray]:
    """Ranks a slice in both directions without ever holding the whole similarity matrix.

    Image vectors `(n_images, dim)`, the measuring gallery, and text vectors `(n_captions, dim)` are unit rows. Memory
    is about `chunk * max(n_images, n_captions) * 10` bytes. Returns text ranks `(n_captions,)`, image ranks and their
    images' positions, both `(n_images_with_captions,)`.

    Raises:
        ValueError: on NaN in the vectors, or when the shapes do not fit.
    """
    caption_image = np.asarray(caption_image, dtype=np.int64)
    if text_vectors.ndim != 2 or image_vectors.ndim != 2 or text_vectors.shape[1] != image_vectors.shape[1]:
        raise ValueError(
            f"Image and text vectors must be two tables of one width; found shapes {image_vectors.shape} "
            f"and {text_vectors.shape}. Were they made by one encoder?"
        )
    if len(text_vectors) != len(caption_image):
        raise ValueError(f"{len(text_vectors)} text vectors were given for {len(caption_image)} captions.")
    _check_positions(caption_image, len(image_vectors))
    images = np.unique(caption_image)
    text_ranks = [
        caption_ranks(
            text_vectors[start : start + chunk] @ image_vectors.T,
            caption_image[start : start + chunk],
            tolerance=TIE_TOLERANCE,
        )
        for start in range(0, len(caption_image), chunk)
    ]
    ranks_of_images = []
    for start in range(0, len(images), chunk):
        block = images[start : start + chunk]
        rows = image_vectors[block] @ text_vectors.T
        ranks_of_images.append(_best_caption_ranks(rows, caption_image, block, TIE_TOLERANCE))
    return np.concatenate(text_ranks), np.concatenate(ranks_of_images), images


class View(StrEnum):
    """In which gallery, and how, a slice's captions look for their pictures."""

    OWN = "own"
    """Held-out captions among the held-out pictures of their domain, the language told: what the encoder knows."""
    MIXED = "mixed"
    """Held-out captions among pictures of all domains, the language detected: what a searcher meets."""
    MEMORY = "memory"
    """Captions that were trained on, looked up as in the mixed gallery: what people find today."""


@dataclass(frozen=True, eq=False)
class SliceResult:
    """How one encoder ranks pairs of one language in one domain."""

    language: str  # BCP-47 tag
    domain: str  # the pictures' domain
    image_ids: tuple[str, ...]  # the measuring gallery; in the view `own` all held-out images of the domain
    caption_image: IntArray  # `(n_captions,)`, the position of each caption's image in `image_ids`
    text_ranks: IntArray  # `(n_captions,)`, rank of the right image for each caption as the query
    # `(n_images_with_captions,)`, best rank of an own caption for each image as the query; empty in views that are not
    # measured in this direction
    image_ranks: IntArray
    image_rank_image: IntArray  # which image each of `image_ranks` belongs to
    view: View = View.OWN  # in which gallery the captions looked
    # the group of each caption's image, `(n_captions,)`: pictures of one thing, of which two are no more evidence than
    # one. Empty when every picture is a group of its own
    caption_group: tuple[str, ...] = ()
    # `(n_captions, 3)` in a gallery of everything: of the first ten the share that shows the same thing (of as many as
    # there are), the share of other domains, and which thing that is; NaN where one picture alone shows it
    concepts: FloatArray = field(default_factory=lambda: np.empty((0, 3)))

    def __post_init__(self) -> None:
        _check_positions(self.caption_image, len(self.image_ids))
        if self.caption_group and len(self.caption_group) != len(self.caption_image):
            raise ValueError(
                f"Slice {self.language}/{self.domain} has {len(self.caption_image)} captions but "
                f"{len(self.caption_group)} groups."
            )
        if len(self.text_ranks) != len(self.caption_image) or len(self.image_ranks) != len(
            self.image_rank_image
        ):
            raise ValueError(
                f"Slice {self.language}/{self.domain} has {len(self.caption_image)} captions but "
                f"{len(self.text_ranks)} text ranks, and {len(self.image_ranks)} image ranks for "
                f"{len(self.image_rank_image)} images."
            )

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """The group of each caption's image: captions of one group rise and fall together."""
        return self.caption_group or tuple(self.image_ids[position] for position in self.caption_image)

    @cached_property
    def groups(self) -> int:
        """Number of different things that have a caption here: the independent observations of the slice."""
        return len(set(self.clusters))

    def recalls(self) -> dict[str, float]:
        """Returns R@1, 5 and 10 both ways (`t2i_r1`, …, `i2t_r10`) and `mean_recall`, in percent.

        Only those from text to image where the other direction was not measured. A gallery smaller than the depth makes
        that recall 100; `caveat` says so.
        """
        recalls = {
            f"{direction}_r{depth}": 100.0 * float(np.mean(ranks < depth))
            for direction, ranks in (("t2i", self.text_ranks), ("i2t", self.image_ranks))
            for depth in RECALL_DEPTHS
            if len(ranks)
        }
        if len(self.image_ranks):
            recalls["mean_recall"] = mean_recall(list(recalls.values()))
        if self.is_labelled:
            right, other, _ = np.nanmean(self.concepts, axis=0)
            recalls |= {CONCEPT: 100.0 * float(right), ELSEWHERE: 100.0 * float(other)}
        return recalls

    @cached_property
    def is_labelled(self) -> bool:
        """Whether captions name things of which there are several pictures, rather than tell single pictures apart."""
        return bool(len(self.concepts)) and bool(np.isfinite(self.concepts[:, 0]).mean() >= LABELLED)

    def query_scores(self, metric: str) -> FloatArray:
        """Returns each caption's score in [0, 1], `(n_captions,)`; their mean is the metric, one of `QUERY_METRICS`."""
        if metric not in QUERY_METRICS:
            raise ValueError(
                f"There is no per-query metric {metric!r}; choose one of {', '.join(QUERY_METRICS)}."
            )
        hits = np.array([self.text_ranks < depth for depth in _depths(metric)], dtype=np.float64)
        return np.asarray(hits.mean(axis=0))

    def chance(self, metric: str) -> float:
        """Returns the score in [0, 1] that guessing would reach on this gallery."""
        depths = _depths(metric)
        return float(np.mean([min(depth, len(self.image_ids)) for depth in depths])) / len(self.image_ids)

    @property
    def caveat(self) -> str:
        """Says which recalls by text are 100 whatever the encoder, its gallery being no larger; empty for none."""
        pictures = len(self.image_ids)
        full = ", ".join(LABELS[f"t2i_r{depth}"] for depth in RECALL_DEPTHS if depth >= pictures)
        return full and phrase(
            "Pictures to choose from: only {count}, so any encoder reaches 100 in {recalls}.",
            count=pictures,
            recalls=full,
        )

    def to_json(self) -> dict[str, object]:
        """Returns plain lists, numbers and strings, ready for `json.dumps`."""
        arrays = ("caption_image", "text_ranks", "image_ranks", "image_rank_image")
        return {
            "language": self.language,
            "domain": self.domain,
            "image_ids": list(self.image_ids),
            "view": str(self.view),
            "caption_group": list(self.caption_group),
            **{name: getattr(self, name).tolist() for name in arrays},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "SliceResult":
        """Rebuilds what `to_json` wrote."""
        return cls(
            language=document["language"],
            domain=document["domain"],
            image_ids=tuple(document["image_ids"]),
            caption_image=np.array(document["caption_image"], dtype=np.int64),
            text_ranks=np.array(document["text_ranks"], dtype=np.int64),
            image_ranks=np.array(document["image_ranks"], dtype=np.int64),
            image_rank_image=np.array(document["image_rank_image"], dtype=np.int64),
            view=View(document.get("view", View.OWN)),
            caption_group=tuple(document.get("caption_group", ())),
        )


def mean_recall(recalls: Sequence[float]) -> float:
    """Returns R_m, the mean of R@1, 5 and 10 in both directions."""
    if len(recalls) != 2 * len(RECALL_DEPTHS):
        raise ValueError(f"R_m is the mean of six recalls; {len(recalls)} were given.")
    return math.fsum(recalls) / len(recalls)


def average_recall(matrix: Sequence[Sequence[float]]) -> float:
    """Returns `AR_T = mean_{i<=T} a_{T,i}`, the average over all tasks after the last one."""
    last = len(matrix) - 1
    return math.fsum(matrix[last][: last + 1]) / (last + 1)


def forgetting(matrix: Sequence[Sequence[float]]) -> float | None:
    """Returns `F_T = 1/(T-1) sum_{i<T} max_{k in [i, T-1]} (a_{k,i} - a_{T,i})`; None for one task.

    The maximum starts at k = i, where the task was learned; the printed formula starts at 1, where `a_{k,i}`
    does not exist. Negative when old tasks gained.
    """
    last = len(matrix) - 1
    if last < 1:
        return None
    losses = [max(matrix[k][i] for k in range(i, last)) - matrix[last][i] for i in range(last)]
    return math.fsum(losses) / last


def bwt(matrix: Sequence[Sequence[float]]) -> float | None:
    """Returns backward transfer `1/(T-1) sum_{i<T} (a_{T,i} - a_{i,i})`; None for one task."""
    last = len(matrix) - 1
    if last < 1:
        return None
    return math.fsum(matrix[last][i] - matrix[i][i] for i in range(last)) / last


def bwt_incclip(matrix: Sequence[Sequence[float]]) -> float | None:
    """Returns IncCLIP's form, `1/(T-1) sum_{i=2..T} 1/i sum_{j<=i} (a_{i,j} - a_{j,j})`; None for one task.

    The terms with j = i are zero and yet counted in 1/i, so its size is smaller than that of `bwt`.
    """
    last = len(matrix) - 1
    if last < 1:
        return None
    means = [
        math.fsum(matrix[i][j] - matrix[j][j] for j in range(i + 1)) / (i + 1) for i in range(1, last + 1)
    ]
    return math.fsum(means) / last


def pd(before: float, after: float) -> float:
    """Returns C-CLIP's performance drop on a data set never trained on; lower is better."""
    return before - after


def average_precision_at_n(
    relevance: Sequence[bool], n: int, *, relevant_in_gallery: int | None = None
) -> float:
    """Returns CTP's average precision, which divides by the hits found, not by all that are relevant.

    `N' = min(n, relevant, length)`, `AP = 1/m sum_{k<=N'} P(k) rel_k` with m hits in the first N'; 0
    without a hit.

    `relevance` says of each result, best first, the query itself removed, whether it is relevant; `relevant_in_gallery`
    how many are at all, None when at least `n`.
    """
    depth = min(n, len(relevance), n if relevant_in_gallery is None else relevant_in_gallery)
    hit_positions = [k for k in range(depth) if relevance[k]]
    if not hit_positions:
        return 0.0
    return math.fsum((hits + 1) / (k + 1) for hits, k in enumerate(hit_positions)) / len(hit_positions)


def map_at_n(
    relevances: Sequence[Sequence[bool]], n: int, *, relevant_in_gallery: Sequence[int] | None = None
) -> float | None:
    """Returns the mean of `average_precision_at_n` over the queries; None without a query."""
    if not relevances:
        return None
    totals: Sequence[int | None] = relevant_in_gallery or [None] * len(relevances)
    precisions = [
        average_precision_at_n(relevance, n, relevant_in_gallery=total)
        for relevance, total in zip(relevances, totals, strict=True)
    ]
    return math.fsum(precisions) / len(precisions)


def _depths(metric: str) -> tuple[int, ...]:
    return RECALL_DEPTHS if metric == MEAN else (int(metric.removeprefix("t2i_r")),)
