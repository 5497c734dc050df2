"""Who is at a screen, and the desk of each. Hidden buttons protect nothing: each function of an admin asks here again.

Gradio calls what `of_admin` and `on_row` return: they hand the desk over, and turn what is refused into a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import gradio as gr
from fastapi import Request
from gradio.components import Component
from pydantic import ValidationError

from app.desk.errors import NotAllowed
from app.desk.troubles import OWN_ERRORS, invalid_sentence
from app.server.guard import account_of
from app.server.security import ANYONE, Account, Passwords, ProxySignIn
from app.server.served import Served
from app.server.serving import Serving
from app.ui.wording import base_address, refusal
from app.ui.words import Words, words_of
from ingest.sentence import phrase

Shown = Mapping[Any, Any]
"""What components show from now on, by component; those that are not named stay as they are."""


@dataclass(frozen=True)
class Visit:
    """One call of a function of a page."""

    desk: Served  # of who called
    say: Words  # the words of their browser
    base: str  # address that it reached us by


Act = Callable[..., Any]
"""Given a `Visit` and what the inputs hold; returns what the outputs show, in their order or as `Shown`."""


class Access:
    """The accounts, as Gradio's functions see them, and the desk of each."""

    def __init__(
        self, serving: Serving, passwords: Passwords | None, proxy: ProxySignIn | None = None
    ) -> None:
        self._serving = serving
        self._passwords = passwords
        self._is_open = passwords is None and proxy is None

    def of_admin(self, act: Act, told: Component, instead: Shown = MappingProxyType({})) -> Act:
        """Returns what Gradio is to call for something that admins alone may do.

        Args:
            act: what happens.
            told: an output that says why, where it is refused.
            instead: what other outputs show then.
        """
        return _calling(self.desk, act, told, instead)

    def of_anyone(self, act: Act, told: Component, instead: Shown = MappingProxyType({})) -> Act:
        """Returns the same for something that whoever searches may do."""
        return _calling(self.searchers_desk, act, told, instead)

    def on_row(
        self, act: Act, told: Component, instead: Shown = MappingProxyType({}), *, of_anyone: bool = False
    ) -> Act:
        """Returns the same for a pressed row of a `ReadTable`, whose `picked` is the first input.

        `act` is given the cells that name the row.
        """
        desk_of = self.searchers_desk if of_anyone else self.desk

        def call(request: gr.Request, picked: str, *values: Any) -> Any:
            cells = json.loads(picked.rpartition("#")[0])
            return _calling(desk_of, act, told, instead)(request, cells, *values)

        return _named(call, act)

    def desk(self, request: gr.Request) -> Served:
        """Returns the desk of the admin who called a function; errors as `admin`."""
        return Served(self._serving, self.admin(request))

    def searchers_desk(self, request: gr.Request) -> Served:
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


def _calling(
    desk_of: Callable[[gr.Request], Served], act: Act, told: Component, instead: Shown
) -> Callable[..., Any]:
    def call(request: gr.Request, *values: Any) -> Any:
        say = words_of(request)
        try:
            return act(Visit(desk_of(request), say, base_address(*base_of(request))), *values)
        except OWN_ERRORS as error:
            why = str(error)
        except ValidationError as error:  # a value beyond what the desk takes
            why = invalid_sentence(error.errors())
        return {**instead, told: gr.update(value=refusal(why, say), visible=True)}

    return _named(call, act)


def _named(call: Act, act: Act) -> Act:
    """Gradio names what it calls in the description of a page."""
    call.__name__ = getattr(act, "__name__", call.__name__)
    return call


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
