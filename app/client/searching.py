"""Searching a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import httpx

from app.client.answers import Compared, FoundHit, SearchAnswer
from app.client.connection import Connection, given, typed
from app.client.errors import Refused
from app.desk.errors import UsageProblem
from app.desk.hits import AnswerChange, Asked, ManyCompared
from app.query.comparison import MOST_QUERIES, distinct, mean_overlap


class Searching(Connection):
    """What finds pictures."""

    def search(self, text: str | None = None, **options: Any) -> SearchAnswer:
        """Finds pictures by a text in the query grammar and by what else the options say.

        Options are the fields of `POST /v1/search`: image, items, parts, language, k, domains, mode, cursor, release, …
        """
        return SearchAnswer.model_validate(self.post("/v1/search", given({"text": text, **options})))

    def results(self, kind: Literal["csv", "zip"], text: str | None = None, **options: Any) -> bytes:
        """Returns what a search finds as a table, or as its pictures with that table; options as in `search`."""
        return self._ask("POST", f"/v1/search.{kind}", json=given({"text": text, **options})).content

    def compare(self, text: str, a: str, b: str, *, language: str = "auto", k: int | None = None) -> Compared:
        """Asks two releases the same."""
        body = {"text": text, "a": a, "b": b, "language": language, "k": k}
        return Compared.model_validate(self.post("/v1/compare", given(body)))

    def picture(self, hit: FoundHit, *, thumbnail: bool = False) -> bytes:
        """Returns a hit's picture as WebP."""
        return self._ask("GET", hit.thumb_url if thumbnail else hit.url).content

    def compare_all(
        self, queries: Iterable[str], a: str, b: str, *, language: str = "auto", k: int | None = None
    ) -> ManyCompared:
        """Asks two releases many queries; of each, how its answer differs, or why there is none."""
        sides = given({"a": a, "b": b, "language": language, "k": k})
        wanted = distinct(queries)
        told = [
            self.post("/v1/comparisons", sides | {"queries": wanted[start : start + MOST_QUERIES]})
            for start in range(0, len(wanted), MOST_QUERIES)
        ]
        if not told:
            raise UsageProblem("No query was given to compare the two releases by.")
        asked = tuple(_asked(item) for one in told for item in one["results"])
        return ManyCompared(told[0]["a"], told[0]["b"], len(asked), mean_overlap(asked), asked)

    def changed(
        self, a: str, b: str, *, language: str = "auto", k: int | None = None, most: int | None = None
    ) -> ManyCompared:
        """Asks two releases canaries and held-out captions; returns those whose answers changed most."""
        told = self.get("/v1/comparisons/changed", a=a, b=b, language=language, k=k, most=most)
        asked = tuple(_asked(item) for item in told["results"])
        return ManyCompared(told["a"], told["b"], told["queries"], told["overlap"], asked)


def _asked(item: dict[str, Any]) -> Asked:
    if item["status"] != httpx.codes.OK:
        return Asked(item["query"], error=Refused(item["error"], item["status"], item["code"]))
    return Asked(item["query"], typed(AnswerChange, item))
