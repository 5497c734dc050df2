"""What goes wrong between a client and its server."""

from __future__ import annotations

from app.desk.errors import AppError
from app.desk.troubles import exit_code_of


class ServerAway(AppError):
    """No server answers at this address, or what answers is none of ours."""


class Refused(AppError):
    """The server did not do what was asked.

    Attributes:
        status: of HTTP.
        code: stable name of the reason.
    """

    def __init__(self, sentence: str, status: int, code: str) -> None:
        super().__init__(sentence, exit_code_of(code, status))
        self.status = status
        self.code = code
