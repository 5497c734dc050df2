from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from ingest.catalog import Catalog
from ingest.errors import BadOption, BadUpload, NoValidPair, StoreError, UnknownLanguage
from ingest.intake import IntakeOptions, ingest_source
from ingest.pair import SliceKey, Split, image_id_of
from ingest.report import IntakeReport, ReportRow, guarded
from tests.ingest.conftest import Place, rows_of
from tests.ingest.material import folder_of, picture, tar_of, zip_of

PAIRS: dict[str, bytes | str] = {
    "cats/one.png": picture(1),
    "cats/one.txt": "a cat\n\nthe first cat\n",
    "two.png": picture(2),
    "two.txt": "a dog",
    "three.png": picture(3),
}


def _split_of(place: Place, number: int) -> Split:
    record = place.catalog.image(image_id_of(picture(number)))
    assert record is not None
    return record.split


@pytest.mark.parametrize("container", ["folder", "zip", "tar", "tar.gz"])
def test_every_container_gives_the_same_chunk(place: Place, tmp_path: Path, container: str) -> None:
    makers: dict[str, Callable[[Path, Mapping[str, bytes | str]], Path]] = {
        "folder": folder_of,
        "zip": zip_of,
        "tar": tar_of,
        "tar.gz": partial(tar_of, mode="w:gz"),
    }
    report = place.ingest(makers[container](tmp_path / "upload.bin", PAIRS), domain="Pets at Home")
    assert (report.new_pairs, report.known_pairs, report.new_images, report.rejected) == (3, 0, 3, 0)
    assert {
        (pair.text, pair.language, pair.domain) for pair in place.catalog.pairs(chunk=report.chunk_id)
    } == {
        ("a cat", "en", "pets-at-home"),
        ("the first cat", "en", "pets-at-home"),
        ("a dog", "en", "pets-at-home"),
    }
    assert set(place.catalog.gallery_ids()) == {image_id_of(picture(n)) for n in (1, 2, 3)}
    assert [row.code for row in report.rows if row.where == "three.png"] == ["no_caption"]
    assert place.blobs.original(image_id_of(picture(1))) == picture(1)


def test_the_same_content_in_another_container_is_the_same_chunk_and_0_new(
    place: Place, tmp_path: Path
) -> None:
    first = place.ingest(folder_of(tmp_path / "upload", PAIRS))
    second = place.ingest(zip_of(tmp_path / "other.zip", PAIRS))
    assert second.chunk_id == first.chunk_id
    assert (second.new_pairs, second.known_pairs, second.new_images) == (0, 3, 0)
    assert f"already have chunk {first.chunk_id}: 0 new" in second.notes
    assert len(place.catalog.chunks()) == 1
    assert place.catalog.chunk(first.chunk_id).report["new_pairs"] == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("captions.csv", 'image,caption,language\n1.png,"a, cat",en\n1.png,eine Katze,de\n'),
        ("captions.csv", "image;caption;language\n1.png;a, cat;en\n1.png;eine Katze;de\n"),
        ("captions.csv", 'Image, Caption ,Language\n1.png,"a, cat",en\n1.png,eine Katze,de\n'),
        ("captions.tsv", "image\tcaption\tlanguage\n1.png\ta, cat\ten\n1.png\teine Katze\tde\n"),
        ("metadata.csv", 'file_name,text,language\n1.png,"a, cat",en\n1.png,eine Katze,de\n'),
        (
            "metadata.jsonl",
            '{"file_name": "1.png", "text": "a, cat", "language": "en"}\n'
            '{"file_name": "./1.png", "text": "eine Katze", "language": "DE"}',
        ),
        (
            "captions.jsonl",
            '{"image": "1.png", "caption": "a, cat"}\n'
            '{"image": "1.png", "caption": ["eine Katze"], "language": "de"}',
        ),
    ],
    ids=["csv", "semicolon", "spaced header", "tsv", "imagefolder csv", "imagefolder jsonl", "jsonl"],
)
@pytest.mark.parametrize("bare", [True, False])
def test_tables_are_read_beside_and_inside_a_container(
    place: Place, tmp_path: Path, name: str, text: str, bare: bool
) -> None:
    folder = folder_of(tmp_path / "upload", {"1.png": picture(1), "2.png": picture(2), name: text})
    report = place.ingest(folder / name if bare else folder)
    found = {(pair.text, pair.language) for pair in place.catalog.pairs()}
    assert found == {("a, cat", "en"), ("eine Katze", "de")}
    # A table by itself speaks only of the pictures it names.
    assert report.new_images == (1 if bare else 2)
    assert report.english_share == 1.0


