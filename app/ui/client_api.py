"""What `gradio_client` calls on the search page: functions with named arguments that answer in plain values.

The screen's own events stay private: they take what menus hold and give back what components show, which a program
can neither name nor read. A picture's addresses are whole, so that a client fetches it as a browser would.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr
from gradio.events import api
from pydantic import ValidationError

from app.desk.hits import AUTO, SearchAnswer, SearchRequest
from app.desk.operation import document_of
from app.desk.troubles import OWN_ERRORS, invalid_sentence
from app.server.security import SEARCHER
from app.server.served import Served
from app.server.serving import Serving
from app.ui.access import base_of
from app.ui.wording import base_address

# Fewer than the queue's, so that programs leave room for people.
_SHARED: dict[str, Any] = {"concurrency_id": "search", "concurrency_limit": 4}


def add_client_api(serving: Serving) -> None:
    """Adds /search and /compare for programs; call inside the page."""
    functions = _ClientApi(serving)
    api(functions.search, api_name="search", api_description="Finds pictures by a text.", **_SHARED)
    api(functions.compare, api_name="compare", api_description="Asks two releases the same.", **_SHARED)


class _ClientApi:
    """The functions; Gradio reads their arguments' names and types."""

    def __init__(self, serving: Serving) -> None:
        self._desk = Served(serving, SEARCHER)

    def search(
        self,
        request: gr.Request,
        text: str,
        language: str = AUTO,
        domains: list[str] | None = None,
        k: int = 24,
        release: str | None = None,
    ) -> dict[str, Any]:
        """Finds pictures by a text.

        Args:
            request: Filled by Gradio.
            text: What they show.
            language: A learned language, or auto.
            domains: Only pictures of these; all when None.
            k: How many.
            release: Ask this one; the live one when None.
        """
        with _sentences():
            asked = SearchRequest(text=text, language=language, k=k, domains=domains, release=release)
            return _document(self._desk.search(asked), request)

    def compare(
        self, request: gr.Request, text: str, a: str, b: str, language: str = AUTO, k: int = 12
    ) -> dict[str, Any]:
        """Asks releases `a` and `b` the same, and says how pictures moved."""
        with _sentences():
            compared = self._desk.compare(text, a, b, language, k)
            return {
                "a": _document(compared.a, request),
                "b": _document(compared.b, request),
                "overlap": compared.overlap,
                "moves": [document_of(move) for move in compared.moves],
            }


def _document(answer: SearchAnswer, request: gr.Request) -> dict[str, Any]:
    base = base_address(*base_of(request))
    return {
        "release": answer.release,
        "language": answer.language,
        "note": answer.note,
        "hits": [
            {
                "id": hit.id,
                "score": hit.score,
                "rank": hit.rank,
                "captions": [document_of(caption) for caption in hit.captions],
                "thumb_url": f"{base}{hit.thumb_url}",
                "url": f"{base}{hit.url}",
            }
            for hit in answer.hits
        ],
    }


@contextmanager
def _sentences() -> Iterator[None]:
    """Turns what was refused into an error that clients show as a sentence."""
    try:
        yield
    except ValidationError as error:
        raise gr.Error(invalid_sentence(error.errors()), print_exception=False) from error
    except OWN_ERRORS as error:
        raise gr.Error(str(error), print_exception=False) from error
