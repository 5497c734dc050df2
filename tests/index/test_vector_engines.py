"""Claims about engines that keep vectors beside the files: what they keep, who finds it, and when it goes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from index import elsewhere, faiss_index, kinds, milvus, vector_index
from index.elsewhere import has_moved, keep_vectors
from index.errors import GenerationDamaged, IndexMoved, VectorsRefused, VectorsUnreachable
from index.faiss_index import FaissVectors
from index.generation import load_generation
from index.milvus import MilvusCollections
from index.vector_index import VectorEngine
from index.vectors import unit_rows
from index.writing import contents_of, grow_generation, write_generation
from tests.index.engines import MILVUS, PGVECTOR, engine_for
from tests.index.test_generation import TOWER, image_ids

ROWS = unit_rows(np.random.default_rng(5).normal(size=(120, 8)))
STORED = FaissVectors(faiss_index.build(ROWS))
DIGEST, OTHER = "d" * 64, "e" * 64


def asked() -> NDArray[np.float32]:
    return ROWS[:20]


@pytest.fixture(params=[PGVECTOR, MILVUS])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorEngine]:
    with engine_for(str(request.param), str(tmp_path)) as made:
        made.begin()
        yield made


@pytest.fixture
def in_postgres(tmp_path: Path) -> Iterator[VectorEngine]:
    with engine_for("pgvector", str(tmp_path)) as made:
        yield made


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of 50 vectors are large."""
    monkeypatch.setattr(elsewhere, "EXACT_BELOW", 50)


def test_what_it_keeps_is_found_until_nobody_needs_it(engine: VectorEngine) -> None:
    assert engine.are_kept
    assert engine.known() == {}
    assert engine.drop_others() == []
    for digest in (DIGEST, OTHER, DIGEST):
        engine.make(digest, STORED, "Flat", asked)
    first, second = engine.known()[DIGEST], engine.known()[OTHER]
    assert (first.count, first.dim, first.kept) == (120, 8, 1.0)
    assert first == engine.known()[DIGEST] != second
    assert len(engine.drop_others([DIGEST])) == 1
    assert [*engine.known()] == [DIGEST]
    assert np.array_equal(first.search(ROWS[:1], 3)[1], STORED.search(ROWS[:1], 3)[1])
    for call in (lambda: second.search(ROWS[:1], 3), lambda: second.vectors(np.array([1]))):
        with pytest.raises(IndexMoved, match="carried to another place"):
            call()


