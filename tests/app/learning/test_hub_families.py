"""The whole way of an encoder from a hub, with random weights: a home, a language, a domain, the gate, out as ONNX."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from app.commands import cli
from app.desk.jobs import UpdateRequest
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, onnx_export, update_cycle
from app.learning.outcomes import UpdateOutcome
from ingest.intake import IntakeOptions
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from model_updates.encoder import Encoder
from tests.model_updates import families, sentence_folders

SENTENCES = "sentence-transformers"
# A tokenizer and towers that are both another's, in two ways: of open_clip, and beside it. The others are opened and
# taught in `tests/model_updates/test_families.py`; their whole way is walked with -m slow, and so is that of each out
# as ONNX, for to follow a family into graphs takes torch up to half a minute. The parts of an encoder are the same in
# all, and `test_onnx_folder.py` has one whose tokenizer is another's.
IN_EVERY_RUN = ("small-SigLIP2", SENTENCES)
FAMILIES = (*families.LIKE, SENTENCES)
TEXTS = [
    "a red boat",
    "Two  dogs,\trunning past a HOUSE!",
    "boat " * 200,
    "ein_rotes Boot über größeren Häusern",
    "x",
]


@pytest.mark.parametrize(
    ("name", "goes_out"),
    [
        pytest.param(
            name,
            goes_out,
            id=f"{name}-out" if goes_out else name,
            marks=pytest.mark.slow if goes_out or name not in IN_EVERY_RUN else [],
        )
        for goes_out in (False, True)
        for name in FAMILIES
    ],
)
def test_an_encoder_of_a_hub_learns_is_judged_and_goes_out_as_onnx(
    name: str, goes_out: bool, tmp_path: Path
) -> None:
    with Workspace.open(initialised(name, tmp_path)) as workspace:
        record = going_live.live_release(workspace)[1]
        before = workspace.open_encoder(record.version)
        outcome = taught(workspace, tmp_path)
        encoder = workspace.open_encoder(outcome.version)

    assert record.manifest.languages == ("en", "fr")
    assert set(before.profiles) == {"en", "fr"}
    assert outcome.verdict in {"promote", "review", "reject"}
    assert encoder.image_routes == ("chalk",)
    assert encoder.text_route("de") == "de"
    assert (encoder.vocabulary is not None) == (name == "small-MobileCLIP-B")
    for read in (Encoder.text_fingerprint, Encoder.image_fingerprint):
        assert read(encoder) == read(before)
    assert not np.allclose(encoder.encode_texts(TEXTS, "de"), before.encode_texts(TEXTS, "de"), atol=1e-3)
    if goes_out:
        assert_same_as_onnx(encoder, tmp_path / "onnx")


def initialised(name: str, place: Path) -> Settings:
    words = ["init", "--home", str(place / "home"), "--model"]
    if name == SENTENCES:
        pictures, texts = map(str, sentence_folders.both_folders())
        words += [pictures, "--texts", texts]
    else:
        words += [name, "--pretrained", str(families.weights_of(name, place / "weights"))]
    words += ["--languages", "en,fr"]
    ended = CliRunner().invoke(cli.app, words)
    assert ended.exit_code == 0, ended.output
    return load_settings(home=place / "home", gate={"samples": 100, "cross_fit": False})


def taught(workspace: Workspace, place: Path) -> UpdateOutcome:
    """Teaches a language and a domain by one chunk, as nothing else is asked for."""
    scenes = [(scene, "chalk", n) for n, scene in enumerate(list(all_scenes())[::97][:40])]
    write_chunk(place / "chunk.zip", scenes=scenes, languages=["en", "de"])
    adding.add_chunk(workspace, place / "chunk.zip", IntakeOptions(), by="test")
    asked = UpdateRequest(chunk=workspace.catalog.chunks()[-1].id, options={"epochs": 1}, by="test")
    return update_cycle.update(
        workspace, asked, scratch=workspace.home.staging / "j", progress=lambda stage: None
    )


def assert_same_as_onnx(encoder: Encoder, folder: Path) -> None:
    folder.mkdir()
    facts = onnx_export.write_folder(encoder, folder, ("en", "de"), lambda file: None)
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    onnx_export.require_same(encoder, folder, facts)
    loader = onnx_export.loaded(folder)
    for language in ("en", "de"):
        for texts in (TEXTS, TEXTS[:1]):
            apart = loader.texts(texts, language) - encoder.encode_texts(texts, language)
            assert np.abs(apart).max() < 1e-4, language
    picture = Image.effect_noise((90, 70), 60).convert("RGB")
    for domain in ("", "chalk"):
        apart = loader.pictures([picture], domain) - encoder.encode_images([picture], domain)
        assert np.abs(apart).max() < 1e-4, domain
