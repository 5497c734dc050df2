from __future__ import annotations

import contextlib
import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.desk.errors import NoSpace
from app.home.durable import (
    FAULT_POINTS,
    KILLED,
    FileSystem,
    explaining_full_disk,
    publish_folder,
    replace_file,
)
from tests.app.home.publishing import FailingFileSystem, Killed


def test_every_fault_point_is_listed_once() -> None:
    assert len(set(FAULT_POINTS)) == len(FAULT_POINTS) >= 20


def test_a_named_fault_point_kills_the_process_and_others_do_not() -> None:
    code = "from app.home.durable import fault; fault('commit:write'); fault('commit:link'); print('alive')"

    killed = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PERENNIAL_FAULT": "commit:link"}, check=False
    )
    spared = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PERENNIAL_FAULT": "commit:other"}, check=False
    )

    assert (killed.returncode, spared.returncode) == (KILLED, 0)


def test_replacing_a_file_leaves_the_old_or_the_new_one_wherever_it_stops(tmp_path: Path) -> None:
    path = tmp_path / "FORMAT"
    seen = []
    for step in range(5):
        path.write_bytes(b"old")
        with contextlib.suppress(Killed):
            replace_file(path, b"new", files=FailingFileSystem(step, Killed()))
        seen.append(path.read_bytes())

    assert seen == [b"old", b"old", b"old", b"new", b"new"]


def test_a_published_folder_has_left_the_staging_place(tmp_path: Path) -> None:
    staged = tmp_path / "staging" / "job"
    (staged / "nested").mkdir(parents=True)
    (staged / "nested" / "file").write_bytes(b"content")
    (tmp_path / "versions").mkdir()

    publish_folder(FileSystem(), staged, tmp_path / "versions" / "v1", "version")

    assert not staged.exists()
    assert (tmp_path / "versions" / "v1" / "nested" / "file").read_bytes() == b"content"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_becomes_a_sentence(tmp_path: Path, code: int) -> None:
    with (
        pytest.raises(NoSpace, match=re.escape("The disk ran full while publishing a version")),
        explaining_full_disk(tmp_path, "publishing a version"),
    ):
        raise OSError(code, os.strerror(code))


def test_other_disk_errors_keep_their_own_words(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Input/output error"), explaining_full_disk(tmp_path, "anything"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