def test_keeping_that_is_cut_off_is_not_seen_and_is_done_again(
    engine: VectorEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as cut:
        cut.setattr(vector_index, "WIDTHS", ("wide",))  # a search fails while it is tuned
        with pytest.raises((ValueError, TypeError, VectorsRefused, VectorsUnreachable)):
            engine.make(DIGEST, STORED, "Flat", asked)
    assert engine.known() == {}
    engine.make(DIGEST, STORED, "Flat", asked)
    assert [*engine.known()] == [DIGEST]


@pytest.mark.usefixtures("few")
def test_a_generation_is_searched_there_and_grows_from_there(engine: VectorEngine, tmp_path: Path) -> None:
    ids = image_ids(120)
    write_generation(tmp_path / "one", fingerprint=TOWER, ids=ids, vectors=ROWS, mode="full", factory="Flat")
    at_home = load_generation(tmp_path / "one")
    assert keep_vectors(engine, tmp_path / "one", asked) == 120
    assert keep_vectors(engine, tmp_path / "one", asked) == 0
    assert has_moved(at_home, engine.known())
    (tmp_path / "one" / "index.faiss").rename(tmp_path / "hidden")  # nobody reads it
    there = load_generation(tmp_path / "one", elsewhere=engine.known().get)
    assert not has_moved(there, engine.known())
    assert has_moved(there, {})
    assert not isinstance(there.portions[0].segment.index, FaissVectors)
    assert there.search(ROWS[:9], 5)[1] == at_home.search(ROWS[:9], 5)[1]
    rows = there.holding(ids[:7])
    assert there.search(ROWS[:9], 5, allowed=rows)[1] == at_home.search(ROWS[:9], 5, allowed=rows)[1]
    assert np.array_equal(there.vectors(ids[3:6]), at_home.vectors(ids[3:6]))

    (tmp_path / "hidden").rename(tmp_path / "one" / "index.faiss")
    came = unit_rows(np.random.default_rng(6).normal(size=(3, 8)))
    grow_generation(
        tmp_path / "two",
        there,
        contents_of(["new0", "new1", "new2"], came, {}),
        fingerprints={"": TOWER},
        mode="delta",
        choice=kinds.Chosen("Flat"),
        taken_out=ids[:2],
    )
    assert (
        keep_vectors(engine, tmp_path / "two", asked) == 0
    )  # its large segment is shared, the new one small
    grown = load_generation(tmp_path / "two", elsewhere=engine.known().get)
    assert [isinstance(one.segment.index, FaissVectors) for one in grown.portions] == [False, True]
    assert grown.search(came[:1], 1)[1] == [["new0"]]
    assert {*grown.search(ROWS[:1], 121)[1][0]} == {*ids[2:], "new0", "new1", "new2"}


def test_equal_vectors_are_found_in_the_order_of_their_ids(
    engine: VectorEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "EXACT_BELOW", 20)
    alike = np.repeat(ROWS[:4], 10, axis=0)
    ids = [f"{n:02d}" for n in np.random.default_rng(0).permutation(40)]
    write_generation(tmp_path / "one", fingerprint=TOWER, ids=ids, vectors=alike, mode="full")
    keep_vectors(engine, tmp_path / "one", lambda: ROWS[:4])
    found = load_generation(tmp_path / "one", elsewhere=engine.known().get).search(ROWS[:4], 6)[1]
    assert found == [sorted(ids[10 * n : 10 * n + 10])[:6] for n in range(4)]


def test_what_would_find_too_little_is_not_searched_and_not_made_again(
    engine: VectorEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "TOLERANCE", -1.0)  # nothing is good enough
    engine.make(DIGEST, STORED, "Flat", asked)
    monkeypatch.undo()
    assert engine.known() == {}
    engine.make(DIGEST, STORED, "Flat", lambda: pytest.fail("made again"))
    assert engine.known() == {}


def test_a_gallery_of_pictures_that_are_alike_is_kept(engine: VectorEngine) -> None:
    alike = FaissVectors(faiss_index.build(np.repeat(ROWS[:30], 8, axis=0)))
    engine.make(DIGEST, alike, "Flat", lambda: ROWS[:30])
    assert engine.known()[DIGEST].kept == 1.0


@pytest.mark.usefixtures("few")
def test_a_damaged_file_is_found_and_not_handed_on_though_nobody_searches_it(
    engine: VectorEngine, tmp_path: Path
) -> None:
    one = tmp_path / "one"
    write_generation(one, fingerprint=TOWER, ids=image_ids(120), vectors=ROWS, mode="full", factory="Flat")
    keep_vectors(engine, one, asked)
    data = bytearray((one / "index.faiss").read_bytes())
    data[500] ^= 1
    (one / "index.faiss").write_bytes(data)
    there = load_generation(one, elsewhere=engine.known().get)  # searching goes on
    with pytest.raises(GenerationDamaged):
        load_generation(one, elsewhere=engine.known().get, but_damaged=True)
    new = contents_of(["new0"], ROWS[:1], {})
    with pytest.raises(GenerationDamaged, match=r"index\.faiss of generation one is damaged"):
        grow_generation(
            tmp_path / "two", there, new, fingerprints={"": TOWER}, mode="delta", choice=kinds.Chosen("Flat")
        )


@pytest.mark.postgres
def test_tables_of_others_are_left_alone_and_a_home_on_the_path_is_not_asked(
    in_postgres: VectorEngine, tmp_path: Path
) -> None:
    import psycopg

    from index.vector_tables import VectorTables
    from ingest.postgres_connection import connect
    from tests.postgres_server import schema_for

    in_postgres.begin()
    in_postgres.make(DIGEST, STORED, "Flat", asked)
    address = schema_for(f"{tmp_path} another")
    with psycopg.connect(schema_for(str(tmp_path)), autocommit=True) as connection:
        connection.execute('CREATE TABLE vectors_of_disease (n int); CREATE TABLE "vectors_Q" (n int)')
    both = connect(f"{address},{schema_for(str(tmp_path)).rpartition('%3D')[2]}", read_only=False)
    try:
        other = VectorTables(both)
        assert not other.are_kept
        assert other.known() == {}
        other.end()
        assert other.drop_others() == []
    finally:
        both.dispose()
    assert [*in_postgres.known()] == [DIGEST]
    assert in_postgres.drop_others() == [f"vectors_{DIGEST[:32]}"]
    with psycopg.connect(schema_for(str(tmp_path))) as connection:
        connection.execute('SELECT * FROM vectors_of_disease, "vectors_Q"')


@pytest.mark.postgres
def test_rows_that_went_are_not_answered_by_others(in_postgres: VectorEngine, tmp_path: Path) -> None:
    import psycopg

    from tests.postgres_server import schema_for

    in_postgres.begin()
    in_postgres.make(DIGEST, STORED, "Flat", asked)
    with psycopg.connect(schema_for(str(tmp_path)), autocommit=True) as connection:
        connection.execute(f"DELETE FROM vectors_{DIGEST[:32]} WHERE row = 7")
    table = in_postgres.known()[DIGEST]
    with pytest.raises(GenerationDamaged, match="lacks 1 of 2 vectors"):
        table.vectors(np.array([6, 7]))


@pytest.mark.postgres
def test_a_database_keeps_vectors_from_when_it_is_told_until_it_is_told_not_to(
    in_postgres: VectorEngine,
) -> None:
    assert not in_postgres.are_kept
    assert in_postgres.known() == {}
    assert in_postgres.drop_others() == []
    for _ in range(2):
        in_postgres.begin()
    assert in_postgres.are_kept
    in_postgres.make(DIGEST, STORED, "Flat", asked)
    table = in_postgres.known()[DIGEST]
    in_postgres.end()
    assert in_postgres.known() == {}
    assert table.search(ROWS[:1], 3)[1][0, 0] == 0  # who has it open goes on
    assert len(in_postgres.drop_others()) == 1


@pytest.mark.postgres
def test_a_table_that_several_make_at_once_is_made_once(in_postgres: VectorEngine) -> None:
    in_postgres.begin()
    with ThreadPoolExecutor(3) as pool:
        for one in [pool.submit(in_postgres.make, DIGEST, STORED, "Flat", asked) for _ in range(3)]:
            one.result()
    assert [one.count for one in in_postgres.known().values()] == [120]


@pytest.mark.postgres
def test_a_table_that_somebody_removed_is_not_searched_and_is_made_again(
    in_postgres: VectorEngine, tmp_path: Path
) -> None:
    import psycopg

    from tests.postgres_server import schema_for

    in_postgres.begin()
    in_postgres.make(DIGEST, STORED, "Flat", asked)
    with psycopg.connect(schema_for(str(tmp_path)), autocommit=True) as connection:
        connection.execute(f"DROP TABLE vectors_{DIGEST[:32]}")
    assert in_postgres.known() == {}
    in_postgres.make(DIGEST, STORED, "Flat", asked)
    assert [*in_postgres.known()] == [DIGEST]


@pytest.mark.postgres
def test_vectors_that_are_too_long_for_a_graph_are_refused(in_postgres: VectorEngine) -> None:
    in_postgres.begin()
    long = unit_rows(np.eye(2, 4001))
    with pytest.raises(VectorsRefused, match="4000 dimensions at most; these vectors have 4001"):
        in_postgres.make(DIGEST, FaissVectors(faiss_index.build(long)), "Flat", lambda: long)


@pytest.mark.postgres
def test_a_user_who_may_make_no_tables_is_told_so(tmp_path: Path) -> None:
    import psycopg

    from index.vector_tables import VectorTables
    from ingest.postgres_connection import connect
    from tests.postgres_server import schema_for

    address = schema_for(str(tmp_path))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN CREATE ROLE reads_only LOGIN; EXCEPTION WHEN OTHERS THEN NULL; END $$"
        )
        connection.execute(f"GRANT USAGE ON SCHEMA {address.rpartition('%3D')[2]} TO reads_only")
    opened = connect(address.replace("postgres@", "reads_only@"), read_only=False)
    try:
        with pytest.raises(VectorsRefused, match=r"cannot keep the index \(permission denied"):
            VectorTables(opened).begin()
    finally:
        opened.dispose()


