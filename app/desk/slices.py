"""What a release measured on slices when it was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from app.desk.probes import shown_slices


@dataclass(frozen=True, slots=True)
class SliceSummary:
    """What was measured on one slice when the release was made."""

    language: str  # of its captions
    domain: str  # of its pictures
    images: int  # different things that have a caption
    captions: int  # how many looked for their picture
    recalls: Mapping[str, float]  # percent by `t2i_r1` and the like
    view: str = "own"  # in which gallery, and how, the captions looked (`model_updates.evaluation.View`)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SliceSummary:
        """Reads what `to_json` wrote."""
        return cls(**{f.name: data[f.name] for f in fields(cls) if f.name in data})

    def to_json(self) -> dict[str, Any]:
        """Returns the summary as plain values."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"recalls": dict(self.recalls)}


def recalls_of(slices: Iterable[SliceSummary]) -> dict[str, float]:
    """Returns R@10 in percent by language, over all captions of a person's own slices in their own domain's gallery."""
    measured: dict[str, list[SliceSummary]] = {}
    for one in shown_slices(slices):
        if one.view == "own" and one.captions:
            measured.setdefault(one.language, []).append(one)
    return {
        language: sum(one.recalls["t2i_r10"] * one.captions for one in every)
        / sum(one.captions for one in every)
        for language, every in measured.items()
    }
