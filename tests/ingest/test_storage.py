from __future__ import annotations

import multiprocessing
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.storage import Store, StoreDamaged, StoreMissing, StoreMisuse


def test_what_was_put_is_read_back_after_reopening(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        assert store.put_many([(b"a", b"1"), (b"b", b"")]) == 2
    with Store.open(tmp_path / "s", read_only=True) as store:
        assert store.get_many([b"b", b"none", b"a"]) == [b"", None, b"1"]


def test_only_new_or_changed_records_are_counted(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        store.put_many([(b"a", b"1")])
        assert store.put_many([(b"a", b"1"), (b"b", b"2"), (b"b", b"2")]) == 1
        assert store.put_many([(b"a", b"3")]) == 1


def test_a_full_map_grows_by_itself(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s", map_bytes=1 << 18) as store:
        assert store.put_many((b"%06d" % n, os.urandom(1000)) for n in range(2500)) == 2500
        assert len(list(store.keys())) == 2500


def _grow(path: str) -> None:
    with Store.open(Path(path), map_bytes=1 << 18) as store:
        store.put_many((b"%06d" % n, bytes(1000)) for n in range(1000))


def test_a_map_grown_by_another_process_is_followed(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s", map_bytes=1 << 18) as store:
        child = multiprocessing.get_context("spawn").Process(target=_grow, args=(str(tmp_path / "s"),))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert store.get(b"000999") == bytes(1000)
        assert store.put_many([(b"mine", b"1")]) == 1


def test_keys_are_listed_by_prefix_across_pages(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        wanted = [b"k%05d" % n for n in range(2300)]
        store.put_many((key, b"") for key in [b"a", *wanted, b"z"])
        assert list(store.keys(b"k")) == wanted


def test_deleting_counts_what_was_there(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        store.put_many([(b"a", b"1"), (b"b", b"2")])
        assert store.delete_many([b"a", b"none"]) == 1
        assert store.contains_many([b"a", b"b"]) == [False, True]


def test_a_flipped_byte_is_reported_with_its_key(tmp_path: Path) -> None:
    payload = b"unmistakable payload " * 20
    with Store.open(tmp_path / "s") as store:
        store.put_many([(b"victim", payload)])
    data_file = tmp_path / "s/data.mdb"
    content = bytearray(data_file.read_bytes())
    content[content.find(payload) + 5] ^= 1
    data_file.write_bytes(content)
    with Store.open(tmp_path / "s") as store, pytest.raises(StoreDamaged, match="victim"):
        store.get(b"victim")


@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_a_shortened_file_is_refused_instead_of_killing_the_process(tmp_path: Path, kept: float) -> None:
    with Store.open(tmp_path / "s") as store:
        store.put_many((b"%d" % n, os.urandom(5000)) for n in range(100))
    data_file = tmp_path / "s/data.mdb"
    os.truncate(data_file, int(data_file.stat().st_size * kept))
    with pytest.raises(StoreDamaged, match="cut short"):
        Store.open(tmp_path / "s")


@pytest.mark.parametrize("content", [b"hello" * 3000, b"\0" * 8192, b"x"])
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s/data.mdb").write_bytes(content)
    with pytest.raises(StoreDamaged, match="damaged"):
        Store.open(tmp_path / "s")


def test_reading_a_store_that_does_not_exist_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match="no store"):
        Store.open(tmp_path / "s", read_only=True)
    assert not (tmp_path / "s").exists()


def test_opening_twice_gives_the_same_store_until_both_closed_it(tmp_path: Path) -> None:
    first, second = Store.open(tmp_path / "s"), Store.open(tmp_path / "s")
    assert first is second
    first.close()
    assert second.put_many([(b"a", b"1")]) == 1
    second.close()
    with pytest.raises(StoreMisuse, match="closed"):
        second.get(b"a")


def test_a_read_only_store_refuses_writes_and_a_second_writable_opening(tmp_path: Path) -> None:
    Store.open(tmp_path / "s").close()
    with Store.open(tmp_path / "s", read_only=True) as store:
        with pytest.raises(StoreMisuse, match="read-only"):
            store.put_many([(b"a", b"1")])
        with pytest.raises(StoreMisuse, match="read-only"):
            Store.open(tmp_path / "s")


@pytest.mark.parametrize("key", [b"", b"k" * 512])
def test_a_key_that_lmdb_cannot_hold_is_refused(tmp_path: Path, key: bytes) -> None:
    with Store.open(tmp_path / "s") as store, pytest.raises(StoreMisuse, match="1 to 511"):
        store.put_many([(key, b"1")])


def test_a_forked_child_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                store.put_many([(b"a", b"1")])
                os.write(writing, b"written")
            except StoreMisuse:
                os.write(writing, b"refused")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with os.fdopen(reading, "rb") as answer:
            assert answer.read() == b"refused"


_FILL = """
import os, sys
from pathlib import Path
from ingest.storage import Store, StoreFull
with Store.open(Path(sys.argv[1]) / "s") as store:
    store.put_many([(b"kept", bytes(1000))])
    try:
        store.put_many((b"%d" % n, os.urandom(100_000)) for n in range(100))
    except StoreFull as error:
        sys.stdout.write(f"{error} kept={len(store.get(b'kept') or b'')}")
"""


def test_a_full_disk_is_named_and_what_was_stored_stays(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"'
    mounted = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(tmp_path)]
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not allow mounting a small disk without root")
    child = [sys.executable, "-c", _FILL, str(tmp_path)]
    root = Path(__file__).parents[2]
    answer = subprocess.run([*mounted, *child], capture_output=True, text=True, check=True, cwd=root)
    assert "MB are free" in answer.stdout
    assert answer.stdout.endswith("kept=1000")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        environment = store._check_process()
        with environment.begin(write=True) as transaction:
            transaction.put(b"schema", b"99", db=store._meta)
    with pytest.raises(Exception, match="schema 99"):
        Store.open(tmp_path / "s")


_step = st.tuples(
    st.sampled_from(["put", "delete"]),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9000)), max_size=6),
)


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(_step, max_size=12))
def test_a_healthy_store_always_opens_again_and_holds_the_last_values(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[tuple[int, int]]]]
) -> None:
    path = tmp_path_factory.mktemp("store")
    expected: dict[bytes, bytes] = {}
    with Store.open(path) as store:
        for action, entries in steps:
            keys = [struct.pack(">Q", number) for number, _ in entries]
            if action == "put":
                values = dict(zip(keys, (bytes(size) for _, size in entries), strict=True))
                store.put_many(values.items())
                expected |= values
            else:
                store.delete_many(keys)
                expected = {key: value for key, value in expected.items() if key not in keys}
    with Store.open(path, read_only=True) as store:
        assert dict(zip(store.keys(), store.get_many(list(store.keys())), strict=True)) == expected
