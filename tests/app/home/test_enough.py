"""Claims about work that would not fit: it is refused before it starts, with what it needs and what there is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.desk.errors import NoMemory, NoSpace
from app.home import enough
from app.home.durable import free_bytes
from app.home.enough import memory_left, own_bytes, require_room

HUGE = 10**18


def test_work_that_would_not_fit_on_the_disk_is_refused_with_both_numbers(tmp_path: Path) -> None:
    place = tmp_path / "not" / "made" / "yet"
    require_room("This", place, disk=0)
    with pytest.raises(
        NoSpace, match=r"This needs about 1,000,000,000\.0 GB of the disk at .*, and [\d,.]+ .B are free"
    ):
        require_room("This", place, disk=HUGE)
    assert free_bytes(place) == pytest.approx(free_bytes(tmp_path), rel=0.05)


def test_work_that_would_not_fit_in_memory_is_refused_with_both_numbers(tmp_path: Path) -> None:
    there = memory_left()
    assert there is not None
    require_room("This", tmp_path, memory=own_bytes())
    with pytest.raises(
        NoMemory, match=r"This needs about 1,000,000,000\.0 GB of memory, and [\d,.]+ .B are free"
    ):
        require_room("This", tmp_path, memory=HUGE)


@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_process_with_a_bound_has_what_is_left_of_it(kind: str) -> None:
    asked = (
        "import json, resource; from app.home.enough import memory_left; before = memory_left(); "
        f"resource.setrlimit(resource.{kind}, (1 << 30, 1 << 30)); left = memory_left(); held = bytearray(200 << 20); "
        "print(json.dumps([before, left, memory_left()]))"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    before, bound, held = json.loads(done.stdout)
    assert before > bound < 1 << 30
    assert bound - held == pytest.approx(200 << 20, rel=0.1)


@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_control_group_above_a_process_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """As a container shows them: the outer one has the bound, the inner one none."""
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(
        "0::/outer/inner\n" if version == 2 else "4:cpu:/x\n3:memory:/outer/inner\n"
    )
    root, bound, taken, freed, none = (
        (groups, "memory.max", "memory.current", "inactive_file", "max")
        if version == 2
        else (
            groups / "memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
            str(2**63 - 4096),
        )
    )
    inner = root / "outer" / "inner"
    inner.mkdir(parents=True)
    for folder, most in ((inner, none), (inner.parent, "500")):
        (folder / bound).write_text(f"{most}\n")
        (folder / taken).write_text("300\n")
        (folder / "memory.stat").write_text(f"anon 200\n{freed} 40\n")
    monkeypatch.setattr(enough, "_PROC", proc)
    monkeypatch.setattr(enough, "_GROUPS", groups)
    assert memory_left() == 500 - 300 + 40
