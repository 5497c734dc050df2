"""Claims about the updater's lock."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from app.desk.errors import UpdateRunning
from app.home import lock
from app.home.folder import Home
from app.home.store import ReleaseStore


def test_a_second_updater_is_told_who_is_at_it(home: Home, store: ReleaseStore) -> None:
    with (
        store.updater_lock("teaching German"),
        pytest.raises(UpdateRunning, match=rf"Process {os.getpid()} .* \(teaching German\)") as refusal,
        ReleaseStore(home).updater_lock(),
    ):
        pass

    assert refusal.value.exit_code == 5


def test_the_lock_is_free_after_its_block_and_after_an_error_in_it(home: Home, store: ReleaseStore) -> None:
    with pytest.raises(ZeroDivisionError), store.updater_lock():
        raise ZeroDivisionError

    assert store.lock_holder() is None
    with store.updater_lock("again"):
        holder = ReleaseStore(home).lock_holder()
    assert holder is not None
    assert (holder.pid, holder.what) == (os.getpid(), "again")


def test_an_orphan_of_a_dead_updater_does_not_keep_the_lock(home: Home, store: ReleaseStore) -> None:
    code = (
        "import os, subprocess, sys; from pathlib import Path; from app.home import lock\n"
        f"with lock.hold(Path({str(home.lock)!r}), 'dying'):\n"
        "    quiet = subprocess.DEVNULL\n"
        "    orphan = subprocess.Popen(['sleep', '30'], close_fds=False, stdout=quiet, stderr=quiet)\n"
        "    print(orphan.pid, flush=True)\n"
        "    os._exit(137)\n"
    )
    dead = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, text=True, timeout=20
    )
    orphan = int(dead.stdout)
    try:
        with store.updater_lock("next"):
            os.kill(orphan, 0)  # still alive, so it could have kept the lock
            holder = store.lock_holder()
    finally:
        os.kill(orphan, 9)
    assert holder is not None
    assert holder.what == "next"


def test_an_updater_outwaits_a_server_that_tidies_up(home: Home) -> None:
    began = threading.Event()

    def tidy() -> None:
        with lock.hold(home.lock, lock.TIDYING):
            began.set()
            time.sleep(0.5)

    thread = threading.Thread(target=tidy)
    thread.start()
    began.wait(timeout=10)
    with ReleaseStore(home).updater_lock("teaching"):
        holder = ReleaseStore(home).lock_holder()
    thread.join(timeout=10)
    assert holder is not None
    assert holder.what == "teaching"
