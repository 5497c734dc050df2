from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from model_updates.available import available
from model_updates.hub import hub_answers, is_cached


@pytest.fixture(autouse=True)
def _online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def hub(status: int) -> Iterator[str]:
    class Answers(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("status", [200, 401, 503])
def test_whatever_a_hub_answers_it_answers(status: int) -> None:
    with hub(status) as address:
        assert hub_answers(address)


def test_a_closed_port_and_no_address_at_all_are_no_hub() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert not hub_answers(f"http://127.0.0.1:{port}")
    assert not hub_answers("not an address")


def test_a_hub_that_says_nothing_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        before = time.monotonic()
        assert not hub_answers(f"http://127.0.0.1:{silent.getsockname()[1]}", patience=0.2)
        assert time.monotonic() - before < 5


def test_whoever_said_offline_is_not_online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with hub(200) as address:
        assert not hub_answers(address)


def test_what_was_downloaded_before_needs_no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert not is_cached("laion/some-model/")
    (tmp_path / "models--laion--some-model" / "snapshots" / "abc").mkdir(parents=True)
    assert is_cached("laion/some-model/")
    assert not is_cached("")


def test_tags_stand_only_with_the_architecture_whose_activation_they_want(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    found = available("vit-b-16")
    assert "openai" in found.architectures["ViT-B-16-quickgelu"]
    assert "openai" not in found.architectures["ViT-B-16"]
    assert found.embedded == ()
    assert available("perennial").embedded
