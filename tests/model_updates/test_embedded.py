"""The first version of an embedded encoder is the same whether torch writes it or nobody needs torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from model_updates import embedded
from model_updates.embedded import EMBEDDED, TINY, digest_of, embedded_version
from model_updates.opening import open_encoder
from model_updates.photo import packages
from model_updates.portable_encoder import FACTS
from model_updates.versions import write_version
from tests.model_updates.photographs import photo_encoder


@pytest.mark.parametrize("model", EMBEDDED)
def test_it_is_what_torch_writes(model: str, tmp_path: Path) -> None:
    """Where it is not, `python -m model_updates.portable_writer` asks torch again."""
    encoder = open_encoder(TINY) if model == TINY else photo_encoder()
    write_version(tmp_path / "torch", encoder, {"languages": ["en"]}, portable=True)
    own = embedded_version(model)
    assert own is not None
    own.write(tmp_path / "own", {"languages": ["en"]})

    names = sorted(path.name for path in (tmp_path / "torch").iterdir())
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == names
    ours, theirs = (
        {name: (tmp_path / place / name).read_bytes() for name in names} for place in ("own", "torch")
    )
    assert [
        name for name in names if ours[name] != theirs[name] and name not in (FACTS, "manifest.json")
    ] == []
    said, expected = json.loads(ours[FACTS]), json.loads(theirs[FACTS])
    for name in ("apart", "scale"):  # computed, and so of this processor in the last digit
        assert said.pop(name) == pytest.approx(expected.pop(name), abs=1e-5)
    assert said == expected
    manifests = [json.loads(files["manifest.json"]) for files in (ours, theirs)]
    for manifest in manifests:
        del manifest["files"][FACTS]
    assert manifests[0] == manifests[1]


def test_other_weights_are_for_torch_to_open(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, vocabulary = embedded._tiny()
    name = next(iter(weights))
    before = digest_of(weights)
    weights[name] = weights[name] + 1
    assert digest_of(weights) != before
    monkeypatch.setattr(embedded, "_tiny", lambda: (weights, vocabulary))
    assert embedded_version(TINY) is None


def test_an_encoder_that_is_not_whole_here_and_others_are_for_torch_to_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packages, "SENTENCES", ("none", "no_such_package", "file", "0" * 64))
    assert embedded_version("perennial-photo") is None
    assert embedded_version("ViT-B-32") is None


def test_the_image_weights_are_read_as_torch_reads_them() -> None:
    file = packages.checked_file(packages.IMAGE)
    theirs: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    ours = packages.image_arrays()
    assert list(ours) == [name for name in theirs if not name.endswith("num_batches_tracked")]
    assert all(torch.equal(torch.from_numpy(ours[name]), theirs[name]) for name in ours)
