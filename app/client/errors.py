"""What goes wrong between a client and its server."""

from __future__ import annotations

import httpx

from app.desk.errors import AppError

_USAGE, _HELD, _BUSY = 2, 4, 5
# As the same error leaves a verb that works on a home.
_EXIT_CODES = {
    "bad_query": _USAGE,
    "usage_problem": _USAGE,
    "unknown_feedback": _USAGE,
    "chunk_held": _HELD,
    "update_running": _BUSY,
    "parent_moved": _BUSY,
    "captions_not_ready": _BUSY,
}


class ServerAway(AppError):
    """No server answers at this address, or what answers is none of ours."""


class Refused(AppError):
    """The server did not do what was asked.

    Attributes:
        status: of HTTP.
        code: stable name of the reason.
    """

    def __init__(self, sentence: str, status: int, code: str) -> None:
        usage = _USAGE if status == httpx.codes.UNPROCESSABLE_ENTITY else 1
        super().__init__(sentence, _EXIT_CODES.get(code, usage))
        self.status = status
        self.code = code
