"""What every answer tells browsers not to do.

The content policy goes as far as Gradio's pages go. Scripts come from this server, and those in a page run only as the
server has written them: what gets into a page later, a caption as markup or an address that begins with `javascript:`,
is never run. Styles cannot be held so: Gradio sets `style` on elements and adds style sheets while it runs, for which
there is no sum. Pictures that are dropped on a page are shown from `blob:`, and small ones of Gradio's lie in `data:`.
Trusted Types would refuse how Gradio and the pages write markup (`innerHTML`).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "manifest-src": "'self'",
    "base-uri": "'self'",
    "form-action": "'none'",
    "frame-ancestors": "'self'",
}
_NAME = "Content-Security-Policy"
_INLINE = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)


def content_policy(scripts: Iterable[bytes] = ()) -> str:
    """Returns the policy of an answer; `scripts` are those in a page, which may run as they stand there."""
    sums = (base64.b64encode(hashlib.sha256(one).digest()).decode("ascii") for one in scripts)
    allowed = _POLICY | {
        "script-src": " ".join((_POLICY["script-src"], *(f"'sha256-{one}'" for one in sums)))
    }
    return "; ".join(f"{name} {value}" for name, value in allowed.items())


_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    _NAME: content_policy(),
}


class SecurityHeaders:
    """Adds the headers to every answer; it stands outside of all else, since a fault is answered far out, too."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on and adds the headers to its answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class PagePolicy:
    """Lets the scripts run that the server has written into a page, and no others."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on; a page is held until all of it is there."""
        begun: list[Message] = []
        parts: list[bytes] = []

        async def send_page(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_page(message):
                begun.append(message)
            elif not begun:
                await send(message)
            else:
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    page = b"".join(parts)
                    MutableHeaders(scope=begun[0])[_NAME] = content_policy(_INLINE.findall(page))
                    await send(begun[0])
                    await send({"type": "http.response.body", "body": page})

        await self.app(scope, receive, send_page if scope["type"] == "http" else send)


def _is_page(message: Message) -> bool:
    return Headers(raw=message["headers"]).get("content-type", "").startswith("text/html")
