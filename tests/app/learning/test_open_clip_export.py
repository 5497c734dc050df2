"""An encoder that was taught here gives the same vectors through plain open_clip, where there is no Perennial."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from typer.testing import CliRunner

from app.commands import cli
from app.desk.errors import UsageProblem
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.transfer import export_to_open_clip
from model_updates.errors import NotPlain
from model_updates.open_clip_folder import require_plain
from model_updates.opening import build_model, open_encoder
from model_updates.versions import write_version
from tests.app import small_home

SMALL = "perennial-test-export"
CONFIG = {
    "embed_dim": 24,
    "vision_cfg": {"image_size": 32, "patch_size": 16, "width": 32, "layers": 2, "head_width": 16},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}
TEXTS = ["a photo of a dog", "two cats, sleeping", "ein rotes Boot"]
ELSEWHERE = """
import importlib.util, json, sys
sys.path += sys.argv[4:]
for ours in ("app", "index", "ingest", "model_updates"):
    assert importlib.util.find_spec(ours) is None, ours
import open_clip, torch
from PIL import Image
name = "local-dir:" + sys.argv[1]
model, _, preprocess = open_clip.create_model_and_transforms(name)
model.eval()
with torch.inference_mode():
    texts = model.encode_text(open_clip.get_tokenizer(name)(json.loads(sys.argv[3])), normalize=True)
    picture = model.encode_image(preprocess(Image.open(sys.argv[2]).convert("RGB"))[None], normalize=True)
print(json.dumps({"texts": texts.tolist(), "picture": picture.tolist(), "torch": torch.__file__}))
"""
# Has wheels without CUDA, a tenth of the others' size; pip takes such a version for newer than the same elsewhere.
TORCH_FOR_CPU = "https://download.pytorch.org/whl/cpu"


@pytest.fixture(scope="module")
def small_architecture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Registers a small architecture for this module; yields a folder."""
    folder = tmp_path_factory.mktemp("configs")
    (folder / f"{SMALL}.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    paths, known = list(open_clip.factory._MODEL_CONFIG_PATHS), dict(open_clip.factory._MODEL_CONFIGS)
    open_clip.add_model_config(folder)
    yield folder
    open_clip.factory._MODEL_CONFIG_PATHS[:] = paths
    open_clip.factory._MODEL_CONFIGS.clear()
    open_clip.factory._MODEL_CONFIGS.update(known)


def _taught_elsewhere(workspace: Workspace, weights: Path) -> str:
    """A release of another encoder, whose weights an update has moved everywhere, as fine-tuning does."""
    _, live = going_live.live_release(workspace)
    encoder = open_encoder(SMALL, str(weights))
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for value in encoder.model.parameters():
            value.add_(0.02 * torch.randn(value.shape, generator=generator))
    encoder.forget_fingerprints()
    staged = workspace.home.staging / "version"
    write_version(staged, encoder, {"languages": ["en"], "parent": live.version}, {})
    version = workspace.releases.publish_version(staged)
    return workspace.releases.publish_release(live.manifest.successor(live.id, version=version))


@dataclass(frozen=True)
class Exported:
    """An encoder that was written for open_clip, and what it says here of some texts and of a picture."""

    home: Path
    release: str
    folder: Path
    picture: Path
    texts: Any
    vectors: Any


@pytest.fixture(scope="module")
def exported(small_architecture: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Exports a release as a person does."""
    torch.manual_seed(3)
    place = tmp_path_factory.mktemp("exported")
    weights = small_architecture / "weights.safetensors"
    save_file({k: v.contiguous() for k, v in build_model(SMALL).state_dict().items()}, weights)
    settings = load_settings(home=small_home.copy_of(small_home.new_home(tmp_path_factory), place))
    picture = place / "noise.png"
    Image.effect_noise((50, 40), 60).convert("RGB").save(picture)
    with Workspace.open(settings) as workspace:
        release = _taught_elsewhere(workspace, weights)
        encoder = workspace.open_encoder(workspace.releases.release(release).version)
        texts = encoder.encode_texts(TEXTS)
        vectors = encoder.encode_images([Image.open(picture).convert("RGB")])
    folder = place / "for-open-clip"
    wrote = ["export", release, "--to", str(folder), "--open-clip", "--home", str(settings.home), "--json"]
    result = CliRunner().invoke(cli.app, wrote)
    assert result.exit_code == 0, result.output
    return Exported(settings.home, release, folder, picture, texts, vectors)


def _said_elsewhere(python: list[str], exported: Exported, *more_paths: str) -> dict[str, Any]:
    """What another process says of the same texts and picture; it starts in a folder where none of us is."""
    asked = [str(exported.folder), str(exported.picture), json.dumps(TEXTS), *more_paths]
    said = subprocess.run(
        [*python, "-c", ELSEWHERE, *asked], cwd=exported.picture.parent, capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    answer: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
    return answer


def test_an_exported_encoder_gives_the_same_vectors_through_plain_open_clip(exported: Exported) -> None:
    # -I and -S: neither this folder nor the editable installation can be imported from.
    found = _said_elsewhere([sys.executable, "-I", "-S"], exported, sysconfig.get_path("purelib"))
    assert np.abs(np.array(found["texts"]) - exported.texts).max() < 1e-5
    assert np.abs(np.array(found["picture"]) - exported.vectors).max() < 1e-5


@pytest.mark.slow
def test_a_fresh_environment_with_open_clip_alone_gives_the_same_vectors(
    exported: Exported, tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    wanted = f"open_clip_torch=={installed('open_clip_torch')}"
    reached = subprocess.run(
        [*pip, "download", "--no-deps", "--dest", str(tmp_path), wanted], capture_output=True, text=True
    )
    if reached.returncode:
        pytest.skip(f"no package index has {wanted} for us: {reached.stderr.strip().splitlines()[-1]}")
    subprocess.run([*pip, "install", "--quiet", "--extra-index-url", TORCH_FOR_CPU, wanted], check=True)
    found = _said_elsewhere([python, "-I"], exported)
    assert Path(found["torch"]).is_relative_to(tmp_path), "torch came from elsewhere"
    assert np.abs(np.array(found["texts"]) - exported.texts).max() < 1e-5
    assert np.abs(np.array(found["picture"]) - exported.vectors).max() < 1e-5


def test_a_folder_that_holds_something_is_not_written_into(exported: Exported) -> None:
    settings = load_settings(home=exported.home)
    with Workspace.open(settings) as workspace, pytest.raises(UsageProblem, match="empty folder"):
        export_to_open_clip(workspace, exported.release, exported.folder)


def test_an_encoder_with_tokens_of_its_own_is_refused(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    home = small_home.small_home(tmp_path_factory)
    with Workspace.open(load_settings(home=home), read_only=True) as workspace:
        _, live = going_live.live_release(workspace)
        with pytest.raises(NotPlain, match="perennial-tiny"):
            require_plain(workspace.open_encoder(live.version))
        with pytest.raises(NotPlain):
            export_to_open_clip(workspace, live.id, tmp_path / "new")
    assert not (tmp_path / "new").exists()