def test_pairs_keep_the_order_of_their_table(place: Place, tmp_path: Path) -> None:
    table = "image,caption\nthree.png,third\none.png,first\ntwo.png,second\none.png,first again\n"
    pictures = {f"{name}.png": picture(n) for n, name in enumerate(("one", "two", "three"))}
    report = place.ingest(folder_of(tmp_path / "upload", {"captions.csv": table, **pictures}))
    told = [pair.text for pair in place.catalog.pairs(chunk=report.chunk_id)]
    assert told == ["third", "first", "second", "first again"]


def test_a_mapping_names_our_columns(place: Place, tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "u", {"1.png": picture(1), "t.csv": "picture,text,Sprache\n1.png,Hund,de\n"}
    )
    place.ingest(folder, mapping={"picture": "image", "text": "caption", "sprache": "language"})
    assert [(pair.text, pair.language) for pair in place.catalog.pairs()] == [("Hund", "de")]


def test_a_wrong_mapping_is_refused_with_what_there_is(place: Place, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "u", {"1.png": picture(1), "t.csv": "image,text\n1.png,Hund\n"})
    with pytest.raises(BadOption, match="no column; use image, caption"):
        place.ingest(folder, mapping={"text": "title"})
    with pytest.raises(BadUpload, match="its columns: image, text"):
        place.ingest(folder, mapping={"titel": "caption"})


def test_a_table_finds_pictures_beside_it_or_from_the_top(place: Place, tmp_path: Path) -> None:
    lines = ["beside.png,a", "../pics/other.png,b", "pics/top.png,c", "lonely.png,d"]
    source = zip_of(
        tmp_path / "a.zip",
        {
            "root/notes/t.csv": "image,caption\n" + "\n".join(lines),
            "root/notes/beside.png": picture(1),
            "root/pics/other.png": picture(2),
            "pics/top.png": picture(3),
            "root/deep/lonely.png": picture(4),
        },
    )
    assert place.ingest(source).new_pairs == 4


def test_a_bare_table_cannot_reach_outside_its_folder(place: Place, tmp_path: Path) -> None:
    folder_of(tmp_path, {"secret.png": picture(9), "u/1.png": picture(1)})
    (tmp_path / "u/link.png").symlink_to(tmp_path / "secret.png")
    lines = ["image,caption", "1.png,fine", "../secret.png,x", f"{tmp_path}/secret.png,x", "link.png,x"]
    (tmp_path / "u/t.csv").write_text("\n".join(lines))
    report = place.ingest(tmp_path / "u/t.csv")
    assert [row.code for row in rows_of(report, "rejected")] == [
        "image_outside",
        "image_outside",
        "special_file",
    ]
    assert place.catalog.image(image_id_of(picture(9))) is None


def test_a_table_from_a_browser_names_no_files_of_the_server(place: Place, tmp_path: Path) -> None:
    folder_of(tmp_path, {"1.png": picture(1), "upload": "image,caption\n1.png,x\n"})
    with pytest.raises(BadUpload, match="upload a zip"):
        place.ingest(tmp_path / "upload", pictures_beside=False)


def test_a_language_nobody_can_tell_holds_pairs_and_the_option_is_named(place: Place, tmp_path: Path) -> None:
    source = folder_of(tmp_path / "u", {"1.png": picture(1), "1.txt": "OK\n\n007\n"})
    with pytest.raises(NoValidPair, match="2 x language_missing.*--language"):
        place.ingest(source, language=None)
    table = folder_of(
        tmp_path / "v", {"1.png": picture(1), "t.csv": "image,caption,language\n1.png,a,und\n1.png,b,fr\n"}
    )
    report = place.ingest(table, language=None)
    assert [(row.outcome, row.code) for row in report.rows] == [
        ("held", "language_missing"),
        ("accepted", "ok"),
    ]
    assert place.ingest(table, language="it").new_pairs == 1


def test_options_fill_only_what_the_upload_leaves_open(place: Place, tmp_path: Path) -> None:
    table = "image,caption,language,domain\n1.png,a,,\n2.png,b,de,Sketch\n"
    source = folder_of(tmp_path / "u", {"1.png": picture(1), "2.png": picture(2), "t.csv": table})
    place.ingest(source, language="pt_br", domain="photo")
    assert {(p.language, p.domain) for p in place.catalog.pairs()} == {("pt-BR", "photo"), ("de", "sketch")}


