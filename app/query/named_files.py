"""The picture files that a query names, read where it is typed, to be sent along with it."""

from __future__ import annotations

import base64
from pathlib import Path

from app.desk.errors import BadQuery
from app.query.grammar import Kind, parse, quoted


def pictures_in(query: str) -> dict[str, str]:
    """Returns the files that a query names in base64, by the names that it gives them.

    Raises:
        BadQuery: the query cannot be read, or one of its files.
    """
    if not query.strip():
        return {}
    names = {term.value for term in parse(query) if term.kind is Kind.IMAGE}
    return {name: base64.b64encode(_read(name)).decode("ascii") for name in names}


def _read(name: str) -> bytes:
    try:
        return Path(name).expanduser().read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadQuery(
            f"The picture {name} cannot be read ({reason}). If these are words to look for, put them in quotation "
            f"marks inside the query: {quoted(name)}."
        ) from error
