"""Claims about connections: sockets that say nothing keep nobody out, and half a request is not waited for for ever.

Row 6 of what fell once (SECURITY.md).
"""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from app.server import connections
from app.server.connections import limited, most_connections

ASK = b"GET / HTTP/1.1\r\nHost: server\r\n\r\n"


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/refused":
        await PlainTextResponse(b"done", 401)(scope, receive, send)
        return
    if scope["path"] == "/large":
        await PlainTextResponse(b"x" * 40_000_000)(scope, receive, send)
        return
    body = await Request(scope, receive).body()
    await PlainTextResponse(b"done" + body)(scope, receive, send)


@contextmanager
def _serving(most: int) -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(_echo, http=limited(most), log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


@pytest.fixture(autouse=True)
def _short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {
        "_HEADER_SECONDS": 0.3,
        "_BODY_SECONDS": 0.3,
        "_LOOK_SECONDS": 0.05,
        "_REST_SECONDS": 1.0,
    }.items():
        monkeypatch.setattr(connections, name, seconds)


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def _answer(one: socket.socket) -> bytes:
    said = b""
    try:
        while data := one.recv(4096):
            said += data
            if b"\r\n\r\n" in said and b"done" in said:
                break
    except ConnectionError:
        pass
    return said


def test_idle_sockets_give_way_to_who_asks_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_HEADER_SECONDS", 60)
    with _serving(most=8) as port, ExitStack() as open_ones:
        for _ in range(40):
            open_ones.enter_context(_connected(port))
        with _connected(port) as asking:
            asking.sendall(ASK)
            assert b"200 OK" in _answer(asking)


def test_where_all_connections_are_at_work_a_new_one_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_BODY_SECONDS", 60)
    with _serving(most=4) as port, ExitStack() as open_ones:
        begun = [open_ones.enter_context(_connected(port)) for _ in range(4)]
        for one in begun:
            one.sendall(b"POST / HTTP/1.1\r\nHost: server\r\nContent-Length: 2\r\n\r\n.")
        time.sleep(0.2)
        with _connected(port) as late:
            told = _answer(late)
        assert b"503 " in told
        assert b"retry-after: 2" in told
        assert b"too_busy" in told
        begun[0].sendall(b".")
        assert b"done.." in _answer(begun[0])


@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.1\r\nHost: ser", b"POST / HTTP/1.1\r\nHost: server\r\nContent-Length: 9\r\n\r\n."]
)
def test_half_a_request_is_refused_when_the_rest_does_not_come(said: bytes) -> None:
    with _serving(most=8) as port, _connected(port) as slow:
        slow.sendall(said)
        told = _answer(slow)
    assert b"408 " in told
    assert b"did not come in time" in told


def test_a_socket_that_says_nothing_is_closed_without_a_word() -> None:
    with _serving(most=8) as port, _connected(port) as silent:
        assert _answer(silent) == b""


def test_a_body_that_keeps_coming_may_take_longer_than_the_time_for_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_BODY_BYTES", 2)
    with _serving(most=8) as port, _connected(port) as steady:
        steady.sendall(b"POST / HTTP/1.1\r\nHost: server\r\nContent-Length: 30\r\n\r\n")
        for _ in range(30):
            steady.sendall(b".")
            time.sleep(0.03)
        assert b"done....." in _answer(steady)


def test_a_body_that_comes_after_its_answer_holds_no_place_for_ever() -> None:
    with _serving(most=3) as port, ExitStack() as open_ones:
        kept = [open_ones.enter_context(_connected(port)) for _ in range(3)]
        for one in kept:
            one.sendall(b"POST /refused HTTP/1.1\r\nHost: server\r\nContent-Length: 5\r\n\r\n")
            assert b"401 " in _answer(one)
            one.sendall(b"hello")
        with _connected(port) as asking:
            asking.sendall(ASK)
            assert b"200 OK" in _answer(asking)
        for one in kept:
            one.settimeout(5)
            assert one.recv(10) == b""


def test_who_is_refused_early_may_send_the_rest_and_ask_again() -> None:
    with _serving(most=3) as port, _connected(port) as large:
        large.sendall(b"POST /refused HTTP/1.1\r\nHost: server\r\nContent-Length: 900000\r\n\r\n")
        assert b"401 " in _answer(large)
        large.sendall(b"x" * 900_000)
        large.sendall(ASK)
        assert b"200 OK" in _answer(large)


def test_who_reads_nothing_of_an_answer_is_let_go() -> None:
    with _serving(most=3) as port, _connected(port) as deaf:
        deaf.sendall(b"GET /large HTTP/1.1\r\nHost: server\r\n\r\n")
        time.sleep(1.5)
        read = 0
        with suppress(ConnectionError):
            while data := deaf.recv(1 << 20):
                read += len(data)
    assert read < 40_000_000


@pytest.mark.parametrize("said", [b"X-A: " + b"a" * 300_000, b"X-A: a\r\n" * 20_000])
def test_headers_without_an_end_are_refused_soon(said: bytes) -> None:
    with _serving(most=3) as port, _connected(port) as talking:
        talking.sendall(b"GET / HTTP/1.1\r\nHost: server\r\n" + said)
        assert b"431 " in _answer(talking)


def test_a_connection_that_has_been_answered_may_ask_again() -> None:
    with _serving(most=2) as port, _connected(port) as kept:
        for _ in range(3):
            kept.sendall(ASK)
            assert b"200 OK" in _answer(kept)


def test_there_are_fewer_connections_than_descriptors() -> None:
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\n"
            "from app.server.connections import most_connections; print(most_connections())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 64 <= int(told.stdout) <= 256 - 96
    assert most_connections() <= resource.getrlimit(resource.RLIMIT_NOFILE)[0]
