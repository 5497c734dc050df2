"""An encoder that was taught here gives the same vectors through plain open_clip, where there is no Perennial."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from typer.testing import CliRunner

from app import cli
from app.errors import UsageProblem
from app.learning import going_live, update_cycle
from app.learning.transfer import export_to_open_clip
from app.settings import load_settings
from app.workspace import Workspace
from model_updates.errors import NotPlain
from model_updates.open_clip_folder import require_plain
from model_updates.opening import build_model
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
sys.path.append(sys.argv[1])
for ours in ("app", "index", "ingest", "model_updates"):
    assert importlib.util.find_spec(ours) is None, ours
import open_clip, torch
from PIL import Image
name = "local-dir:" + sys.argv[2]
model, _, preprocess = open_clip.create_model_and_transforms(name)
model.eval()
with torch.inference_mode():
    texts = model.encode_text(open_clip.get_tokenizer(name)(json.loads(sys.argv[4])), normalize=True)
    picture = model.encode_image(preprocess(Image.open(sys.argv[3]).convert("RGB"))[None], normalize=True)
print(json.dumps({"texts": texts.tolist(), "picture": picture.tolist()}))
"""


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


def _taught_elsewhere(workspace: Workspace) -> str:
    """A release whose weights an update has moved everywhere, as fine-tuning does."""
    _, live = going_live.live_release(workspace)
    encoder = workspace.open_encoder(live.version).copy()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for value in encoder.model.parameters():
            value.add_(0.02 * torch.randn(value.shape, generator=generator))
    encoder.forget_fingerprints()
    staged = workspace.home.staging / "version"
    write_version(staged, encoder, {"languages": ["en"], "parent": live.version}, {})
    version = workspace.releases.publish_version(staged)
    return workspace.releases.publish_release(live.manifest.successor(live.id, version=version))


def test_an_exported_encoder_gives_the_same_vectors_through_plain_open_clip(
    small_architecture: Path, tmp_path: Path
) -> None:
    torch.manual_seed(3)
    weights = small_architecture / "weights.safetensors"
    save_file({k: v.contiguous() for k, v in build_model(SMALL).state_dict().items()}, weights)
    settings = load_settings(home=tmp_path / "home")
    update_cycle.initialise(settings, model=SMALL, pretrained=str(weights))
    picture = tmp_path / "noise.png"
    Image.effect_noise((50, 40), 60).convert("RGB").save(picture)
    target = tmp_path / "for-open-clip"
    with Workspace.open(settings) as workspace:
        release = _taught_elsewhere(workspace)
        encoder = workspace.open_encoder(workspace.releases.release(release).version)
        own_texts = encoder.encode_texts(TEXTS)
        own_picture = encoder.encode_images([Image.open(picture).convert("RGB")])
    wrote = ["export", release, "--to", str(target), "--open-clip", "--home", str(settings.home), "--json"]
    result = CliRunner().invoke(cli.app, wrote)
    assert result.exit_code == 0, result.output

    # -I and -S: neither this folder nor the editable installation can be imported from.
    libraries = sysconfig.get_path("purelib")
    command = [sys.executable, "-I", "-S", "-c", ELSEWHERE, libraries, str(target), str(picture)]
    said = subprocess.run([*command, json.dumps(TEXTS)], cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout.splitlines()[-1])
    assert np.abs(np.array(found["texts"]) - own_texts).max() < 1e-5
    assert np.abs(np.array(found["picture"]) - own_picture).max() < 1e-5

    with Workspace.open(settings) as workspace, pytest.raises(UsageProblem, match="empty folder"):
        export_to_open_clip(workspace, release, target)


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
