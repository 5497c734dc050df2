"""Claims about embedding on a Ray cluster of two simulated nodes: the same vectors, none lost, whatever dies."""

from __future__ import annotations

import io
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from PIL import Image

from app.desk.errors import ClusterUnusable
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, bulk, going_live, ray_embedding
from app.learning.bulk import TRIED, Bulk
from ingest.errors import UnknownImage
from ingest.intake import IntakeOptions
from ingest.pair import image_id_of
from model_updates.features import IMAGE, NoCache, trunk_features
from model_updates.search_encoder import IMAGE_BATCH, Rows, SearchEncoder
from tests.app.learning.ray_nodes import NODE, one_thread, processes, two_nodes
from tests.app.small_home import copy_of, new_home, sample_chunk

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]  # Ray's own

PICTURES = 800
Progress = Callable[[int, int], None]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_nodes() as made:
        yield made


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with many pictures that nobody embedded, and no rows of them in the catalog."""
    home = copy_of(new_home(tmp_path_factory), tmp_path_factory.mktemp("ray"))
    draw = np.random.default_rng(0)
    with Workspace.open(load_settings(home=home)) as workspace:
        workspace.blobs.put((image_id_of(data), data, b"") for data in (noise(draw) for _ in range(PICTURES)))
    return home


def noise(draw: np.random.Generator) -> bytes:
    file = io.BytesIO()
    Image.fromarray(draw.integers(0, 256, (48, 48, 3), dtype=np.uint8)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def workspace(
    pictures: Path, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workspace]:
    monkeypatch.setattr(bulk, "WORTH_SECONDS", 0.0)
    with Workspace.open(load_settings(home=copy_of(pictures, tmp_path), ray=cluster.address)) as workspace:
        yield workspace


def live(workspace: Workspace, kind: str = "graphs") -> tuple[SearchEncoder, str, list[str]]:
    version = going_live.live_release(workspace)[1].version
    encoder = workspace.open_searcher(version) if kind == "graphs" else workspace.open_encoder(version)
    ids = sorted(workspace.blobs.ids())
    _, known = kept(workspace, encoder, ids)
    return encoder, version, [one for one, is_known in zip(ids, known, strict=True) if not is_known]


def kept(workspace: Workspace, encoder: SearchEncoder, ids: list[str]) -> tuple[Rows, list[bool]]:
    rows, known = workspace.features.get(encoder.trunk_fingerprint(), IMAGE, ids, encoder.trunk_dim)
    return rows, known.tolist()


def filled(workspace: Workspace, midway: Callable[[], object] = lambda: None, kind: str = "graphs") -> None:
    """Embeds the pictures of a home on the cluster, while something happens after its first batch, and looks at all."""
    encoder, version, ids = live(workspace, kind)
    told: list[int] = []

    def progress(done: int, total: int) -> None:
        assert total == len(ids)
        told.append(done)
        if len(told) == TRIED + 1:
            midway()

    Bulk(workspace, encoder, version, progress).fill(ids)
    rows, known = kept(workspace, encoder, ids)
    assert all(known), f"{known.count(False)} of {len(ids)} pictures are lost"
    # Twice would make it tell of more than there are.
    assert (len(told), told[-1], encoder.image_forwards) == (-(-len(ids) // IMAGE_BATCH), len(ids), len(ids))
    assert np.array_equal(rows, trunk_features(encoder, ids, workspace.load_image, NoCache()))


@pytest.fixture(name="one_thread")
def computing_with_one_thread() -> Iterator[None]:
    with one_thread():
        yield


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("kind", ["graphs", "torch"])
def test_a_cluster_gives_the_same_to_the_bit_and_each_once(
    workspace: Workspace, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_embedding, "_AT_ONCE", 10)
    filled(workspace, kind=kind)


def actors() -> list[psutil.Process]:
    return processes("Map(EmbedPictures)")


def test_nothing_is_lost_and_nothing_comes_twice_when_an_actor_is_killed(workspace: Workspace) -> None:
    killed: list[int] = []

    def kill() -> None:
        one = actors()[0]
        one.kill()
        one.wait()
        killed.append(one.pid)

    filled(workspace, kill)
    assert killed


def test_nothing_is_lost_and_nothing_comes_twice_when_a_machine_dies(
    workspace: Workspace, cluster: Any
) -> None:
    node = next(one for one in cluster.list_all_nodes() if not one.is_head())
    died: list[bool] = []

    def die() -> None:
        raylet = node.all_processes["raylet"][0].process.pid
        there = [one for one in actors() if one.ppid() == raylet]
        cluster.remove_node(node, allow_graceful=False)
        died.append(bool(there))

    try:
        filled(workspace, die)
    finally:
        cluster.add_node(**NODE)
    assert died == [True], "the machine that died had an actor"


def test_who_is_interrupted_keeps_what_came_and_goes_on_from_there(workspace: Workspace) -> None:
    import ray

    encoder, version, ids = live(workspace)
    before = signal.getsignal(signal.SIGTERM)

    def stop(done: int, total: int) -> None:
        if done > (TRIED + 2) * IMAGE_BATCH:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Bulk(workspace, encoder, version, stop).fill(ids)
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) is before
    lacking = kept(workspace, encoder, ids)[1].count(False)
    assert 0 < lacking < len(ids) - (TRIED + 2) * IMAGE_BATCH
    told: list[tuple[int, int]] = []
    Bulk(workspace, encoder, version, lambda *said: told.append(said)).fill(ids)
    assert told[-1] == (lacking, lacking)
    rows, known = kept(workspace, encoder, ids)
    assert all(known)
    assert np.array_equal(rows, trunk_features(encoder, ids, workspace.load_image, NoCache()))


def test_a_gallery_has_the_vectors_that_it_has_without_a_cluster(
    cluster: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "WORTH_SECONDS", 0.0)
    chunk = sample_chunk(tmp_path / "chunk.zip", pictures=(TRIED + 1) * IMAGE_BATCH + 5)
    found = []
    for name, address in (("plain", ""), ("ray", cluster.address)):
        home = copy_of(new_home(tmp_path_factory), tmp_path, name)
        with Workspace.open(load_settings(home=home, ray=address)) as workspace:
            outcome = adding.add_chunk(workspace, chunk, IntakeOptions(), by="test")
            generation = workspace.open_generation(going_live.live_release(workspace)[1].generation)
            found.append((outcome.images_embedded, generation.ids, generation.vectors(generation.ids)))
    (count, ids, rows), (count_by_ray, ids_by_ray, rows_by_ray) = found
    assert (count_by_ray, ids_by_ray) == (count, ids)
    assert np.array_equal(rows_by_ray, rows)


def test_a_picture_that_is_lost_is_named_as_without_a_cluster(workspace: Workspace) -> None:
    encoder, version, ids = live(workspace)
    with pytest.raises(UnknownImage, match=f"No picture with id {'0' * 12} is stored. Ingest the chunk"):
        Bulk(workspace, encoder, version, lambda *_: None).fill([*ids, "0" * 64])


def unanswered() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def elsewhere(pictures: Path, tmp_path: Path, address: str) -> Workspace:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'perennial-search[ray]'")
    return Workspace.open(load_settings(home=copy_of(pictures, tmp_path), ray=address))


def test_under_a_minute_no_cluster_is_asked(pictures: Path, tmp_path: Path) -> None:
    with elsewhere(pictures, tmp_path, unanswered()) as workspace:
        encoder, version, ids = live(workspace)
        Bulk(workspace, encoder, version, lambda *_: None).fill(ids)
        assert kept(workspace, encoder, ids)[1].count(True) == TRIED * IMAGE_BATCH, "the loop does the rest"


def test_a_cluster_that_does_not_answer_is_refused_at_once(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "WORTH_SECONDS", 0.0)
    with elsewhere(pictures, tmp_path, unanswered()) as workspace:
        encoder, version, ids = live(workspace)
        with pytest.raises(
            ClusterUnusable, match="No Ray cluster answers at .* the setting `ray` .*ray start --head"
        ):
            Bulk(workspace, encoder, version, lambda *_: None).fill(ids)


@pytest.mark.usefixtures("one_thread")
def test_a_cluster_without_enough_cores_is_refused(workspace: Workspace) -> None:
    import torch

    encoder, version, ids = live(workspace, "torch")
    torch.set_num_threads(2)
    with pytest.raises(ClusterUnusable, match="No machine .* has 2 cores.*Set `threads`"):
        Bulk(workspace, encoder, version, lambda *_: None).fill(ids)
