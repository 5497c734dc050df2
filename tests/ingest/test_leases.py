from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.catalog import Catalog
from ingest.errors import LeaseHeld, LeaseLost
from ingest.leases import Holder, LeaseTable

ONE = Holder("one", "one.example.org", 7, "updating", "2026-11-28T10:00:00+00:00", 0.0)
TWO = replace(ONE, machine="two", pid=8)


def in_another(work: Callable[[], object]) -> None:
    """Does something in another thread, as another machine would."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def take_over(catalog: Catalog) -> None:
    with catalog.leases.held("updater", TWO):
        catalog.add_job("gallery")


@pytest.fixture(params=["file", pytest.param("database", marks=pytest.mark.postgres)])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    place: Path | str = tmp_path / "catalog.sqlite"
    if request.param == "database":
        from tests.postgres_server import made_in

        place = made_in(tmp_path)
    with Catalog.open(place) as opened:
        yield opened


@pytest.fixture
def leases(catalog: Catalog) -> LeaseTable:
    return catalog.leases


def test_one_holds_it_and_others_read_who(leases: LeaseTable) -> None:
    assert leases.holder("updater") is None
    with leases.held("updater", ONE):
        found = leases.holder("updater")
        assert found is not None
        assert replace(found, left=0.0) == ONE
        assert not found.is_given_back
        assert 25 < found.left <= 30
        with pytest.raises(LeaseHeld), leases.held("updater", TWO):
            pytest.fail("two hold it")
        with leases.held("job-1", TWO):  # another lease
            pass
    found = leases.holder("updater")
    assert found is not None
    assert found.is_given_back
    with leases.held("updater", TWO):
        pass


def test_the_machine_that_held_it_takes_it_again_at_once(leases: LeaseTable) -> None:
    with leases.held("updater", ONE), leases.held("updater", replace(ONE, pid=9)):
        found = leases.holder("updater")
        assert found is not None
        assert found.pid == 9


def test_it_is_prolonged_while_its_holder_lives(leases: LeaseTable) -> None:
    with leases.held("updater", ONE, seconds=0.6):
        time.sleep(1.2)
        with pytest.raises(LeaseHeld), leases.held("updater", TWO):
            pytest.fail("it ran out")


def test_a_holder_that_was_paused_changes_nothing_when_it_comes_back(
    catalog: Catalog, leases: LeaseTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LeaseTable, "_prolong", lambda *_: None)  # as of a process that stands still
    with leases.held("updater", ONE, seconds=0.1):
        catalog.add_job("gallery")
        time.sleep(0.2)
        catalog.add_job("gallery")  # nobody has taken it meanwhile
        in_another(lambda: take_over(catalog))
        with pytest.raises(LeaseLost, match="has taken this over"):
            catalog.add_job("gallery")
        assert len(catalog.jobs()) == 3
        in_another(lambda: catalog.add_job("gallery"))  # what else the process does goes on
    assert len(catalog.jobs()) == 4
    catalog.add_job("gallery")
    assert {one.is_given_back for one in leases.holders("up").values()} == {True}


def test_who_waits_has_it_next(leases: LeaseTable) -> None:
    order: list[str] = []

    def wait() -> None:
        with leases.briefly("commits", TWO):
            order.append("two")

    with leases.held("commits", ONE):
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.2)
        order.append("one")
    waiting.join()
    assert order == ["one", "two"]
    with leases.held("commits", ONE), pytest.raises(LeaseHeld), leases.briefly("commits", TWO, patience=0.1):
        pytest.fail("two hold it")


@pytest.mark.postgres
def test_in_a_database_a_long_write_costs_no_lease_and_keeps_others_from_taking_it(tmp_path: Path) -> None:
    from ingest.engines import writing
    from tests.postgres_server import made_in

    with Catalog.open(made_in(tmp_path)) as catalog:
        leases = catalog.leases
        with leases.held("updater", ONE, seconds=0.6), writing(catalog._engine):
            time.sleep(1.5)
            found = leases.holder("updater")
            assert found is not None
            assert found.left > 0
            assert found.machine == "one"


def test_who_is_refused_a_second_lease_is_told_and_gives_the_first_back(leases: LeaseTable) -> None:
    with (
        leases.held("files", TWO),
        pytest.raises(LeaseHeld, match="files"),
        leases.briefly("intake", ONE),
        leases.briefly("files", ONE, patience=0.1),
    ):
        pytest.fail("two hold it")
    found = leases.holder("intake")
    assert found is not None
    assert found.is_given_back