def test_wrong_options_are_refused_before_anything_is_read(place: Place, tmp_path: Path) -> None:
    with pytest.raises(UnknownLanguage, match="'de'"):
        place.ingest(tmp_path, language="german")
    with pytest.raises(BadOption, match="no domain name"):
        place.ingest(tmp_path, domain="a/b")
    with pytest.raises(BadUpload, match="no file or folder"):
        place.ingest(tmp_path / "none")


def test_domain_and_split_are_settled_by_the_first_upload(place: Place, tmp_path: Path) -> None:
    first = "image,caption,split,domain\n1.png,one,test,photo\n2.png,two,dev,photo\n"
    place.ingest(folder_of(tmp_path / "a", {"1.png": picture(1), "2.png": picture(2), "t.csv": first}))
    lines = ["image,caption,split,domain", "1.png,eins,train,", "1.png,uno,,sketch", "1.png,un,test,photo"]
    lines.append("2.png,deux,,")
    second = "\n".join(lines)
    source = folder_of(tmp_path / "b", {"1.png": picture(1), "2.png": picture(2), "t.csv": second})
    report = place.ingest(source, language="fr")
    assert {(row.where, row.code) for row in rows_of(report, "held")} == {
        ("t.csv line 2", "split_conflict"),
        ("t.csv line 3", "domain_conflict"),
    }
    assert report.new_pairs == 2
    assert (_split_of(place, 1), _split_of(place, 2)) == (Split.TEST, Split.VALIDATION)
    assert place.catalog.pairs(language="fr")[0].domain == "photo"


def test_a_conflict_inside_one_upload_is_held(place: Place, tmp_path: Path) -> None:
    table = "image,caption,split\n1.png,a,train\n1.png,b,test\n"
    report = place.ingest(folder_of(tmp_path / "a", {"1.png": picture(1), "t.csv": table}))
    assert [row.code for row in report.rows] == ["ok", "split_conflict"]


def test_a_later_domain_option_does_not_move_a_known_picture(place: Place, tmp_path: Path) -> None:
    source = folder_of(tmp_path / "a", PAIRS)
    place.ingest(source, domain="photo")
    with pytest.raises(NoValidPair, match="domain_conflict"):
        place.ingest(source, domain="sketch")
    assert place.catalog.domains() == {"photo": 3}


