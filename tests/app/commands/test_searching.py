"""Claims about search on a home."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from app.home.settings import load_settings
from app.home.workspace import Workspace
from tests.app.commands.running import document, run
from tests.ingest.material import folder_of, picture


def test_search_prints_ranks_and_a_pin_is_kept(home: Path) -> None:
    result = run("search", "a red boat", "-k", "3", "--pin", home=home)
    assert result.exit_code == 0
    assert "Pinned" in result.stdout
    found = document("search", "a red boat", "-k", "3", home=home)
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3]
    with Workspace.open(load_settings(home=home)) as workspace:
        assert [pin.image_id for pin in workspace.catalog.pins()] == [found["hits"][0]["id"]]


@pytest.mark.parametrize(
    "more",
    [
        ("--offset", "1"),
        ("--domain", "sketch"),
        ("--where", "taken = none"),
        ("--mode", "hybrid"),
        ("--sort", "taken"),
        ("--translation", "a boat"),
        ("--release", "r1"),
        ("--facets",),
    ],
)
def test_only_the_first_answer_to_the_words_alone_is_pinned(home: Path, more: tuple[str, ...]) -> None:
    refused = run("search", "a blue house", "--pin", *more, home=home)
    assert (refused.exit_code, "to the words alone" in refused.stderr) == (2, True)
    with Workspace.open(load_settings(home=home)) as workspace:
        assert "a blue house" not in [one.query for one in workspace.catalog.feedback.all()]


def test_words_in_quotation_marks_are_pinned_as_they_are(home: Path) -> None:
    assert run("search", '"a boat - one house"', "--pin", home=home).exit_code == 0
    with Workspace.open(load_settings(home=home)) as workspace:
        assert [pin.query for pin in workspace.catalog.pins()] == ["a boat - one house"]


def test_a_search_loads_nothing_that_it_does_not_need(home: Path) -> None:
    script = (
        "import sys, atexit; unwanted = ('langcodes', 'pebble', 'http.client', 'pandas', 'gradio', 'fastapi',"
        " 'torch', 'app.learning.yardstick');"
        "atexit.register(lambda: print([name for name in unwanted if name in sys.modules], file=sys.stderr));"
        "import perennial; sys.argv[0] = 'perennial'; perennial.main()"
    )
    command = [sys.executable, "-c", script, "search", "two red boats", "--json", "--home", str(home)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines()[-1] == "[]"


def test_paths_alone_are_for_other_programs(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my photos"
    folder.mkdir()
    for number, name in enumerate(("a b.png", "c.png"), start=1):
        (folder / name).write_bytes(picture(number))
    run("ingest", folder, "--domain", "holiday", home=home)

    asked = ("search", "a boat", "--domain", "holiday")
    lines, nulls = run(*asked, "--paths", home=home), run(*asked, "-0", home=home)

    wanted = {str(folder / name) for name in ("a b.png", "c.png")}
    assert set(lines.stdout.splitlines()) == wanted
    assert set(nulls.stdout.split("\0")) == wanted | {""}
    assert "a b.png" in run(*asked, home=home).stdout.replace("\n", "")


def test_hits_that_are_no_files_are_counted_where_people_read(home: Path) -> None:
    result = run("search", "a red boat", "-k", "3", "--paths", home=home)
    assert result.stdout == ""
    assert "3 hits are left out" in result.stderr


def test_a_picture_is_written_as_it_was_taken_in(home: Path, tmp_path: Path) -> None:
    first = document("search", "a red boat", "-k", "1", home=home)["hits"][0]["id"]
    result = run("pictures", first, "--save", tmp_path / "original", home=home)
    assert result.exit_code == 0
    assert hashlib.sha256((tmp_path / "original").read_bytes()).hexdigest() == first


def test_a_filter_leaves_what_it_says_and_facets_count_it(home: Path, tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "photos",
        {
            "Italy/a.png": picture(1),
            "b.png": picture(2),
            "t.csv": "image,brand\nItaly/a.png,Acme\nb.png,Bolt\n",
        },
    )
    run("add", folder, home=home)
    for where in ("folder = Italy", "meta.brand = acme", "file ~ photos AND NOT meta.brand = bolt"):
        hits = document("search", "a boat", "--where", where, home=home)["hits"]
        assert [one["sources"][0]["fields"] for one in hits] == [{"brand": "Acme"}], where
    counted = document("search", "--where", "file ~ photos", "--facets", home=home)
    assert [(one["value"], one["count"]) for one in counted["folders"]] == [
        (str(folder), 1),
        (str(folder / "Italy"), 1),
    ]
    assert "Italy" in run("search", "--where", "folder = Italy", "--facets", home=home).stdout
    refused = run("search", "a boat", "--where", "brand = acme", home=home)
    assert refused.exit_code != 0
    assert "There is no field 'brand'" in refused.stderr
