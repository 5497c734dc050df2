from __future__ import annotations

from pathlib import Path

import pytest

from ingest.blobs import BlobStore
from ingest.errors import UnknownImage
from ingest.pair import image_id_of
from ingest.storage import Store
from tests.ingest.material import picture


def test_pictures_come_back_decoded_and_as_they_were(tmp_path: Path) -> None:
    data = picture(5)
    with Store.open(tmp_path / "s") as store:
        blobs = BlobStore(store)
        blobs.put([(image_id_of(data), data, b"small")])
        assert blobs.original(image_id_of(data)) == data
        assert blobs.thumbnail(image_id_of(data)) == b"small"
        assert blobs.image(image_id_of(data)).mode == "RGB"


def test_a_picture_is_stored_once(tmp_path: Path) -> None:
    items = [(image_id_of(picture(n)), picture(n), b"") for n in range(300)]
    with Store.open(tmp_path / "s") as store:
        blobs = BlobStore(store)
        blobs.put(items[:290])
        blobs.put([*items, *items])
        assert sorted(blobs.ids()) == sorted(image_id for image_id, _, _ in items)


def test_a_deleted_picture_is_gone_with_its_thumbnail(tmp_path: Path) -> None:
    data = picture()
    with Store.open(tmp_path / "s") as store:
        blobs = BlobStore(store)
        blobs.put([(image_id_of(data), data, b"small")])
        blobs.delete([image_id_of(data), "0" * 64])
        assert list(store.keys()) == []


@pytest.mark.parametrize("image_id", ["0" * 64, "../../etc/passwd", "", "zz" * 32])
def test_an_unknown_id_is_a_key_error_with_a_sentence(tmp_path: Path, image_id: str) -> None:
    with Store.open(tmp_path / "s") as store, pytest.raises(KeyError) as caught:
        BlobStore(store).image(image_id)
    assert isinstance(caught.value, UnknownImage)
    assert str(caught.value).endswith(".")
