"""What every route needs: the server's state and who is asking."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from app.server.guard import account_of
from app.server.security import Account, NotAllowed
from app.server.serving import Serving


def _serving(request: Request) -> Serving:
    serving = request.app.state.serving
    if not isinstance(serving, Serving):
        raise TypeError("the application was built without its serving state")
    return serving


def _account(request: Request) -> Account:
    account = account_of(request.scope)
    if account is None:
        raise NotAllowed("Sign in first.")
    return account


def _admin(account: Annotated[Account, Depends(_account)]) -> Account:
    # The guard has checked by path; a route that changes things says so itself too.
    return account.require_admin()


def _contributor(account: Annotated[Account, Depends(_account)]) -> Account:
    return account.require("contributor")


State = Annotated[Serving, Depends(_serving)]
Admin = Annotated[Account, Depends(_admin)]
Contributor = Annotated[Account, Depends(_contributor)]
Anyone = Annotated[Account, Depends(_account)]
