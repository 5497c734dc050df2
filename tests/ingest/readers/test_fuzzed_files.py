"""Files of every format that is read, changed at random: each ends in a report or in a reason, and harms nobody.

`make test` tries 150 of them, the same each time; `make soak` sets PERENNIAL_FUZZED to ten thousand. What dies of one
would take the process of the tests along; what takes too much is ended by the limits of the process that decodes.
"""

from __future__ import annotations

import io
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image

from ingest.decoding import decode_apart
from ingest.decoding_child import MEMORY_BYTES
from ingest.errors import BadImage, BadUpload
from tests.ingest.conftest import Place
from tests.ingest.material import encoded, folder_of, picture, tar_of, zip_of
from tests.ingest.raw_files import dng

COUNT = int(os.environ.get("PERENNIAL_FUZZED", "150"))
Change = Callable[[bytes], bytes]
TRIED = settings(
    max_examples=COUNT // 2,
    deadline=None,
    derandomize=True,  # the same files every time: a suite must not fail by chance
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)

_MEMBERS: dict[str, bytes | str] = {
    "a.png": picture(1),
    "a.txt": "one\ntwo",
    "b.jpg": encoded(Image.effect_noise((40, 40), 90), "JPEG"),
    "t.csv": 'image,caption,language\na.png,x,de\nb.jpg,"y",fr\n',
    "u.jsonl": '{"image": "a.png", "caption": "zz"}\n{"image": "b.jpg", "caption": ["q", "w"]}\n',
}


def _columns() -> pa.Table:
    pictures = [picture(n) for n in range(3)]
    return pa.table({"image": pictures, "caption": ["one", "two", "three"], "language": ["en", "de", "en"]})


def _written(write: Callable[..., object], **options: object) -> bytes:
    kept = io.BytesIO()
    write(_columns(), kept, **options)
    return kept.getvalue()


def uploads(folder: Path) -> dict[str, bytes]:
    """One of each kind of upload, by the ending of its name."""
    folder.mkdir()
    return {
        ".zip": zip_of(folder / "a.zip", _MEMBERS).read_bytes(),
        ".tar": tar_of(folder / "a.tar", _MEMBERS).read_bytes(),
        ".tar.gz": tar_of(folder / "b.tar.gz", _MEMBERS, "w:gz").read_bytes(),
        ".csv": str(_MEMBERS["t.csv"]).encode(),
        ".jsonl": str(_MEMBERS["u.jsonl"]).encode(),
        ".parquet": _written(pq.write_table),
        ".arrow": _written(feather.write_feather, compression="uncompressed"),
    }


def pictures() -> dict[str, bytes]:
    """One of each format that pictures are read in."""
    drawn = Image.effect_noise((48, 40), 90).convert("RGB")
    formats = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "HEIF", "AVIF", "MPO")
    return {name: encoded(drawn, name) for name in formats} | {
        "progressive JPEG": encoded(drawn, "JPEG", progressive=True),
        "16-bit PNG": encoded(Image.new("I;16", (40, 40), 1000)),
        "compressed TIFF": encoded(drawn, "TIFF", compression="tiff_lzw"),
        "raw": dng(picture(format="JPEG"), preview_size=(24, 24)),
    }


def _at(data: bytes, part: float) -> int:
    return int(part * len(data))


def changes() -> st.SearchStrategy[list[Change]]:
    """What is done to a file, up to four times: bytes are written over, cut off, taken out or repeated."""
    where = st.floats(0, 1, exclude_max=True)
    over = st.builds(
        lambda at, what: lambda data: data[: _at(data, at)] + what + data[_at(data, at) + len(what) :],
        where,
        st.binary(min_size=1, max_size=8)
        | st.sampled_from(
            [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4), b"\xff\xff\xff\x7f", b"\0\0\0\x80"]
        ),
    )
    cut = st.builds(lambda at: lambda data: data[: _at(data, at)], where)
    out = st.builds(
        lambda a, b: lambda data: data[: _at(data, min(a, b))] + data[_at(data, max(a, b)) :], where, where
    )
    again = st.builds(
        lambda a, b, times: lambda data: data[: _at(data, max(a, b))]
        + data[_at(data, min(a, b)) : _at(data, max(a, b))][:2000] * times
        + data[_at(data, max(a, b)) :],
        where, where, st.integers(1, 50),
    )  # fmt: skip
    return st.lists(st.one_of(over, over, over, cut, out, again), min_size=1, max_size=4)


def _changed(data: bytes, made: list[Change]) -> bytes:
    for one in made:
        data = one(data)
    return data


@pytest.mark.filterwarnings("ignore")
def test_a_changed_upload_gives_a_report_or_a_reason_and_nothing_else(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = uploads(tmp_path / "seeds")
    folder_of(tmp_path / "beside", {})
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    # Each that Arrow reads takes a process of its own.
    kinds = [kind for kind in sorted(seeds) for _ in range(1 if kind in {".parquet", ".arrow"} else 4)]
    before = {one for one in tmp_path.rglob("*") if "home" not in one.parts}

    @TRIED
    @given(kind=st.sampled_from(kinds), made=changes())
    def try_one(kind: str, made: list[Change]) -> None:
        source = tmp_path / f"changed{kind}"
        source.write_bytes(_changed(seeds[kind], made))
        with suppress(BadUpload):
            assert place.ingest(source).chunk_id
        source.unlink()

    largest = _largest_child()
    try_one()
    assert {one for one in tmp_path.rglob("*") if "home" not in one.parts} == before
    assert _largest_child() <= max(largest, _largest_of_its_own(), MEMORY_BYTES)


@pytest.mark.filterwarnings("ignore")
def test_a_changed_picture_is_decoded_or_refused() -> None:
    seeds = pictures()

    @TRIED
    @given(kind=st.sampled_from(sorted(seeds)), made=changes())
    def try_one(kind: str, made: list[Change]) -> None:
        try:
            assert decode_apart(_changed(seeds[kind], made)).width
        except BadImage:
            return

    largest = _largest_child()
    try_one()
    assert _largest_child() <= max(largest, _largest_of_its_own(), MEMORY_BYTES)


def _largest_of_its_own() -> int:
    """Returns the same of this process: a child begins as a copy of it, and counts as large for a moment."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _largest_child() -> int:
    """Returns how many bytes a process held at most that was started here and has ended, those of other tests too."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
