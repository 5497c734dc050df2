"""Answers of the servers that tests run come late, each by another moment, as they do on a busy machine.

What a test of the pages reads too early is found so, and what it waits for in vain.

make test PYTEST="-p tests.slow_server tests/app/ui"
"""

from __future__ import annotations

import asyncio
import random

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

LATE_SECONDS = 0.8  # at most; half of the answers come within a quarter of it
_load = uvicorn.Config.load


def _load_slow(config: uvicorn.Config) -> None:
    _load(config)
    quick: ASGIApp = config.loaded_app

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != "/healthz":
            await asyncio.sleep(LATE_SECONDS * random.random() ** 2)
        await quick(scope, receive, send)

    config.loaded_app = slow


uvicorn.Config.load = _load_slow  # type: ignore[assignment, method-assign]