@pytest.mark.milvus
def test_a_milvus_that_does_not_answer_is_said() -> None:
    with pytest.raises(VectorsUnreachable, match=r"http://127\.0\.0\.1:1/pictures cannot be reached"):
        MilvusCollections("http://127.0.0.1:1/pictures").begin()


@pytest.mark.milvus
def test_homes_in_one_milvus_do_not_see_one_another() -> None:
    with engine_for("milvus", "") as one, engine_for("milvus", "") as other:
        one.make(DIGEST, STORED, "Flat", asked)
        assert other.known() == {}
        assert other.drop_others() == []
        assert [*one.known()] == [DIGEST]
        one.drop_others()


@pytest.mark.milvus
def test_what_is_not_searched_and_what_a_process_left_that_died_goes_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with engine_for("milvus", "") as engine:
        assert isinstance(engine, MilvusCollections)

        def there() -> int:
            return sum(name.startswith(f"{engine._of}_") for name in engine._names())

        with monkeypatch.context() as finding_little:
            finding_little.setattr(milvus, "KEPT", 2.0)
            engine.make(DIGEST, STORED, "Flat", asked)
        with monkeypatch.context() as dying:
            dying.setattr(milvus, "tuned", die)
            with pytest.raises(KeyboardInterrupt):
                engine.make(OTHER, STORED, "Flat", asked)
        assert there() == 2
        engine.drop_others([DIGEST])
        assert there() == 1  # or it would be made again and again
        engine.drop_others()
        assert there() == 0


def die(*_: object) -> None:
    raise KeyboardInterrupt
