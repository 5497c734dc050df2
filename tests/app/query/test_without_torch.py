"""A process that searches or takes pictures in loads no torch, nor what trains with it: they may be missing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import update_cycle
from model_updates import versions
from tests.app.small_home import copy_of, sample_chunk, small_home

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "torchvision", "open_clip", "timm", "transformers", "peft"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import perennial
sys.argv = ["perennial", *sys.argv[1:]]
perennial.main()
"""


@pytest.fixture
def workspace(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Workspace]:
    home = copy_of(small_home(tmp_path_factory), tmp_path)
    with Workspace.open(load_settings(home=home)) as opened:
        yield opened


def run(workspace: Workspace, *words: str) -> subprocess.CompletedProcess[str]:
    home = {"PERENNIAL_HOME": str(workspace.settings.home)}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | home,
    )


def test_pictures_are_found_by_words_and_by_pictures(workspace: Workspace) -> None:
    picture = workspace.catalog.gallery_ids()[0]
    for asked in (["two red boats"], ["zwei rote Boote", "--language", "de"], ["--like", picture]):
        answer = run(workspace, "search", *asked)
        assert answer.returncode == 0, answer.stderr
        assert "rank" in answer.stdout


def test_pictures_are_taken_in_and_found(workspace: Workspace, tmp_path: Path) -> None:
    before = set(workspace.catalog.gallery_ids())
    chunk = sample_chunk(tmp_path / "more.zip", pictures=5, first=7)
    answer = run(workspace, "ingest", str(chunk))
    assert answer.returncode == 0, answer.stderr
    (new, *_) = sorted(set(workspace.catalog.gallery_ids()) - before)
    assert (
        f"{len(before) + 4} of {len(before) + 5} pictures" in run(workspace, "search", "--like", new).stdout
    )


def test_a_version_without_graphs_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So are those that were written before versions had graphs."""
    monkeypatch.setattr(versions, "write_portable", lambda *_: ([], "it is older"))
    settings = load_settings(home=tmp_path / "home")
    update_cycle.initialise(settings)
    with Workspace.open(settings) as workspace:
        answer = run(workspace, "search", "two red boats")
    assert answer.returncode != 0
    assert "Traceback" not in answer.stderr
    assert "needs torch, which is not installed here. Install Perennial" in answer.stderr
