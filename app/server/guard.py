"""What stands before every request: host, origin, size, forbidden routes, sign-in and role.

Pure ASGI, because the answers of the screens are streams. Gradio's own log-in sets a cookie that other sites can
ride on and its functions have no roles, so that both are settled here, before it is reached.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.desk.errors import NotAllowed, TooBusy
from app.server.places import RETRY_AFTER, Places
from app.server.security import ANYONE, OWNER, Account, Attempts, Passwords, ProxySignIn, Role, parted

logger = logging.getLogger(__name__)

ACCOUNT_KEY = "perennial.account"
_IMMICH = Account("immich", "searcher")

UNGUARDED = frozenset({"/health", "/healthz", "/ready", "/readyz"})
_OF_IMMICH = frozenset({"/ping", "/predict"})
_SEARCHES = frozenset({"/v1/search", "/v1/search.csv", "/v1/search.zip", "/v1/searches"})
_SEARCHERS_MAY_POST = frozenset(
    {*_SEARCHES, "/v1/compare", "/v1/comparisons", "/v1/embed", "/v1/facets", "/v1/feedback"}
)
_CONTRIBUTORS_MAY_POST = frozenset({"/v1/chunks", "/v1/items"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Gradio has some sixty routes, and a newer one may bring more: some fetch from addresses that a caller chooses, show
# what others did, or run functions in ways that nothing here needs. These are all that the screens ask for. Files come
# and go on the teaching page alone, and an address is no file.
_GRADIO = re.compile(r"(/admin)?/+(gradio_api|login|logout|monitoring)\b.*", re.IGNORECASE | re.DOTALL)
_ASKED_OF_GRADIO = re.compile(
    r"(/admin)?/gradio_api/(queue/(join|data)|run/predict|heartbeat/[^/]+|info)"
    r"|/admin/gradio_api/(upload|upload_progress|file=(?!(?i:https?):).+)"
)
_SMALL_BODY_BYTES = 1024**2
# What is asked, or added, may bring pictures: in base64, or dropped into the box of the search page.
QUERY_PATHS = frozenset({*_SEARCHES, "/v1/embed", "/v1/items", "/knn-service", "/predict", "/pictures"})
MOST_QUERY_BYTES = 48 * 1024**2
UPLOAD_PATHS = frozenset({"/v1/chunks", "/v1/packages", "/admin/gradio_api/upload"})
# What multipart wraps around a file.
_WRAPPING_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Rules:
    """What a guard enforces."""

    passwords: Passwords | None  # The accounts; None lets everybody in as admin
    origins: Collection[str]  # Web origins that may call, beside the server's own
    # Names the server may be called by, beside literal addresses; None allows any. Where nobody signs in this must be
    # set, or a web page whose name is pointed at this machine could call the server from its visitor's browser.
    hosts: Collection[str] | None
    max_upload_bytes: int  # The largest uploaded file
    # That signs people in; with it alone, a request that did not come through it is refused
    proxy: ProxySignIn | None = None
    # Where an Immich server asks from, which cannot sign in
    immich: tuple[IPv4Network | IPv6Network, ...] = ()
    own_socket: str = ""  # The path of the socket in the home, which its owner alone can open

    def is_owner(self, scope: Scope) -> bool:
        """Whether a request came through the socket in the home: by a network no server has a path, and no port."""
        return bool(self.own_socket) and scope.get("server") == (self.own_socket, None)

    def lets_immich_in(self, path: str, address: str) -> bool:
        """Whether a request is one for vectors that comes from where an Immich server is."""
        try:
            return path in _OF_IMMICH and any(ip_address(address) in network for network in self.immich)
        except ValueError:  # no address: a socket of this machine
            return False


class Guard:
    """Refuses what the rules do not allow, with a sentence; notes the account of everything else."""

    def __init__(self, app: ASGIApp, rules: Rules, attempts: Attempts | None = None) -> None:
        self.app = app
        self.rules = rules
        self._attempts = attempts or Attempts()
        # Each hash takes 16 MB and a core for 50 ms.
        self._hashing = Places(at_once=2, waiting=16)
        self._trying: dict[str, asyncio.Task[Account | JSONResponse]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a refused request itself and passes others on."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, headers = route_of(scope), Headers(scope=scope)
        refused = self._refuse_request(scope["method"], path, headers)
        if refused is None and path not in UNGUARDED:
            who = OWNER if self.rules.is_owner(scope) else await self._account(scope, headers)
            if isinstance(who, JSONResponse):
                refused = who
            elif not who.may(needed := needed_role(scope["method"], path)):
                refused = refusal(403, "not_allowed", who.refusal(needed))
            else:
                scope[ACCOUNT_KEY] = who
        if refused is None:
            await self.app(scope, receive, send)
            return
        logger.info("refused %s %s: %d", scope["method"], path[:80], refused.status_code)
        await refused(scope, receive, send)

    def _refuse_request(self, method: str, path: str, headers: Headers) -> JSONResponse | None:
        host = _host_name(headers.get("host", ""))
        if not self._is_called(host):
            return refusal(
                400,
                "unknown_host",
                f"This server is not called {host[:80]!r}. If it should be, add its address to `origins`.",
            )
        if _GRADIO.fullmatch(path) and not _ASKED_OF_GRADIO.fullmatch(path):
            return refusal(403, "forbidden_route", "This route is switched off.")
        if method in SAFE_METHODS:
            has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
            return (
                refusal(400, "unexpected_body", f"A {method} request has no body here.") if has_body else None
            )
        origin = headers.get("origin")
        if origin is not None and not self._is_known_origin(origin, headers.get("host", "")):
            return refusal(
                403,
                "foreign_origin",
                f"Pages of {origin[:80]!r} may not call this server; see the setting `origins`.",
            )
        return self._refuse_size(path, headers)

    def _is_called(self, host: str) -> bool:
        hosts = self.rules.hosts
        return hosts is None or host in hosts or _is_literal(host)

    def _is_known_origin(self, origin: str, host: str) -> bool:
        own = urlsplit(origin)
        return origin in self.rules.origins or (own.scheme in {"http", "https"} and own.netloc == host)

    def _refuse_size(self, path: str, headers: Headers) -> JSONResponse | None:
        if "transfer-encoding" in headers:
            return refusal(411, "length_required", "Say how long the request is (Content-Length).")
        stated = headers.get("content-length", "0")
        takes_files = path in UPLOAD_PATHS
        small = MOST_QUERY_BYTES if path in QUERY_PATHS else _SMALL_BODY_BYTES
        most = self.rules.max_upload_bytes + _WRAPPING_BYTES if takes_files else small
        if stated.isdecimal() and int(stated) <= most:
            return None
        shown = f"{most / 1024**2:.0f} MB"
        advice = " Split the chunk, or use `perennial add` on the server." if takes_files else ""
        return refusal(413, "too_large", f"The request is larger than the {shown} this route takes.{advice}")

    async def _account(self, scope: Scope, headers: Headers) -> Account | JSONResponse:
        passwords, proxy = self.rules.passwords, self.rules.proxy
        address = (scope.get("client") or ("?", 0))[0]
        if self.rules.lets_immich_in(route_of(scope), address):
            return _IMMICH
        if proxy is not None:
            try:
                named = proxy.account(headers, address)
            except NotAllowed as error:
                return refusal(401, "sign_in", str(error))
            if named is not None:
                return named
            if passwords is None:
                return refusal(401, "sign_in", "Sign in at the proxy in front of this server.")
        if passwords is None:
            return ANYONE
        credentials = credentials_of(headers)
        if not credentials:
            return _sign_in("Sign in with a name and password of this server.")
        return passwords.remembered(credentials) or await self._tried(passwords, credentials, address)

    async def _tried(self, passwords: Passwords, credentials: str, address: str) -> Account | JSONResponse:
        """Checks a password; who sends the same one several times at once, as browsers do, has tried it once."""
        if credentials not in self._trying:
            self._trying[credentials] = asyncio.ensure_future(self._check(passwords, credentials, address))
            self._trying[credentials].add_done_callback(lambda _: self._trying.pop(credentials))
        return await asyncio.shield(self._trying[credentials])

    async def _check(self, passwords: Passwords, credentials: str, address: str) -> Account | JSONResponse:
        user, password = parted(credentials)
        wait = self._attempts.begin(address, user)
        if wait > 0:
            return refusal(
                429,
                "too_many_attempts",
                f"Too many wrong passwords; wait {wait:.0f} seconds.",
                {"Retry-After": str(max(1, round(wait)))},
            )
        try:
            place = await self._hashing.take()
        except TooBusy as error:
            self._attempts.forget(address, user)
            return refusal(503, "too_busy", error.message, RETRY_AFTER)
        try:
            account = await run_in_threadpool(passwords.check, user, password)
        finally:
            place.give_back()
        if account is None:
            return _sign_in("The name or the password is wrong.")
        passwords.remember(credentials, account)
        self._attempts.forget(address, user)
        return account


def credentials_of(headers: Headers) -> str:
    """Returns the Basic credentials of a request; empty where it has none."""
    kind, _, credentials = headers.get("authorization", "").partition(" ")
    return credentials.strip() if kind.lower() == "basic" else ""


def account_of(scope: Scope) -> Account | None:
    """Returns the account that the guard noted for a request."""
    account = scope.get(ACCOUNT_KEY)
    return account if isinstance(account, Account) else None


def route_of(scope: Scope) -> str:
    """Returns the path below the root that a proxy serves us under."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def needed_role(method: str, path: str) -> Role:
    """Returns the least that somebody must be who asks for a path."""
    if path == "/admin" or path.startswith("/admin/"):
        return "admin"
    if method in SAFE_METHODS or not path.startswith("/v1/") or path in _SEARCHERS_MAY_POST:
        return "searcher"
    return "contributor" if path in _CONTRIBUTORS_MAY_POST else "admin"


def _host_name(host: str) -> str:
    return (urlsplit(f"//{host}").hostname or "").lower() if host.isprintable() and "/" not in host else ""


def _is_literal(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


def _sign_in(sentence: str) -> JSONResponse:
    challenge = {"WWW-Authenticate": 'Basic realm="Perennial", charset="UTF-8"'}
    return refusal(401, "sign_in", sentence, challenge)


def refusal(status: int, code: str, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Returns the answer that refuses a request: a stable code, and a sentence for people."""
    return JSONResponse({"error": sentence, "code": code}, status_code=status, headers=headers)
