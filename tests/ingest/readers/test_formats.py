"""Every format an upload may have, read as the programs that write it write it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from ingest.errors import BadUpload
from ingest.limits import Limits
from tests.ingest.conftest import Place, rows_of
from tests.ingest.material import folder_of, picture, tar_of, zip_of
from tests.ingest.readers.bad_files import parquet_bomb

TEXTS = ("a cat on a sofa", "a dog in the snow", "two red boats")


def parquet_of(path: Path, columns: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.table(dict(columns)), path, row_group_size=max(2, len(next(iter(columns.values()))) // 4)
    )
    return path


def told(place: Place) -> set[tuple[str, str]]:
    return {(pair.text, pair.language) for pair in place.catalog.pairs()}


def _image_cell(number: int) -> dict[str, Any]:
    return {"bytes": picture(number), "path": f"{number}.png"}


@pytest.mark.parametrize(
    ("columns", "beside"),
    [
        ({"image": [picture(n) for n in range(3)], "caption": list(TEXTS)}, True),
        ({"image": [picture(n) for n in range(3)], "caption": list(TEXTS)}, False),
        ({"image": [_image_cell(n) for n in range(3)], "text": list(TEXTS)}, True),
        ({"photo/raw": [picture(n) for n in range(3)], "txt": list(TEXTS)}, False),
        (
            {
                "image": pa.array([picture(n) for n in range(3)]).dictionary_encode(),
                "caption": pa.array(TEXTS).dictionary_encode(),
            },
            True,
        ),
        (
            {
                "jpg": [picture(n) for n in range(3)],
                "captions": [[text] for text in TEXTS],
                "width": [1, 2, 3],
            },
            True,
        ),
    ],
    ids=[
        "bytes",
        "bytes, uploaded",
        "hugging face",
        "only bytes column, uploaded",
        "dictionaries",
        "img2dataset's names",
    ],
)
def test_a_parquet_file_may_hold_its_pictures(
    place: Place, tmp_path: Path, columns: Mapping[str, Any], beside: bool
) -> None:
    report = place.ingest(parquet_of(tmp_path / "photos.parquet", columns), pictures_beside=beside)
    assert told(place) == {(text, "en") for text in TEXTS}
    assert (report.new_images, report.rejected) == (3, 0)


def test_a_parquet_file_may_name_pictures_beside_it_and_a_mapping_names_its_columns(
    place: Place, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path / "u", {f"p/{n}.png": picture(n) for n in range(3)})
    columns = {"datei": [f"p/{n}.png" for n in range(4)], "worte": [*TEXTS, "gone"], "lang": ["de"] * 4}
    table = parquet_of(folder / "t.parquet", columns)
    report = place.ingest(table, mapping={"datei": "image", "worte": "caption"})
    assert told(place) == {(text, "de") for text in TEXTS}
    assert [(row.where, row.code) for row in rows_of(report, "rejected")] == [
        ("t.parquet row 4", "image_missing")
    ]
    with pytest.raises(BadUpload, match="upload a zip"):
        place.ingest(table, pictures_beside=False)


@pytest.mark.parametrize("container", ["folder", "zip"])
def test_imagefolder_metadata_may_be_parquet(place: Place, tmp_path: Path, container: str) -> None:
    columns = {"file_name": [f"{n}.png" for n in range(3)], "text": list(TEXTS)}
    data = parquet_of(tmp_path / "m.parquet", columns).read_bytes()
    members: dict[str, bytes | str] = {f"train/{n}.png": picture(n) for n in range(3)}
    members["train/metadata.parquet"] = data
    report = place.ingest({"folder": folder_of, "zip": zip_of}[container](tmp_path / "upload", members))
    assert told(place) == {(text, "en") for text in TEXTS}
    assert report.rejected == 0


def test_a_row_without_picture_or_caption_says_so(place: Place, tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {
        "image": [picture(0), None, picture(2)],
        "caption": [TEXTS[0], TEXTS[1], None],
    }
    report = place.ingest(parquet_of(tmp_path / "p.parquet", columns))
    assert {(row.where, row.outcome, row.code) for row in report.rows} == {
        ("p.parquet row 1", "accepted", "ok"),
        ("p.parquet row 2", "rejected", "image_missing"),
        ("p.parquet/2/image", "accepted", "no_caption"),
    }


def test_parquet_limits_are_kept(place: Place, tmp_path: Path) -> None:
    rows = 100_000
    empty = parquet_of(tmp_path / "empty.parquet", {"image": ["x.png"] * rows, "caption": [None] * rows})
    with pytest.raises(BadUpload, match="more than 1 MB of text"):
        place.ingest(empty, limits=Limits(text_bytes=1 << 20))
    big = parquet_of(
        tmp_path / "b.parquet", {"image": [picture(0), picture(1, size=(90, 90))], "text": ["a", "b"]}
    )
    report = place.ingest(big, limits=Limits(image_bytes=len(picture(0)) + 20))
    assert [(row.where, row.code) for row in rows_of(report, "rejected")] == [
        ("b.parquet row 2", "image_too_large")
    ]


@pytest.mark.parametrize("beside", [True, False])
def test_a_parquet_bomb_ends_in_a_sentence(place: Place, tmp_path: Path, beside: bool) -> None:
    path = parquet_bomb(tmp_path)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(BadUpload, match="expands more than 200:1"):
        place.ingest(path, pictures_beside=beside)


def test_a_parquet_file_whose_rows_need_too_much_memory_ends_in_a_sentence(
    place: Place, tmp_path: Path
) -> None:
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 256, pa.int32()), pa.array(["a" * (16 << 20)]))
    path = tmp_path / "b.parquet"
    pq.write_table(pa.table({"image": [picture(0)] * 256, "text": text}), path, compression="zstd")
    with pytest.raises(BadUpload, match="more memory than allowed"):
        place.ingest(path)


def _sample(number: int, key: str) -> dict[str, Any]:
    return {
        "url": f"http://example.com/{key}.jpg",
        "caption": TEXTS[number],
        "key": key,
        "status": "success",
        "error_message": None,
        "width": 24,
        "LANGUAGE": "en",
    }


def _failed(key: str) -> dict[str, Any]:
    return {**_sample(0, key), "status": "failed_to_download", "error_message": "HTTP Error 404: Not Found"}


def _rows_of(samples: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [sample[name] for sample in samples] for name in samples[0]}


def img2dataset(folder: Path, layout: str) -> Path:
    """Writes what img2dataset 1.47 writes (its writer.py), with one address that failed."""
    keys = [f"00000000{n}" for n in range(4)]
    samples = [*(_sample(n, key) for n, key in enumerate(keys[:3])), _failed(keys[3])]
    pictures = [picture(n, format="JPEG") for n in range(3)]
    columns = _rows_of(samples)
    if layout == "parquet":
        columns |= {"jpg": [*pictures, None], "txt": [*TEXTS, None]}
    parquet_of(folder / "00000.parquet", columns)
    (folder / "00000_stats.json").write_text(json.dumps({"count": 4, "successes": 3}), encoding="utf-8")
    members: dict[str, bytes | str] = {}
    for number, key in enumerate(keys[:3]):
        members |= {f"{key}.jpg": pictures[number], f"{key}.txt": TEXTS[number]}
        members[f"{key}.json"] = json.dumps(samples[number], indent=4)
    if layout == "files":
        folder_of(folder / "00000", members)
    if layout == "webdataset":
        tar_of(folder / "00000.tar", members)
    return folder


@pytest.mark.parametrize("layout", ["files", "webdataset", "parquet"])
def test_img2dataset_output_is_read_in_its_three_layouts(place: Place, tmp_path: Path, layout: str) -> None:
    report = place.ingest(img2dataset(tmp_path / "out", layout), language=None)
    assert told(place) == {(text, "en") for text in TEXTS}
    assert (report.new_images, report.new_pairs, report.held) == (3, 3, 0)
    assert [(row.where, row.code) for row in rows_of(report, "rejected")] == [
        ("00000.parquet row 4", "not_downloaded")
    ]
    assert "HTTP Error 404" in rows_of(report, "rejected")[0].sentence
    assert all(row.code in ("ok", "not_downloaded") for row in report.rows)


def test_webdataset_shards_in_a_folder_may_repeat_names(place: Place, tmp_path: Path) -> None:
    for shard in range(2):
        members: dict[str, bytes | str] = {
            "7.jpg": picture(shard, format="JPEG"),
            "7.caption.txt": TEXTS[shard],
        }
        folder_of(tmp_path / "shards", {})
        tar_of(tmp_path / f"shards/{shard:05}.tar", members)
    (tmp_path / "shards/broken.tar").write_bytes(b"no tar")
    report = place.ingest(tmp_path / "shards")
    assert told(place) == {(text, "en") for text in TEXTS[:2]}
    assert [(row.where, row.code) for row in rows_of(report, "rejected")] == [
        ("broken.tar", "nested_archive")
    ]


def test_a_json_beside_a_picture_tells_caption_language_and_domain(place: Place, tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {
        "a.png": picture(1),
        "a.json": '{"caption": ["ein Hund", "ein brauner Hund"], "language": "de", "domain": "Sketch"}',
        "b.png": picture(2),
        "b.json": '{"width": 24}',
        "b.txt": "a cat",
        "c.png": picture(3),
        "c.json": "[1]",
        "d.png": picture(4),
        "d.json": '{"caption": 5}',
        "other.json": "{}",
    }
    report = place.ingest(folder_of(tmp_path / "u", members))
    assert {(pair.text, pair.language, pair.domain) for pair in place.catalog.pairs()} == {
        ("ein Hund", "de", "sketch"),
        ("ein brauner Hund", "de", "sketch"),
        ("a cat", "en", "general"),
    }
    assert {(row.where, row.code) for row in rows_of(report, "rejected")} == {
        ("c.json", "line_unreadable"),
        ("d.json", "caption_not_text"),
    }
    assert any("other.json" in note for note in report.notes)


def _saved(path: Path, splits: Mapping[str, range] | None) -> Path:
    datasets = pytest.importorskip("datasets")

    def made(numbers: range) -> Any:
        pictures = [Image.open(io.BytesIO(picture(n))) for n in numbers]
        columns = {"image": pictures, "caption": [TEXTS[n % 3] for n in numbers]}
        features = datasets.Features({"image": datasets.Image(), "caption": datasets.Value("string")})
        return datasets.Dataset.from_dict(columns, features=features)

    if splits is None:
        made(range(3)).save_to_disk(path)
    else:
        datasets.DatasetDict({name: made(numbers) for name, numbers in splits.items()}).save_to_disk(path)
    return path


def test_a_hugging_face_dataset_saved_to_disk_is_read(place: Place, tmp_path: Path) -> None:
    report = place.ingest(_saved(tmp_path / "saved", None))
    assert told(place) == {(text, "en") for text in TEXTS}
    assert (report.new_images, report.rejected) == (3, 0)


def test_its_splits_are_kept_when_it_holds_something_out(place: Place, tmp_path: Path) -> None:
    report = place.ingest(_saved(tmp_path / "saved", {"train": range(6), "test": range(6, 12)}))
    assert report.per_slice == {"en/general": {"train": 6, "validation": 0, "test": 6}}


def test_a_saved_dataset_that_lost_a_file_is_refused(place: Place, tmp_path: Path) -> None:
    saved = _saved(tmp_path / "saved", None)
    next(saved.glob("*.arrow")).unlink()
    with pytest.raises(BadUpload, match="lacks its file"):
        place.ingest(saved)
