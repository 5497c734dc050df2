"""Asking a server over HTTP: signing in, sending, reading answers and events."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from app.client.errors import Refused, ServerAway
from app.desk.errors import UsageProblem
from app.desk.operation import adapter

# A query may wait for a place; an upload of the largest size goes over a slow line.
_SECONDS = httpx.Timeout(60.0, write=600.0)
_COMMIT = "X-Perennial-Commit"  # see `app.server.monotonic`
_MOST_DIGITS = 18  # that a server takes back
_FORGOTTEN_SECONDS = 10.0
# Reading the certificates of all authorities takes 26 ms, once a process.
_authorities = cache(httpx.create_ssl_context)


class Connection:
    """A server's REST interface, route by route; a context manager.

    Every method raises `Refused` with the server's sentence, or `ServerAway`.
    """

    def __init__(
        self, url: str, *, auth: tuple[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Prepares; nothing is asked yet.

        `url`, `auth` and `headers` are as in `connect`.

        Raises:
            UsageProblem: it is no address.
        """
        address = httpx.URL(url) if url.startswith(("http://", "https://")) else None
        if address is None or not address.host:
            raise UsageProblem(f"{url!r} is no address of a server; write it like http://127.0.0.1:7860.")
        self.url = str(address.copy_with(username=None, password=None)).rstrip("/")
        self._commit = 0  # the newest that an answer knew
        self._behind_since = 0.0  # since when every answer knows less; 0 where the last one did not
        self._http = httpx.Client(
            base_url=self.url,
            auth=auth,
            headers=dict(headers or {}),
            timeout=_SECONDS,
            verify=_authorities(),
            follow_redirects=False,
            # What one of several servers has shown, no other may take back.
            event_hooks={"request": [self._say_commit], "response": [self._note_commit]},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def _say_commit(self, request: httpx.Request) -> None:
        if self._commit:
            request.headers[_COMMIT] = str(self._commit)

    def _note_commit(self, answer: httpx.Response) -> None:
        said = answer.headers.get(_COMMIT, "")
        if not (said.isascii() and said.isdigit() and len(said) <= _MOST_DIGITS):
            return
        now, number = time.monotonic(), int(said)
        if number >= self._commit:
            self._commit, self._behind_since = number, 0.0
            return
        self._behind_since = self._behind_since or now
        if now - self._behind_since > _FORGOTTEN_SECONDS:  # nobody knows it any more: the home was restored
            self._commit, self._behind_since = number, 0.0

    def ask(self, method: str, path: str, **how: Any) -> httpx.Response:
        """Sends a request and returns its answer, once it is a good one."""
        with self._reaching():
            answer = self._http.request(method, path, **how)
        _check(answer, self.url)
        return answer

    @contextmanager
    def stream(
        self, method: str, path: str, *, timeout: httpx.Timeout = _SECONDS
    ) -> Iterator[httpx.Response]:
        """Opens an answer that is read as it comes."""
        with self._reaching(), self._http.stream(method, path, timeout=timeout) as stream:
            if stream.is_error:
                stream.read()
            _check(stream, self.url)
            yield stream

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except UnicodeEncodeError as error:
            raise UsageProblem(
                f"{error.object[:80]!r} is no text that can be sent to a server. Write it in UTF-8, also where it is "
                "the name of a file."
            ) from error
        except httpx.HTTPError as error:
            raise ServerAway(
                f"No answer from {self.url} ({error or type(error).__name__}). "
                "Is `perennial serve` running there?"
            ) from error


def address_part(name: str) -> str:
    """Returns a name as one part of an address, whatever it contains."""
    return quote(name, safe="") or "-"


def _check(answer: httpx.Response, url: str) -> None:
    if answer.is_success:
        return
    try:
        said = answer.json()
        sentence, code = str(said["error"]), str(said["code"])
    except (ValueError, KeyError, TypeError):
        raise ServerAway(f"{url} answered {answer.status_code}, and not as Perennial does.") from None
    if code == "sign_in":
        sentence += (
            " Put the name into the address (https://ada@…) and the password into PERENNIAL_SERVER_PASSWORD."
        )
    raise Refused(sentence, answer.status_code, code)


def document_in(answer: httpx.Response) -> Any:
    """Returns the JSON of an answer.

    Raises:
        ServerAway: there is none in it.
    """
    try:
        return answer.json()
    except ValueError:
        raise ServerAway(f"{answer.url} answered, but not as Perennial does.") from None


def typed(kind: Any, document: object) -> Any:
    """Builds records from plain values; what a newer server adds is left out."""
    try:
        return adapter(kind).validate_python(document)
    except ValidationError as error:
        raise ServerAway(
            f"The server's answer is not what this version of Perennial reads: {error}."
        ) from error
