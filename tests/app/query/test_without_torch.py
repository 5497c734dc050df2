"""What searches, serves, takes in and compares needs nothing of the extra `learn`: all of it may be missing."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pyarrow
import pytest
from pyarrow import parquet

from app.desk.troubles import LEARNING
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import going_live
from model_updates.embedded import EMBEDDED
from tests.app.doctor.test_damage_at_start import flip, make_other_release
from tests.app.small_home import copy_of, new_home, older, sample_chunk, small_home
from tests.forked_starts import COLD

# What is loaded from torch on before a process begins counts for nothing in it: see `MISSING`.
pytestmark = pytest.mark.usefixtures("starts_at_once")

# `import torch` fails then, and whoever only looks for it finds nothing.
MISSING = f"import sys; sys.modules.update(dict.fromkeys({sorted(LEARNING)}))"
WITHOUT = f"""
{MISSING}
import perennial
sys.argv = ["perennial", *sys.argv[1:]]
perennial.main()
"""
# Runs several verbs one after another, and ends with the first that does not end well.
EACH_WITHOUT = f"""
{MISSING}
import json, perennial
for words in json.loads(sys.argv[1]):
    sys.argv = ["perennial", *words]
    try:
        perennial.main()
    except SystemExit as leaving:
        if leaving.code:
            raise
