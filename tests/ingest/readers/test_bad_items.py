"""Items of an upload that are skipped or held with the stated reason, while the rest goes on.

Numbers are those of the project's catalogue of bad inputs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.limits import Limits
from ingest.readers.container import Row, Text
from ingest.readers.formats import BY_SUFFIX
from ingest.readers.table import read_rows
from tests.ingest.conftest import Place, rows_of
from tests.ingest.material import folder_of, picture
from tests.ingest.readers.bad_files import (
    Maker,
    record,
    table,
)
from tests.ingest.readers.catalogue import SKIPPED


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
        rows = read_rows("t.jsonl", text, mapping={}, limits=Limits(), locate=lambda names: names[0])
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
