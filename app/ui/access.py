"""Who is at a screen. Hidden buttons protect nothing: each function that changes something asks here again."""

from __future__ import annotations

import gradio as gr
from fastapi import Request

from app.desk.desk import Desk
from app.desk.errors import NotAllowed
from app.server.guard import account_of
from app.server.security import ANYONE, Account, Passwords, ProxySignIn
from app.server.served import Served
from app.server.serving import Serving
from ingest.sentence import phrase


class Access:
    """The accounts, as Gradio's functions see them, and the desk of each."""

    def __init__(
        self, serving: Serving, passwords: Passwords | None, proxy: ProxySignIn | None = None
    ) -> None:
        self._serving = serving
        self._passwords = passwords
        self._is_open = passwords is None and proxy is None

    def desk(self, request: gr.Request) -> Desk:
        """Returns the desk of the admin who called a function; errors as `admin`."""
        return Served(self._serving, self.admin(request))

    def searchers_desk(self, request: gr.Request) -> Desk:
        """Returns the desk of whoever called a function of the search page; errors as `person`."""
        return Served(self._serving, person(request))

    def admin(self, request: gr.Request) -> Account:
        """Returns the admin who called a function.

        Raises:
            NotAllowed: it was somebody else.
        """
        noted = _noted(request)
        if noted is not None:
            return noted.require_admin()
        if self._is_open:
            return ANYONE
        name = getattr(request, "username", None)
        account = self._passwords.account(name) if self._passwords is not None else None
        if account is None:
            raise NotAllowed(phrase("Sign in first."))
        return account.require_admin()


def person(request: gr.Request) -> Account:
    """Returns whoever called a function of the search page.

    Raises:
        NotAllowed: nobody is signed in.
    """
    account = _noted(request)
    if account is None:
        raise NotAllowed(phrase("Sign in first."))
    return account


def _noted(request: gr.Request) -> Account | None:
    """Returns the account that the guard noted when the function was called."""
    scope = getattr(getattr(request, "request", None), "scope", None)
    return account_of(scope) if scope is not None else None


def searcher_name(request: Request) -> str | None:
    """Returns the name of whoever may see the search page; None refuses."""
    account = account_of(request.scope)
    return account.name if account else None


def admin_name(request: Request) -> str | None:
    """Returns the name of whoever may see the admin page; None refuses."""
    account = account_of(request.scope)
    return account.name if account and account.role == "admin" else None


def base_of(request: gr.Request) -> tuple[dict[str, str], str]:
    """Returns the request's headers and its scheme, from which addresses are made."""
    inner = request.request
    return dict(request.headers.items()), inner.url.scheme if inner is not None else "http"
