"""Multi-modal retrieval: items of text and picture find items of their own kind by their fusion features (CTP, 5.1).

An item's feature is the mean of its fused words, made unit; a query finds what is nearest, itself left out, and mAP@N
(`evaluation.map_at_n`, eq. 11) says how much of it is of the query's class. The paper takes the fused [CLS]; ours is
what the matching head reads, which CTP does not have, and says more of whether text and picture fit than of what they
show (docs/log.md): ``whole=True`` takes it. Beside it stands what needs no fusion encoder: the mean of an item's
picture and text vectors.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model_updates.encoder import Encoder
from model_updates.evaluation import map_at_n
from model_updates.features import LoadImage
from model_updates.fusion.encoder import fusion_of
from model_updates.fusion.tokens import read_images, read_texts, real_words
from model_updates.pairs import TrainingPair, by_language
from model_updates.search_encoder import IMAGE_BATCH, Rows, unit


def fusion_features(
    encoder: Encoder, items: Sequence[TrainingPair], load_image: LoadImage, *, whole: bool = False
) -> Rows:
    """Returns (n, width) float32 unit features of text and picture read together.

    With `whole`, of the token that the matching head reads, and not of the mean of the words.

    Raises:
        ValueError: the encoder has no fusion encoder.
    """
    fusion = fusion_of(encoder)
    if fusion is None:
        raise ValueError("this encoder has no fusion encoder; `ctp` with fusion=yes teaches one")
    rows = []
    with torch.inference_mode():
        for start in range(0, len(items), IMAGE_BATCH):
            some = items[start : start + IMAGE_BATCH]
            prepared = encoder.prepare_images([load_image(item.image_id) for item in some])
            pictures = fusion.pictures(read_images(encoder, prepared, [item.domain for item in some]))
            for language, mine in by_language(some):
                tokens = encoder.tokenize([some[n].text for n in mine], language)
                read = read_texts(encoder, tokens, [language] * len(mine))
                texts = fusion.texts(read, real_words(encoder, tokens))
                one, words = fusion(texts, pictures.select(torch.tensor(mine)))
                feature = one if whole else _mean_of(words, texts.real)
                rows += [(start + n, row) for n, row in zip(mine, feature.float().cpu().numpy(), strict=True)]
    return unit(np.stack([row for _, row in sorted(rows, key=lambda pair: pair[0])]))


def _mean_of(words: Tensor, real: Tensor) -> Tensor:
    """Returns the (n, width) mean of the words that are no padding."""
    return (words * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)


def mean_features(image_vectors: Rows, text_vectors: Rows) -> Rows:
    """Returns (n, dim) unit means of picture and text vectors: an item's feature without a fusion encoder."""
    return unit(unit(image_vectors) + unit(text_vectors))


def relevances(
    queries: Rows,
    gallery: Rows,
    query_classes: Sequence[str],
    gallery_classes: Sequence[str],
    own: Sequence[int | None],
    depth: int,
) -> tuple[list[list[bool]], list[int]]:
    """Says of each query which of its nearest items are of its class, and how many there are at all.

    Queries (q, d) and gallery (n, d) are unit rows. `own` is where each query itself is in the gallery, None where it
    is not; it does not find itself. `depth` of the nearest are looked at.
    """
    classes = np.asarray(gallery_classes)
    found, totals = [], []
    for query, name, place in zip(queries, query_classes, own, strict=True):
        right: NDArray[np.bool_] = classes == name
        others = np.arange(len(gallery)) if place is None else np.delete(np.arange(len(gallery)), place)
        cosines = np.round(gallery[others] @ query, 6)
        # Of equal cosines the wrong ones come first: a collapsed encoder must not be rewarded.
        nearest = np.lexsort((right[others], -cosines))[:depth]
        found.append([bool(value) for value in right[others][nearest]])
        totals.append(int(right[others].sum()))
    return found, totals


def retrieval_map(
    features: Rows, classes: Sequence[str], depths: Sequence[int], *, queries: Sequence[int] | None = None
) -> dict[int, float]:
    """Returns mAP@N in percent for each N; items, (n, d) unit rows, ask for each other, or `queries` of them do."""
    asking = list(range(len(features)) if queries is None else queries)
    named = [classes[n] for n in asking]
    found, totals = relevances(features[asking], features, named, classes, asking, max(depths))
    scores = {n: map_at_n(found, n, relevant_in_gallery=totals) for n in depths}
    return {n: 100.0 * value for n, value in scores.items() if value is not None}
