"""How Gradio calls what a person sets off on a screen. Programs call `client_api` or the routes of the server."""

from __future__ import annotations

from typing import Any

# One request each, as soon as it is made. Gradio's queue answers over a stream that it opens anew for each event and
# closes after the last; an event that begins in the moment of closing can be lost or left waiting.
AT_ONCE: dict[str, Any] = {"api_visibility": "private", "queue": False}


def one_at_a_time(what: str) -> dict[str, Any]:
    """Returns how events are called that keep a core at work for seconds: in a queue, one after another.

    Args:
        what: name of the work; events of the same name wait for each other.
    """
    return {"api_visibility": "private", "concurrency_id": what, "concurrency_limit": 1}
