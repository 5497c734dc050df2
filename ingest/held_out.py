"""Counts the held-out things of an upload in each slice, and holds out more where there are too few.

The gate decides nothing on fewer than 100 held-out pictures. The 15 % that the hash holds out are enough from
about 670 on; an upload of 400 and more gives what is missing from its training part: those whose hash is
nearest below the held-out part's, as if that part began earlier.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from ingest.grouping import Settled
from ingest.pair import ImageId, SliceKey, Split
from ingest.splits import hash_share

ENOUGH = 100  # held-out things a slice needs before the gate decides by it
GROWS_FROM = 400  # new things without a stated split; with fewer, a quarter of them would not be enough
_SLICES_SHOWN = 3


def grown(
    settled: Mapping[ImageId, Settled],
    slices: Mapping[SliceKey, Collection[ImageId]],
    recorded: Mapping[ImageId, Settled] = MappingProxyType({}),
) -> dict[ImageId, Settled]:
    """Returns places with more held out in slices that have enough things, but too few held-out ones.

    Only what nothing but the hash decided is moved, all pictures of one thing together. `recorded` are earlier parts of
    the same upload, whose pictures are among those of the slices: they count, and stay where they are.
    """
    places = {**recorded, **settled}
    fixed = {place.cluster or image_id for image_id, place in recorded.items()}
    pictures_of: dict[str, list[ImageId]] = {}
    for image_id, place in places.items():
        pictures_of.setdefault(place.cluster or image_id, []).append(image_id)
    for key in sorted(slices):
        missing = ENOUGH - len(held_out(places, slices[key]))
        free = {
            places[image_id].cluster or image_id: places[image_id]
            for image_id in slices[key]
            if places[image_id].hashed is not None
        }
        if missing <= 0 or len(free) < GROWS_FROM:
            continue
        movable = [name for name, place in free.items() if place.split is Split.TRAIN and name not in fixed]
        movable.sort(key=lambda name: hash_share(free[name].hashed or ""), reverse=True)
        for name in movable[:missing]:
            for image_id in pictures_of[name]:
                places[image_id] = replace(places[image_id], split=Split.TEST)
    return {image_id: places[image_id] for image_id in settled}


def held_out(settled: Mapping[ImageId, Settled], pictures: Collection[ImageId]) -> set[str]:
    """Returns the names of the distinct things among some pictures that are held out."""
    return {
        settled[image_id].cluster or image_id
        for image_id in pictures
        if settled[image_id].split is Split.TEST
    }


def too_few_note(counts: Mapping[SliceKey, int]) -> str | None:
    """Returns what an upload's report says when slices have too few held-out things, None when none has."""
    few = {key: count for key, count in counts.items() if count < ENOUGH}
    if not few:
        return None
    shown = ", ".join(f"{count} distinct in {key}" for key, count in sorted(few.items())[:_SLICES_SHOWN])
    more = f" and as few in {len(few) - _SLICES_SHOWN} more" if len(few) > _SLICES_SHOWN else ""
    # Places are final, so more pictures of any kind would not move those that train.
    lacking = ENOUGH - min(few.values())
    return (
        f"held-out pictures: {shown}{more}; the gate needs {ENOUGH} to decide: upload this again together with "
        f"{lacking} more different pictures{' of each' if len(few) > 1 else ''} that have split=test"
    )
