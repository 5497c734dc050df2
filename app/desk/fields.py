"""Requests that refuse a field they do not have, and name the one that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

UNKNOWN = "extra_forbidden"
"""The type under which pydantic tells of a field that there is not."""
# What other search services and people call what has another name here; where a request has several, the first counts.
_MEANT: Mapping[str, tuple[str, ...]] = {
    "text": ("query", "q", "question", "prompt", "words", "search"),
    "texts": ("text", "query", "captions"),
    "queries": ("query", "texts", "text"),
    "images": ("image", "pictures"),
    "k": ("limit", "top_k", "topk", "n", "count", "size", "num_results", "num_images", "per_page"),
    "limit": ("k", "top_k", "n", "count", "size", "per_page"),
    "offset": ("skip", "start", "page"),
    "cursor": ("next", "token"),
    "language": ("lang", "locale", "tag"),
    "image": ("picture", "photo", "file", "image_base64"),
    "file": ("upload", "archive", "data"),
    "embedding": ("vector", "embeddings", "embedding_input"),
    "release": ("model", "version"),
    "domains": ("domain",),
    "chunk": ("id", "dataset"),
    "ids": ("id", "items", "images"),
    "since": ("from", "after"),
    "until": ("to", "before"),
    "dedup": ("deduplicate", "unique"),
    "why": ("reason", "note", "comment", "message", "because"),
    "verdict": ("vote", "thumb", "rating"),
    "choice": ("vote", "winner", "verdict"),
}


class Strict(BaseModel):
    """A request in which every field must be known."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _know(cls, given: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        if isinstance(given, Mapping):
            strangers = [str(name) for name in given if name not in known]
            if strangers:
                said = " ".join(unknown_field(name, known) for name in strangers[:3])
                raise PydanticCustomError(UNKNOWN, "{said}", {"said": said})
        return given


def unknown_field(name: str, known: Collection[str]) -> str:
    """Says that there is no such field, and which one was probably meant."""
    called = f"There is no field {name[:80]!r}"
    meant = _meant(name.lower(), known)
    if meant is not None:
        return f"{called}. Did you mean {meant!r}?"
    if len(known) < 2:
        return (
            f"{called}; {f'there is only {next(iter(known))!r}' if known else 'nothing can be named here'}."
        )
    return f"{called}; there are {', '.join(sorted(known))}."


def _meant(name: str, known: Collection[str]) -> str | None:
    meant = next((field for field, others in _MEANT.items() if field in known and name in others), None)
    return meant or next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.75)), None)
