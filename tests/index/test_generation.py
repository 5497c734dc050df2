from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from index.errors import (
    DimensionMismatch,
    FingerprintMismatch,
    GenerationDamaged,
    GenerationTooNew,
    ResultCountError,
    UnknownIds,
    VectorError,
)
from index.generation import TIE_MARGIN, Generation, load_generation
from index.manifest import write_manifest
from index.vectors import unit_rows
from index.writing import write_generation

TOWER = "f" * 64


def image_ids(count: int) -> list[str]:
    return [hashlib.sha256(str(number).encode()).hexdigest() for number in range(count)]


def random_rows(count: int, dim: int = 8, seed: int = 0) -> NDArray[np.float32]:
    return unit_rows(np.random.default_rng(seed).normal(size=(count, dim)))


def made(folder: Path, vectors: NDArray[np.float32], ids: list[str] | None = None) -> Generation:
    write_generation(
        folder, fingerprint=TOWER, ids=ids or image_ids(len(vectors)), vectors=vectors, mode="full"
    )
    return load_generation(folder)


def test_a_loaded_generation_is_the_one_that_was_written(tmp_path: Path) -> None:
    vectors, ids = random_rows(30), image_ids(30)
    manifest = write_generation(
        tmp_path / "g1", fingerprint=TOWER, ids=ids, vectors=vectors * 5, mode="delta"
    )
    generation = load_generation(tmp_path / "g1")

    assert (generation.id, generation.fingerprint, generation.dim, len(generation)) == ("g1", TOWER, 8, 30)
    assert generation.ids == ids
    assert generation.manifest == manifest
    assert (manifest["mode"], manifest["factory"], manifest["count"], manifest["dim"]) == (
        "delta",
        "Flat",
        30,
        8,
    )
    np.testing.assert_array_equal(generation.vectors([ids[3], ids[1]]), unit_rows(vectors * 5)[[3, 1]])


def test_search_equals_brute_force(tmp_path: Path) -> None:
    vectors, queries = random_rows(200), random_rows(20, seed=1)
    generation = made(tmp_path / "g1", vectors)

    scores, ids = generation.search(queries, 7)

    exact = queries @ vectors.T
    order = np.argsort(-exact, axis=1)[:, :7]
    np.testing.assert_allclose(scores, np.take_along_axis(exact, order, axis=1), atol=1e-6)
    assert ids == [[generation.ids[position] for position in row] for row in order]


def test_equal_scores_are_ordered_by_id_even_across_the_last_place(tmp_path: Path) -> None:
    """More equal pictures than any margin: which of them are shown must not depend on their order."""
    best, tied = [1.0, 0.0], [0.8, 0.6]
    count = TIE_MARGIN * 20
    ids = image_ids(count + 1)
    for seed in range(3):
        shuffled = [ids[0], *np.random.default_rng(seed).permutation(ids[1:]).tolist()]
        generation = made(tmp_path / f"g{seed}", unit_rows([best] + [tied] * count), shuffled)

        _, found = generation.search([best], 5)

        assert found == [[ids[0], *sorted(ids[1:])[:4]]]


def test_each_run_of_equal_scores_is_ordered_by_id(tmp_path: Path) -> None:
    directions = [[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]]
    ids = np.random.default_rng(0).permutation(image_ids(14)).tolist()
    rows = [directions[n] for n in (0, 1, 1, 1, 2, 3, 3, 0, 2, 2, 1, 3, 3, 3)]
    generation = made(tmp_path / "g1", unit_rows(rows), ids)

    scores, found = generation.search([[1.0, 0.0]], 12)

    by_score = sorted(zip(rows, ids, strict=True), key=lambda one: (-one[0][0], one[1]))
    assert found == [[content_id for _, content_id in by_score[:12]]]
    np.testing.assert_allclose(scores[0], [row[0] for row, _ in by_score[:12]], atol=1e-6)


def test_more_results_than_pictures_gives_all_of_them(tmp_path: Path) -> None:
    generation = made(tmp_path / "g1", random_rows(4))

    scores, ids = generation.search(random_rows(2), 100)

    assert scores.shape == (2, 4)
    assert [sorted(row) for row in ids] == [sorted(generation.ids)] * 2


