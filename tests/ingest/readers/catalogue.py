"""The catalogue of bad inputs: what each is, and what whoever sends it is told. Its numbers are the project's own.

`test_bad_uploads.py`, `test_bad_items.py` and `test_odd_uploads.py` read them here; `tests/app/test_three_doors.py`
sends them through the command line, REST and the page.
"""

from __future__ import annotations

import json
import secrets
import tarfile

from PIL import Image

from tests.ingest.material import encoded, picture
from tests.ingest.raw_files import dng
from tests.ingest.readers.bad_files import (
    GOOD,
    Maker,
    changed,
    encrypted,
    four_thousand_passes,
    gzip_bomb,
    in_folder,
    long_link_chain,
    lying_size,
    one_file,
    overlapping,
    parquet_bomb,
    record,
    sixty_thousand_pages,
    sparse_tar,
    table,
    tarred,
    with_special,
    zipped,
)

REFUSED: list[tuple[str, Maker, str, str]] = [
    ("1 empty file", one_file("upload.zip", b""), "file_empty", "The file is empty."),
    ("2 text renamed zip", one_file("upload.zip", b"hello there\n" * 50), "not_supported", "looks like text"),
    ("2 picture alone", one_file("cat.png", picture()), "not_supported", "single picture"),
    ("2 HEIC alone", one_file("cat.heic", picture(format="HEIF")), "not_supported", "single picture"),
    (
        "2 raw file alone",
        one_file("cat.nef", dng(picture(format="JPEG"), preview_size=(24, 24))),
        "not_supported",
        "single picture",
    ),
    ("2 video alone", one_file("cat.mp4", b"\0\0\0\x18ftypmp42" + bytes(99)), "not_supported", "a video"),
    ("18 parquet cut", one_file("a.parquet", b"PAR1" + bytes(99)), "damaged", "cannot be read"),
    (
        "3 truncated zip",
        changed(zipped(GOOD), lambda data: data[:-40]),
        "archive_damaged",
        "damaged or incomplete",
    ),
    ("3 zip cut to its head", changed(zipped(GOOD), lambda data: data[:30]), "archive_damaged", "damaged"),
    ("8 flat bomb", zipped({"bomb.png": bytes(2 * 1024**2)}), "archive_bomb", "expands more than 200:1"),
    ("9 overlap bomb", overlapping, "archive_overlap", "entries overlap"),
    (
        "11 too many zip entries",
        zipped({f"{n}.png": b"" for n in range(21)}),
        "too_many_items",
        "limit is 20",
    ),
    ("11 very many zip entries", zipped({f"{n}.png": b"" for n in range(50)}), "too_many_items", "50 items"),
    (
        "11 too many tar entries",
        tarred({f"{n}.png": b"" for n in range(21)}),
        "too_many_items",
        "limit is 20",
    ),
    (
        "12 too much declared",
        zipped({f"{n}.bin": bytes([n]) * 900_000 for n in range(4)}),
        "too_large_unpacked",
        "Split",
    ),
    (
        "12 too much in a tar",
        tarred({f"{n}.bin": bytes([n]) * 900_000 for n in range(4)}),
        "too_large_unpacked",
        "Split",
    ),
    (
        "14 tar cut in its first header",
        one_file("a.tar", tarfile.TarInfo("a.png").tobuf()[:300]),
        "not_supported",
        "Not a",
    ),
    ("24 no picture at all", zipped({"captions.jsonl": record()}), "no_valid_pair", "image_missing"),
    ("24 empty folder", in_folder({}), "no_valid_pair", "no picture"),
    ("24 zip without members", zipped({}), "no_valid_pair", "no picture"),
    (
        "17 table without picture column",
        one_file("t.csv", b"a,b\n1,2\n"),
        "column_missing",
        "its columns: a, b",
    ),
    (
        "17 table with two caption columns",
        one_file("t.csv", b"image,caption,caption\ngood.png,one,two\n"),
        "column_twice",
        "2 columns caption",
    ),
]
"""Refused as a whole, with a code and words of the sentence; the limits are `SMALL`."""

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
    (
        "19 comma outside of quotes",
        table(
            "image,caption", "good.png,a good picture,,", "good.png,a dog, two cats and a horse", name="t.csv"
        ),
        "line_too_many_cells",
        "3 cells for 2 columns. Put captions that contain commas in quotes",
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
"""Skipped with a code and words of the sentence, while a good picture beside them is taken."""

ACCEPTED: list[tuple[str, Maker, int, str]] = [
    (
        "5 traversal names",
        zipped({"../x.png": picture(1), "../x.txt": "one", "C:\\y.png": picture(2), "/z.png": picture(3)}),
        1,
        "unusual member names",
    ),
    (
        "5 traversal names in tar",
        tarred({"../x.png": picture(1), "../x.txt": "one"}),
        1,
        "unusual member names",
    ),
    (
        "14 tar cut between members",
        changed(tarred({**GOOD, "b.png": picture(2)}), lambda data: data[:2048]),
        1,
        "ended early: 2 members",
    ),
    (
        "21 BOM, CRLF and blank lines",
        table(b"\xef\xbb\xbf" + record().encode() + b"\r", b"\r", b"", b"\r"),
        1,
        "",
    ),
    (
        "21 csv with BOM and CRLF",
        table(b"\xef\xbb\xbfimage,caption\r", b"good.png,one\r", b"\r", name="t.csv"),
        1,
        "",
    ),
    (
        "22 repeated key",
        table('{"image": "x.png", "image": "good.png", "caption": "a"}'),
        1,
        "last value counts: image",
    ),
    ("44 bidi and zero width", table(record(caption="\u202ered\u200b boat")), 1, ""),
    ("43 NUL", table(record(caption="red\0 boat")), 1, ""),
    ("46 formula", table(record(caption="=cmd|' /C calc'!A0")), 1, ""),
    ("47 markup", table(record(caption="<script>alert(1)</script> ![x](http://a/b)")), 1, ""),
    ("38 member names that are markup", in_folder({"<script>.png": picture(1), "<script>.txt": "x"}), 1, ""),
]
"""Taken in, with the number of pairs and words of a note."""

AS_SENT: list[tuple[str, Maker, str]] = [
    ("11 too many entries", zipped({f"{n}.png": b"" for n in range(20_001)}), "limit is 20,000"),
    ("16 Parquet bomb", parquet_bomb, "expands more than 200:1"),
    ("gzip bomb", gzip_bomb, "expands more than 200:1"),
    ("JPEG of 4,000 scans", zipped({**GOOD, "slow.jpg": four_thousand_passes()}), "passes; at most 100"),
    ("TIFF of 60,000 pages", zipped({"pages.tif": sixty_thousand_pages()}), ""),
    ("line break in a name", zipped({**GOOD, "a%0aX: y\n.png": b"no picture"}), "Not a supported image"),
]
"""What only the real limits show: words of what is said."""
