"""How far the vectors of two releases have turned, drawn: how angles are spread, a row of bars each."""

from __future__ import annotations

from dataclasses import asdict

from app.desk.verdicts import ReleaseDrift
from app.ui.drawn import Markup, framed_table, tag
from app.ui.quality_words import named
from app.ui.words import ENGLISH, Words
from app.words.drift import finds_words
from model_updates.drift import Angles

HEADERS = ("angle", "mean", "how the angles are spread, in degrees", "angles")
ROWS = (
    ("pictures turned (RAM)", "ram_pictures"),
    ("texts turned (RAM)", "ram_texts"),
    ("angles among pictures (SAM)", "sam_pictures"),
    ("angles among texts (SAM)", "sam_texts"),
    ("text to its picture (ImAM)", "imam_text_to_image"),
    ("picture to its text (ImAM)", "imam_image_to_text"),
)


def drift_view(found: ReleaseDrift, say: Words = ENGLISH) -> Markup:
    """Draws how angles are spread, a row of bars each, with the figures beside."""
    languages = ", ".join(named(one, say) for one in found.languages)
    said = say(
        "{count} held-out pairs in {languages}, as {before} and {after} see them. When both "
        "towers turn by the same rotation, only RAM shows it and no search changes; ImAM shows "
        "what search feels.",
        count=found.pairs,
        languages=languages,
        before=found.before,
        after=found.after,
    )
    rows = [_drift_row(say.header(title), getattr(found.drift, name), say) for title, name in ROWS]
    return tag(
        "div",
        framed_table([say.header(one) for one in HEADERS], rows, say=say),
        tag("p", said),
        tag("p", say.said(finds_words(found.before, found.after, asdict(found.drift.finds)))),
    )


def _drift_row(title: str, angles: Angles, say: Words) -> Markup:
    edges = [say("to {count}", count=f"{edge:.0f}") for edge in angles.edges]
    edges.append(say("above {count}", count=f"{angles.edges[-1]:.0f}"))
    bars = [
        tag(
            "span",
            f"{share:.0f} %",
            class_="share",
            style=f"--strength:{share / 100:.2f}",
            title=f"{edge}: {share:.1f} %",
        )
        for edge, share in zip(edges, angles.shares, strict=True)
    ]
    scale = [tag("small", edge) for edge in edges]
    spread = tag(
        "div",
        *(tag("div", bar, word) for bar, word in zip(bars, scale, strict=True)),
        class_="spread",
    )
    mean = "–" if angles.mean is None else f"{angles.mean:.1f}°"
    return tag(
        "tr",
        tag("th", title, scope="row"),
        tag("td", mean),
        tag("td", spread),
        tag("td", f"{angles.count:,}"),
    )