def test_pictures_of_one_group_are_in_one_split(place: Place, tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {f"{n}.png": picture(n) for n in range(12)}
    files["t.csv"] = "image,caption,group\n" + "".join(f"{n}.png,caption {n},same shoe\n" for n in range(12))
    place.ingest(folder_of(tmp_path / "a", files))
    assert len({_split_of(place, n) for n in range(12)}) == 1


def test_an_exact_duplicate_counts_once(place: Place, tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {
        "a.png": picture(1),
        "a.txt": "one\none",
        "b.png": picture(1),
        "b.txt": "one\ntwo",
    }
    report = place.ingest(folder_of(tmp_path / "a", files))
    assert (report.new_pairs, report.new_images) == (2, 1)
    assert [row.code for row in report.rows].count("duplicate") == 2


def test_pictures_can_be_kept_out_of_the_gallery(place: Place, tmp_path: Path) -> None:
    place.ingest(folder_of(tmp_path / "a", PAIRS), in_gallery=False)
    assert place.catalog.gallery_ids() == []
    assert len(place.catalog.pairs()) == 3


@pytest.mark.sqlite
def test_a_crash_between_blobs_and_rows_leaves_only_blobs_that_are_reused(
    place: Place, tmp_path: Path
) -> None:
    source = folder_of(tmp_path / "a", PAIRS)
    with (
        Catalog.open(place.catalog.place, read_only=True) as read_only,
        pytest.raises(Exception, match="opened for reading"),
    ):
        ingest_source(source, catalog=read_only, blobs=place.blobs, options=IntakeOptions(language="en"))
    assert place.catalog.chunks() == []
    assert len(list(place.store.keys(b"i"))) == 3
    assert place.ingest(source).new_pairs == 3


def test_the_english_share_counts_catalogued_english_too(place: Place, tmp_path: Path) -> None:
    place.ingest(folder_of(tmp_path / "a", {"1.png": picture(1), "1.txt": "a cat"}))
    both: dict[str, bytes | str] = {
        "1.png": picture(1),
        "1.txt": "eine Katze",
        "2.png": picture(2),
        "2.txt": "ein Hund",
    }
    report = place.ingest(folder_of(tmp_path / "b", both), language="de")
    assert report.english_share == 0.5


def test_progress_counts_pictures(place: Place, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    source = folder_of(tmp_path / "a", PAIRS)
    ingest_source(
        source,
        catalog=place.catalog,
        blobs=place.blobs,
        options=IntakeOptions(language="en"),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_slices_of_the_report_are_those_of_the_catalog(place: Place, tmp_path: Path) -> None:
    table = "image,caption,language,split\n1.png,a,en,test\n1.png,b,de,test\n2.png,c,en,train\n"
    report = place.ingest(
        folder_of(tmp_path / "a", {"1.png": picture(1), "2.png": picture(2), "t.csv": table}), domain="photo"
    )
    assert report.per_slice == {
        "de/photo": {"train": 0, "validation": 0, "test": 1},
        "en/photo": {"train": 1, "validation": 0, "test": 1},
    }
    assert place.catalog.slices() == [SliceKey("de", "photo"), SliceKey("en", "photo")]


def test_the_report_is_kept(place: Place, tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {"1.png": picture(1), "1.txt": "fine", "=cmd|x.png": b"<html>"}
    report = place.ingest(folder_of(tmp_path / "a", files))
    kept = json.loads(json.dumps(place.catalog.chunk(report.chunk_id).report))
    assert kept == report.to_json()
    assert kept["reasons"] == {"image_unsupported": 1, "ok": 1}


@pytest.mark.parametrize("cell", ["=1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_a_cell_that_a_spreadsheet_would_run_is_guarded(cell: str) -> None:
    assert guarded(cell) == "'" + cell
    assert guarded("plain " + cell) == "plain " + cell


def test_a_very_long_report_keeps_its_counts_and_a_bounded_list() -> None:
    rows = [ReportRow(f"line {n}", "rejected", "x", "y.") for n in range(20_005)]
    report = IntakeReport("c", "n", 0, 0, 0, 0, len(rows), {}, None, (), rows)
    kept = report.to_json()
    assert (len(kept["rows"]), kept["rows_left_out"], kept["reasons"]) == (20_000, 5, {"x": 20_005})


_MEASURE = """
import resource, sys
from pathlib import Path
from ingest.blobs import BlobStore
from ingest.catalog import Catalog
from ingest.intake import IntakeOptions, ingest_source
from ingest.storage import Store
home = Path(sys.argv[1])
with Catalog.open(home / "c.sqlite") as catalog, Store.open(home / "blobs") as store:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = ingest_source(
        Path(sys.argv[2]), catalog=catalog, blobs=BlobStore(store), options=IntakeOptions(language="en")
    )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sys.stdout.write(f"{report.new_pairs} {(after - before) // 1024}")
"""


@pytest.mark.slow
@pytest.mark.parametrize("container", ["folder", "zip", "tar"])
def test_ten_thousand_pairs_take_less_than_400_mb(tmp_path: Path, container: str) -> None:
    files: dict[str, bytes | str] = {}
    for n in range(5000):
        files |= {f"{n}.png": picture(n, size=(64, 64)), f"{n}.txt": f"caption {n}\nsecond caption {n}"}
    makers: dict[str, Callable[[Path, Mapping[str, bytes | str]], Path]] = {
        "folder": folder_of,
        "zip": zip_of,
        "tar": tar_of,
    }
    source = makers[container](tmp_path / "upload", files)
    arguments = [sys.executable, "-c", _MEASURE, str(tmp_path / "home"), str(source)]
    (tmp_path / "home").mkdir()
    answer = subprocess.run(
        arguments, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    pairs, megabytes = map(int, answer.stdout.split())
    assert pairs == 10_000
    assert megabytes < 400


def test_a_picture_whose_file_is_gone_from_the_store_is_not_recorded(place: Place, tmp_path: Path) -> None:
    place.ingest(zip_of(tmp_path / "a.zip", {"1.png": picture(1), "1.txt": "a cat"}))
    members: dict[str, bytes | str] = {
        "1.png": picture(1),
        "1.txt": "two",
        "2.png": picture(2),
        "2.txt": "a dog",
    }

    def removed(done: int, total: int | None) -> None:
        place.blobs.delete([image_id_of(picture(1))])

    with pytest.raises(
        StoreError, match="1 of 2 pictures were removed from the store .* take the upload in again"
    ):
        place.ingest(zip_of(tmp_path / "b.zip", members), progress=removed)
    assert [pair.text for pair in place.catalog.pairs()] == ["a cat"]
    assert list(place.store.keys(b"i")) == []
    assert place.ingest(tmp_path / "b.zip").new_pairs == 2
    assert len(list(place.store.keys(b"i"))) == 2
