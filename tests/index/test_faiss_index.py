from __future__ import annotations

import errno
from pathlib import Path

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from index import faiss_index
from index import vectors as rows
from index.errors import UnknownFactory
from index.vectors import unit_rows

EXACT = ["Flat", "SQfp16", "SQ8"]
EVERY_KIND = [*EXACT, "IVF8,Flat", "IVF8,SQfp16", "IVF8,SQ8", "HNSW16", "HNSW16,Flat"]


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float32]:
    return unit_rows(np.random.default_rng(1).normal(size=(800, 16)))


@pytest.mark.parametrize("factory", EVERY_KIND)
def test_every_offered_kind_builds_survives_disk_and_gives_its_vectors_back(
    vectors: NDArray[np.float32], tmp_path: Path, factory: str
) -> None:
    faiss_index.write(faiss_index.build(vectors, factory), tmp_path / "index")
    index = faiss_index.read(tmp_path / "index")
    positions = np.array([7, 0, 799, 7])

    np.testing.assert_allclose(faiss_index.reconstruct(index, positions), vectors[positions], atol=0.02)
    _, found = faiss_index.search(index, vectors[positions], 1)
    np.testing.assert_array_equal(found[:, 0], positions)


@pytest.mark.parametrize("count", [10, 5000])
def test_a_full_disk_is_said_as_such_wherever_it_is_met(count: int) -> None:
    """The ten vectors fit into the buffer, so that the disk is met when the file is closed."""
    index = faiss_index.build(unit_rows(np.random.default_rng(1).normal(size=(count, 16))), "Flat")
    with pytest.raises(OSError, match="No space left") as raised:
        faiss_index.write(index, Path("/dev/full"))
    assert raised.value.errno == errno.ENOSPC


@pytest.mark.parametrize("factory", EVERY_KIND)
@pytest.mark.parametrize("count", [1, 3, 80])
def test_a_filter_returns_the_best_of_the_allowed_for_every_kind(
    vectors: NDArray[np.float32], factory: str, count: int
) -> None:
    index = faiss_index.build(vectors, factory)
    allowed = np.sort(np.random.default_rng(2).choice(800, count, replace=False))
    stored = faiss_index.reconstruct(index, allowed)
    mask = np.isin(np.arange(800), allowed)
    k = min(count, 5)

    scores, positions = faiss_index.search(index, vectors[:20], k, allowed=mask)

    assert np.isin(positions, allowed).all()
    expected = -np.sort(-(vectors[:20] @ stored.T), axis=1)[:, :k]
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_a_filter_wider_than_one_block_is_still_exact(
    vectors: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "ROWS_PER_BLOCK", 7)
    index = faiss_index.build(vectors, "HNSW16")

    scores, _ = faiss_index.search(index, vectors[:3], 9, allowed=np.arange(800) < 100)

    np.testing.assert_allclose(scores, -np.sort(-(vectors[:3] @ vectors[:100].T), axis=1)[:, :9], atol=1e-5)


@pytest.mark.parametrize("factory", ["Nonsense", "IVF8,PQ4x4fs", "PCA8,Flat", "", "Flat ", "IVF0,Flat"])
def test_a_kind_that_is_not_offered_is_refused_with_the_ones_that_are(
    vectors: NDArray[np.float32], factory: str
) -> None:
    with pytest.raises(UnknownFactory, match=r"Choose one of Flat, SQfp16"):
        faiss_index.build(vectors, factory)


def test_more_lists_than_vectors_are_refused_with_both_numbers(vectors: NDArray[np.float32]) -> None:
    with pytest.raises(UnknownFactory, match="into 900 lists but there are 800 vectors"):
        faiss_index.build(vectors, "IVF900,Flat")


def test_reading_leaves_the_librarys_limit_as_it_was(vectors: NDArray[np.float32], tmp_path: Path) -> None:
    if not hasattr(faiss, "get_deserialization_vector_byte_limit"):
        pytest.skip("this faiss has no such limit")
    before = faiss.get_deserialization_vector_byte_limit()
    (tmp_path / "index").write_bytes(b"not an index at all")

    with pytest.raises(RuntimeError):
        faiss_index.read(tmp_path / "index")

    assert faiss.get_deserialization_vector_byte_limit() == before


def test_without_a_gpu_there_is_no_clone(vectors: NDArray[np.float32]) -> None:
    if faiss.get_num_gpus() > 0:
        pytest.skip("this machine has a GPU; the gpu-marked test covers it")
    assert faiss_index.clone_to_gpu(faiss_index.build(vectors)) is None


@pytest.mark.gpu
@pytest.mark.parametrize("factory", ["Flat", "IVF8,Flat"])
def test_the_gpu_gives_the_cpus_answers(vectors: NDArray[np.float32], factory: str) -> None:
    if faiss.get_num_gpus() == 0:
        pytest.skip("needs a CUDA device that faiss can use")
    index = faiss_index.build(vectors, factory)
    clone = faiss_index.clone_to_gpu(index)
    assert clone is not None

    on_cpu, on_gpu = (faiss_index.search(kind, vectors[:50], 10) for kind in (index, clone))

    np.testing.assert_allclose(on_gpu[0], on_cpu[0], atol=1e-4)
    same = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(on_cpu[1], on_gpu[1], strict=True)])
    assert same > 0.98
