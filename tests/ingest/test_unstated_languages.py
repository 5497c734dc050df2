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


CZECH = [
    f"{who} {does}"
    for who in (
        "Malá holčička v červených šatech",
        "Starší muž s šedivými vousy",
        "Dvě děti ve žlutých bundách",
    )
    for does in (
        "běží přes zelenou louku",
        "sedí na dřevěné lavičce u řeky",
        "skáče do bazénu s modrou vodou",
        "drží v ruce červený deštník",
        "dívá se na hory pokryté sněhem",
        "jede na kole po kamenité cestě",
        "stojí před starým kamenným domem",
    )
]
SLOVAK = "Dievčatko v bielych šatách stojí pri stole"


def test_a_relative_of_what_nearly_all_captions_are_in_is_taken_for_it_and_asked_about_once(
    place: Place, tmp_path: Path
) -> None:
    assert caption_languages([SLOVAK] * 9) == ["sk"] * 9
    members: dict[str, bytes | str] = {}
    for number, text in enumerate([*CZECH, SLOVAK]):
        members |= {f"{number}.png": picture(number), f"{number}.txt": text}
    report = place.ingest(folder_of(tmp_path / "u", members), language=None)
    assert place.catalog.languages() == {"cs": len(CZECH) + 1}
    asked = [note for note in report.notes if "may be sk are taken as cs" in note]
    assert [note[:2] for note in asked] == ["1 "]
    # Whoever does as it says is believed.
    table = f"file_name,caption,language\n{len(CZECH)}.png,{SLOVAK},sk\n"
    place.ingest(
        folder_of(tmp_path / "v", {f"{len(CZECH)}.png": picture(len(CZECH)), "t.csv": table}), language=None
    )
    assert place.catalog.languages()["sk"] == 1


def test_a_relative_beside_as_many_others_stays_what_it_is() -> None:
    half = [
        *CZECH[:10],
        *[f"{SLOVAK} {word}" for word in ("a číta", "a smeje sa", "vedľa okna", "so psom")] * 2,
    ]
    assert set(caption_languages(half)) == {"cs", "sk"}
    assert set(caption_languages([*ENGLISH, *GERMAN])) == {"en", "de"}
