"""What a release says of the slices it was measured on."""

from __future__ import annotations

from collections.abc import Mapping

from app.desk.releases import SliceSummary
from model_updates.evaluation import SliceResult
from model_updates.measurement import Measured


def summaries(results: Mapping[Measured, SliceResult]) -> tuple[SliceSummary, ...]:
    """Returns what a release's manifest says of each slice in each view.

    Of a slice that is known and was taught more, what has more captions is told.
    """
    chosen: dict[tuple[str, str, str], SliceResult] = {}
    for measured, result in sorted(results.items()):
        key = (measured.key.language, measured.key.domain, str(measured.view))
        if key not in chosen or len(result.text_ranks) > len(chosen[key].text_ranks):
            chosen[key] = result
    return tuple(
        SliceSummary(
            language=language,
            domain=domain,
            view=view,
            images=result.groups,
            captions=len(result.text_ranks),
            recalls={name: round(value, 3) for name, value in result.recalls().items()},
        )
        for (language, domain, view), result in chosen.items()
    )
