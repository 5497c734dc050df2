"""What the Search tab shows, as HTML: the route that `search.js` asks for each page of pictures.

It is no event of Gradio's, so that pictures stand on the page before Gradio has started, and a page more costs no
round through its components. The answer is in the words of the browser; all text in it is escaped by `drawn.tag`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import Field

from app.desk.desk import Desk
from app.desk.errors import CaptionsNotReady
from app.desk.fields import Strict
from app.desk.hits import (
    MOST_PARTS,
    Choices,
    Mode,
    Picture,
    QueryPart,
    SearchAnswer,
    SearchRequest,
    Sort,
)
from app.desk.troubles import OWN_ERRORS, trouble_of
from app.query.grammar import Kind, parse
from app.server.api_context import AnyDesk
from app.server.served import Served
from app.ui import search_words
from app.ui.address import address_of, asked_of, is_empty
from app.ui.drawn import Attribute, Markup, tag
from app.ui.search_filters import known
from app.ui.words import Words, spoken

PATH = "/pictures"
AT_ONCE = 24
"""Pictures of one answer: as many as the screen of a desk has room for; more are asked for once a person scrolls."""
_CAPTIONS = 8  # that a query by pictures shows beside the pictures it finds
_FILES = {"csv": ("results.csv", "text/csv"), "zip": ("results.zip", "application/zip")}


class Wanted(Strict):
    """What the browser asks for: the search of an address, or the page of it that a cursor names."""

    address: Annotated[str, Field(max_length=64_000)] = ""
    pictures: Annotated[list[Picture], Field(max_length=MOST_PARTS)] = []  # dropped into the box
    cursor: Annotated[str, Field(max_length=400)] = ""
    file: Literal["", "csv", "zip"] = ""  # the pictures that are shown, as a file instead
    release: Annotated[str, Field(max_length=80)] = (
        ""  # that found the pictures of a file; the live one without it
    )
    shown: Annotated[int, Field(ge=1, le=1000)] = AT_ONCE  # pictures that a file is to have


def add_answers(app: FastAPI) -> None:
    """Adds the route; it needs whoever may search."""

    def words(request: Request) -> Words:
        return Words(spoken(request.headers.get("accept-language", "")))

    def answered(wanted: Wanted, desk: AnyDesk, request: Request) -> Response:
        return answer_to(desk, wanted, words(request))

    def coming(desk: AnyDesk, request: Request) -> Response:
        """What is live, and how far the work is that adds pictures to it."""
        live = desk.snapshot()
        line, part = search_words.coming(desk.taking_in(), words(request), is_first=not live.pictures)
        told = {"release": live.release.id, "pictures": live.pictures, "line": line, "part": part}
        return JSONResponse(told, headers={"Cache-Control": "no-store"})

    app.add_api_route(PATH, answered, methods=["POST"], include_in_schema=False)
    app.add_api_route("/coming", coming, include_in_schema=False)


def answer_to(desk: Served, wanted: Wanted, say: Words) -> Response:
    """Returns what is wanted, or in a sentence why there is none."""
    try:
        if wanted.file:
            return _file(desk, wanted)
        return HTMLResponse(_page(desk, wanted, say))
    except OWN_ERRORS as error:
        return HTMLResponse(_refused(say.said(trouble_of(error).sentence), say), trouble_of(error).status)


def _page(desk: Served, wanted: Wanted, say: Words) -> Markup:
    asked, left_out = asked_of(wanted.address)
    choices = None
    if not wanted.cursor:
        choices = desk.choices()
        asked, missing = known(asked, choices)
        left_out = [*missing, *left_out]
    address = address_of(asked)  # without what is not here
    answer, note = _found(desk, _request(asked, wanted))
    tiles = tag("ul", search_words.tiles(answer.hits, address, say))
    if choices is None:
        return _framed(answer, address, [tiles])
    if not choices.pictures:
        return _framed(answer, address, [_nothing(desk, asked, choices, say), tiles], data_pictures=0)
    said = search_words.above(
        answer, asked, choices, say, [search_words.missing(left_out, say), say.said(note)]
    )
    empty = [] if answer.hits else [_nothing(desk, asked, choices, say)]
    adds = "" if desk.may_add() else None  # there for who may upload
    more: dict[str, Attribute] = {"data_adds": adds, "data_pictures": choices.pictures}
    return _framed(answer, address, [said, *empty, tiles], **more)


def _framed(answer: SearchAnswer, address: str, inside: list[Markup], **more: Attribute) -> Markup:
    """Returns a page with what the script has to know of it; of a first one, how many pictures there are."""
    # A picture that was dropped into the box is not kept, so a thumb on what it finds would say nothing.
    is_sent = any(part.kind == Kind.IMAGE for part in answer.parts)
    return tag(
        "div",
        inside,
        class_="answer",
        data_address=address,
        data_next=answer.next,
        data_release=answer.release,
        data_query=None if is_sent else answer.query,
        data_language=answer.language.split(" + ")[0],
        data_all=answer.searched,
        data_unlearned=answer.unlearned or None,
        **more,
    )


def _request(asked: SearchRequest, wanted: Wanted) -> SearchRequest:
    """Returns what is asked of the desk.

    What only words can be looked up in, or ordered by, is not asked of pictures; those find captions, too.

    Raises:
        BadQuery: the text is none of the grammar.
    """
    more: dict[str, object] = {"k": AT_ONCE, "cursor": wanted.cursor}
    terms = parse(asked.text) if asked.text else ()
    if wanted.cursor:
        more["offset"] = 0
    if wanted.pictures or asked.items or any(term.kind is not Kind.TEXT for term in terms):
        parts = [QueryPart(image=one) for one in wanted.pictures]
        captions = 0 if wanted.cursor else _CAPTIONS
        more |= {"parts": parts, "mode": Mode.VECTORS, "rerank": False, "captions": captions}
    elif is_empty(asked):
        return asked.model_copy(update={**more, "mode": Mode.VECTORS, "rerank": False, "translation": ""})
    more["sort"] = Sort.ADDED  # what is found stands in the order in which it fits
    return asked.model_copy(update=more)


def _found(desk: Desk, asked: SearchRequest) -> tuple[SearchAnswer, str]:
    """Answers a page; while captions are still being read, without them and with a note that says so."""
    try:
        return desk.search(asked), ""
    except CaptionsNotReady as error:
        return desk.search(asked.model_copy(update={"captions": 0})), str(error)


def _file(desk: Desk, wanted: Wanted) -> Response:
    name, media = _FILES[wanted.file]
    asked = _request(asked_of(wanted.address)[0], wanted)
    asked = asked.model_copy(update={"k": wanted.shown, "captions": 0, "release": wanted.release or None})
    data = desk.results_table(asked) if wanted.file == "csv" else desk.results_archive(asked)
    return Response(data, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _nothing(desk: Served, asked: SearchRequest, choices: Choices, say: Words) -> Markup:
    """Returns what stands in the place of pictures where there are none."""
    if choices.pictures:
        title, hint = say("No pictures here"), say("Nothing fits all of these filters.")
        link = tag("a", say("Clear the filters"), href=search_words.without_filters(asked))
        return tag("div", tag("h2", title), tag("p", hint), link, class_="state")
    line, part = search_words.coming(desk.taking_in(), say, is_first=True)
    if line:
        bar = tag("progress", value=part, max=1, aria_label=say("Adding pictures"))
        return tag("div", tag("h2", line), bar, class_="state reading")
    if desk.may_add():
        return tag("div", tag("h2", say("No pictures yet")), class_="state", data_drop="here")
    hint = say("Somebody who may upload adds the first ones.")
    return tag("div", tag("h2", say("No pictures yet")), tag("p", hint), class_="state")


def _refused(sentence: str, say: Words) -> Markup:
    back = tag("a", say("Show all pictures"), href="?")
    return tag("div", tag("div", tag("p", sentence), back, class_="said refused"), tag("ul"), class_="answer")
