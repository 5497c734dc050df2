"""The words on the screens: numbers, names and records turned into short lines. Nothing here draws or decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from app.desk.health import Degraded
from app.desk.releases import ListedRelease, Node
from app.ui.drawn import tag
from app.ui.words import ENGLISH, Words
from app.words.language_names import name_in, own_name
from ingest.sentence import phrase

_FEW_LANGUAGES = 4
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def escaped(text: object) -> str:
    """Returns any text as one Markdown line that shows exactly that text: no markup, links or HTML."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(str(text).split()))


def refusal(error: object, say: Words) -> str:
    """Returns an error, or what else stands in the way, as a line in bold."""
    return f"**{escaped(say.said(str(error)))}**"


def degraded_lines(found: Iterable[Degraded], say: Words) -> str:
    """Returns what is not as it should be: a line each, with since when and the command that mends it, if one does."""
    lines = []
    for one in found:
        what, time = escaped(say.said(one.what)), moment(one.since)
        lines.append(
            say("{what} Since {time} UTC; `{command}` mends it.", what=what, time=time, command=one.mend)
            if one.mend
            else say("{what} Since {time} UTC.", what=what, time=time)
        )
    return "\n\n".join(lines)


def plain_languages(tags: Iterable[str]) -> list[tuple[str, str]]:
    """Returns a menu of languages by their own names."""
    return [(own_name(tag), tag) for tag in tags]


def release_rows(
    releases: Sequence[ListedRelease], shadow: str = "", say: Words = ENGLISH
) -> list[list[str]]:
    """Returns the table of releases, a row each in their order; `shadow` is asked live queries in the shadow."""

    def state(one: ListedRelease) -> str:
        if one.live:
            return f"● {say('live')}"
        if one.pruned:
            return f"✂ {say('pruned')}"
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
            _languages(one.languages, say),
            moment(one.created),
        ]
        for one in releases
    ]


def _languages(tags: Sequence[str], say: Words) -> str:
    """Returns a few languages by their tags, and of many the number, whose title lists them."""
    if len(tags) <= _FEW_LANGUAGES:
        return ", ".join(tags)
    names = ", ".join(name_in(one, say.language) for one in tags)
    return tag("span", say("{count} languages", count=len(tags)), title=names)


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
    "rollback": phrase("rolled back to"),
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
    """Returns a menu of the releases that are kept."""

    def label(one: ListedRelease) -> str:
        return f"{one.id}  ·  {one.strategy or say('base')}" + (f"  ● {say('live')}" if one.live else "")

    return [(label(one), one.id) for one in releases if not one.pruned]


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
