from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.desk.errors import AppError, NewerFormat, NoHome, UsageProblem
from app.home.folder import FORMAT, Home
from ingest.catalog import Catalog


def test_a_created_home_opens_and_has_every_folder(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "deep" / "home")

    assert Home.open(home.root) == home
    for folder in (home.inbox, home.staging, home.versions, home.generations, home.releases, home.commits):
        assert folder.is_dir()
    assert home.format_file.read_text() == f"{FORMAT}\n"


def test_folders_that_a_copy_left_out_as_they_were_empty_are_made_again(tmp_path: Path) -> None:
    made = Home.create(tmp_path / "home")
    made.inbox.rmdir()
    made.staging.rmdir()
    home = Home.open(made.root)
    assert home.inbox.is_dir()
    assert home.staging.is_dir()


def test_creating_a_home_again_changes_nothing(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    (home.inbox / "upload").write_bytes(b"kept")

    Home.create(home.root)

    assert (home.inbox / "upload").read_bytes() == b"kept"


def test_a_half_made_home_is_no_home_and_is_completed_by_creating_it_again(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    home.format_file.unlink()
    home.commits.rmdir()
    with pytest.raises(NoHome):
        Home.open(home.root)

    Home.create(home.root)

    assert Home.open(home.root).commits.is_dir()


@pytest.mark.parametrize("place", ["missing", "empty", "file"])
def test_a_place_without_a_home_is_refused_with_the_command_that_makes_one(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("not a folder")

    with pytest.raises(NoHome, match=f"Run `perennial init --home {tmp_path / place}`"):
        Home.open(tmp_path / place)


def test_a_home_of_a_newer_program_is_refused_by_open_and_by_create(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    home.format_file.write_text(f"{FORMAT + 1}\n")

    for door in (Home.open, Home.create):
        with pytest.raises(NewerFormat, match=f"has format {FORMAT + 1}; this program knows formats up to"):
            door(home.root)


@pytest.mark.parametrize("content", [b"", b"one\n", b"\xff\xfe1", b"-1"])
def test_a_damaged_format_file_is_named_instead_of_guessed(tmp_path: Path, content: bytes) -> None:
    home = Home.create(tmp_path / "home")
    home.format_file.write_bytes(content)

    with pytest.raises(NoHome, match="holds no number"):
        Home.open(home.root)


def test_a_folder_with_other_things_in_it_is_never_taken_over(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")

    with pytest.raises(UsageProblem, match=r"holds 'thesis\.tex'") as refusal:
        Home.create(tmp_path)

    assert refusal.value.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_place_of_the_home_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(UsageProblem, match="is a file"):
        Home.create(tmp_path / "file")


def test_an_error_carries_its_sentence_and_an_exit_code_that_can_be_overridden() -> None:
    assert (AppError("what happened").exit_code, str(AppError("what happened"))) == (1, "what happened")
    assert AppError("needs a person", exit_code=4).exit_code == 4


def test_looking_whether_the_catalog_is_empty_takes_it_from_nobody(tmp_path: Path) -> None:
    """To close a file of one's own on it would: the next process that ends would remove this one's journal."""
    home = Home.create(tmp_path / "home")

    def elsewhere(what: str) -> str:
        program = f"import sys; from pathlib import Path; from ingest.catalog import Catalog\n{what}"
        command = [sys.executable, "-c", program, str(home.catalog)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with Catalog.open(home.catalog) as catalog:
        catalog.add_job("ingest")
        assert not home.has_empty_catalog()
        elsewhere("with Catalog.open(Path(sys.argv[1])) as catalog: catalog.add_job('ingest')")
        catalog.add_job("ingest")
        told = elsewhere("with Catalog.open(Path(sys.argv[1])) as catalog: print(len(catalog.jobs()))")
    assert told.split() == ["3"]
