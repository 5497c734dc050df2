"""Pictures are looked at some at once, and come in their order."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from ingest import images
from ingest.decoding import at_once
from ingest.errors import BadImage
from ingest.images import EMBEDDED_SIDE, THUMBNAIL_SIDE, decode
from ingest.limits import DEFAULT_LIMITS
from ingest.look import Look, ReadPicture, look_at, looked_at
from ingest.pair import image_id_of
from ingest.readers.container import Skipped
from tests.ingest.material import encoded, picture


def _photograph(width: int, height: int) -> bytes:
    """A JPEG with large shapes and fine grain."""
    rng = np.random.default_rng(width)
    shapes = Image.fromarray(rng.integers(40, 215, (6, 8, 3), np.uint8)).resize(
        (width, height), Image.Resampling.BICUBIC
    )
    grain = rng.integers(-12, 13, (height, width, 3), np.int16)
    levels = np.clip(np.asarray(shapes, np.int16) + grain, 0, 255).astype(np.uint8)
    return encoded(Image.fromarray(levels), "JPEG", quality=88)


def _result(read: ReadPicture) -> Look:
    assert read.look is not None
    return read.look.result()


@pytest.mark.parametrize("threads", ["1", "3"])
def test_pictures_come_in_their_order_with_what_could_not_be_read_and_what_cannot_be_used(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    files: list[tuple[str, bytes | Skipped]] = [(f"{n}.png", picture(n)) for n in range(30)]
    files[4] = ("4.png", Skipped("4.png", "image_missing", "It is not there."))
    files[9] = ("9.png", b"no picture")
    found = list(looked_at(files, lambda _: True, DEFAULT_LIMITS))
    assert [one.name for one in found] == [name for name, _ in files]
    assert (found[4].look, type(found[4].data)) == (None, Skipped)
    with pytest.raises(BadImage):
        _result(found[9])
    for number in {*range(30)} - {4, 9}:
        data = picture(number)
        assert (_result(found[number]), found[number].image_id) == (
            look_at(data, DEFAULT_LIMITS),
            image_id_of(data),
        )


def test_a_file_that_comes_twice_is_looked_at_once_and_one_that_nobody_wants_not_at_all() -> None:
    files: list[tuple[str, bytes | Skipped]] = [(name, picture(1)) for name in "ab"]
    files.append(("c", picture(2)))
    first, again, other = looked_at(files, lambda one: one == image_id_of(picture(1)), DEFAULT_LIMITS)
    assert first.look is again.look is not None
    assert other.look is None


def test_no_more_files_are_read_before_their_turn_than_there_are_threads_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    read: list[int] = []

    def files() -> Iterator[tuple[str, bytes | Skipped]]:
        for number in range(100):
            read.append(number)
            yield str(number), picture(number)

    coming = looked_at(files(), lambda _: True, DEFAULT_LIMITS)
    next(coming)
    assert len(read) == 5
    coming.close()
    assert len(read) == 5


def test_as_many_are_decoded_at_once_as_threads_may_be_used_and_no_more_than_four(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for asked, given in (("1", 1), ("3", 3), ("64", 4), ("2,1", 2)):
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
        assert at_once() == given
    for asked in ("0", "", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
        assert 1 <= at_once() <= 4
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert 1 <= at_once() <= 4


def test_a_photograph_of_a_camera_is_decoded_as_large_as_somebody_looks_at_it() -> None:
    data = _photograph(4000, 3000)
    whole, seen = decode(data), decode(data, shorter=EMBEDDED_SIDE)
    assert (whole.image.size, seen.image.size) == ((4000, 3000), (1000, 750))
    assert (seen.width, seen.height) == (4000, 3000)
    small = [
        np.asarray(one.image.resize((346, 260), Image.Resampling.BICUBIC), np.int16) for one in (whole, seen)
    ]
    assert abs(small[0] - small[1]).max() <= 2, "levels of 255"
    look = look_at(data, DEFAULT_LIMITS)
    assert (look.width, look.height) == (4000, 3000)
    with Image.open(io.BytesIO(look.thumbnail)) as thumbnail:
        assert max(thumbnail.size) == THUMBNAIL_SIDE


@pytest.mark.parametrize("size", [(1340, 1000), (6000, 700)])
def test_a_picture_that_is_little_larger_than_what_is_looked_at_is_decoded_whole(
    size: tuple[int, int],
) -> None:
    assert decode(_photograph(*size), shorter=EMBEDDED_SIDE).image.size == size


@pytest.mark.parametrize("size", [(2000, 100), (100, 2000), (6000, 130)])
def test_a_long_strip_is_told_from_others(size: tuple[int, int]) -> None:
    assert look_at(_photograph(*size), DEFAULT_LIMITS).sketch


def test_a_very_long_picture_can_be_shown_though_it_is_refused() -> None:
    data = _photograph(12_000, 20)
    with pytest.raises(BadImage) as refused:
        look_at(data, DEFAULT_LIMITS)
    assert refused.value.code == "image_too_long"
    assert look_at(data, replace(DEFAULT_LIMITS, aspect=1000)).width == 12_000


def test_of_large_pictures_one_is_decoded_at_a_time_however_small_it_comes_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: list[str] = []

    @contextmanager
    def turn() -> Iterator[None]:
        turns.append("begun")
        yield

    shapes = Image.open(io.BytesIO(_photograph(5000, 4000)))
    for how, taken in (({}, 0), ({"progressive": True}, 1)):
        monkeypatch.setattr(images, "_ALONE", turn())
        assert decode(encoded(shapes, "JPEG", **how), shorter=EMBEDDED_SIDE).image.size == (1250, 1000)
        assert len(turns) == taken
    monkeypatch.setattr(images, "_ALONE", turn())
    decode(encoded(shapes, "PNG", compress_level=1), shorter=EMBEDDED_SIDE)
    assert len(turns) == 2


def test_a_large_photograph_that_ends_early_is_refused() -> None:
    data = _photograph(4000, 3000)
    with pytest.raises(BadImage) as refused:
        look_at(data[: len(data) * 9 // 10], DEFAULT_LIMITS)
    assert refused.value.code == "image_truncated"
