"""What people say of a server's answers, and how good its releases are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from app.client.answers import FoundHit, SearchAnswer
from app.client.connection import Connection, given


class Judging(Connection):
    """What judges answers and releases."""

    def thumb(self, answer: SearchAnswer, hit: FoundHit, verdict: str) -> dict[str, Any]:
        """Says whether a hit is a good answer: `up` or `down`."""
        said = {"query": answer.query, "language": answer.language or "auto", "release": answer.release}
        return self.post("/v1/feedback", said | {"image": hit.id, "verdict": verdict})

    def vote(self, query: str, a: str, b: str, choice: str, *, language: str = "auto") -> dict[str, Any]:
        """Says which of two releases answered better: `a`, `b`, `tie` or `both_bad`."""
        said = {"query": query, "language": language, "a": a, "b": b, "choice": choice}
        return self.post("/v1/feedback", said)

    def pin(self, feedback: int) -> dict[str, Any]:
        """Makes a thumb up a canary: updates must keep its picture as the first answer."""
        return self.post(f"/v1/feedback/{feedback}/pin", {})

    def canaries(self) -> list[dict[str, Any]]:
        """Returns the queries whose first answer updates must keep."""
        return list(self.get("/v1/canaries")["canaries"])

    def remove_canary(self, query: str, *, language: str = "") -> dict[str, Any]:
        """Takes a canary away; its language is needed where it is pinned in several."""
        return self.post("/v1/canaries/remove", {"query": query, "language": language})

    def feedback(self, *, limit: int = 1000) -> dict[str, Any]:
        """Returns the newest `feedback`, and all `votes` counted by pair of releases."""
        return self.get("/v1/feedback", limit=limit)

    def proposal(self) -> dict[str, Any]:
        """Returns the `pairs` that could be taught of what people said, and how many were left out and why."""
        return self.get("/v1/feedback/proposal")

    def proposal_file(self, pairs: Collection[str] | None = None) -> bytes:
        """Returns the proposed chunk as a zip to look at; of these pairs' ids, or of all."""
        body = given({"pairs": None if pairs is None else sorted(pairs)})
        return self._ask("POST", "/v1/feedback/proposal.zip", json=body).content

    def quality(self, *, metric: str | None = None, view: str | None = None) -> dict[str, Any]:
        """Returns slices by versions, what there is to measure by, and which languages are asked for."""
        return self.get("/v1/quality", metric=metric, view=view)
