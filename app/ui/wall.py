"""A wall of queries before and after: what is live finds on the left, a candidate on the right, what moved is marked.

The queries are a person's own: what this browser remembers of its searches, which the page sends along and nobody
keeps; canaries and queries with a thumb up; and the test captions that moved most.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import parse_qs

import gradio as gr

from app.desk.hits import AUTO, Compared, Found
from app.desk.troubles import OWN_ERRORS
from app.query.grammar import literal
from app.ui.access import Access, Shown, Visit
from app.ui.compare_words import rank_move
from app.ui.drawn import Markup, drawing, drawn, tag
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.wording import thumbnail_url
from app.ui.words import Words
from app.words.own_report import shown_report
from ingest.sentence import phrase

MOST_ASKED = 12
MOST_SHOWN = 6
_PICTURES = 6  # of each answer
_EACH = 2  # canaries, liked queries, and test captions that won and that lost
_SOON = 0.4  # seconds
_LONGEST = 200  # characters of a query that a browser sends


@dataclass(frozen=True)
class _Asked:
    query: str  # in the query grammar
    language: str  # that was told, or "auto"
    what: str  # it is, for people


class Wall:
    """The components, and what happens on them: asking takes seconds, so it begins when all else is shown."""

    def __init__(self, access: Access, name: str) -> None:
        """Draws them; call where they are to stand. `name` begins their ids."""
        self.access = access
        self.timer = gr.Timer(_SOON, active=False)
        self.remembered = gr.Textbox(
            "", label="Searches", visible="hidden", interactive=True, elem_id=f"{name}-remembered"
        )
        self.said = text(f"{name}-wall-said", "status")
        self.wall = drawing(f"{name}-wall", "wall")

    @property
    def components(self) -> list[Any]:
        """What `begun` fills."""
        return [self.timer, self.said, self.wall]

    def begun(self) -> Shown:
        """Returns what stands there before a release's answers are known."""
        return {self.timer: gr.update(active=True), self.said: "", self.wall: drawn(None)}

    def connect(self, release: gr.State) -> None:
        """Connects them; `release` is the id of the one whose wall is drawn."""
        over = {self.timer: gr.update(active=False)}
        draw = self.access.of_admin(
            lambda visit, *given: {**over, **self._shown(visit, *given)}, self.said, over
        )
        # At once: a tick that waits in a queue would be asked again.
        self.timer.tick(draw, [release, self.remembered], self.components, show_progress="hidden", **AT_ONCE)

    def _shown(self, visit: Visit, release: str, remembered: str) -> Shown:
        releases = {one.id: one for one in visit.desk.releases()}
        found = releases.get(release)
        live = next((one.id for one in releases.values() if one.live), None)
        before = releases.get((found.parent if found is not None and found.live else live) or "")
        if found is None or before is None or found.pruned or before.version == found.version:
            return {self.said: "", self.wall: drawn(None)}
        told = []
        for one in _queries(visit, release, remembered):
            # What cannot be answered any more, such as a query with a picture that is gone, is left out.
            with suppress(*OWN_ERRORS):
                told.append((one, visit.desk.compare(one.query, before.id, release, one.language, _PICTURES)))
        changed = [(one, compared) for one, compared in told if _has_moved(compared)]
        rows = [_row(one, compared, visit) for one, compared in changed[:MOST_SHOWN]]
        return {
            self.said: wall_line(len(told), len(changed), visit.say),
            self.wall: drawn(tag("div", rows) if rows else None),
        }


def remembered_searches(sent: str) -> list[tuple[str, str]]:
    """Returns query and language of the searches that a browser remembers; what it sends that is none is left out.

    Args:
        sent: a JSON list of addresses such as `?text=two+red+boats&language=en`.
    """
    try:
        addresses = json.loads(sent or "[]")
    except ValueError:
        return []
    found: dict[str, str] = {}
    for address in addresses if isinstance(addresses, list) else []:
        parts = parse_qs(str(address).partition("?")[2])
        query = " ".join(parts.get("text", [""])[0].split())
        if query and len(query) <= _LONGEST:
            found.setdefault(query, parts.get("language", [AUTO])[0])
    return list(found.items())


def wall_line(asked: int, changed: int, say: Words) -> str:
    """Says of how many queries the answer changed."""
    if not asked:
        return ""
    if not changed:
        return say("All {count} queries that were tried get the same pictures as before.", count=asked)
    return say(
        "{changed} of {count} queries that were tried get other pictures, or the same in another order.",
        changed=changed,
        count=asked,
    )


def _queries(visit: Visit, release: str, remembered: str) -> list[_Asked]:
    """Returns what is asked, each query once."""
    found: dict[str, _Asked] = {}
    for one in islice(_every(visit, release, remembered), MOST_ASKED):
        found.setdefault(one.query, one)
    return list(found.values())


def _every(visit: Visit, release: str, remembered: str) -> Iterator[_Asked]:
    for query, language in remembered_searches(remembered)[:MOST_SHOWN]:
        yield _Asked(query, language, phrase("searched for in this browser"))
    for pin in visit.desk.canaries()[:_EACH]:
        yield _Asked(literal(pin.query), AUTO, phrase("a canary"))
    liked = (one for one in visit.desk.feedback().feedback if one.verdict == "up")
    for said in islice(liked, _EACH):
        yield _Asked(said.query, AUTO, phrase("liked"))
    gate = visit.desk.release(release).judged.gate
    if gate is not None:
        report = shown_report(gate)
        for moved in (*report.won[:_EACH], *report.lost[:_EACH]):
            yield _Asked(literal(moved.text), AUTO, phrase("a test caption"))


def _has_moved(compared: Compared) -> bool:
    return [hit.id for hit in compared.a.hits] != [hit.id for hit in compared.b.hits]


def _row(asked: _Asked, compared: Compared, visit: Visit) -> Markup:
    say = visit.say
    ranks = {hit.id: hit.rank for hit in compared.a.hits}
    kept = {hit.id for hit in compared.b.hits}
    before = [_picture(hit, "" if hit.id in kept else say("gone"), visit) for hit in compared.a.hits]
    after = [
        _picture(hit, rank_move(ranks.get(hit.id), hit.rank, say).strip("="), visit)
        for hit in compared.b.hits
    ]
    sides = [_side(say("before"), before), _side(say("after"), after)]
    head = tag("h3", tag("span", compared.a.query, dir="auto"), " ", tag("small", say.said(asked.what)))
    return tag("section", head, tag("div", sides, class_="sides"))


def _side(name: str, pictures: Sequence[Markup]) -> Markup:
    return tag("div", tag("small", name), tag("ol", pictures, aria_label=name), class_="half")


def _picture(hit: Found, mark: str, visit: Visit) -> Markup:
    said = hit.captions[0].text if hit.captions else visit.say("A picture without a caption")
    image = tag("img", src=thumbnail_url(visit.base, hit.id), alt=said, title=said, loading="lazy")
    return tag("li", image, tag("b", mark) if mark else [], class_="moved" if mark else None)
