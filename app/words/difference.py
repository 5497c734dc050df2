"""What two releases differ in, in sentences, the same for terminal and page."""

from __future__ import annotations

from app.desk.releases import Difference
from ingest.sentence import joined, phrase
from model_updates.gate.report import points
from model_updates.prospect import listed

SLICE_HEADERS = ("slice", "view", "A", "B", "change")


def difference_sentences(found: Difference) -> list[str]:
    """Returns what differs, a sentence a thing, what matters most first."""
    said: list[str]
    if found.same_version:
        said = [
            phrase(
                "{a} and {b} have the same encoder: nothing is read or seen differently.",
                a=found.a,
                b=found.b,
            )
        ]
    else:
        said = [*_known(found), _texts(found), _pictures(found)]
    a, b, both = found.pictures
    gallery = phrase("{a} pictures in A, {b} in B, {both} in both.", a=a, b=b, both=both)
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
    if found.languages.added:
        said.append(phrase("B alone has the languages {languages}.", languages=listed(found.languages.added)))
    if found.languages.gone:
        said.append(phrase("A alone has the languages {languages}.", languages=listed(found.languages.gone)))
    if found.chunks.added:
        said.append(phrase("B alone has the chunks {chunks}.", chunks=listed(found.chunks.added)))
    if found.chunks.gone:
        said.append(phrase("A alone has the chunks {chunks}.", chunks=listed(found.chunks.gone)))
    return [
        phrase("A was trained last by {a}, B by {b}.", a=found.strategies[0], b=found.strategies[1]),
        *said,
    ]


def _texts(found: Difference) -> str:
    said = []
    if found.texts_changed:
        said.append(phrase("Read differently: {languages}.", languages=listed(found.texts_changed)))
    if found.texts_same:
        said.append(phrase("Read the same to the bit: {languages}.", languages=listed(found.texts_same)))
    return joined(said)


def _pictures(found: Difference) -> str:
    if not found.pictures_changed:
        return phrase("Every picture is seen the same to the bit.")
    names = [name or phrase("all without an adapter of their own") for name in found.pictures_changed]
    return phrase("Pictures seen differently: {domains}.", domains=listed(names))


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
