"""Approximate indexes keep what exact search finds, or are not taken."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from index import faiss_index, kinds, tuning
from index.agreement import agreement
from index.generation import load_generation
from index.kinds import Chosen
from index.tuning import build_tuned, chosen
from index.vectors import unit_rows
from index.writing import contents_of, grow_generation
from tests.index.test_generation import TOWER, image_ids

Rows = NDArray[np.float32]
COUNT, DIM = 20_000, 64


def clustered(count: int, seed: int) -> Rows:
    """Vectors around a few hundred centres, as those of pictures of a few hundred things are."""
    centres = np.random.default_rng(0).normal(size=(300, DIM))
    rng = np.random.default_rng(seed)
    return unit_rows(centres[rng.integers(300, size=count)] + rng.normal(size=(count, DIM)))


@pytest.fixture(scope="module")
def vectors() -> Rows:
    return clustered(COUNT, 1)


@pytest.mark.parametrize("kind", ["IVF128,SQfp16", "HNSW16"])
def test_an_approximate_index_keeps_what_exact_search_finds(vectors: Rows, tmp_path: Path, kind: str) -> None:
    queries = clustered(200, 2)
    made, found, facts = build_tuned(vectors, kind, lambda: queries, is_asked=True)
    faiss_index.write(made, tmp_path / "index")
    index = faiss_index.read(tmp_path / "index")
    told = facts["tuned"]
    assert found == kind
    assert told["kept"] >= tuning.KEPT
    assert agreement(faiss_index.FaissVectors(index), queries, 10) == pytest.approx(told["kept"], abs=2e-3)
    # How widely to look was chosen: less does not do.
    name, _, value = told["parameters"].partition("=")
    faiss.ParameterSpace().set_index_parameter(index, name, int(value) / 2)
    assert agreement(faiss_index.FaissVectors(index), queries, 10) < tuning.KEPT


def test_an_index_in_lists_that_wins_nothing_is_made_exact_unless_asked_for(vectors: Rows) -> None:
    spread = unit_rows(np.random.default_rng(3).normal(size=(COUNT, DIM)))  # nothing is near to anything
    index, kind, facts = build_tuned(spread, "IVF128,SQfp16", lambda: spread[:50], is_asked=False)
    assert (kind, index.ntotal, facts["tried"]["kind"]) == ("SQfp16", COUNT, "IVF128,SQfp16")
    assert agreement(faiss_index.FaissVectors(index), spread[:50], 10) == 1.0
    assert build_tuned(spread, "IVF128,SQfp16", lambda: spread[:50], is_asked=True)[1] == "IVF128,SQfp16"


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_filters_of_an_index_in_lists_find_what_exact_search_finds(vectors: Rows, share: float) -> None:
    queries = clustered(100, 2)
    index, _, _ = build_tuned(vectors, "IVF128,SQfp16", lambda: queries, is_asked=True)
    allowed = np.random.default_rng(4).random(COUNT) < share
    _, right = faiss_index.search_rows(index, queries, 10, np.flatnonzero(allowed))
    _, found = faiss_index.search(index, queries, 10, allowed=allowed)
    assert allowed[found].all()
    kept = np.mean([len({*a} & {*b}) / 10 for a, b in zip(found.tolist(), right.tolist(), strict=True)])
    assert kept >= (1.0 if share <= faiss_index.COMPARED_IN_FULL else tuning.KEPT)


def test_a_large_gallery_is_looked_up_in_lists_and_what_comes_later_is_compared_in_full(
    vectors: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "QUICK_ANYWHERE", 0)
    monkeypatch.setattr(tuning, "WORTH", 1e9)  # so few vectors are compared in full as soon as in part
    monkeypatch.setattr(kinds, "SLOW", COUNT * DIM / max(tuning.speeds(DIM)) / 2)
    choice = chosen("auto", COUNT, DIM)
    assert (choice.kind, choice.asked, choice.of) == ("IVF128,SQfp16", "auto", COUNT)
    assert choice.ms["SQfp16"] > kinds.SLOW
    names, queries = image_ids(COUNT + 50), clustered(64, 2)
    first = contents_of(names[:COUNT], vectors, {})
    prints = {"": TOWER}
    grow_generation(
        tmp_path / "a", None, first, fingerprints=prints, mode="full", choice=choice, queries=lambda: queries
    )
    before = load_generation(tmp_path / "a")
    more = contents_of(names[COUNT:], clustered(50, 5), {})
    grow_generation(tmp_path / "b", before, more, fingerprints=prints, mode="delta", choice=before.choice)
    later = load_generation(tmp_path / "b")
    assert later.choice == choice == Chosen(**before.manifest["choice"])  # type: ignore[arg-type]
    large, small = (portion.segment for portion in later.portions)
    assert (large.facts["factory"], small.facts["factory"]) == (choice.kind, "Flat")
    assert large is before.portions[0].segment
    assert large.index.kept >= tuning.KEPT
    assert [row[0] for row in later.search(later.vectors(names[COUNT:]), 1)[1]] == names[COUNT:]
