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

from app.query.snapshot import AUTO, Answer
from app.server.api_models import CompareRequest
from app.server.api_query import SearchRequest, question_of
from app.server.serving import OWN_ERRORS, Serving
from app.ui.access import base_of
from app.ui.wording import base_address, thumbnail_url

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
        self._serving = serving

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
            settings = self._serving.settings
            question = question_of(asked, longest=settings.max_query_characters, default_k=settings.default_k)
            answer = self._serving.find(question, release=asked.release)
            return self._document(answer, request)

    def compare(
        self, request: gr.Request, text: str, a: str, b: str, language: str = AUTO, k: int = 12
    ) -> dict[str, Any]:
        """Asks releases `a` and `b` the same, and says how pictures moved."""
        with _sentences():
            asked = CompareRequest(text=text, a=a, b=b, language=language, k=k)
            compared = self._serving.compare(asked.text, asked.a, asked.b, language=asked.language, k=asked.k)
            return {
                "a": self._document(compared.a, request),
                "b": self._document(compared.b, request),
                "overlap": compared.overlap,
                "moves": [
                    {"id": move.image_id, "rank_a": move.rank_a, "rank_b": move.rank_b}
                    for move in compared.moves
                ],
            }

    def _document(self, answer: Answer, request: gr.Request) -> dict[str, Any]:
        base = base_address(*base_of(request))
        found = self._serving.found([hit.image_id for hit in answer.hits], answer.language.split(" ")[0])
        return {
            "release": answer.release,
            "language": answer.language,
            "note": answer.note,
            "hits": [
                {
                    "id": hit.image_id,
                    "score": hit.score,
                    "rank": hit.rank,
                    "captions": [
                        {"language": caption.language, "text": caption.text}
                        for caption in found[hit.image_id].captions
                    ],
                    "thumb_url": thumbnail_url(base, hit.image_id),
                    "url": f"{base}/v1/images/{hit.image_id}",
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
        said = " ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}." for one in error.errors()[:3])
        raise gr.Error(said, print_exception=False) from error
    except OWN_ERRORS as error:
        raise gr.Error(str(error), print_exception=False) from error
