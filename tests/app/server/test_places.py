"""Claims about places: who waits, who is refused, and how long a queue may stand.

Row 1 of what fell once (SECURITY.md).
"""

from __future__ import annotations

import asyncio
import threading
import time
from statistics import median

import pytest

from app.desk.errors import TooBusy
from app.server.places import Gone, HeldPlace, Places

WORK = 0.02


async def _work(places: Places, seconds: float = WORK) -> tuple[bool, float, float]:
    """Returns whether it was done, the seconds until the place was given or refused, and those that the work took."""
    asked = time.monotonic()
    try:
        place = await places.take()
    except TooBusy:
        return False, time.monotonic() - asked, 0.0
    begun = time.monotonic()
    await asyncio.sleep(seconds)
    place.give_back()
    return True, begun - asked, time.monotonic() - begun


def test_a_burst_waits_its_turn_and_all_of_it_is_answered() -> None:
    async def burst() -> list[tuple[bool, float, float]]:
        places = Places(at_once=2, waiting=20)
        return await asyncio.gather(*(_work(places) for _ in range(20)))

    assert all(is_done for is_done, _, _ in asyncio.run(burst()))


def test_more_than_may_wait_is_refused_at_once() -> None:
    async def rush() -> list[tuple[bool, float, float]]:
        places = Places(at_once=1, waiting=2)
        return await asyncio.gather(*(_work(places, 0.1) for _ in range(10)))

    told = asyncio.run(rush())
    assert [is_done for is_done, _, _ in told] == [True] * 3 + [False] * 7
    assert max(waited for is_done, waited, _ in told if not is_done) < 0.1


def test_eight_who_ask_again_whenever_they_are_answered_are_all_answered() -> None:
    async def ask() -> list[tuple[bool, float, float]]:
        places = Places(at_once=2, waiting=32)

        async def one() -> list[tuple[bool, float, float]]:
            return [await _work(places) for _ in range(20)]

        return [told for every in await asyncio.gather(*(one() for _ in range(8))) for told in every]

    assert all(is_done for is_done, _, _ in asyncio.run(ask()))


