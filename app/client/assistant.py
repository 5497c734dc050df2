"""A running server as tools for assistants that speak the Model Context Protocol (extra `mcp`).

The tools only read. What a model makes of captions is its own affair, but nothing in them can change anything here.
"""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from app.desk.desk import Desk
from app.desk.errors import AppError
from app.desk.hits import SearchAnswer, SearchRequest
from app.desk.operation import document_of

_READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_LISTED = ("id", "live", "strategy", "verdict", "languages", "created")
_Count = Annotated[int, Field(ge=1, le=50)]


def assistant_server(desk: Desk) -> MCPServer[Any]:
    """Builds the tools around a desk; `run("stdio")` serves them."""
    server: MCPServer[Any] = MCPServer(
        "perennial", instructions="Searches a picture collection by text, in any language it has learned."
    )
    tools = _Tools(desk)
    for tool in (tools.search_pictures, tools.compare_releases, tools.list_releases, tools.show_picture):
        server.add_tool(tool, annotations=_READS)
    return server


class _Tools:
    """The tools; names, arguments and docstrings are what an assistant is told of them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def search_pictures(
        self, text: str, language: str = "auto", k: _Count = 10, domains: list[str] | None = None
    ) -> dict[str, Any]:
        """Find pictures that show what a text describes; weights and signs may join parts: "2:red car - fruit"."""
        try:
            asked = SearchRequest(text=text, language=language, k=k, domains=domains)
            return _told(self._desk.search(asked))
        except AppError as error:
            raise ToolError(error.message) from error

    def compare_releases(self, text: str, a: str, b: str, k: _Count = 10) -> dict[str, Any]:
        """Ask two releases of the search the same, and see how pictures moved between them."""
        try:
            compared = self._desk.compare(text, a, b, k=k)
        except AppError as error:
            raise ToolError(error.message) from error
        return {"overlap": compared.overlap, "a": _told(compared.a), "b": _told(compared.b)}

    def list_releases(self) -> list[dict[str, Any]]:
        """List the releases of the search, newest first: what each has learned, and which is live."""
        try:
            listed = self._desk.releases()
        except AppError as error:
            raise ToolError(error.message) from error
        return [{name: document_of(one)[name] for name in _LISTED} for one in listed]

    def show_picture(self, picture_id: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]) -> Image:
        """Show a picture by the id that a search gave."""
        try:
            data = self._desk.thumbnail(picture_id)
        except AppError as error:
            raise ToolError(error.message) from error
        return Image(data=data, format="webp")


def _told(answer: SearchAnswer) -> dict[str, Any]:
    return {
        "release": answer.release,
        "read_as": answer.language,
        "note": answer.note,
        "pictures": [
            {
                "id": hit.id,
                "rank": hit.rank,
                "score": None if hit.score is None else round(hit.score, 4),
                "captions": [f"{caption.text} ({caption.language})" for caption in hit.captions],
                "seen_at": [one.path for one in hit.sources],
            }
            for hit in answer.hits
        ],
    }
