"""What pictures' own files and XMP files beside them say: dates and cameras are kept, captions become pairs."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from tests.ingest.conftest import Place
from tests.ingest.material import encoded, folder_of
from tests.ingest.metadata import exif_bytes, xmp_packet


def _jpeg(number: int, **exif: object) -> bytes:
    image = Image.effect_noise((48, 48), 90 + number).convert("RGB")
    return encoded(image, "JPEG", exif=exif_bytes(**exif))  # type: ignore[arg-type]


SENTENCES = (
    "Two children are building a castle of sand on the beach",
    "An old man is reading the newspaper under a tree",
    "A black dog jumps over the fence behind the house",
)


def test_date_camera_and_position_are_kept_with_the_picture(place: Place, tmp_path: Path) -> None:
    data = _jpeg(1, taken="2019:07:04 12:33:21", make="Canon", model="Canon EOS 5D", place=(48.2, -16.4))
    place.ingest(folder_of(tmp_path / "photos", {"a.jpg": data}))
    (record,) = place.catalog.images(place.catalog.gallery_ids()).values()
    assert (record.taken, record.camera) == ("2019-07-04T12:33:21", "Canon EOS 5D")
    assert (round(record.latitude or 0, 3), round(record.longitude or 0, 3)) == (48.2, -16.4)


def test_captions_in_files_become_pairs_when_their_language_shows(place: Place, tmp_path: Path) -> None:
    files = {f"{n}.jpg": _jpeg(n, description=text) for n, text in enumerate(SENTENCES)}
    report = place.ingest(folder_of(tmp_path / "photos", {**files, "bare.jpg": _jpeg(9)}), language=None)
    assert (report.new_images, report.new_pairs, report.held) == (4, 3, 0)
    assert {one.text for one in place.catalog.find_captions("the")} == set(SENTENCES)
    assert [row.where for row in report.rows if row.code == "no_caption"] == ["bare.jpg"]


def test_a_caption_that_nobody_can_tell_costs_the_picture_nothing(place: Place, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.jpg": _jpeg(1, description="Ibiza 2019")})
    report = place.ingest(folder, language=None)
    assert (report.new_images, report.new_pairs, report.held, report.rejected) == (1, 0, 0, 0)
    assert any("nobody can tell the language of" in note for note in report.notes)
    assert len(place.catalog.gallery_ids()) == 1


def test_a_stated_language_takes_them_all(place: Place, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.jpg": _jpeg(1, description="Ibiza 2019")})
    assert place.ingest(folder, language="es").new_pairs == 1


def test_what_a_table_says_of_a_picture_comes_before_its_file(place: Place, tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {
        "a.jpg": _jpeg(1, description=SENTENCES[0]),
        "t.csv": "image,caption\na.jpg,a red boat\n",
    }
    place.ingest(folder_of(tmp_path / "photos", members))
    assert [one.text for one in place.catalog.captions_of(place.catalog.gallery_ids()[0])] == ["a red boat"]


def test_an_xmp_file_beside_a_picture_speaks_for_it(place: Place, tmp_path: Path) -> None:
    sidecar = xmp_packet(description={"de": "Ein rotes Boot am Strand"}, keywords=["Urlaub", "Meer"])
    folder = folder_of(tmp_path / "photos", {"a.jpg": _jpeg(1), "a.xmp": sidecar, "b.jpg": _jpeg(2)})
    (folder / "b.jpg.xmp").write_bytes(xmp_packet(description={"de": "Zwei Hunde im Schnee"}))

    report = place.ingest(folder, language=None)

    assert (report.new_pairs, list(report.per_slice)) == (2, ["de/general"])
    every = place.catalog.sources.of(place.catalog.gallery_ids())
    fields = {Path(one.place).name: dict(one.fields) for of in every.values() for one in of}
    assert fields == {"a.jpg": {"keywords": "Urlaub, Meer"}, "b.jpg": {}}


def test_a_changed_xmp_file_is_read_though_its_picture_is_not_new(place: Place, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.jpg": _jpeg(1), "b.jpg": _jpeg(2)})
    place.ingest(folder, language=None)
    (folder / "a.xmp").write_bytes(xmp_packet(description={"de": "Ein rotes Boot am Strand"}))
    report = place.ingest(folder, language=None)
    assert (report.new_images, report.new_pairs, report.unchanged) == (0, 1, 1)
    assert place.ingest(folder, language=None).unchanged == 2
