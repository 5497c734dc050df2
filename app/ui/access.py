"""Who is at a screen. Hidden buttons protect nothing: each function that changes something asks here again."""

from __future__ import annotations

import gradio as gr
from fastapi import Request

from app.server.guard import account_of
from app.server.security import ANYONE, Account, NotAllowed, Passwords


class Access:
    """The accounts, as Gradio's functions see them."""

    def __init__(self, passwords: Passwords | None) -> None:
        self._passwords = passwords

    def admin(self, request: gr.Request) -> Account:
        """Returns the admin who called a function.

        Raises:
            NotAllowed: it was somebody else.
        """
        name = getattr(request, "username", None)
        if self._passwords is None:
            return ANYONE
        account = self._passwords.account(name)
        if account is None:
            raise NotAllowed("Sign in first.")
        return account.require_admin()


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
