"""Buckets for tests: a folder, or S3 as moto speaks it, which `make scale-test` starts."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from ingest.objects import Objects
from tests.tcp_proxy import TcpProxy, through_proxy


def made(address: str) -> Objects:
    """Returns the objects of a bucket that is somebody's."""
    objects = Objects(address)
    objects.set_mark(b"{}")
    return objects


S3 = pytest.param("s3", marks=pytest.mark.postgres)


@contextmanager
def bucket(kind: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Gives the address of an empty bucket: of kind `file` below a place, or `s3`."""
    if kind == "file":
        yield f"file://{place}/bucket"
        return
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        told = {
            "ACCESS_KEY_ID": "a",
            "SECRET_ACCESS_KEY": "b",
            "REGION": "us-east-1",
            "ENDPOINT_URL": address,
        }
        for name, value in told.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        name = f"b{uuid.uuid4().hex}"
        assert httpx.put(f"{address}/{name}").status_code == 200
        yield f"s3://{name}/museum"
    finally:
        server.stop()


@contextmanager
def blockable(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, TcpProxy]]:
    """Gives the address of an empty bucket, on a way that the test can block."""
    with bucket("s3", place, monkeypatch) as address:
        server = urlsplit(os.environ["AWS_ENDPOINT_URL"])
        with through_proxy((str(server.hostname), int(server.port or 0))) as proxy:
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
            yield address, proxy
