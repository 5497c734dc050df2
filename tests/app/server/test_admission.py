"""Claims about the door: kinds of requests keep out of each other's way, and who cannot begin soon is told so.

Row 1 of what fell once (SECURITY.md).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import anyio.to_thread
import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from app.server.admission import Admission, LoadShedding, kind_of, places_by_kind
from app.server.places import Places
from tests.app.server.served import Served, full, make_home, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(make_home(tmp_path_factory.mktemp("home"))) as running:
        yield running


@pytest.mark.parametrize(
    ("method", "path", "length", "kind"),
    [
        ("POST", "/v1/search", 80, "search"),
        ("POST", "/knn-service", 80, "search"),
        ("POST", "/v1/search", 2_000_000, "heavy"),
        ("POST", "/v1/searches", 80, "heavy"),
        ("POST", "/v1/embed", 80, "heavy"),
        ("POST", "/v1/compare", 80, "heavy"),
        ("POST", "/v1/chunks", 80, "upload"),
        ("POST", "/v1/items", 80, "upload"),
        ("POST", "/admin/gradio_api/upload", 80, "upload"),
        ("POST", "/v1/chunks/a/accept", 80, "change"),
        ("POST", "/v1/items/remove", 80, "change"),
        ("GET", "/v1/chunks", 0, "read"),
        ("GET", "/v1/images/0/original", 0, "picture"),
        ("GET", "/v1/items/a/thumb", 0, "picture"),
        ("GET", "/v1/items/a", 0, "read"),
        ("POST", "/v1/rollback", 80, "change"),
        ("GET", "/admin/config", 0, "change"),
        ("POST", "/gradio_api/queue/join", 80, "page"),
        ("GET", "/v1/releases", 0, "read"),
        ("GET", "/", 0, "read"),
        ("GET", "/metrics", 0, "health"),
    ],
)
def test_each_request_is_of_a_kind(method: str, path: str, length: int, kind: str) -> None:
    assert kind_of(method, path, length) == kind


def test_all_places_together_leave_threads_free() -> None:
    async def threads() -> float:
        return anyio.to_thread.current_default_thread_limiter().total_tokens

    places = places_by_kind(Places(at_once=2, waiting=0))
    signing_in = 2
    assert sum(one._free for one in places.values()) + signing_in < asyncio.run(threads())


@pytest.mark.parametrize("kind", ["search", "heavy", "read", "page"])
def test_an_overrun_kind_refuses_within_a_second_and_leaves_the_others_alone(
    kind: str, server: Served
) -> None:
    others = {
        "search": ("POST", "/v1/search", {"text": "a red boat"}),
        "heavy": ("POST", "/v1/searches", {"searches": [{"text": "a red boat"}]}),
        "read": ("GET", "/v1/releases", None),
        "change": ("POST", "/v1/releases/r9/promote", {"reason": "none"}),
        "health": ("GET", "/metrics", None),
        "alive": ("GET", "/healthz", None),
        "ready": ("GET", "/readyz", None),
    }
    if kind == "search":  # a heavy one searches, too
        del others["heavy"]
    admitted = server.serving.places
    with server.client() as client, full(admitted[kind]):
        for name, (method, path, body) in others.items():
            began = time.monotonic()
            answer = client.request(method, path, json=body)
            if name == kind:
                assert (answer.status_code, answer.json()["code"]) == (503, "too_busy"), name
                assert int(answer.headers["retry-after"]) > 0
                assert time.monotonic() - began < 2
            else:
                assert answer.status_code != 503, name
    with server.client() as client:
        assert client.post("/v1/search", json={"text": "a red boat"}).status_code == 200
        if kind in others:
            assert f'perennial_turned_away_total{{kind="{kind}"}} 1.0' in client.get("/metrics").text


def _asking(path: str, messages: list[Message], method: str = "POST") -> tuple[Scope, Receive]:
    length = sum(len(one.get("body", b"")) for one in messages)
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(b"content-length", str(length).encode())],
    }
    left = list(messages)

    async def receive() -> Message:
        if left:
            return left.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    return scope, receive


def _door(app: object, **waiting: int) -> tuple[Admission, Places]:
    search = Places(at_once=1, waiting=waiting.get("waiting", 4))
    return Admission(app, places_by_kind(search), lambda _: None), search  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/search", {}, 503),
        ("/predict", {}, 503),
        (
            "/v1/search",
            {"origin": "https://shop.example"},
            200,
        ),  # its browser needs headers that are added inside
        ("/v1/search", {"content-length": "100000"}, 200),  # another kind
        ("/v1/releases", {}, 200),
    ],
)
def test_a_search_that_can_get_no_place_is_refused_before_anything_looks_at_it(
    path: str, headers: dict[str, str], status: int
) -> None:
    told: list[str] = []

    async def ask(search: Places) -> int:
        door = LoadShedding(PlainTextResponse("done"), search, told.append)
        transport = httpx.ASGITransport(app=door)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return (await client.post(path, headers=headers)).status_code

    search = Places(at_once=1, waiting=1)
    with full(search):
        assert asyncio.run(ask(search)) == status
    assert told == (["search"] if status == 503 else [])
    assert asyncio.run(ask(search)) == 200


def test_what_its_client_has_left_is_never_begun() -> None:
    begun = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope["path"])
        await PlainTextResponse("done")(scope, receive, send)

    async def story() -> list[Message]:
        door, search = _door(app)
        held = await search.take()
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        body: Message = {"type": "http.request", "body": b"{}", "more_body": False}
        left = asyncio.ensure_future(door(*_asking("/v1/search", [body, {"type": "http.disconnect"}]), send))
        half = asyncio.ensure_future(door(*_asking("/v1/search", [{"type": "http.disconnect"}]), send))
        await asyncio.wait_for(asyncio.gather(left, half), 5)
        held.give_back()
        assert not begun
        assert not sent
        await door(*_asking("/v1/search", [body]), send)
        return sent

    sent = asyncio.run(story())
    assert begun == ["/v1/search"]
    assert sent[0]["status"] == 200


def test_what_is_cut_off_by_the_end_of_the_server_is_told_so() -> None:
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    async def send(message: Message) -> None:
        sent.append(message)

    async def story() -> int:
        door, search = _door(app)
        body: Message = {"type": "http.request", "body": b"{}", "more_body": False}
        asked = asyncio.ensure_future(door(*_asking("/v1/search", [body]), send))
        await asyncio.sleep(0.01)
        asked.cancel("timeout graceful shutdown exceeded")
        await asked
        return search._free

    assert asyncio.run(story()) == 1
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"2") in sent[0]["headers"]


def test_who_sends_a_body_slowly_holds_no_place() -> None:
    async def story() -> int:
        door, search = _door(PlainTextResponse("done"))
        first: Message = {"type": "http.request", "body": b"{", "more_body": True}
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        slow = asyncio.ensure_future(door(*_asking("/v1/search", [first]), send))
        await asyncio.sleep(0.01)
        free = search._free
        slow.cancel()
        return free

    assert asyncio.run(story()) == 1


def test_the_application_reads_the_body_that_the_door_has_read() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        await PlainTextResponse(message["body"])(scope, receive, send)

    door, _ = _door(app)
    transport = httpx.ASGITransport(app=door)

    async def ask() -> bytes:
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return (await client.post("/v1/search", content=b"a red boat" * 1000)).content

    assert asyncio.run(ask()) == b"a red boat" * 1000


def test_more_bodies_than_fit_in_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.server.admission._MOST_BYTES", {True: 100_000, False: 50_000})
    door, _ = _door(PlainTextResponse("done"))

    async def ask() -> list[int]:
        transport = httpx.ASGITransport(app=door)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return [(await client.post("/v1/embed", content=b"x" * n)).status_code for n in (99_000, 101_000)]

    assert asyncio.run(ask()) == [200, 503]
    assert door._bytes == {True: 0, False: 0}


def test_large_bodies_that_are_only_announced_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.server.admission._BODY_SECONDS", 0.2)
    monkeypatch.setattr("app.server.admission._BODY_BYTES_A_SECOND", 10**12)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def story() -> None:
        door, _ = _door(PlainTextResponse("done"))
        slow = []
        for _ in range(20):
            scope, receive = _asking("/v1/search", [])
            scope["headers"] = [(b"content-length", b"48000000")]
            slow.append(asyncio.ensure_future(door(scope, receive, send)))
        await asyncio.sleep(0)
        body: Message = {"type": "http.request", "body": b"{}", "more_body": False}
        await door(*_asking("/v1/embed", [body]), send)
        assert [one["status"] for one in sent if "status" in one] == [200]
        await asyncio.gather(*slow)

    asyncio.run(story())
    assert [one["status"] for one in sent if "status" in one] == [200] + [408] * 20


def test_a_stream_of_events_holds_no_place_once_it_has_begun() -> None:
    async def story() -> tuple[int, int]:
        begun, ended, free = asyncio.Event(), asyncio.Event(), []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            free.append(search._free)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            begun.set()
            await ended.wait()

        async def send(message: Message) -> None:
            pass

        door, search = _door(app)
        body: Message = {"type": "http.request", "body": b"", "more_body": False}
        stream = asyncio.ensure_future(door(*_asking("/v1/search", [body]), send))
        await begun.wait()
        free.append(search._free)
        ended.set()
        await stream
        assert search._free == 1
        return free[0], free[1]

    assert asyncio.run(story()) == (0, 1)
