"""Items of an upload that are skipped or held with the stated reason, while the rest goes on.

Numbers are those of the project's catalogue of bad inputs.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from ingest.limits import Limits
from ingest.readers.container import Row, Text
from ingest.readers.formats import BY_SUFFIX
from ingest.readers.table import read_rows
from tests.ingest.conftest import Place, rows_of
from tests.ingest.material import encoded, folder_of, picture
from tests.ingest.readers.bad_files import (
    GOOD,
    Maker,
    encrypted,
    in_folder,
    long_link_chain,
    lying_size,
    record,
    sparse_tar,
    table,
    with_special,
    zipped,
)

_BOTH = ("good.png", "accepted", "ok")
SKIPPED: list[tuple[str, Maker, str, str]] = [
    ("4 encrypted member", encrypted, "encrypted", "password"),
    ("6 zip symlink", with_special("zip"), "special_file", "not accepted"),
    ("6 folder symlink", with_special("folder"), "special_file", "not accepted"),
    ("6 tar symlink", with_special("symlink"), "special_file", "not accepted"),
    ("6 tar hardlink", with_special("hardlink"), "special_file", "not accepted"),
    ("6 tar device", with_special("device"), "special_file", "not accepted"),
    ("6 tar fifo", with_special("fifo"), "special_file", "not accepted"),
    ("6 tar sparse", sparse_tar, "special_file", "not accepted"),
    ("7 long link chain", long_link_chain, "special_file", "not accepted"),
    ("10 zip in zip", zipped({**GOOD, "inner.zip": b"PK\x03\x04"}), "nested_archive", "not opened"),
    ("13 lying size", lying_size, "member_damaged", "size or checksum"),
    ("19 bad line", table(record(), "{bad"), "line_unreadable", "not JSON"),
    (
        "19 quote that is never closed",
        table("image,caption", "good.png,a good picture", 'good.png,"never closed', "p.png,x", name="t.csv"),
        "line_unreadable",
        "never closed",
    ),
    ("19 line that is a list", table(record(), "[1, 2]"), "line_unreadable", "not an object"),
    (
        "20 nested 100,000 deep",
        table(record(), '{"image":' + "[" * 100_000),
        "line_too_deep",
        "deeper than 20",
    ),
    (
        "20 nested 30 deep",
        table(record(), record(extra=json.loads("[" * 30 + "]" * 30))),
        "line_too_deep",
        "20",
    ),
    (
        "20 number of 5,000 digits",
        table(record(), '{"image": 1' + "0" * 5000 + "}"),
        "line_unreadable",
        "too long",
    ),
    (
        "20 line of 2 MB",
        table(record(), json.dumps({"image": secrets.token_hex(1_000_000)})),
        "line_too_long",
        "longer",
    ),
    (
        "22 NaN",
        table(record(), '{"image": "good.png", "caption": "x", "weight": NaN}'),
        "line_not_a_number",
        "NaN",
    ),
    ("23 absolute path", table(record(), record("/etc/passwd")), "image_outside", "inside the upload"),
    ("23 parent folder", table(record(), record("../x.png")), "image_outside", "inside the upload"),
    ("23 parent by backslash", table(record(), record("..\\x.png")), "image_outside", "inside the upload"),
    ("23 file url", table(record(), record("file:///etc/passwd")), "image_outside", "inside the upload"),
    ("23 web url", table(record(), record("http://169.254.169.254/")), "image_outside", "with --fetch"),
    ("23 drive", table(record(), record("C:\\x.png")), "image_outside", "inside the upload"),
    ("23 no name", table(record(), record("")), "image_not_named", "no picture"),
    ("24 picture missing", table(record(), record("gone.png")), "image_missing", "'gone.png' is not in"),
    (
        "24 text without picture",
        in_folder({**GOOD, "lonely.txt": "words"}),
        "image_missing",
        "beside this text",
    ),
    ("25 html", in_folder({**GOOD, "page.jpg": "<!doctype html>"}), "image_unsupported", "looks like HTML"),
    ("25 svg", in_folder({**GOOD, "drawing.svg": "<svg/>"}), "image_unsupported", "looks like SVG"),
    ("video by its name", in_folder({**GOOD, "clip.MP4": "never read"}), "image_video", "a video"),
    ("video in a zip", zipped({**GOOD, "clip.mov": "never read"}), "image_video", "a video"),
    (
        "video called a picture",
        in_folder({**GOOD, "clip.jpg": b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom"}),
        "image_video",
        "a video",
    ),
    ("25 pdf", in_folder({**GOOD, "paper.jpg": "%PDF-1.4"}), "image_unsupported", "looks like a PDF"),
    (
        "26 truncated picture",
        zipped({**GOOD, "cut.png": encoded(Image.effect_noise((64, 64), 90))[:900]}),
        "image_trunc",
        "early",
    ),
    (
        "29 one pixel",
        zipped({**GOOD, "dot.png": encoded(Image.new("RGB", (1, 1)))}),
        "image_too_small",
        "16 pixels",
    ),
    (
        "38 one flat colour",
        zipped({**GOOD, "flat.png": encoded(Image.new("RGB", (64, 64)))}),
        "image_flat",
        "flat",
    ),
    ("41 empty caption", table(record(), record(caption="")), "caption_empty", "empty"),
    (
        "41 empty caption file",
        in_folder({**GOOD, "b.png": picture(2), "b.txt": "\n"}),
        "caption_empty",
        "empty",
    ),
    ("41 Hangul filler", table(record(), record(caption="\u3164")), "caption_empty", "empty"),
    ("41 only punctuation", table(record(), record(caption="?!...")), "caption_empty", "punctuation"),
    ("42 caption of 100 KB", table(record(), record(caption="x" * 100_000)), "caption_too_long", "2,000"),
    (
        "42 combining marks",
        table(record(), record(caption="a" + "\u0301" * 100_000)),
        "caption_too_long",
        "2,000",
    ),
    (
        "43 lone surrogate",
        table(record(), '{"image": "good.png", "caption": "\\ud800"}'),
        "caption_not_text",
        "UTF-8",
    ),
    ("43 invalid UTF-8 in JSON", table(record(), b'{"image": "\xff"}'), "line_not_text", "UTF-8"),
    (
        "43 invalid UTF-8 in csv",
        table("image,caption", "good.png,a good picture", b"good.png,caf\xe9", name="t.csv"),
        "caption_not_text",
        "UTF-8",
    ),
    ("43 caption that is a number", table(record(), record(caption=5)), "caption_not_text", "not a text"),
    (
        "language unknown",
        table(record(), record(caption="x", language="german")),
        "language_unknown",
        "'de'",
    ),
    ("split unknown", table(record(), record(caption="x", split="holdout")), "split_unknown", "train"),
    ("domain invalid", table(record(), record(caption="x", domain="a/b")), "domain_invalid", "letters"),
]


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(("name", "make", "code", "words"), SKIPPED, ids=[row[0] for row in SKIPPED])
def test_one_bad_item_is_listed_and_the_rest_goes_on(
    place: Place, tmp_path: Path, name: str, make: Maker, code: str, words: str
) -> None:
    source = make(tmp_path)
    report = place.ingest(source)
    reasons = [(row.code, row.sentence) for row in rows_of(report, "rejected")]
    assert any(found.startswith(code) and words in sentence for found, sentence in reasons), reasons
    assert "a good picture" in [pair.text for pair in place.catalog.pairs()]
    assert report.rejected == len(reasons)
    assert not list(tmp_path.rglob("marker*"))


def test_the_line_number_of_a_bad_line_is_given(place: Place, tmp_path: Path) -> None:
    report = place.ingest(table(record(), "", "{bad")(tmp_path))
    assert [row.where for row in rows_of(report, "rejected")] == ["captions.jsonl line 3"]


def test_a_line_of_many_keys_takes_little_more_than_parsing_it() -> None:
    keys = ",".join(f'"k{number}":0' for number in range(20_000))
    line = f'{{"image":"good.png","caption":"a good picture",{keys},"k7":1}}'

    def read() -> None:
        text = Text(BY_SUFFIX[".jsonl"], line.encode())
        rows = read_rows("t.jsonl", text, mapping={}, limits=Limits(), locate=lambda name: name)
        assert [row.where for row in rows if isinstance(row, Row)] == ["t.jsonl line 1"]

    def seconds(work: Callable[[], object]) -> float:
        before = time.thread_time()
        work()
        return time.thread_time() - before

    parsing = max(seconds(lambda: json.loads(line)) for _ in range(3))
    # Twice as long; it was 1,000 times when each key was looked for among all others.
    assert min(seconds(read) for _ in range(3)) < 50 * parsing


def test_captions_shared_by_very_many_pictures_are_held(place: Place, tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {}
    for n in range(30):
        members |= {f"{n}.png": picture(n), f"{n}.txt": "spam" if n < 25 else f"caption {n}"}
    report = place.ingest(folder_of(tmp_path / "upload", members))
    assert (report.new_pairs, report.held, report.new_images) == (5, 25, 5)
    assert {row.code for row in rows_of(report, "held")} == {"caption_repeated"}
    assert len(list(place.store.keys(b"i"))) == 5