"""


@pytest.fixture
def workspace(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Workspace]:
    home = copy_of(small_home(tmp_path_factory), tmp_path)
    with Workspace.open(load_settings(home=home)) as opened:
        yield opened


def run(
    workspace: Workspace, *words: str, code: str = WITHOUT, python: str = ""
) -> subprocess.CompletedProcess[str]:
    home = {"PERENNIAL_HOME": str(workspace.settings.home)}
    return subprocess.run(
        [python or sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | home,
    )


def run_each(workspace: Workspace, *asked: list[str], python: str = "") -> subprocess.CompletedProcess[str]:
    answer = run(workspace, json.dumps(asked), code=EACH_WITHOUT, python=python)
    assert answer.returncode == 0, (answer.stdout, answer.stderr)
    return answer


def test_pictures_are_found_by_words_and_by_pictures(workspace: Workspace) -> None:
    picture = workspace.catalog.gallery_ids()[0]
    asked = (["two red boats"], ["zwei rote Boote", "--language", "de"], ["--like", picture])
    # Nothing is loaded before it begins, so that libraries do without, too; the server below is such a process as well.
    answer = run_each(workspace, *(["search", *words] for words in asked), python=COLD)
    assert answer.stdout.count("rank") == len(asked)


def test_pictures_are_taken_in_and_found(workspace: Workspace, tmp_path: Path) -> None:
    before = set(workspace.catalog.gallery_ids())
    chunk = sample_chunk(tmp_path / "more.zip", pictures=5, first=7)
    answer = run(workspace, "ingest", str(chunk))
    assert answer.returncode == 0, answer.stderr
    (new, *_) = sorted(set(workspace.catalog.gallery_ids()) - before)
    assert (
        f"{len(before) + 4} of {len(before) + 5} pictures" in run(workspace, "search", "--like", new).stdout
    )


def test_a_version_without_graphs_says_what_it_needs(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """So are those that were written before versions had graphs."""
    home = older(copy_of(new_home(tmp_path_factory), tmp_path))
    with Workspace.open(load_settings(home=home)) as workspace:
        answer = run(workspace, "search", "two red boats")
    assert answer.returncode != 0
    assert "Traceback" not in answer.stderr
    assert_says_how_to_install(answer)


def test_damaged_graphs_say_what_makes_them_again_and_nothing_else_answers(workspace: Workspace) -> None:
    (facts,) = workspace.home.versions.glob("*/search.json")
    facts.unlink()
    answer = run(workspace, "search", "two red boats")
    assert_says_how_to_install(answer)
    said = " ".join(answer.stderr.split())
    assert re.search(
        r"Version v1-\S+ has no sound graphs to be searched by \(version v1-\S+ lacks search\.json", said
    )
    assert "can be made of its weights" in said
    assert "rank" not in answer.stdout


def test_damaged_graphs_that_came_with_the_program_are_taken_from_there(workspace: Workspace) -> None:
    (text,) = workspace.home.versions.glob("*/search-text.onnx")
    (trunk,) = workspace.home.versions.glob("*/search-trunk.onnx")
    before = text.read_bytes(), trunk.read_bytes()
    text.unlink()
    flip(trunk, 100)
    assert "rank" in run(workspace, "search", "two red boats").stdout
    assert (text.read_bytes(), trunk.read_bytes()) == before


def test_weights_that_nobody_taught_are_repaired(workspace: Workspace) -> None:
    weights = sorted(workspace.home.versions.glob("*/weights-visual-*"))[-1]
    before = weights.read_bytes()
    flip(weights, -5)
    run_each(workspace, ["repair"], ["search", "two red boats"])
    assert weights.read_bytes() == before


def test_of_a_release_whose_graphs_are_damaged_the_one_before_answers(workspace: Workspace) -> None:
    before = going_live.live_release(workspace)[1].id
    workspace.close()
    make_other_release(workspace.settings)
    # Both share their graphs, byte by byte; what is said of them is each version's own.
    flip(sorted(workspace.home.versions.glob("*/search.json"))[-1], -5)
    answer = run(workspace, "search", "two red boats", "--json")
    found = json.loads(answer.stdout)
    assert found["release"] == before
    assert f"{before} answers" in found["note"]
    assert "has no sound graphs to be searched by" in found["note"]
    assert "pip install" in found["note"]


def assert_says_how_to_install(answer: subprocess.CompletedProcess[str]) -> None:
    assert answer.returncode != 0
    assert "Traceback" not in answer.stderr
    said = " ".join(answer.stderr.split())
    assert re.search(
        r"(torch|open_clip) is not installed here\. To install them: pip install '[a-z-]+\[learn\]'", said
    )


def test_what_learns_says_how_to_install_what_it_needs(workspace: Workspace, tmp_path: Path) -> None:
    assert (
        run(workspace, "ingest", str(sample_chunk(tmp_path / "more.zip", pictures=5, first=7))).returncode
        == 0
    )
    teaching = workspace.catalog.chunks()[-1].id
    weights = ["--model", "ViT-B-32", "--pretrained", "some.safetensors"]
    begun = ["init", *weights, "--home", str(tmp_path / "other")]
    for asked in (["update", "--chunk", teaching], begun, ["models"]):
        assert_says_how_to_install(run(workspace, *asked))
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("model", EMBEDDED)
def test_a_home_begins_and_finds_pictures(workspace: Workspace, tmp_path: Path, model: str) -> None:
    home = ["--home", str(tmp_path / "new")]
    answer = run_each(
        workspace,
        ["init", "--model", model, *home],
        ["add", str(sample_chunk(tmp_path / "some.zip", pictures=5)), *home],
        ["search", "two red boats", *home],
        ["doctor", *home],
    )
    assert "rank" in answer.stdout


def test_a_parquet_file_says_how_to_install_what_reads_it(workspace: Workspace, tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"caption": ["a boat"]}), tmp_path / "more.parquet")
    answer = run(workspace, "ingest", str(tmp_path / "more.parquet"))
    assert answer.returncode != 0
    said = " ".join(answer.stderr.split())
    assert "ore.parquet is read with pyarrow, which is not installed here. To install it: pip install" in said


def test_releases_are_compared_exported_taken_in_and_taken_back(workspace: Workspace, tmp_path: Path) -> None:
    first = going_live.live_release(workspace)[1].id
    assert (
        run(workspace, "ingest", str(sample_chunk(tmp_path / "m.zip", pictures=5, first=7))).returncode == 0
    )
    second = going_live.live_release(workspace)[1].id
    other, package = str(tmp_path / "other"), str(tmp_path / f"{second}.perennial")
    run_each(
        workspace,
        ["compare", first, second, "two red boats"],
        ["diff", first, second],
        ["rollback", first],
        ["promote", second],
        ["evaluate"],
        ["methods", "evergreen"],
        ["doctor"],
        ["export", second, "--to", package],
        ["init", "--release", package, "--home", other],
        ["ingest", str(tmp_path / "m.zip"), "--home", other],
    )
    assert "rank" in run_each(workspace, ["search", "two red boats", "--home", other]).stdout


def test_pages_and_rest_are_served(workspace: Workspace) -> None:
    with served(workspace) as client:
        found = client.post("/v1/search", json={"text": "two red boats"})
        assert found.status_code == 200, found.text
        assert found.json()["hits"]
        assert client.get("/").status_code == client.get("/admin/").status_code == 200
        assert client.get("/v1/strategies/evergreen").json()["meanings"]["batch_size"]
        refused = client.post("/v1/updates", json={"chunk": workspace.catalog.chunks()[-1].id})
        assert refused.status_code == 501, refused.text
        assert "[learn]" in refused.json()["error"]


@contextmanager
def served(workspace: Workspace) -> Iterator[httpx.Client]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [COLD, "-c", WITHOUT, "serve", "--port", str(port)]
    with (
        subprocess.Popen(
            command, env=os.environ | {"PERENNIAL_HOME": str(workspace.settings.home)}
        ) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        try:
            while not is_ready(client):
                assert server.poll() is None
                time.sleep(0.1)
            yield client
        finally:
            server.terminate()


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False
