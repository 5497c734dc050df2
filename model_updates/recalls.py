"""How deep recall looks, and what its figures are called: the one place that says 1, 5 and 10."""

from collections.abc import Mapping

RECALL_DEPTHS = (1, 5, 10)
TEXT_RECALLS = tuple(f"t2i_r{depth}" for depth in RECALL_DEPTHS)
"""The recalls of captions that look for their picture, by the names that reports and manifests use."""
LABELS = {f"t2i_r{depth}": f"R@{depth}" for depth in RECALL_DEPTHS}
"""What tables call them."""
MEAN = "t2i_mean"
CONCEPT, ELSEWHERE = "concept_p10", "elsewhere_p10"
"""Of the first ten pictures those that show the same thing, and those of other domains, in percent."""
QUERY_METRICS = (*TEXT_RECALLS, MEAN)
"""What a gate may judge by; the mean is that of the three."""


def mean_text_recall(recalls: Mapping[str, float]) -> float:
    """Returns the mean of a slice's recalls by text at all depths: the gate's metric."""
    return sum(recalls[name] for name in TEXT_RECALLS) / len(TEXT_RECALLS)
