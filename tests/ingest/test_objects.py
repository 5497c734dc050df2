from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.errors import BadOption, ObjectMissing, ObjectsUnreachable
from ingest.objects import Objects, require_address
from tests.bucket import S3, blockable, bucket, made


@pytest.fixture(params=["file", S3])
def objects(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Objects]:
    with bucket(request.param, tmp_path, monkeypatch) as address:
        yield made(address)


def test_what_was_put_comes_back_whole_in_parts_and_as_a_file(objects: Objects, tmp_path: Path) -> None:
    data = bytes(range(256)) * 40_000  # more than one piece
    (tmp_path / "source").write_bytes(data)
    objects.put("files/a", tmp_path / "source")
    objects.put("files/b", b"small")
    assert objects.size("files/a") == len(data)
    assert objects.get("files/b") == b"small"
    assert objects.ranges("files/a", [0, 300_000, 5], [4, 3, 2]) == [
        data[:4],
        data[300_000:300_003],
        data[5:7],
    ]
    assert objects.fetch("files/a", tmp_path / "came") == hashlib.sha256(data).hexdigest()
    assert (tmp_path / "came").read_bytes() == data
    assert {name for name, _ in objects.written("files")} == {"files/a", "files/b"}


def test_what_is_not_there_is_said(objects: Objects, tmp_path: Path) -> None:
    assert objects.size("none") is None
    with pytest.raises(ObjectMissing, match="none is not in "):
        objects.get("none")
    with pytest.raises(ObjectMissing):
        objects.fetch("none", tmp_path / "came")
    objects.put("a", b"1")
    objects.delete(["a", "none"])
    assert objects.size("a") is None
    assert list(objects.written("nowhere")) == []


@pytest.mark.postgres
def test_a_bucket_that_is_missing_or_does_not_answer_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = pytest.raises(ObjectsUnreachable, match="s3://elsewhere cannot be reached.*whether the address")
    with bucket("s3", tmp_path, monkeypatch), refused:
        Objects("s3://elsewhere").put("a", b"1")
    with pytest.raises(ObjectsUnreachable, match="cannot be reached"):
        Objects("s3://elsewhere").size("a")


@pytest.mark.parametrize(
    ("address", "given", "names"),
    [
        # What would tell of a role does not answer.
        (
            "s3://no-role",
            {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"},
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY",
        ),
        ("s3://half", {"AWS_ACCESS_KEY_ID": "a"}, "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"),
        ("az://account/container", {}, "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY"),
    ],
)
def test_who_has_no_keys_is_told_which_settings_name_them(
    address: str, given: dict[str, str], names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in os.environ if one.startswith(("AWS_", "AZURE_"))]:
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        ObjectsUnreachable, match=f"No keys for the bucket {address}.*: set {names} in the env"
    ):
        Objects(address).size("a")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "pictures",
        "ftp://host/a",
        "s3:pictures",
        "s3://",
        "file://",
        "file:///",
        "http://host/a",
        "s3://[bad",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(BadOption, match="no address of a bucket"):
        require_address(address)


@pytest.mark.parametrize(
    "address", ["s3://me:secret@bucket/a", "s3://bucket/a?key=secret", "s3://bucket/a#secret"]
)
def test_an_address_holds_no_key(address: str) -> None:
    with pytest.raises(BadOption, match="more than its name") as refused:
        require_address(address)
    assert "secret" not in str(refused.value)


def test_an_address_is_written_one_way() -> None:
    assert require_address("s3://bucket/museum/") == "s3://bucket/museum"


def test_a_folder_whose_disk_is_away_takes_nothing(tmp_path: Path) -> None:
    objects = made(f"file://{tmp_path}/bucket")
    objects.put("a", b"1")
    (tmp_path / "bucket").rename(tmp_path / "away")
    (tmp_path / "bucket").mkdir()  # as where nothing is mounted
    for ask in (lambda: objects.put("b", b"2"), lambda: objects.get("a"), lambda: objects.size("a")):
        with pytest.raises(ObjectsUnreachable, match="as if its disk were away"):
            ask()
    assert list((tmp_path / "bucket").iterdir()) == []
    (tmp_path / "bucket").rmdir()
    (tmp_path / "away").rename(tmp_path / "bucket")
    assert objects.get("a") == b"1"


def test_what_this_machine_cannot_write_is_no_bucket_that_does_not_answer(tmp_path: Path) -> None:
    objects = made(f"file://{tmp_path}/bucket")
    objects.put("a", b"1" * 10_000)
    (tmp_path / "came").touch()
    with pytest.raises(FileExistsError):
        objects.fetch("a", tmp_path / "came")


@pytest.mark.postgres
def test_a_bucket_that_hangs_is_waited_for_once_and_then_refused_at_once_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with blockable(tmp_path, monkeypatch) as (address, proxy):
        objects = made(address)
        objects.put("a", b"1")
        assert objects.get("a") == b"1"
        proxy.hang()
        began = time.monotonic()
        with pytest.raises(ObjectsUnreachable):
            objects.get("a")
        assert 1 < time.monotonic() - began < 8
        other, began = Objects(address), time.monotonic()
        for _ in range(20):
            with pytest.raises(ObjectsUnreachable, match="whether this machine may read"):
                other.get("a")
        assert time.monotonic() - began < 0.5
        proxy.restore()
        while not is_there(other, "a"):
            assert time.monotonic() - began < 15
            time.sleep(0.1)
        assert objects.get("a") == b"1"


@pytest.mark.postgres
def test_a_job_waits_also_where_others_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with blockable(tmp_path, monkeypatch) as (address, proxy):
        objects = made(address)
        objects.put("a", b"1")
        proxy.hang()
        for _ in range(2):
            with pytest.raises(ObjectsUnreachable):
                objects.get("a")
        monkeypatch.setattr("ingest.objects._patience", 30.0)
        threading.Timer(2.0, proxy.restore).start()
        assert objects.get("a") == b"1"


def is_there(objects: Objects, name: str) -> bool:
    try:
        return objects.size(name) is not None
    except ObjectsUnreachable:
        return False
