"""The demo's story on a running server: told through the command line's --server, and heard through gradio_client.

Teaching and deciding go through the command line alone. At each turn both doors are asked the same, and have to say
the same; what is right is known from what each drawn picture shows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gradio_client import Client
from typer.testing import CliRunner

from app.commands import cli
from app.demo.player import FIRST_RESULTS, HEADLINE, Cast, scenes_by_caption
from app.home.settings import load_settings
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import caption
from tests.app.server.served import Served, served
from tests.app.small_home import copy_of, new_home

CAST = Cast(pictures=80, drawings=30)
GERMAN = caption(HEADLINE, "de")
ENGLISH = caption(HEADLINE, "en")


@dataclass
class Doors:
    """Both ways into one server."""

    server: Served
    program: Client

    def said(self, *arguments: str | Path, code: int = 0) -> Any:
        """What the command line says, as JSON."""
        asked = [*map(str, arguments), "--server", self.server.url, "--json"]
        result = CliRunner().invoke(cli.app, asked)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def right(self, text: str, language: str) -> tuple[str, list[str], int | None]:
        """Asks both doors; returns the release, what was found, and the place of the picture that was meant."""
        here = self.said("search", text, "--language", language, "-k", str(FIRST_RESULTS))
        there = self.program.predict(text=text, language=language, k=FIRST_RESULTS, api_name="/search")
        found = [hit["id"] for hit in here["hits"]]
        assert (here["release"], found) == (there["release"], [hit["id"] for hit in there["hits"]])
        known = scenes_by_caption()
        english = [
            [one["text"] for one in hit["captions"] if one["language"] == "en"] for hit in here["hits"]
        ]
        scenes = [next((known[text] for text in texts if text in known), None) for texts in english]
        return here["release"], found, scenes.index(HEADLINE) + 1 if HEADLINE in scenes else None


@pytest.fixture
def doors(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    gate = {"samples": 200, "minimum_images": 5}
    home = copy_of(new_home(tmp_path_factory), tmp_path)
    settings = load_settings(home=home, gate=gate, poll_seconds=0.1, jobs="elsewhere")
    os.environ["HF_HUB_OFFLINE"] = "1"
    with served(settings, with_pages=True) as server:
        program = Client(server.url, verbose=False, analytics_enabled=False)
        yield Doors(server, program)
        program.close()


# What both doors say is compared by tests/app/commands/test_both_doors.py and tests/app/test_three_doors.py, and a
# folder goes all the way through a server in tests/app/client/test_client.py; here one story goes through both.
@pytest.mark.slow
def test_the_story_is_told_through_both_doors_of_a_server(doors: Doors, tmp_path: Path) -> None:
    for language in ("en", "de"):
        file = tmp_path / f"{language}.zip"
        write_chunk(file, scenes=CAST.gallery(), languages=[language])
    pictures = doors.said("ingest", tmp_path / "en.zip")
    assert pictures["images_embedded"] == CAST.pictures
    before, _, rank = doors.right(ENGLISH, "en")
    assert rank is not None, "English works from the first minute"
    assert doors.right(GERMAN, "de")[2] is None, "a language that nobody taught is not understood"

    german = doors.said("ingest", tmp_path / "de.zip")
    assert (german["new_pairs"], german["new_images"]) == (CAST.pictures, 0)
    how = ["--strategy", "language-tables", "--option", "epochs=5", "--option", "batch_size=32"]
    taught = doors.said("update", "--chunk", german["chunk_id"], *how, "--why", "the story")
    assert (taught["verdict"], taught["images_embedded"]) == ("promote", 0)
    assert doors.said("gate", taught["job"])["gate"]["verdict"] == "promote"
    now, german_hits, rank = doors.right(GERMAN, "de")
    assert (now, rank is not None) == (taught["release"], True), "German is understood"
    assert doors.right(ENGLISH, "en")[2] is not None, "and English as before"

    sides = doors.said("compare", before, now, GERMAN, "-k", str(FIRST_RESULTS))
    program = doors.program.predict(text=GERMAN, a=before, b=now, k=FIRST_RESULTS, api_name="/compare")
    assert sides["overlap"] == program["overlap"] < 1
    assert {side: [hit["id"] for hit in program[side]["hits"]] for side in "ab"} == {
        side: [hit["id"] for hit in sides[side]["hits"]] for side in "ab"
    }

    back = doors.said("rollback", "--why", "the story goes back")["release"]
    assert doors.right(GERMAN, "de")[::2] == (back, None)
    assert doors.said("promote", now, "--why", "and forward")["release"] == now
    assert doors.right(GERMAN, "de")[:2] == (now, german_hits)
    assert doors.said("status")["live"]["release"] == now
    assert doors.said("doctor", "--quick")["level"] == "ok"