def test_an_empty_gallery_answers_with_nothing(tmp_path: Path) -> None:
    generation = made(tmp_path / "g1", np.empty((0, 8), dtype=np.float32))

    scores, ids = generation.search(random_rows(3), 5)

    assert (scores.shape, ids) == ((3, 0), [[], [], []])
    assert generation.vectors([]).shape == (0, 8)


def test_no_query_gives_no_answer(tmp_path: Path) -> None:
    scores, ids = made(tmp_path / "g1", random_rows(3)).search(np.empty((0, 8)), 5)
    assert (len(scores), ids) == (0, [])


def test_a_filter_gives_the_best_of_what_is_allowed(tmp_path: Path) -> None:
    vectors = random_rows(100)
    generation = made(tmp_path / "g1", vectors)
    allowed = set(generation.ids[10:13]) | {"not in the gallery"}

    scores, ids = generation.search(vectors[:1], 10, allowed=generation.holding(allowed))

    assert set(ids[0]) == set(generation.ids[10:13])
    np.testing.assert_allclose(scores[0], -np.sort(-(vectors[:1] @ vectors[10:13].T)[0]), atol=1e-6)
    assert generation.search(vectors[:2], 10, allowed=generation.holding([]))[1] == [[], []]


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_a_query_without_a_direction_is_refused(tmp_path: Path, value: float) -> None:
    generation = made(tmp_path / "g1", random_rows(5))
    with pytest.raises(VectorError):
        generation.search(np.full((1, 8), value), 3)


def test_a_query_of_another_encoder_is_refused_naming_both_dimensions(tmp_path: Path) -> None:
    generation = made(tmp_path / "g1", random_rows(5))
    with pytest.raises(DimensionMismatch, match=r"holds 8-dimensional .* this query has 12 dimensions"):
        generation.search(np.ones((1, 12)), 3)


def test_fewer_than_one_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultCountError, match="0 results"):
        made(tmp_path / "g1", random_rows(5)).search(random_rows(1), 0)


def test_another_image_tower_is_refused(tmp_path: Path) -> None:
    generation = made(tmp_path / "g1", random_rows(5))
    generation.require_made_by(lambda route: TOWER)
    with pytest.raises(FingerprintMismatch, match=r"made by image tower ffffffffffff; .* is eeeeeeeeeeee"):
        generation.require_made_by(lambda route: "e" * 64)


def test_each_content_keeps_its_route_and_each_route_its_fingerprint(tmp_path: Path) -> None:
    ids, routes = image_ids(4), {image_ids(4)[1]: "line", image_ids(4)[3]: "ink"}
    write_generation(
        tmp_path / "g1",
        fingerprint=TOWER,
        ids=ids,
        vectors=np.eye(4, 8),
        mode="delta",
        routes=routes,
        route_fingerprints={"line": "1" * 64, "ink": "2" * 64},
    )
    generation = load_generation(tmp_path / "g1")
    assert generation.routes == routes
    assert generation.fingerprints == {"": TOWER, "line": "1" * 64, "ink": "2" * 64}
    generation.require_made_by(generation.fingerprints.__getitem__)
    with pytest.raises(FingerprintMismatch, match="for 'line' pictures"):
        generation.require_made_by(
            lambda route: "e" * 64 if route == "line" else generation.fingerprints[route]
        )


def test_a_generation_from_before_there_were_routes_took_the_base_route(tmp_path: Path) -> None:
    write_generation(tmp_path / "g1", fingerprint=TOWER, ids=["a"], vectors=np.eye(1, 8), mode="full")
    manifest = json.loads((tmp_path / "g1" / "manifest.json").read_text())
    later = {"segments", "fingerprints", "files", "checksum"}
    old = {k: v for k, v in manifest.items() if k not in later} | {"schema": 1}
    (tmp_path / "g1" / "routes.npy").unlink()
    write_manifest(tmp_path / "g1", old, ("index.faiss", "ids.npy"))
    generation = load_generation(tmp_path / "g1")
    assert (generation.routes, generation.fingerprints) == ({}, {"": TOWER})


def test_given_contents_score_as_a_search_scores_them(tmp_path: Path) -> None:
    generation = made(tmp_path / "g1", random_rows(5))
    queries = random_rows(2)
    scores, ids = generation.search(queries, 5)
    for row, found in enumerate(ids):
        assert generation.scores_of(queries, found)[row] == pytest.approx(scores[row], abs=1e-6)


