from __future__ import annotations

from collections import Counter

import pytest

from ingest.errors import BadRow
from ingest.pair import Split, image_id_of
from ingest.splits import assign_split, parse_split


@pytest.mark.parametrize(
    ("column", "split"),
    [
        ("train", Split.TRAIN),
        ("val", Split.VALIDATION),
        ("Validation", Split.VALIDATION),
        ("dev", Split.VALIDATION),
        (" TEST ", Split.TEST),
    ],
)
def test_a_column_may_name_a_split_as_programs_do(column: str, split: Split) -> None:
    assert parse_split(column) is split


def test_pictures_of_one_group_share_a_split() -> None:
    for group in ("a", "b", "c"):
        assert len({assign_split(image_id_of(bytes([n])), group=group) for n in range(30)}) == 1


def test_without_a_group_the_id_decides_80_5_15() -> None:
    counts = Counter(assign_split(image_id_of(str(n).encode()), group=" ") for n in range(10_000))
    assert counts[Split.TRAIN] == pytest.approx(8000, abs=200)
    assert counts[Split.VALIDATION] == pytest.approx(500, abs=110)
    assert counts[Split.TEST] == pytest.approx(1500, abs=180)


def test_the_assignment_never_changes_between_releases() -> None:
    found = [assign_split(image_id_of(bytes([n]))).value for n in range(12)]
    assert found == [
        "train",
        "train",
        "train",
        "test",
        "train",
        "train",
        "test",
        "test",
        "train",
        "train",
        "train",
        "train",
    ]


def test_an_unknown_split_name_is_refused() -> None:
    with pytest.raises(BadRow, match="no split") as caught:
        parse_split("holdout")
    assert caught.value.code == "split_unknown"
