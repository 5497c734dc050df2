"""What uploads through REST and through the screens share."""

from __future__ import annotations

from collections.abc import Sequence

from app.desk.errors import UsageProblem


def column_names(pairs: Sequence[str]) -> dict[str, str]:
    """Reads `theirs=ours` pairs.

    Raises:
        UsageProblem: one of them is not of that form.
    """
    mapping = {}
    for pair in pairs:
        theirs, equals, ours = pair.partition("=")
        if not (theirs.strip() and equals and ours.strip()):
            raise UsageProblem(f"map is like text=caption (your column, then ours); found {pair[:80]!r}.")
        mapping[theirs.strip()] = ours.strip()
    return mapping
