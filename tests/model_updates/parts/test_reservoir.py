"""The reservoir is a uniform sample of its stream, and goes on after a restart."""

from model_updates.parts.replaying import Reservoir


def test_every_item_of_a_stream_is_kept_equally_often() -> None:
    size, stream, runs = 10, 100, 5_000
    kept = [0] * stream
    for seed in range(runs):
        reservoir = Reservoir(size, seed)
        reservoir.offer_all(range(stream))
        for item in reservoir.items:
            kept[item] += 1
    # 4 standard deviations around 0.1.
    assert all(0.083 <= count / runs <= 0.117 for count in kept)


def test_a_reservoir_that_was_stopped_holds_what_an_uninterrupted_one_holds() -> None:
    whole, first, second = Reservoir(5, 3), Reservoir(5, 3), Reservoir(5, 3)
    whole.offer_all(range(40))
    first.offer_all(range(17))
    second.restore(first.as_tensor())
    second.offer_all(range(17, 40))
    assert (second.items, second.seen) == (whole.items, whole.seen)


def test_the_slots_told_are_where_the_items_are() -> None:
    reservoir = Reservoir(4, 0)
    items = list(range(100, 130))
    held: dict[int, int] = {slot: items[position] for position, slot in reservoir.offer_all(items)}
    assert [held[slot] for slot in range(4)] == reservoir.items
