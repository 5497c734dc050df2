"""Guards, each left out of a copy of the code once: the test that stands for it must fail there, and hold here."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from speed_timing import ROOT, Measured, environment, require

_SERVER, _HOME = "tests/app/server", "tests/app/home"
_AT_ONCE = 2


@dataclass(frozen=True)
class Guard:
    """A few characters of the code without which something falls, and the test that shows it."""

    what: str
    file: str
    code: str
    without: str
    test: str


GUARDS = (
    Guard(
        "no more wait than may",
        "app/server/places.py",
        "if len(self._queue) < self._may_wait():",
        "if True:",
        f"{_SERVER}/test_places.py::test_more_than_may_wait_is_refused_at_once",
    ),
    Guard(
        "an overload ends when all places together could do what comes",
        "app/server/places.py",
        "too_many = self._came * self._takes > self._at_once * _FADES_SECONDS",
        "too_many = True",
        f"{_SERVER}/test_places.py::test_what_the_places_can_do_is_done_again_soon_after_an_overload",
    ),
    Guard(
        "under overload half of the places stay free where refusals cost much",
        "app/server/places.py",
        "return self._at_once // 2 if is_dear and self._is_overload() else 0",
        "return 0",
        f"{_SERVER}/test_places.py::test_under_lasting_overload_nobody_waits_long_and_half_of_the_places_work_where_refusals_cost_much",
    ),
    Guard(
        "what its client has left is dropped",
        "app/server/places.py",
        "if leaves is not None and leaves.done() and not waiter.done():",
        "if False:",
        f"{_SERVER}/test_admission.py::test_what_its_client_has_left_is_never_begun",
    ),
    Guard(
        "a try to sign in is counted before it is hashed",
        "app/server/guard.py",
        "wait = self._attempts.begin(address, user)",
        "wait = 0.0",
        f"{_SERVER}/test_security.py::test_of_three_hundred_wrong_passwords_at_once_a_few_are_hashed_and_nobody_else_waits",
    ),
    Guard(
        "pictures that are not plain are decoded apart",
        "ingest/decoding.py",
        "or is_plain(data, limits):",
        "or True:",
        "tests/ingest/test_decoding.py::test_what_takes_too_much_memory_is_refused_with_the_limit",
    ),
    Guard(
        "a JPEG of thousands of passes is refused",
        "ingest/images.py",
        "if passes > _MOST_PASSES:",
        "if False:",
        "tests/ingest/test_decoding.py::test_a_jpeg_of_four_thousand_passes_is_refused_before_it_is_decoded",
    ),
    Guard(
        "a package is judged by what it says of itself",
        "app/learning/transfer.py",
        "require_plain(source.name, Path(place))",
        "pass",
        f"{_HOME}/test_hostile_packages.py::test_what_makes_no_sense_is_refused_before_anything_is_opened",
    ),
    Guard(
        "a package is tried apart before it is kept",
        "app/learning/transfer.py",
        "try_package(workspace.settings, source)",
        "pass",
        f"{_HOME}/test_hostile_packages.py::test_what_cannot_be_served_is_refused_by_a_process_that_tries_it",
    ),
    Guard(
        "a release of another home is tried before it goes live",
        "app/learning/going_live.py",
        "try_release(workspace.settings, record.id, workspace.releases.version_bytes(record.version))",
        "pass",
        f"{_HOME}/test_hostile_packages.py::test_a_release_that_was_taken_in_untried_is_tried_before_it_goes_live",
    ),
    Guard(
        "a start steps down to a release that is whole",
        "app/query/snapshot.py",
        "elif releases.standing(refused=refused).commit != commit:",
        "else:\n                    raise\n                if releases.standing(refused=refused).commit != commit:",
        "tests/app/doctor/test_damage_at_start.py::test_flipped_bytes_of_all_that_is_served_are_found_and_a_release_before_answers",
    ),
    Guard(
        "what answers is read whole after the start",
        "app/server/serving.py",
        "self._guarded(partial(self._read_whole, snapshot))",
        "pass",
        "tests/app/doctor/test_damage_at_start.py::test_what_rots_without_a_trace_is_found_right_after_the_start",
    ),
    Guard(
        "what was taken out stays hidden in an older release",
        "app/query/snapshot.py",
        "hidden = _hidden(workspace, generation)\n        reranker",
        "hidden = frozenset[str]()\n        reranker",
        "tests/app/doctor/test_damage_at_start.py::test_pictures_that_were_taken_out_stay_hidden_and_later_ones_are_counted",
    ),
    Guard(
        "a damaged catalog is not copied over its copy",
        "app/home/catalog_copy.py",
        "    if why:\n        raise sqlite3.DatabaseError(why)\n    os.utime",
        "    os.utime",
        f"{_HOME}/test_catalog_copy.py::test_an_emptied_catalog_is_damaged_and_its_copy_survives",
    ),
    Guard(
        "there are fewer connections than descriptors",
        "app/server/connections.py",
        "return max(8, min(_MOST, soft - _open_descriptors() - _FOR_OTHER_WORK))",
        "return _MOST",
        f"{_SERVER}/test_connections.py::test_there_are_fewer_connections_than_descriptors",
    ),
    Guard(
        "there are no more connections than there may be",
        "app/server/connections.py",
        "if len(kind.known) > kind.most:",
        "if False:",
        f"{_SERVER}/test_connections.py::test_where_all_connections_are_at_work_a_new_one_is_told_so",
    ),
    Guard(
        "half a request is refused in time",
        "app/server/connections.py",
        'elif one._waits_for == "body" and (waited > _BODY_SECONDS or now > one._body_until):',
        "elif False:",
        f"{_SERVER}/test_connections.py::test_half_a_request_is_refused_when_the_rest_does_not_come",
    ),
    Guard(
        "a flood of one message is a line a second",
        "app/home/logs.py",
        "def __init__(self, seconds: float = 1.0) -> None:",
        "def __init__(self, seconds: float = 0.0) -> None:",
        f"{_HOME}/test_logs.py::test_a_flood_is_a_line_a_second_with_a_count",
    ),
    Guard(
        "what is sent cannot begin a line of the log",
        "app/home/logs.py",
        "return _CONTROL.sub(lambda one: ascii(one[0])[1:-1], super().formatMessage(record))",
        "return super().formatMessage(record)",
        f"{_HOME}/test_logs.py::test_what_a_stranger_sends_cannot_begin_a_line",
    ),
    Guard(
        "FAISS says that the disk is full",
        "index/faiss_index.py",
        "faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))",
        "faiss.write_index(index, str(path))",
        "tests/index/test_faiss_index.py::test_a_full_disk_is_said_as_such_wherever_it_is_met",
    ),
    Guard(
        "nothing to go back to is a conflict",
        "app/desk/troubles.py",
        "(409, (ChunkHeld, UpdateRunning, ParentMoved, NothingBefore))",
        "(409, (ChunkHeld, UpdateRunning, ParentMoved))",
        f"{_SERVER}/test_api_releases.py",
    ),
)


def guards(work: Path, *, most: int) -> Measured:
    """Takes away one guard after another, each in a copy of the code of its own."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        chosen = GUARDS[:most]
        found = list(
            pool.map(
                lambda numbered: _missed(work / f"without-{numbered[0]}", numbered[1]), enumerate(chosen)
            )
        )
    silent = [guard.what for guard, is_missed in zip(chosen, found, strict=True) if not is_missed]
    return Measured(
        f"{len(chosen)} guards, each left out once",
        f"{len(chosen) - len(silent)} of {len(chosen)} are missed by their test",
        f"{len(chosen)} of {len(chosen)}",
        not silent,
        "the test holds in the code as it is, and fails in a copy without the guard: "
        + "; ".join(f"{guard.what} ({guard.test.rpartition('/')[2]})" for guard in chosen)
        + (f"; nobody misses: {silent}" if silent else ""),
    )


def _missed(copy: Path, guard: Guard) -> bool:
    """Returns whether the test holds with the guard and fails without it."""
    subprocess.run(["git", "clone", "--quiet", ROOT, copy], check=True)
    require(_ran(copy, guard.test) == 0, f"{guard.test} fails in the code as it is")
    file = copy / guard.file
    text = file.read_text(encoding="utf-8")
    require(text.count(guard.code) == 1, f"{guard.file} has not once: {guard.code}")
    file.write_text(text.replace(guard.code, guard.without), encoding="utf-8")
    # 1 says that tests failed; anything else, that none could be run.
    return _ran(copy, guard.test) == 1


def _ran(copy: Path, test: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    env = environment() | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=copy, env=env, capture_output=True, check=False).returncode
