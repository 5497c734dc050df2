"""The words on the screens: numbers, names and records turned into short lines. Nothing here draws or decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from app.desk.releases import ListedRelease, Node, SliceSummary
from app.home.store import ReleaseRecord
from app.query.snapshot import AUTO, Answer, CompareAnswer
from app.ui.grid import Picture
from app.ui.language_names import name_in, own_name
from app.ui.words import ENGLISH, Words
from ingest.pair import ImageId
from ingest.sentence import phrase
from model_updates.evaluation import View
from model_updates.gate.report import points
from model_updates.recalls import LABELS, TEXT_RECALLS

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def escaped(text: object) -> str:
    """Returns any text as one Markdown line that shows exactly that text: no markup, links or HTML."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(str(text).split()))


def refusal(error: object, say: Words) -> str:
    """Returns an error, or what else stands in the way, as a line in bold."""
    return f"**{escaped(say.said(str(error)))}**"


def language_choices(release: ReleaseRecord, languages: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the language menu: detection first, then each learned language with how well it is found."""
    return [("Any language", AUTO)] + [(_with_badge(tag, release), tag) for tag in languages]


def recall_badge(release: ReleaseRecord, language: str) -> str:
    """Returns "R@10 87" over all held-out captions of a language, or nothing when none were measured."""
    measured = [part for part in release.manifest.slices if part.language == language and part.view == "own"]
    captions = sum(part.captions for part in measured)
    if not captions:
        return ""
    hits = sum(part.recalls["t2i_r10"] * part.captions for part in measured)
    return f"R@10 {hits / captions:.0f}"


def plain_languages(tags: Iterable[str]) -> list[tuple[str, str]]:
    """Returns a menu of languages by their own names."""
    return [(own_name(tag), tag) for tag in tags]


Captions = Mapping[ImageId, str]
"""A caption of each picture that has one."""


def hit_pictures(
    found: Sequence[tuple[ImageId, float]], captions: Captions, base: str, say: Words = ENGLISH
) -> list[Picture]:
    """Returns the pictures that were found, with the score on each."""
    return [_picture(image_id, f"{score:.3f}", captions, base, say) for image_id, score in found]


def compared_pictures(
    compared: CompareAnswer, captions: Captions, base: str, say: Words = ENGLISH
) -> tuple[list[Picture], list[Picture]]:
    """Returns both grids; each picture says its rank, and on the right how far it moved."""
    before = {hit.image_id: hit.rank for hit in compared.a.hits}
    left = [
        _picture(hit.image_id, f"{hit.rank} · {hit.score:.3f}", captions, base, say)
        for hit in compared.a.hits
    ]
    right = [
        _picture(
            hit.image_id,
            f"{hit.rank} {rank_move(before.get(hit.image_id), hit.rank, say)}",
            captions,
            base,
            say,
        )
        for hit in compared.b.hits
    ]
    return left, right


def _picture(image_id: ImageId, note: str, captions: Captions, base: str, say: Words) -> Picture:
    said = captions.get(image_id) or say("A picture without a caption")
    return Picture(thumbnail_url(base, image_id), said, note)


def rank_move(before: int | None, now: int, say: Words = ENGLISH) -> str:
    """Returns "▲2", "▼1", "=" or "new"."""
    if before is None:
        return say("new")
    if before == now:
        return "="
    return f"▲{before - now}" if before > now else f"▼{now - before}"


def overlap_line(compared: CompareAnswer, say: Words = ENGLISH) -> str:
    """Returns how much two answers have in common, and how each read the query."""
    overlap = say(
        "**{share} % overlap** in the first {count}",
        share=f"{100 * compared.overlap:.0f}",
        count=max(len(compared.a.hits), len(compared.b.hits)),
    )
    return f"{overlap} · A {_reading(compared.a, say)} · B {_reading(compared.b, say)}"


def compared_slices(a: ReleaseRecord, b: ReleaseRecord, say: Words = ENGLISH) -> list[list[str]]:
    """Returns recall per slice in both releases and the difference, a row each."""
    first, second = (
        {(part.language, part.domain, part.view): part for part in record.manifest.slices}
        for record in (a, b)
    )
    rows = []
    for key in sorted(first.keys() | second.keys(), key=_by_slice_then_view):
        language, domain, view = key
        pair = first.get(key), second.get(key)
        counted = pair[1] or pair[0]
        cells = [cell for name in TEXT_RECALLS for cell in _both(pair, name)]
        name = f"{language}/{domain}" + ("" if view == "own" else f" ({say.said(view)})")
        rows.append([name, str(counted.images) if counted else "–", *cells])
    return rows


def _by_slice_then_view(key: tuple[str, str, str]) -> tuple[str, str, int]:
    language, domain, view = key
    return language, domain, list(View).index(View(view))


COMPARED_HEADERS = ["slice", "images"] + [
    f"{name} {part}" for name in LABELS.values() for part in ("A", "B", "Δ")
]


def release_rows(
    releases: Sequence[ListedRelease], shadow: str = "", say: Words = ENGLISH
) -> list[list[str]]:
    """Returns the table of releases, a row each in their order; `shadow` is asked live queries in the shadow."""

    def state(one: ListedRelease) -> str:
        if one.live:
            return f"● {say('live')}"
        return f"◐ {say('shadow')}" if one.id == shadow else ""

    return [
        [
            state(one),
            one.id,
            one.parent or "–",
            one.strategy or say("base"),
            say.said(one.verdict or "–"),
            say.said(one.mode or "–"),
            "–" if one.images_embedded is None else str(one.images_embedded),
            ", ".join(one.languages),
            moment(one.created),
        ]
        for one in releases
    ]


RELEASE_HEADERS = [
    "state",
    "release",
    "parent",
    "strategy",
    "gate",
    "mode",
    "embedded",
    "languages",
    "created (UTC)",
]


REASONS = {
    "init": phrase("made"),
    "promote": phrase("promoted"),
    "rollback": phrase("gone back to"),
    "ingest": phrase("pictures added"),
}
"""What happened to a release in a commit."""


def history_rows(lineage: Iterable[Node], say: Words = ENGLISH) -> list[list[str]]:
    """Returns every change of the live release, newest first."""
    changes = [(period, node.release) for node in lineage for period in node.periods]
    return [
        [
            str(one.commit),
            moment(one.since),
            say.said(REASONS.get(one.reason, one.reason)),
            release,
            one.by,
            one.why,
        ]
        for one, release in sorted(changes, key=lambda change: -change[0].commit)
    ]


HISTORY_HEADERS = ["commit", "time (UTC)", "what", "release", "by", "why"]


def release_choices(releases: Iterable[ListedRelease], say: Words = ENGLISH) -> list[tuple[str, str]]:
    """Returns a menu of releases."""

    def label(one: ListedRelease) -> str:
        return f"{one.id}  ·  {one.strategy or say('base')}" + (f"  ● {say('live')}" if one.live else "")

    return [(label(one), one.id) for one in releases]


def moment(value: object) -> str:
    """Returns an ISO time as "2026-11-21 14:05", or a dash."""
    return str(value)[:16].replace("T", " ") if value else "–"


def base_address(headers: Mapping[str, str], scheme: str) -> str:
    """Returns the address that the browser reached us by, such as `https://search.example`."""
    host, origin = headers.get("host", ""), headers.get("origin", "")
    if origin and urlsplit(origin).netloc == host:
        return origin
    return f"{headers.get('x-forwarded-proto', scheme)}://{host}"


def thumbnail_url(base: str, image_id: str) -> str:
    """Returns where a thumbnail is; absolute, because Gradio takes a relative address for a file."""
    return f"{base}/v1/images/{image_id}/thumbnail"


def _with_badge(tag: str, release: ReleaseRecord) -> str:
    badge = recall_badge(release, tag)
    return f"{own_name(tag)} · {badge}" if badge else own_name(tag)


def _reading(answer: Answer, say: Words) -> str:
    shown = answer.language.split(" + ")
    if len(answer.detected) == 1 and len(shown) == 1:
        return say("language: {language}", language=name_in(shown[0], say.language))
    sure = dict(answer.detected)
    named = (f"{name_in(tag, say.language)} ({sure.get(tag, 0.0):.2f})" for tag in shown)
    return say("detected: {languages}", languages=say(" or ").join(named))


def _both(pair: tuple[SliceSummary | None, SliceSummary | None], name: str) -> list[str]:
    values = [None if part is None else part.recalls[name] for part in pair]
    cells = ["–" if value is None else f"{value:.1f}" for value in values]
    change = "–" if values[0] is None or values[1] is None else points(values[1] - values[0])
    return [*cells, change]
