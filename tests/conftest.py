"""Options of the whole suite."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.testing

from tests.claims import ClaimsHold
from tests.forked_starts import forked_starts
from tests.quick import is_quick


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--claims", action="store_true", help="Fail when a test that docs/peers.md names did not pass."
    )
    parser.addoption(
        "--quick",
        action="store_true",
        help="Leave out browsers, servers, taught homes, training and processes.",
    )


# Each verb that is run would make the commands of all verbs again, which takes longer than many a verb.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]


def pytest_collection_finish() -> None:
    # Else each full collection of what is unused goes through all libraries that were loaded.
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # triton lists what it finds uncollected when the process ends


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_slow = config.getoption("--quick") and collection_path.is_file() and not is_quick(collection_path)
    return True if is_slow else None


def pytest_configure(config: pytest.Config) -> None:
    # The reports of all workers come to the process that started them.
    is_worker = hasattr(config, "workerinput")
    if config.getoption("--claims") and not is_worker:
        config.pluginmanager.register(ClaimsHold())
    if not is_worker:
        _keep_scratch_in_one_folder(config)


def _keep_scratch_in_one_folder(config: pytest.Config) -> None:
    """What a test, a server or a job leaves among the temporary files goes when the run ends, however it ends.

    pytest's own folders stay where they were: those of failed tests are kept to be looked at.
    """
    usual = tempfile.gettempdir()
    scratch = tempfile.mkdtemp(prefix="perennial-tests-")
    Path(scratch).chmod(0o711)  # some tests are read by a user that may little
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", usual)
    os.environ["TMPDIR"] = tempfile.tempdir = scratch

    def clear() -> None:
        os.environ["TMPDIR"] = tempfile.tempdir = usual
        shutil.rmtree(scratch, ignore_errors=True)

    config.add_cleanup(clear)


@pytest.fixture(scope="session")
def _forking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with forked_starts(tmp_path_factory.mktemp("starts")) as program:
        yield program


@pytest.fixture(scope="module")
def starts_at_once(_forking: Path) -> Iterator[None]:
    """Processes of Python that the tests of a file, servers and jobs start are forked, not started cold."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(_forking))
        yield


@pytest.fixture(autouse=True)
def _no_index_is_held() -> None:
    """Copies of one home have the same segments, so one that another test left open would hide damage in a copy."""
    if segment := sys.modules.get("index.segment"):
        segment.forget_held()
