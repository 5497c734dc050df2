"""What two releases differ in, in sentences, the same for terminal and page."""

from __future__ import annotations

from app.desk.releases import Difference
from model_updates.gate.report import points
from model_updates.prospect import listed

SLICE_HEADERS = ("slice", "view", "A", "B", "change")


def difference_sentences(found: Difference) -> list[str]:
    """Returns what differs, a sentence a thing, what matters most first."""
    if found.same_version:
        said = [f"{found.a} and {found.b} have the same encoder: nothing is read or seen differently."]
    else:
        said = [*_known(found), _texts(found), _pictures(found)]
    a, b, both = found.pictures
    gallery = f"{a} pictures in A, {b} in B, {both} in both."
    return [one for one in [*said, gallery] if one]


def slice_rows(found: Difference) -> list[tuple[str, ...]]:
    """Returns recall on every slice in both; a dash where one did not measure it."""
    return [
        (
            one.slice,
            one.view,
            _percent(one.a),
            _percent(one.b),
            "–" if one.a is None or one.b is None else points(one.b - one.a),
        )
        for one in found.slices
    ]


def _known(found: Difference) -> list[str]:
    said = []
    for what, change in (("languages", found.languages), ("chunks", found.chunks)):
        if change.added:
            said.append(f"B alone has the {what} {listed(change.added)}.")
        if change.gone:
            said.append(f"A alone has the {what} {listed(change.gone)}.")
    return [f"A was trained last by {found.strategies[0]}, B by {found.strategies[1]}.", *said]


def _texts(found: Difference) -> str:
    same = f"Read the same to the bit: {listed(found.texts_same)}." if found.texts_same else ""
    changed = f"Read differently: {listed(found.texts_changed)}." if found.texts_changed else ""
    return f"{changed} {same}".strip()


def _pictures(found: Difference) -> str:
    if not found.pictures_changed:
        return "Every picture is seen the same to the bit."
    names = [name or "all without an adapter of their own" for name in found.pictures_changed]
    return f"Pictures seen differently: {listed(names)}."


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
