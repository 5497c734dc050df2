from __future__ import annotations

from pathlib import Path

from ingest.unstated_languages import caption_languages
from tests.ingest.conftest import Place
from tests.ingest.material import folder_of, picture

ENGLISH = [
    f"{who} {does}"
    for who in ("a girl in a white dress", "someone with an umbrella", "the children", "three men")
    for does in (
        "waiting beside the window",
        "playing football in the street",
        "throwing stones",
        "with a dog",
    )
] + ["two red boats"]
GERMAN = [
    "Zwei rote Boote liegen auf dem See",
    "Ein Hund läuft durch den Schnee",
    "Das Mädchen trägt ein weißes Kleid",
]


def test_the_rest_of_an_upload_says_what_a_short_caption_cannot() -> None:
    assert caption_languages(["two red boats"]) == [None]
    assert caption_languages(ENGLISH + GERMAN) == ["en"] * len(ENGLISH) + ["de"] * len(GERMAN)


def test_han_characters_are_japanese_beside_kana_alone() -> None:
    assert caption_languages(["犬", "走る犬", "赤いボートが二つ", "海の上の大きな船"])[0] == "ja"
    assert caption_languages(["犬", "两艘红色的船", "大海"])[0] == "zh"


def test_what_has_no_letters_is_in_no_language() -> None:
    assert caption_languages(["3", "🐶", ""]) == [None, None, None]
    assert caption_languages([]) == []


def test_the_report_shows_the_shares_and_what_is_held(place: Place, tmp_path: Path) -> None:
    texts = [*GERMAN[:3], *ENGLISH[:2], "12"]
    members: dict[str, bytes | str] = {}
    for number, text in enumerate(texts):
        members |= {f"{number}.png": picture(number), f"{number}.txt": text}
    report = place.ingest(folder_of(tmp_path / "u", members), language=None)
    assert report.detected == {"de": 3, "en": 2}
    assert report.to_json()["detected"] == {"de": 3, "en": 2}
    said = "6 captions state no language; they look like de 50 %, en 33 %; 1 that could not be told are held"
    assert said in report.notes
    assert [row.code for row in report.rows if row.outcome == "held"] == ["language_missing"]
    assert place.catalog.languages() == {"de": 3, "en": 2}


def test_a_stated_language_is_never_overruled(place: Place, tmp_path: Path) -> None:
    table = "image,caption,language\n1.png,Zwei rote Boote auf dem See,fr\n"
    report = place.ingest(folder_of(tmp_path / "u", {"1.png": picture(1), "t.csv": table}), language=None)
    assert (report.detected, place.catalog.languages()) == ({}, {"fr": 1})
