"""Advice is taken as it stands, and then asks for nothing more: on what to hold out, and on what teaches nothing."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.desk.desk import Desk
from app.desk.errors import UsageProblem
from app.desk.jobs import StartUpdate, UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import update_cycle
from app.local.at_home import AtHome
from app.words import chunk as chunk_words
from ingest.intake import IntakeOptions
from ingest.samples.scene_captions import caption
from ingest.samples.scenes import all_scenes
from tests.app.commands.running import run
from tests.app.small_home import copy_of, small_home

NEEDED = 24
"""Different held-out things, so that the test draws few."""


@pytest.fixture
def desk(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    home = copy_of(small_home(tmp_path_factory), tmp_path)
    with AtHome(
        load_settings(home=home, gate={"samples": 200, "minimum_images": NEEDED, "cross_fit": False}),
        by="ada",
    ) as desk:
        yield desk


def _chunk(path: Path, count: int, *, held_out: int = 0, is_captioned: bool = True) -> Path:
    """Pictures that are no near-copies of one another, with German captions; the last ones are to be held out."""
    lines, said = ["file_name,caption,language,domain,split"], list(all_scenes())
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(count + held_out):
            blocks = np.random.default_rng(number).integers(0, 256, (8, 8, 3), dtype=np.uint8)
            data = io.BytesIO()
            Image.fromarray(blocks).resize((96, 96), Image.Resampling.NEAREST).save(data, "PNG")
            archive.writestr(f"{number}.png", data.getvalue())
            split = "test" if number >= count else ""
            lines.append(f'{number}.png,"{caption(said[number * 37], "de")}",de,patterns,{split}')
        if is_captioned:
            archive.writestr("captions.csv", "\n".join(lines))
    return path


def _taught(desk: Desk, source: Path) -> tuple[str, ...]:
    """What the gate advises after an update on a source."""
    added = desk.add_chunk(source, IntakeOptions(), lambda _: None)
    request = UpdateRequest(added.chunk.id, "language-tables", {"epochs": 1}, by="test")
    with Workspace.open(
        load_settings(
            home=Path(desk.where), gate={"samples": 200, "minimum_images": NEEDED, "cross_fit": False}
        )
    ) as home:
        scratch = home.home.staging / source.stem
        scratch.mkdir()
        outcome = update_cycle.update(home, request, scratch=scratch, progress=lambda _: None)
    assert outcome.gate is not None
    return tuple(outcome.gate["next_steps"])


def test_whoever_holds_out_as_many_more_as_the_gate_asks_for_is_measured(desk: Desk, tmp_path: Path) -> None:
    (asked,) = [step for step in _taught(desk, _chunk(tmp_path / "few.zip", 40)) if "Hold out more" in step]
    (more,) = re.findall(r"together with (\d+) more different pictures that have split=test", asked)
    again = _taught(desk, _chunk(tmp_path / "again.zip", 40, held_out=int(more)))
    assert not [step for step in again if "Hold out more" in step]


def test_a_chunk_without_captions_is_not_recommended_for_teaching(desk: Desk, tmp_path: Path) -> None:
    bare = _chunk(tmp_path / "bare.zip", 6, is_captioned=False)
    added = desk.add_chunk(bare, IntakeOptions(), lambda _: None)
    assert added.chunk.pairs == 0
    advice = [*chunk_words.added_lines(added), *chunk_words.next_steps(added.chunk)]
    assert not [line for line in advice if "perennial update" in line]
    for ask in (
        lambda: desk.update(StartUpdate(chunk=added.chunk.id)),
        lambda: desk.forecast(StartUpdate(chunk=added.chunk.id)),
    ):
        with pytest.raises(UsageProblem, match="no captioned picture to train on"):
            ask()
    assert [job for job in desk.jobs() if job.kind == "update"] == []
    refused = run("update", "--chunk", added.chunk.id, home=Path(desk.where))
    assert (refused.exit_code, "no captioned picture" in refused.output) == (2, True)


def test_a_chunk_that_is_all_held_out_says_what_it_is_good_for(desk: Desk, tmp_path: Path) -> None:
    added = desk.add_chunk(_chunk(tmp_path / "test.zip", 0, held_out=6), IntakeOptions(), lambda _: None)
    (told,) = [line for line in chunk_words.added_lines(added) if "held out, so it teaches nothing" in line]
    verb = re.findall(r"`perennial (.*?)`", told)[0].replace('"…"', "drawn by us").split(" ", 4)
    accepted = run(*verb[:3], "--why", "drawn by us", home=Path(desk.where))
    assert accepted.exit_code == 0, accepted.output
    assert desk.chunk(added.chunk.id).measures
