"""A folder as people have them: with links, hidden things, folders in disguise and files that nobody may read."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ingest.limits import DEFAULT_LIMITS
from ingest.plan import IntakePlan, make_plan
from ingest.readers.container import Skipped
from ingest.readers.folder import Folder
from ingest.readers.formats import open_container
from tests.ingest.conftest import Place, rows_of
from tests.ingest.material import folder_of, picture, zip_of
from tests.ingest.readers.bad_files import GOOD

_NOBODY = 65534


def _plan(source: Path) -> IntakePlan:
    return make_plan(open_container(source, DEFAULT_LIMITS), mapping={}, limits=DEFAULT_LIMITS)


def _problems(plan: IntakePlan) -> dict[str, str]:
    return {problem.where: problem.code for problem in plan.problems}


def test_links_to_files_and_folders_are_listed_and_not_followed(place: Place, tmp_path: Path) -> None:
    source = folder_of(tmp_path / "photos", {**GOOD, "2019/a.png": picture(1)})
    (source / "2019/loop").symlink_to(source, target_is_directory=True)
    (source / "linked.png").symlink_to(source / "good.png")
    (source / "dangling.png").symlink_to(source / "gone.png")
    report = place.ingest(source)
    assert {row.where: row.code for row in rows_of(report, "rejected")} == {
        "2019/loop": "special_file",
        "linked.png": "special_file",
        "dangling.png": "special_file",
    }


def test_a_folder_that_is_named_like_a_picture_is_told_of_and_read(place: Place, tmp_path: Path) -> None:
    source = folder_of(tmp_path / "photos", {**GOOD, "burst.jpg/1.png": picture(7)})
    report = place.ingest(source)
    assert [(row.where, row.code) for row in rows_of(report, "rejected")] == [("burst.jpg", "folder")]
    assert report.new_images == 2


@pytest.mark.parametrize("is_zip", [False, True])
def test_hidden_files_and_folders_are_counted_and_ignored(place: Place, tmp_path: Path, is_zip: bool) -> None:
    hidden: dict[str, bytes | str] = {
        ".trashed-1.png": picture(1),
        ".thumbnails/2.png": picture(2),
        "._good.png": b"x",
    }
    members = {**GOOD, **hidden, "Thumbs.db": b"x", "sub/.hidden.txt": "never read"}
    make = zip_of if is_zip else folder_of
    report = place.ingest(make(tmp_path / ("a.zip" if is_zip else "a"), members))
    assert (report.new_images, report.rejected) == (1, 0)
    assert report.notes[0] == "3 hidden files or folders were ignored"


def test_files_that_vanish_between_looking_and_reading_cost_themselves_alone(tmp_path: Path) -> None:
    source = folder_of(tmp_path / "photos", {**GOOD, "b.png": picture(2)})
    folder = Folder(source, DEFAULT_LIMITS)
    plan = make_plan(folder, mapping={}, limits=DEFAULT_LIMITS)
    (source / "b.png").unlink()
    found = dict(folder.read(plan.rows.keys()))
    assert isinstance(found["good.png"], bytes)
    assert isinstance(found["b.png"], Skipped)


def test_a_scan_looks_at_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = folder_of(tmp_path / "photos", {f"{n % 3}/{n}.png": picture(n) for n in range(1, 10)})
    folder = Folder(source, DEFAULT_LIMITS)
    looked_at: list[str] = []
    for look in (os.stat, os.lstat):

        def noted(path: str, *, look: Callable[..., os.stat_result] = look, **how: Any) -> os.stat_result:
            looked_at.append(str(path))
            return look(path, **how)

        monkeypatch.setattr(os, look.__name__, noted)

    plan = make_plan(folder, mapping={}, limits=DEFAULT_LIMITS)
    origins = [folder.origin(name) for name in plan.rows]

    files = sorted(str(path) for path in source.rglob("*.png"))
    assert sorted(path for path in looked_at if path.endswith(".png")) == files
    assert [one.size for one in origins] == [Path(one.path or "").lstat().st_size for one in origins]


@contextmanager
def _as_nobody(*locked: Path) -> Iterator[None]:
    """Takes the right to read away, and root's power to do so all the same."""
    is_root = os.geteuid() == 0
    for path in locked:
        path.chmod(0)
    if is_root:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        for path in locked:
            path.chmod(0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_what_may_not_be_read_costs_itself_a_line() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = folder_of(
            Path(folder) / "photos",
            {
                **GOOD,
                "locked.png": picture(1),
                "locked.csv": "image,caption\ngood.png,x\n",
                "b.png": picture(2),
                "b.txt": "words",
                "shard.tar": b"x" * 1024,
                "secret/c.png": picture(3),
            },
        )
        for path in (Path(folder), source, *source.rglob("*")):
            path.chmod(0o755)
        locked = [source / name for name in ("locked.png", "locked.csv", "b.txt", "shard.tar", "secret")]
        with _as_nobody(*locked):
            container = open_container(source, DEFAULT_LIMITS)
            plan = make_plan(container, mapping={}, limits=DEFAULT_LIMITS)
            read = dict(container.read(plan.rows.keys()))
    assert _problems(plan) == dict.fromkeys(("locked.csv", "b.txt", "shard.tar", "secret"), "file_unreadable")
    assert {name for name, data in read.items() if isinstance(data, bytes)} == {"good.png", "b.png"}
    refused = read["locked.png"]
    assert isinstance(refused, Skipped)
    assert (refused.code, refused.sentence) == ("file_unreadable", "It cannot be read (Permission denied).")


def test_names_of_any_letters_are_read(place: Place, tmp_path: Path) -> None:
    names = [
        "\u00e4.png",
        "o\u0308.png",
        "\U0001f4f7\u200d\U0001f30a.png",
        "a" * 251 + ".png",
        "new\nline.png",
    ]
    source = folder_of(tmp_path / "photos", {name: picture(n) for n, name in enumerate(names, start=1)})
    with suppress(OSError):  # some file systems take no other letters than Unicode's
        Path(os.fsdecode(os.fsencode(source) + b"/caf\xe9.png")).write_bytes(picture(9))
    report = place.ingest(source)
    assert report.rejected == 0
    assert report.new_images == len(list(source.iterdir()))
    assert all(row.where.isprintable() for row in report.rows)
