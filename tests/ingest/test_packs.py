"""Claims about bytes by key that hold wherever they are kept, and about those that lie in packs."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.blobs import Blobs
from ingest.catalog import Catalog
from ingest.errors import ObjectMissing, StoreDamaged
from ingest.objects import Objects
from ingest.packs import PACK_RECORDS, Packs
from ingest.storage import Store
from tests.bucket import S3, bucket, made


@contextmanager
def kept(kind: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Blobs]:
    if kind == "lmdb":
        with Store.open(place / "blobs") as store:
            yield store
        return
    with bucket(kind, place, monkeypatch) as address, Catalog.open(place / "catalog.sqlite") as catalog:
        yield Packs(made(address), catalog.packs)


@pytest.fixture(params=["lmdb", "file", S3])
def blobs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Blobs]:
    with kept(request.param, tmp_path, monkeypatch) as opened:
        yield opened


@pytest.fixture
def packs(tmp_path: Path) -> Iterator[Packs]:
    with Catalog.open(tmp_path / "catalog.sqlite") as catalog:
        yield Packs(made(f"file://{tmp_path}/bucket"), catalog.packs)


def lying(place: Path) -> list[Path]:
    return sorted((place / "bucket" / "packs").iterdir())


def test_what_was_put_is_found(blobs: Blobs) -> None:
    assert blobs.put_many([(b"a", b"1"), (b"b", b""), (b"\xff\xff", b"3")]) == 3
    assert blobs.put_many([(b"a", b"1"), (b"c", b"4")]) == 1
    assert [blobs.get(key) for key in (b"b", b"none", b"a", b"c", b"\xff\xff")] == [
        b"",
        None,
        b"1",
        b"4",
        b"3",
    ]
    assert blobs.contains_many([b"none", b"a"]) == [False, True]
    assert blobs.contains_many([]) == []


def test_keys_are_listed_by_prefix_across_pages(blobs: Blobs) -> None:
    wanted = [b"k%05d" % n for n in range(2300)]
    blobs.put_many((key, b"x") for key in [b"a", *wanted, b"z", b"\xff", b"\xff\xff\x01"])
    assert list(blobs.keys(b"k")) == wanted
    assert list(blobs.keys(b"\xff")) == [b"\xff", b"\xff\xff\x01"]
    assert len(list(blobs.keys())) == len(wanted) + 4


def test_what_is_deleted_is_gone_and_the_rest_is_as_it_was(blobs: Blobs) -> None:
    records = {b"k%03d" % n: bytes([n]) * n for n in range(100)}
    blobs.put_many(records.items())
    assert blobs.delete_many([b"k003", b"none", b"k050"]) == 2
    left = {key: blobs.get(key) for key in records}
    assert left == {**records, b"k003": None, b"k050": None}
    assert blobs.delete_many(records) == 98
    assert list(blobs.keys()) == []
    blobs.put_many(records.items())
    assert blobs.get(b"k003") == records[b"k003"]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.booleans(), st.lists(st.binary(min_size=1, max_size=2), max_size=5)),
        min_size=1,
        max_size=8,
    )
)
def test_any_history_leaves_what_a_dictionary_would_hold(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, list[bytes]]]
) -> None:
    place, expected = tmp_path_factory.mktemp("history"), dict[bytes, bytes]()
    with Catalog.open(place / "catalog.sqlite") as catalog:
        packs = Packs(made(f"file://{place}/bucket"), catalog.packs)
        for is_put, keys in steps:
            if is_put:
                packs.put_many((key, key * 3) for key in keys)
                expected |= {key: key * 3 for key in keys}
            else:
                assert packs.delete_many(keys) == len({*keys} & expected.keys())
                expected = {key: value for key, value in expected.items() if key not in keys}
        assert {key: packs.get(key) for key in packs.keys()} == expected  # noqa: SIM118
        assert len(lying(place)) == len(catalog.packs.names()) if expected else not catalog.packs.names()


def test_many_records_make_few_objects(packs: Packs, tmp_path: Path) -> None:
    packs.put_many((b"%05d" % n, b"picture") for n in range(2 * PACK_RECORDS + 1))
    assert len(lying(tmp_path)) == 3
    assert packs.get(b"%05d" % (PACK_RECORDS + 1)) == b"picture"


def test_no_byte_of_what_was_deleted_stays_in_the_bucket(packs: Packs, tmp_path: Path) -> None:
    packs.put_many([(b"a", b"to be forgotten"), (b"b", b"to be kept")])
    packs.delete_many([b"a"])
    assert all(b"forgotten" not in path.read_bytes() for path in lying(tmp_path))
    assert packs.get(b"b") == b"to be kept"
    packs.delete_many([b"b"])
    assert lying(tmp_path) == []


def test_damage_is_said_and_touches_nothing_else(packs: Packs, tmp_path: Path) -> None:
    packs.put_many([(b"a", b"first"), (b"b", b"second")])
    (pack,) = lying(tmp_path)
    data = bytearray(pack.read_bytes())
    data[-1] ^= 1
    pack.write_bytes(data)
    assert packs.get(b"a") == b"first"
    with pytest.raises(StoreDamaged, match="does not match its checksum"):
        packs.get(b"b")
    pack.unlink()
    with pytest.raises(ObjectMissing, match="is not in file://"):
        packs.get(b"a")
    assert packs.contains_many([b"a"]) == [True]


def test_killed_between_pack_and_rows_nothing_is_known_and_the_stray_goes(
    packs: Packs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(packs._rows, "enter", dies)
    with pytest.raises(KeyboardInterrupt):
        packs.put_many([(b"a", b"1")])
    monkeypatch.undo()
    assert packs.get(b"a") is None
    packs.put_many([(b"b", b"2")])
    assert len(lying(tmp_path)) == 2
    assert packs.remove_strays() == []  # it may be about to be entered
    for path in lying(tmp_path):
        os.utime(path, (time.time() - 90_000,) * 2)
    assert len(packs.remove_strays()) == 1
    assert (packs.get(b"b"), len(lying(tmp_path))) == (b"2", 1)


def test_killed_before_the_old_pack_is_removed_the_next_deletion_removes_it(
    packs: Packs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs.put_many([(b"a", b"to be forgotten"), (b"b", b"2"), (b"c", b"3")])

    def dies(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(packs._objects, "delete", dies)
    with pytest.raises(KeyboardInterrupt):
        packs.delete_many([b"a"])
    monkeypatch.undo()
    assert [packs.get(key) for key in (b"a", b"b", b"c")] == [None, b"2", b"3"]
    packs.delete_many([b"c"])
    assert all(b"forgotten" not in path.read_bytes() for path in lying(tmp_path))
    assert len(lying(tmp_path)) == 1


def test_who_reads_while_a_pack_is_written_anew_reads_the_new_one(
    packs: Packs, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs.put_many([(b"a", b"1"), (b"b", b"2")])
    places: Callable[..., object] = packs._rows.places

    def then_rewritten(keys: list[bytes]) -> object:
        found = places(keys)
        monkeypatch.undo()
        packs.delete_many([b"a"])
        return found

    monkeypatch.setattr(packs._rows, "places", then_rewritten)
    assert packs.get(b"b") == b"2"


@pytest.mark.sqlite
def test_a_catalog_that_is_carried_takes_along_where_things_lie(tmp_path: Path) -> None:
    from ingest.carrying import copy_rows, held

    with Catalog.open(tmp_path / "catalog.sqlite") as catalog:
        Packs(made(f"file://{tmp_path}/bucket"), catalog.packs).put_many([(b"\x00\xff", b"1")])
    with held(tmp_path / "catalog.sqlite") as rows:
        copy_rows(rows, tmp_path / "copy.sqlite")
    with Catalog.open(tmp_path / "copy.sqlite") as copy:
        assert Packs(Objects(f"file://{tmp_path}/bucket"), copy.packs).get(b"\x00\xff") == b"1"


@pytest.mark.sqlite
def test_a_catalog_of_before_finds_what_was_written_anew_since(packs: Packs, tmp_path: Path) -> None:
    packs.put_many((b"k%03d" % n, b"picture %d" % n) for n in range(20))
    backup = tmp_path / "backup.sqlite"
    with (
        closing(sqlite3.connect(tmp_path / "catalog.sqlite")) as source,
        closing(sqlite3.connect(backup)) as copy,
    ):
        source.backup(copy)
    packs.delete_many([b"k007"])
    for path in lying(tmp_path):
        os.utime(path, (time.time() - 90_000,) * 2)
    with Catalog.open(backup) as before:
        restored = Packs(Objects(f"file://{tmp_path}/bucket"), before.packs)
        with pytest.raises(ObjectMissing):
            restored.get(b"k003")
        assert restored.remove_strays() == []
        assert restored.get(b"k003") == b"picture 3"
        assert sum(restored.contains_many([b"k%03d" % n for n in range(20)])) == 20
        with pytest.raises(ObjectMissing):
            restored.get(b"k007")  # it was removed for good


def test_two_that_delete_from_one_pack_both_do(
    packs: Packs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs.put_many([(b"a", b"forget this"), (b"b", b"and that"), (b"c", b"3")])
    of_pack = packs._rows.of_pack

    def after_another(name: str) -> object:
        found = of_pack(name)
        monkeypatch.undo()
        assert packs.delete_many([b"b"]) == 1
        return found

    monkeypatch.setattr(packs._rows, "of_pack", after_another)
    assert packs.delete_many([b"a"]) == 1
    assert [packs.get(key) for key in (b"a", b"b", b"c")] == [None, None, b"3"]
    assert not any(b"forget" in path.read_bytes() for path in lying(tmp_path))


def test_a_lost_pack_is_healed_by_what_comes_again_and_can_be_deleted_from(
    packs: Packs, tmp_path: Path
) -> None:
    packs.put_many([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])
    (pack,) = lying(tmp_path)
    pack.unlink()
    assert packs.put_many([(b"a", b"1")]) == 1
    assert packs.get(b"a") == b"1"
    assert packs.delete_many([b"b"]) == 1
    assert packs.contains_many([b"a", b"b", b"c"]) == [True, False, True]
    with pytest.raises(ObjectMissing):
        packs.get(b"c")
