"""An encoder that was taught here gives the same vectors as ONNX, in a process that has neither Perennial nor torch."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from app.commands import cli
from app.desk.jobs import UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, beginning, update_cycle
from ingest.intake import IntakeOptions
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from model_updates.encoder import Encoder
from tests.app.small_home import copy_of, new_home

TAUGHT = {"perennial-tiny": "de", "perennial-photo": "hi"}
# Of the language that was taught and of some that were not; one is longer than any tower reads.
TEXTS = {
    "en": ["a red boat", "Two  dogs,\trunning past a HOUSE!", "boat " * 200, "café 12½ ﬁne", ""],
    "de": ["ein rotes Boot", "Über den Wolken: größere Häuser", "b"],
    "hi": ["लाल नाव", "दो घर"],
    "ja": ["赤いボート", "ﾊﾝｶｸ"],
    "cs": ["červená loď na jezeře", "𓀀𓀁 ▁ </s>", "loď " * 200, ""],
    "sw": ["mashua nyekundu ziwani"],
}
ELSEWHERE = """
import importlib.abc, json, sys
class Closed(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {"torch", "perennial", "app", "model_updates", "ingest", "index", "open_clip"}:
            raise ModuleNotFoundError(name + " is not here", name=name)
sys.meta_path.insert(0, Closed())
sys.path.insert(0, sys.argv[1])
from PIL import Image
from load import pictures, texts
asked = json.loads(sys.argv[2])
told = {language: texts(every, language).tolist() for language, every in asked["texts"].items()}
print(json.dumps({"texts": told, "pictures": pictures([Image.open(file) for file in asked["pictures"]]).tolist()}))
"""


@dataclass(frozen=True)
class Exported:
    """A release's encoder, and the folder that it was written to."""

    release: str
    folder: Path
    encoder: Encoder


# The graphs of the photo encoder are compared in every run by tests/model_updates/test_portable_encoder.py;
# under -m slow it is exported, too, with the tokenizer of its second tower.
@pytest.fixture(
    scope="module", params=["perennial-tiny", pytest.param("perennial-photo", marks=pytest.mark.slow)]
)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Teaches a home one language, and exports the candidate as a person does."""
    place = tmp_path_factory.mktemp(request.param)
    settings = load_settings(
        home=place / "home",
        gate={"samples": 100, "cross_fit": False, "slice_drop": 100.0, "pooled_drop": 100.0},
    )
    if request.param == "perennial-tiny":
        copy_of(new_home(tmp_path_factory), place)
    else:
        beginning.initialise(settings, model=request.param)
    language = TAUGHT[request.param]
    scenes = [(scene, "flat", n) for n, scene in enumerate(list(all_scenes())[::100][:40])]
    write_chunk(place / "chunk.zip", scenes=scenes, languages=[language])
    with Workspace.open(settings) as workspace:
        adding.add_chunk(workspace, place / "chunk.zip", IntakeOptions(), by="test")
        chunk = workspace.catalog.chunks()[-1].id
        asked = UpdateRequest(chunk=chunk, strategy="language-tables", options={"epochs": 1}, by="test")
        done = update_cycle.update(
            workspace, asked, scratch=workspace.home.staging / "j1", progress=lambda stage: None
        )
        assert done.release is not None, done.sentence
        encoder = workspace.open_encoder(done.version)
        assert encoder.text_route(language) == language
    words = [
        "export",
        "onnx",
        "--release",
        done.release,
        "--to",
        str(place / "onnx"),
        "--home",
        str(settings.home),
    ]
    ended = CliRunner().invoke(cli.app, words)
    assert ended.exit_code == 0, ended.output
    assert f"The encoder of {done.release} is in" in ended.stdout.replace("\n", " ")
    return Exported(done.release, place / "onnx", encoder)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Pictures in all shapes, also smaller than what the tower looks at."""
    found = []
    for number, size in enumerate([(640, 427), (300, 900), (64, 64), (31, 40)]):
        rough = np.random.default_rng(number).integers(0, 256, (9, 11, 3), dtype=np.uint8)
        found.append(tmp_path / f"{number}.png")
        Image.fromarray(rough).resize(size, Image.Resampling.BICUBIC).save(found[-1])
    return found


def _there(exported: Exported, files: list[Path]) -> Any:
    asked = json.dumps({"texts": TEXTS, "pictures": list(map(str, files))})
    command = [sys.executable, "-IB", "-c", ELSEWHERE, str(exported.folder), asked]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def test_texts_and_pictures_have_the_same_vectors_without_torch(
    exported: Exported, files: list[Path]
) -> None:
    there = _there(exported, files)
    for language, texts in TEXTS.items():
        wanted = exported.encoder.encode_texts(texts, language)
        assert (np.array(there["texts"][language]) * wanted).sum(axis=1).min() > 0.9999, language
        if exported.encoder.second is not None:
            same = np.abs(np.array(there["texts"][language])[:, 512:] - wanted[:, 512:])
            assert same.max() < 1e-4, language
    wanted = exported.encoder.encode_images([Image.open(file).convert("RGB") for file in files])
    assert (np.array(there["pictures"]) * wanted).sum(axis=1).min() > 0.9999


def test_the_card_says_what_it_is_and_what_is_not_there(exported: Exported) -> None:
    card = (exported.folder / "README.md").read_text(encoding="utf-8")
    facts = json.loads((exported.folder / "facts.json").read_text(encoding="utf-8"))
    assert card.startswith(f"# {exported.release} as ONNX\n")
    assert exported.encoder.architecture in card
    assert "taught last by `language-tables`" in card
    assert "## What is not here" in card
    assert not (exported.folder / "__pycache__").exists()
    is_double = exported.encoder.second is not None
    assert ("| read by the second text tower | en, " in card) is is_double
    assert ("multilingual-e5-small, MIT" in card) is is_double
    assert ("sw" in facts["languages"]) is is_double
    assert (facts["release"], facts["dim"]) == (exported.release, exported.encoder.dim)


def test_nothing_stays_where_the_encoder_cannot_be_written(exported: Exported, tmp_path: Path) -> None:
    home = exported.folder.parent / "home"
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine.txt").write_text("mine", encoding="utf-8")
    for to, release, said in ((taken, "r1", "no empty folder"), (tmp_path / "new", "r77", "r77")):
        words = ["export", "onnx", "--release", release, "--to", str(to), "--home", str(home)]
        ended = CliRunner().invoke(cli.app, words)
        assert ended.exit_code in (1, 2)
        assert said in ended.stderr.replace("\n", " ")
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "mine.txt"]
