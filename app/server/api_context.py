"""What every route needs: the desk of who is asking, once their role allows it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from pydantic import BaseModel

from app.desk.errors import NotAllowed
from app.desk.fields import Strict
from app.server.guard import account_of
from app.server.security import Account, Role
from app.server.served import Served
from app.server.serving import Serving
from ingest.sentence import phrase


class ErrorOut(BaseModel):
    """What every refusal says; `code` is stable, the sentence is for people."""

    error: str
    code: str


REFUSED: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorOut, "description": "What was asked, what was found, what to do."},
    "5XX": {"model": ErrorOut, "description": "Busy, full or broken; the sentence says which."},
}


# None of these waits for anything: as plain functions each would go through a thread of its own.
async def _serving(request: Request) -> Serving:
    serving = request.app.state.serving
    if not isinstance(serving, Serving):
        raise TypeError("the application was built without its serving state")
    return serving


async def _account(request: Request) -> Account:
    account = account_of(request.scope)
    if account is None:
        raise NotAllowed(phrase("Sign in first."))
    return account


class _NoFields(Strict):
    """A query that has no fields."""


NoQuery = Annotated[_NoFields, Query()]
"""Refuses a query where a route has none."""
State = Annotated[Serving, Depends(_serving)]
Anyone = Annotated[Account, Depends(_account)]


async def _desk(state: State, account: Anyone) -> Served:
    return Served(state, account)


async def _admin(state: State, account: Anyone) -> Served:
    # The guard has checked by path; a route that changes things says so itself too.
    return Served(state, account.require_admin())


async def _contributor(state: State, account: Anyone) -> Served:
    return Served(state, account.require("contributor"))


def role_of(asked: Dependant) -> Role:
    """Returns the least that somebody must be for whom a route works."""
    calls = {one.call for one in asked.dependencies}
    return "admin" if _admin in calls else "contributor" if _contributor in calls else "searcher"


AnyDesk = Annotated[Served, Depends(_desk)]
AdminDesk = Annotated[Served, Depends(_admin)]
ContributorDesk = Annotated[Served, Depends(_contributor)]
DESKS = {"anyone": AnyDesk, "admin": AdminDesk, "contributor": ContributorDesk}
"""By the role that an operation asks for."""
