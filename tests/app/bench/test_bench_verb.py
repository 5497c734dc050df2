"""The verb from end to end, on a real home with a chunk of drawn pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from app.bench.cell import run_cell
from app.bench.grid import CellTask, missing
from app.bench.material import material_of
from app.bench.own import own_sequence
from app.bench.results import read_cells, results_path, write_cell
from app.bench.sequence import LIVE, StrategyRun, read_sequence
from app.commands import cli
from app.desk.errors import UsageProblem
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import going_live
from tests.app import small_home

SEQUENCE = """
name = "small"
encoder = "live"
seeds = 1
epochs = 1
chunks = ["german"]
[base]
languages = ["en"]
[[steps]]
languages = ["de"]
[[strategies]]
name = "zero-shot"
[[strategies]]
name = "language-tables"
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_home.small_home(tmp_path_factory)


@pytest.fixture
def sequence(home: Path, tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    chunk = small_home.taught_chunk(home)
    path.write_text(SEQUENCE.replace('"german"', f'"{chunk}"'), encoding="utf-8")
    return path


def _bench(path: Path, home: Path, *more: str) -> Any:
    out = path.parent / "out"
    return CliRunner().invoke(cli.app, ["bench", str(path), "--out", str(out), "--home", str(home), *more])


def test_bench_teaches_measures_reports_and_does_not_run_a_finished_cell_again(
    home: Path, sequence: Path
) -> None:
    first = _bench(sequence, home)
    assert first.exit_code == 0, first.output
    assert "2 cells, 0 of them finished before." in first.output
    folder = sequence.parent / "out"
    written = results_path(folder, "small").stat().st_mtime_ns
    cells = read_cells(folder, "small")
    assert set(cells) == {("language-tables", 0), ("zero-shot", 0)}

    again = _bench(sequence, home, "--json")
    assert again.exit_code == 0, again.output
    assert results_path(folder, "small").stat().st_mtime_ns == written
    document = json.loads(again.output)
    figures = {one["label"]: one["figures"] for one in document["strategies"]}
    assert set(figures) == {"zero-shot", "language-tables"}
    taught = figures["language-tables"]
    assert taught["cpu_seconds"]["mean"] > 0
    table = cells["language-tables", 0]
    assert table.made["cpu_seconds"] > taught["cpu_seconds"]["mean"]  # with measuring
    assert len(table.made["data"]) == 64
    assert {"numpy", "timm"} <= table.made["versions"].keys()
    assert taught["re_embedded"]["mean"] == figures["zero-shot"]["seconds"]["mean"] == 0
    assert (folder / "small.html").exists()
    assert "### Trained: memory" in (folder / "small.md").read_text(encoding="utf-8")

    assert {(run.language, run.since) for run in table.slices} == {("en", 0), ("de", 1)}
    _asks_for_changed_cells_alone(home, sequence)


def _asks_for_changed_cells_alone(home: Path, path: Path) -> None:
    found, settings = read_sequence(path), load_settings(home=home)
    folder = path.parent / "out"

    def left(changed: dict[str, Any]) -> list[str]:
        wanted = found.model_copy(update=changed)
        tasks = [
            CellTask(settings, wanted, one, seed, folder)
            for one in wanted.strategies
            for seed in wanted.seeds
        ]
        return [task.name for task in missing(tasks)]

    assert left({}) == []
    assert left({"about": "Said in other words."}) == []
    assert left({"tuned": {"language-tables": {"batch_size": 7}}}) == ["small: language-tables, seed 0"]
    assert left({"seeds": (0, 1)}) == ["small: zero-shot, seed 1", "small: language-tables, seed 1"]
    assert len(left({"epochs": 2})) == 2


def test_a_chunk_that_is_not_there_is_named_with_those_that_are(home: Path, sequence: Path) -> None:
    text = sequence.read_text(encoding="utf-8").replace(
        'encoder = "live"', 'encoder = "live"\ndomains = ["x"]'
    )
    with Workspace.open(load_settings(home=home), read_only=True) as workspace:
        found = read_sequence(sequence)
        with pytest.raises(UsageProblem, match=r"No chunk has the id or name 'nowhere'; this home has: "):
            material_of(workspace, found.model_copy(update={"chunks": ("nowhere",)}), 0)
        sequence.write_text(text, encoding="utf-8")
        with pytest.raises(UsageProblem, match=r"Step 'de x' has 0 training pairs; a step needs at least 2"):
            material_of(workspace, read_sequence(sequence), 0)


def test_what_is_taught_is_never_what_is_held_out(home: Path, sequence: Path) -> None:
    with Workspace.open(load_settings(home=home), read_only=True) as workspace:
        material = material_of(workspace, read_sequence(sequence), 0)
    taught = {pair.image_id for lesson in material.lessons for pair in (*lesson.train, *lesson.validation)}
    held_out = {image for one in material.slices if one.kind == "held-out" for image, _ in one.captions}
    assert taught
    assert held_out
    assert not taught & held_out
    assert {one.kind for one in material.slices} == {"trained", "held-out"}


def _bench_chunk(home: Path, out: Path, *more: str) -> Any:
    arguments = ["bench", "--out", str(out), "--home", str(home), "--seeds", "1", "--epochs", "1", *more]
    return CliRunner().invoke(cli.app, arguments)


def test_chunks_of_the_home_are_measured_beside_what_it_knows(home: Path, tmp_path: Path) -> None:
    chunk = small_home.taught_chunk(home)
    compared = StrategyRun(name="language-tables")
    with Workspace.open(load_settings(home=home), read_only=True) as workspace:
        own = own_sequence(workspace, [chunk], LIVE)
        own = own.model_copy(update={"strategies": (compared,), "seeds": (0,), "epochs": 1})
        # Run here, it is finished when the command asks for it: a process of its own is shown above.
        write_cell(tmp_path / "out", run_cell(workspace, own, compared, 0, threads=torch.get_num_threads()))
    result = _bench_chunk(home, tmp_path / "out", "--chunk", chunk, "--strategy", "language-tables")
    assert result.exit_code == 0, result.output
    assert "1 cells, 1 of them finished before." in result.output
    cell = read_cells(tmp_path / "out", "own")["language-tables", 0]
    known = [run for run in cell.slices if run.since == 0]
    assert {run.language for run in known} == {"en"}
    assert all(len(run.recalls["told"]) == 2 for run in known)  # before the step and after it: what it forgot
    page = (tmp_path / "out" / "own.md").read_text(encoding="utf-8")
    assert f"perennial bench --chunk {chunk} --strategy language-tables --epochs 1" in page


def test_a_chunk_that_the_live_release_knows_is_no_new_one(home: Path, tmp_path: Path) -> None:
    copy = small_home.copy_of(home, tmp_path)
    chunk = small_home.taught_chunk(copy)
    with Workspace.open(load_settings(home=copy)) as workspace:
        record = going_live.live_release(workspace)[1]
        said = record.manifest.successor(record.id, version=record.version, chunks=(chunk,))
        learned = workspace.releases.publish_release(said)
        going_live.promote(workspace, learned, why="test", by="test", force=True)
    refused = _bench_chunk(copy, tmp_path / "out", "--chunk", chunk, "--strategy", "zero-shot")
    assert refused.exit_code != 0
    assert "is live and has learned" in refused.output
    assert not (tmp_path / "out").exists()
    with Workspace.open(load_settings(home=copy), read_only=True) as workspace:
        assert own_sequence(workspace, [chunk], "perennial-tiny").encoder == "perennial-tiny"


def test_what_a_file_starts_from_stands_in_it(home: Path, sequence: Path) -> None:
    result = _bench(sequence, home, "--encoder", "perennial-tiny")
    assert result.exit_code != 0
    assert "--encoder goes with --chunk" in result.output


def test_an_unknown_strategy_is_refused_before_anything_runs(home: Path, sequence: Path) -> None:
    result = _bench(sequence, home, "--strategy", "nonesuch")
    assert result.exit_code != 0
    assert not (sequence.parent / "out").exists()