def test_an_id_outside_the_gallery_has_no_vector(tmp_path: Path) -> None:
    generation = made(tmp_path / "g1", random_rows(5))
    with pytest.raises(UnknownIds, match=r"1 of 2 ids are not in generation g1, 'stranger' first"):
        generation.vectors([generation.ids[0], "stranger"])


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [(["a", "a"], "more than once"), (["a", ""], "''"), (["a", "ä"], "ASCII"), (["a", "b\0"], "NUL")],
)
def test_ids_that_would_not_come_back_the_same_are_refused(
    tmp_path: Path, ids: list[str], sentence: str
) -> None:
    with pytest.raises(UnknownIds, match=sentence):
        made(tmp_path / "g1", random_rows(2), ids)
    assert not (tmp_path / "g1").exists()


def test_vectors_that_search_could_never_find_are_not_written(tmp_path: Path) -> None:
    rows = random_rows(3)
    rows[1, 2] = np.nan
    with pytest.raises(VectorError, match="row 1 first"):
        made(tmp_path / "g1", rows)
    with pytest.raises(VectorError, match="2 ids came with 3 vectors"):
        made(tmp_path / "g1", random_rows(3), ["a", "b"])
    with pytest.raises(VectorError, match="none, mapped, full, delta"):
        write_generation(tmp_path / "g1", fingerprint=TOWER, ids=["a"], vectors=rows[:1], mode="fast")


def test_one_changed_byte_anywhere_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "g1"
    made(folder, random_rows(6, dim=4))
    tried = 0
    for path in sorted(folder.iterdir()):
        intact = path.read_bytes()
        for position in range(0, len(intact), 3):
            damaged = bytearray(intact)
            damaged[position] ^= 1 << (position % 8)
            path.write_bytes(damaged)
            with pytest.raises(GenerationDamaged):
                load_generation(folder)
            tried += 1
        path.write_bytes(intact)

    assert tried > 400
    assert len(load_generation(folder)) == 6


@pytest.mark.parametrize("name", ["index.faiss", "ids.npy", "manifest.json"])
@pytest.mark.parametrize("harm", ["lost", "empty", "cut"])
def test_a_missing_or_cut_file_is_found(tmp_path: Path, name: str, harm: str) -> None:
    folder = tmp_path / "g1"
    made(folder, random_rows(6))
    path = folder / name
    if harm == "lost":
        path.unlink()
    else:
        path.write_bytes(b"" if harm == "empty" else path.read_bytes()[:-1])

    with pytest.raises(GenerationDamaged, match="g1"):
        load_generation(folder)


@pytest.mark.parametrize("name", ["index.faiss", "ids.npy", "manifest.json"])
def test_a_git_lfs_pointer_is_recognised(tmp_path: Path, name: str) -> None:
    made(tmp_path / "g1", random_rows(6))
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    (tmp_path / "g1" / name).write_text(pointer)

    with pytest.raises(GenerationDamaged, match=r"git-LFS pointer.*git lfs pull"):
        load_generation(tmp_path / "g1")


def test_sound_files_of_two_generations_do_not_mix(tmp_path: Path) -> None:
    """Without reading every byte, counts and dimension still have to fit together."""
    made(tmp_path / "small", random_rows(3))
    made(tmp_path / "large", random_rows(5))
    for name in ("index.faiss", "ids.npy"):
        folder = tmp_path / f"mixed {name}"
        made(folder, random_rows(5))
        (folder / name).write_bytes((tmp_path / "small" / name).read_bytes())
        with pytest.raises(GenerationDamaged, match=r"should hold 5 vectors of 8 dimensions"):
            load_generation(folder, verify=False)


def test_a_manifest_of_a_newer_schema_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "g1"
    made(folder, random_rows(2))
    manifest = json.loads((folder / "manifest.json").read_bytes())
    del manifest["checksum"]
    manifest["schema"] = 3
    text = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
    manifest["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")

    with pytest.raises(
        GenerationTooNew, match="schema 3; this Perennial reads up to 2. Install a newer release"
    ):
        load_generation(folder)


def test_threads_that_search_at_once_get_the_answers_of_one(tmp_path: Path) -> None:
    generation, queries = made(tmp_path / "g1", random_rows(300)), random_rows(40, seed=5)
    alone = [generation.search(query[None], 5)[1] for query in queries]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda query: generation.search(query[None], 5)[1], queries))

    assert together == alone
