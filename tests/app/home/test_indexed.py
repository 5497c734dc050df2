"""What the index is like, and why it is of its kind, in sentences that hold."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from app.desk.health import IndexStatus
from app.home.indexed import index_status
from app.home.manifest import ReleaseManifest
from app.home.releases import ReleaseRecord
from index.errors import GenerationDamaged
from index.generation import TAKEN_OUT_FILE, load_generation
from index.kinds import AUTO, Chosen
from index.manifest import write_manifest
from tests.app.commands.running import document, run
from tests.app.small_home import PICTURES, copy_of, small_home
from tests.index.test_generation import image_ids, random_rows
from tests.index.test_writing import grown


def described(folder: Path, **figures: float) -> IndexStatus:
    manifest = ReleaseManifest("v1", folder.name, languages=("en",), integrity=figures)
    return index_status(ReleaseRecord("r1", 1, manifest, folder, ""), folder)


def test_segments_are_told_with_what_was_taken_out_of_each(tmp_path: Path) -> None:
    names, rows = image_ids(100), random_rows(100)
    first = grown(tmp_path / "a", None, dict(zip(names[:90], rows, strict=False)))
    grown(tmp_path / "b", first, dict(zip(names[90:], rows[90:], strict=True)), names[5:9])
    found = described(tmp_path / "b", query_seconds=0.00123, agreement=0.995)
    assert [(one.number, one.kind, one.vectors, one.taken_out) for one in found.segments] == [
        (1, "Flat", 90, 4),
        (2, "Flat", 10, 0),
    ]
    assert (found.pictures, found.taken_out, found.taken_out_share) == (96, 4, 0.04)
    assert (found.milliseconds, found.kept) == (1.23, 0.995)
    files = [
        path for path in (tmp_path / "b").iterdir() if path.name not in {"manifest.json", TAKEN_OUT_FILE}
    ]
    assert found.bytes == sum(path.stat().st_size for path in files)
    assert described(tmp_path / "a").milliseconds is None


TIMES = {"Flat": 31.78, "SQfp16": 7.41}


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (None, "An earlier version"),
        (Chosen("Flat", AUTO, 40), "Fewer than 10,000 pictures"),
        (Chosen("SQ8", "SQ8", 20_000), "asks for SQ8"),
        (Chosen("Flat", AUTO, 20_000), "20,000 pictures are compared in full"),
        (Chosen("Flat", AUTO, 60_000, TIMES), "takes 32 ms here; up to 20 ms"),
        (Chosen("SQfp16", AUTO, 200_000, TIMES), "would take 32 ms here; with half the digits it takes 7.4"),
        (Chosen("IVF1024,SQfp16", AUTO, 10**6, TIMES), "would take 7.4 ms here, even with half the digits"),
    ],
)
def test_why_it_is_of_its_kind_is_said(tmp_path: Path, choice: Chosen | None, said: str) -> None:
    folder = tmp_path / "a"
    manifest = grown(folder, None, dict(zip(image_ids(9), random_rows(9), strict=True))).manifest
    facts = {name: value for name, value in manifest.items() if name not in {"files", "checksum", "choice"}}
    files = [path.name for path in folder.iterdir() if path.name != "manifest.json"]
    write_manifest(folder, facts | ({"choice": asdict(choice)} if choice else {}), files)
    assert load_generation(folder).choice == (choice or Chosen("Flat", "", 9))
    assert said in described(folder).why
    if choice is not None and choice.kind.startswith("IVF"):
        tried: dict[str, Any] = {"tried": {"kept": 0.97, "ms": 6.0, "exact_ms": 7.5}}
        segments = [one | tried for one in json.loads(json.dumps(facts["segments"]))]
        write_manifest(folder, facts | {"choice": asdict(choice), "segments": segments}, files)
        assert "finds 97.0 % of what comparing all finds, in 6.0 ms in place of 7.5" in described(folder).why


def test_the_command_tells_it(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = copy_of(small_home(tmp_path_factory), tmp_path)
    said = run("index", "status", home=home)
    assert said.exit_code == 0, said.output
    assert "Flat. Fewer than 10,000 pictures are always compared in full." in said.stdout
    told = document("index", home=home)
    assert (told["pictures"], told["taken_out_share"], told["kept"]) == (PICTURES, 0, 1)
    assert told["milliseconds"] > 0
    assert run("index", "tell", home=home).exit_code == 2
    (home / "generations" / told["generation"] / "manifest.json").write_text("{}")
    with pytest.raises(GenerationDamaged, match="fails its own checksum"):
        described(home / "generations" / told["generation"])