@pytest.mark.parametrize(("costs", "least", "most"), [(0.0, 3, 4.2), (0.003, 1, 3)])
def test_under_lasting_overload_nobody_waits_long_and_half_of_the_places_work_where_refusals_cost_much(
    costs: float, least: float, most: float
) -> None:
    """Five times what the places can do, for three seconds; each refusal takes the loop so many seconds."""

    async def ask(places: Places) -> tuple[bool, float, float]:
        told = await _work(places)
        until = time.thread_time() + (0 if told[0] else costs)
        while time.thread_time() < until:
            pass
        return told

    async def overload() -> list[tuple[bool, float, float]]:
        places, tasks = Places(at_once=2, waiting=32), []
        began = time.monotonic()
        while time.monotonic() - began < 3:
            tasks.append(asyncio.ensure_future(ask(places)))
            await asyncio.sleep(WORK / 2 / 5)
        return await asyncio.gather(*tasks)

    told = asyncio.run(overload())
    told = told[len(told) // 3 :]  # once it is clear that the queue does not empty
    done = [(waited, took) for is_done, waited, took in told if is_done]
    refused = [waited for is_done, waited, _ in told if not is_done]
    assert len(refused) > len(done) > 20
    took = median(took for _, took in done)
    assert median(waited for waited, _ in done) < took
    assert max(refused) < 1.5
    assert least < sum(took for _, took in done) < most  # of the four seconds that two places had


def test_what_the_loop_did_before_a_rush_makes_refusals_no_dearer() -> None:
    places = Places(at_once=2, waiting=1)
    places.refuses_one_more()
    places._loop_clock -= 144.0  # what half a percent of a processor is in eight hours
    places._looked -= 8 * 3600.0
    places.refuses_one_more()
    assert places._loop_took < 0.02


def test_who_waits_has_the_place_that_is_kept_free_no_longer() -> None:
    places = Places(at_once=2, waiting=2)
    held = places._ask(), places._ask()
    waiting = places._ask()
    places._free = 1  # one was given back while one was kept free
    later = places._ask()
    assert waiting.done()
    assert not later.done()
    assert all(one.done() for one in held)


def test_what_the_places_can_do_is_done_again_soon_after_an_overload() -> None:
    """Five times what they can do, then half of it, of which half of the places would refuse a third for ever."""

    async def ask(places: Places, share: float, seconds: float) -> list[tuple[bool, float, float]]:
        tasks, began = [], time.monotonic()
        while time.monotonic() - began < seconds:
            tasks.append(asyncio.ensure_future(_work(places)))
            await asyncio.sleep(began + len(tasks) * WORK / 2 / share - time.monotonic())
        return await asyncio.gather(*tasks)

    async def story() -> list[tuple[bool, float, float]]:
        places = Places(at_once=2, waiting=32)
        await ask(places, 5, 2)
        await ask(places, 0.5, 3)
        return await ask(places, 0.5, 2)

    told = asyncio.run(story())
    assert len(told) > 50
    assert sum(is_done for is_done, _, _ in told) > 0.9 * len(told)


def test_a_thread_that_waits_has_its_turn_when_the_overload_is_over() -> None:
    places, begun = Places(at_once=2, waiting=4), threading.Event()

    def search() -> None:
        with places.taken():
            begun.set()

    async def story() -> None:
        held = [await places.take() for _ in range(2)]
        thread = threading.Thread(target=search)
        thread.start()
        while not places._queue:
            await asyncio.sleep(0.001)
        places._takes = 1.0
        for _ in range(50):
            assert not places.refuses_one_more()  # as long as one may wait
            places._came += 1
            places.refusal()
        places._overrun_since -= 1
        assert places._is_overload()
        for one in held:
            one.give_back()
        await asyncio.to_thread(thread.join, 5)

    asyncio.run(story())
    assert begun.is_set()
    assert places._free == 2


def test_threads_and_the_loop_share_the_places_in_the_order_in_which_they_came() -> None:
    places, order = Places(at_once=1, waiting=4), []

    def in_thread() -> None:
        with places.taken():
            order.append("thread")

    async def both() -> None:
        first = await places.take()
        thread = threading.Thread(target=in_thread)
        thread.start()
        while not places._queue:
            await asyncio.sleep(0.001)
        later = asyncio.ensure_future(places.take())
        await asyncio.sleep(0)
        first.give_back()
        place = await later
        order.append("loop")
        place.give_back()
        await asyncio.to_thread(thread.join)

    asyncio.run(both())
    assert order == ["thread", "loop"]
    with places.taken():
        assert places._free == 0


def test_who_leaves_while_waiting_gives_its_turn_to_the_next() -> None:
    async def leave() -> None:
        places = Places(at_once=1, waiting=4)
        held = await places.take()
        left = asyncio.Event()

        async def gone() -> None:
            await left.wait()

        leaving = asyncio.ensure_future(places.take(gone))
        staying = asyncio.ensure_future(places.take())
        await asyncio.sleep(0.01)
        left.set()
        with pytest.raises(Gone):
            await leaving
        held.give_back()
        assert isinstance(await staying, HeldPlace)
        (await asyncio.wait_for(asyncio.shield(staying), 1)).give_back()
        assert places._free == 1

    asyncio.run(leave())


def test_a_request_that_was_given_its_place_at_the_door_takes_no_second_one() -> None:
    async def ask() -> int:
        places = Places(at_once=1, waiting=0)
        place = await places.take()
        place.hold()

        def search() -> int:
            with places.taken():
                return places._free

        free = await asyncio.to_thread(search)
        place.give_back()
        place.give_back()
        return free + places._free

    assert asyncio.run(ask()) == 1
