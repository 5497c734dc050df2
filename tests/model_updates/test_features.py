"""Features are computed once, in the order asked."""

import hashlib
import threading
import time
import weakref

import numpy as np
import pytest
from PIL import Image

from model_updates.features import IMAGE, TEXT, NoCache, image_features, text_features, text_id
from tests.model_updates.shelf import Shelf
from tests.model_updates.tiny import draw, image_ids, tiny_encoder


def test_only_what_the_cache_lacks_is_encoded() -> None:
    encoder, shelf, ids = tiny_encoder(), Shelf(), image_ids()
    first = image_features(encoder, ids[:6], draw, shelf)
    assert encoder.image_forwards == 6
    mixed = image_features(encoder, [ids[7], ids[2], ids[8], ids[0]], draw, shelf)
    assert encoder.image_forwards == 8
    assert np.array_equal(mixed[[1, 3]], first[[2, 0]])
    assert np.allclose(mixed[[0, 2]], encoder.image_features([draw(ids[7]), draw(ids[8])]), atol=1e-5)


def test_a_repeated_picture_is_encoded_once_and_returned_each_time() -> None:
    encoder, ids = tiny_encoder(), image_ids()
    rows = image_features(encoder, [ids[0], ids[1], ids[0]], draw, NoCache())
    assert encoder.image_forwards == 2
    assert np.array_equal(rows[0], rows[2])


def test_texts_are_kept_by_their_content_under_the_languages_fingerprint() -> None:
    encoder, shelf = tiny_encoder(), Shelf()
    rows = text_features(encoder, ["red", "blue", "red"], "en", shelf)
    assert np.allclose(rows, encoder.text_features(["red", "blue", "red"], "en"), atol=1e-6)
    fingerprint = encoder.text_fingerprint("en")
    assert set(shelf.rows) == {(fingerprint, TEXT, text_id("red")), (fingerprint, TEXT, text_id("blue"))}
    assert text_id("rot") == hashlib.sha256(b"rot").hexdigest()


def test_image_rows_are_kept_under_the_image_fingerprint() -> None:
    encoder, shelf = tiny_encoder(), Shelf()
    image_features(encoder, image_ids()[:1], draw, shelf)
    assert set(shelf.rows) == {(encoder.image_fingerprint(), IMAGE, image_ids()[0])}


def test_nothing_asked_gives_no_row() -> None:
    encoder = tiny_encoder()
    assert image_features(encoder, [], draw, NoCache()).shape == (0, encoder.dim)
    assert text_features(encoder, [], "en", NoCache()).shape == (0, encoder.dim)


def test_progress_ends_at_the_number_of_missing_pictures() -> None:
    encoder, shelf, seen = tiny_encoder(), Shelf(), []
    image_features(encoder, image_ids()[:2], draw, shelf)
    image_features(
        encoder, image_ids()[:5], draw, shelf, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[0] == (0, 3), "what is to come is said before it begins"
    assert (sorted(seen), seen[-1]) == (seen, (3, 3))


@pytest.mark.parametrize("threads", [1, 3])
def test_hardly_more_pictures_are_decoded_at_a_time_than_there_are_threads(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    encoder, most = tiny_encoder(), []
    seen: list[weakref.ref[Image.Image]] = []

    def load(image_id: str) -> Image.Image:
        picture = draw(image_id).copy()
        seen.append(weakref.ref(picture))
        most.append(sum(one() is not None for one in seen))
        return picture

    image_features(encoder, image_ids(), load, NoCache())
    assert len(most) == len(image_ids())
    assert max(most) <= threads + 1, "photographs of a batch would take gigabytes"


def test_after_a_picture_that_fails_no_more_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    encoder, asked = tiny_encoder(), list[str]()

    def load(image_id: str) -> Image.Image:
        asked.append(image_id)
        if len(asked) == 1:
            raise OSError("damaged")
        time.sleep(0.1)
        return draw(image_id)

    with pytest.raises(OSError, match="damaged"):
        image_features(encoder, image_ids(), load, NoCache())
    assert len(asked) < len(image_ids()) // 2


def test_several_pictures_are_decoded_at_once_and_their_rows_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = tiny_encoder()
    alone = image_features(encoder, image_ids(), draw, NoCache())
    both = threading.Barrier(2, timeout=20)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    def load(image_id: str) -> Image.Image:
        if image_id in image_ids()[:2]:
            both.wait()
        return draw(image_id)

    assert np.array_equal(image_features(encoder, image_ids(), load, NoCache()), alone)
