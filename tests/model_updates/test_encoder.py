"""The encoder: any padding gives the same numbers, growing changes only what is new, fingerprints tell."""

import hashlib
import math

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from model_updates import towers
from model_updates.encoder import Encoder, training
from model_updates.search_encoder import unit
from model_updates.towers import is_expandable, resize_token_table, token_table
from model_updates.vocabulary import Vocabulary
from tests.model_updates.tiny import ENGLISH_TEXTS, draw, image_ids, tiny_encoder

PICTURES = [draw(image_id) for image_id in image_ids()[:5]]


def full_length(encoder: Encoder, texts: list[str]) -> Tensor:
    """open_clip's own encode_text on rows as long as the context."""
    assert encoder.vocabulary is not None
    rows = encoder.vocabulary.encode(texts)
    padded = torch.zeros(len(rows), encoder.vocabulary.context_length, dtype=torch.int64)
    for position, row in enumerate(rows):
        padded[position, : len(row)] = torch.tensor(row)
    with torch.inference_mode():
        features: Tensor = encoder.model.encode_text(padded)  # type: ignore[operator]
    return features


def test_texts_of_like_length_run_together_and_come_back_in_their_order() -> None:
    encoder = tiny_encoder()
    texts = [" ".join(["red bar"] * (1 + number % 7)) for number in range(50)]
    tokens = encoder.tokenize(texts)
    ran: list[tuple[int, ...]] = []
    transformer: nn.Module = encoder.model.transformer  # type: ignore[assignment]
    hook = transformer.register_forward_pre_hook(lambda _module, given: ran.append(tuple(given[0].shape[:2])))
    with torch.no_grad():
        apart, whole = encoder.forward_tokens(tokens), encoder.forward_tokens(tokens, together=True)
    hook.remove()
    torch.testing.assert_close(apart, whole, rtol=1e-5, atol=1e-6)
    assert ran[-1] == tuple(tokens.shape)
    assert sum(rows for rows, _ in ran[:-1]) == 50
    assert sum(rows * length for rows, length in ran[:-1]) < 0.8 * tokens.numel()


def test_a_text_learns_the_same_alone_and_among_longer_ones() -> None:
    # In double precision: float32 sums of 40 texts differ in another place on every processor.
    encoder = tiny_encoder()
    encoder.model.double()
    tokens = encoder.tokenize([" ".join(["red bar"] * (1 + number % 7)) for number in range(40)])
    table = token_table(encoder.model)
    assert table is not None
    table.requires_grad_(True)
    gradients: list[Tensor] = []
    for together in (True, False):
        table.grad = None
        encoder.forward_tokens(tokens, together=together).square().sum().backward()  # type: ignore[no-untyped-call]
        assert table.grad is not None
        gradients.append(table.grad.clone())
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)


def test_nothing_of_an_encoder_trains_until_a_strategy_says_so() -> None:
    # torch multiplies by a weight that trains in another way; on some processors an untouched language then got
    # other last bits from its encoder before an update than after it.
    encoder = tiny_encoder()
    encoder.model.requires_grad_(True)
    for opened in (tiny_encoder(), encoder.copy()):
        assert not any(parameter.requires_grad for _, parameter in opened.parameters())


def test_padding_to_the_longest_text_gives_open_clips_full_length_features() -> None:
    encoder = tiny_encoder()
    texts = ["red", *ENGLISH_TEXTS[:4], "x y z w v"]
    short = encoder.text_features(texts)
    assert np.allclose(short, full_length(encoder, texts).numpy(), atol=1e-5)
    alone = np.concatenate([encoder.text_features([text]) for text in texts])
    assert np.allclose(short, alone, atol=1e-5)


def test_features_are_raw_and_encode_gives_unit_rows() -> None:
    encoder = tiny_encoder()
    raw, rows = encoder.text_features(ENGLISH_TEXTS), encoder.encode_texts(ENGLISH_TEXTS)
    assert raw.dtype == rows.dtype == np.float32
    assert raw.shape == rows.shape == (16, encoder.dim)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert np.allclose(unit(raw), rows)
    assert np.allclose(np.linalg.norm(encoder.encode_images(PICTURES), axis=1), 1, atol=1e-6)


def test_no_text_and_no_picture_give_no_row() -> None:
    encoder = tiny_encoder()
    assert encoder.text_features([]).shape == (0, encoder.dim)
    assert encoder.image_features([]).shape == (0, encoder.dim)


def test_features_do_not_depend_on_what_else_is_in_the_batch() -> None:
    encoder = tiny_encoder()
    together = encoder.image_features(PICTURES)
    alone = np.concatenate([encoder.image_features([picture]) for picture in PICTURES])
    assert np.allclose(together, alone, atol=1e-5)


def test_a_picture_of_any_size_becomes_the_towers_input() -> None:
    encoder = tiny_encoder()
    prepared = encoder.prepare_images([Image.new("RGB", (200, 90)), Image.new("RGB", (1, 1))])
    assert prepared.shape == (2, 3, 32, 32)


def test_image_forwards_are_counted_by_picture() -> None:
    encoder = tiny_encoder()
    encoder.image_features(PICTURES)
    encoder.text_features(ENGLISH_TEXTS)
    assert encoder.image_forwards == len(PICTURES)


def test_growing_leaves_features_of_unchanged_captions_identical() -> None:
    encoder = tiny_encoder()
    assert encoder.vocabulary is not None
    before = encoder.text_features(ENGLISH_TEXTS)
    encoder.vocabulary.grow_shared([("q", "v</w>")])
    resize_token_table(encoder.model, encoder.vocabulary.size)
    assert np.array_equal(encoder.text_features(ENGLISH_TEXTS), before)


def test_a_caption_with_a_new_row_pools_at_its_end_token() -> None:
    encoder = tiny_encoder()
    assert encoder.vocabulary is not None
    encoder.vocabulary.grow_shared([("q", "v</w>")])
    table = resize_token_table(encoder.model, encoder.vocabulary.size)
    with torch.no_grad():
        table[-1] = 0.5
    (row,) = encoder.vocabulary.encode(["qv red"])
    assert max(row) == row[1] == encoder.vocabulary.size - 1, (
        "the largest id is not the end: argmax would pool here"
    )
    features = encoder.text_features(["qv red"])
    assert np.allclose(features, full_length(encoder, ["qv red"]).numpy(), atol=1e-5)
    model = encoder.model
    model.text_pool_type = "argmax"  # type: ignore[assignment]
    assert not np.allclose(features, full_length(encoder, ["qv red"]).numpy(), atol=1e-3)


def test_resizing_copies_old_rows_bit_by_bit_and_never_shrinks() -> None:
    encoder = tiny_encoder()
    old = token_table(encoder.model)
    assert old is not None
    kept = old.detach().clone()
    grown = resize_token_table(encoder.model, len(kept) + 3)
    assert torch.equal(grown.detach()[: len(kept)], kept)
    assert not grown.detach()[len(kept) :].any()
    with pytest.raises(ValueError, match="never shrinks"):
        resize_token_table(encoder.model, len(kept))


def test_a_copy_is_independent_and_equal() -> None:
    encoder = tiny_encoder()
    copy = encoder.copy()
    assert copy.image_fingerprint() == encoder.image_fingerprint()
    assert copy.text_fingerprint() == encoder.text_fingerprint()
    with torch.no_grad():
        copy.model.get_parameter("text_projection").add_(1)
    copy.forget_fingerprints()
    assert copy.text_fingerprint() != encoder.text_fingerprint()
    assert np.array_equal(tiny_encoder().text_features(["red"]), encoder.text_features(["red"]))


@pytest.mark.parametrize(
    ("name", "image", "text"),
    [
        ("visual.conv1.weight", True, False),
        ("visual.proj", True, False),
        ("text_projection", False, True),
        ("transformer.resblocks.1.mlp.c_fc.bias", False, True),
        ("token_embedding.weight", False, True),
        ("positional_embedding", False, True),
        ("logit_scale", False, False),
    ],
)
def test_a_fingerprint_tells_which_tower_a_parameter_belongs_to(name: str, image: bool, text: bool) -> None:
    encoder = tiny_encoder()
    before = (encoder.image_fingerprint(), encoder.text_fingerprint())
    with torch.no_grad():
        encoder.model.get_parameter(name).flatten()[-1:].add_(1e-3)
        if name == "token_embedding.weight":
            encoder.model.get_parameter(name)[5, 0] += 1e-3
        if name == "logit_scale":
            encoder.model.get_parameter(name).add_(1e-3)
    encoder.forget_fingerprints()
    assert (encoder.image_fingerprint() != before[0], encoder.text_fingerprint() != before[1]) == (
        image,
        text,
    )


def test_the_padding_row_is_in_no_vector_and_no_fingerprint() -> None:
    encoder = tiny_encoder()
    fingerprint, vectors = encoder.text_fingerprint(), encoder.text_features(["red", "a red circle on paper"])
    table = token_table(encoder.model)
    assert table is not None
    with torch.no_grad():
        table[0] += 1
    encoder.forget_fingerprints()
    assert encoder.text_fingerprint() == fingerprint
    assert np.allclose(encoder.text_features(["red", "a red circle on paper"]), vectors, atol=1e-6)


def test_preprocessing_is_part_of_the_image_fingerprint() -> None:
    encoder = tiny_encoder()
    other = Encoder(
        encoder.model,
        architecture="tiny",
        preprocessing=type(encoder.preprocessing)(size=32, mean=(0.4, 0.5, 0.5), std=(0.5, 0.5, 0.5)),
        vocabulary=encoder.vocabulary,
    )
    assert other.image_fingerprint() != encoder.image_fingerprint()


def test_segmentation_is_part_of_the_text_fingerprint() -> None:
    encoder = tiny_encoder()
    before = encoder.text_fingerprint()
    assert isinstance(encoder.vocabulary, Vocabulary)
    encoder.vocabulary.grow_shared([("q", "v</w>")])
    resize_token_table(encoder.model, encoder.vocabulary.size)
    encoder.forget_fingerprints()
    assert encoder.text_fingerprint() != before


def test_training_mode_ends_with_its_block_even_after_an_error() -> None:
    encoder = tiny_encoder()
    with training(encoder):
        assert encoder.model.training
    assert not encoder.model.training
    with pytest.raises(ZeroDivisionError), training(encoder):
        _ = 1 / 0
    assert not encoder.model.training


def test_a_tower_that_sees_what_follows_is_not_ours_to_pad() -> None:
    model = tiny_encoder().model
    assert is_expandable(model)
    model.attn_mask = None  # type: ignore[assignment]
    assert not is_expandable(model)


def test_a_foreign_tokenizer_is_used_as_it_is() -> None:
    ours = tiny_encoder()
    assert ours.vocabulary is not None
    end = ours.vocabulary.end_row

    def foreign(texts: list[str]) -> Tensor:
        rows = torch.full((len(texts), 16), end)
        rows[:, 0] = 1
        rows[:, 1] = torch.tensor([len(text) + 3 for text in texts])
        return rows

    encoder = Encoder(
        ours.model,
        architecture="foreign",
        preprocessing=ours.preprocessing,
        vocabulary=None,
        foreign_tokenizer=foreign,
    )
    assert encoder.dim == 24
    rows = encoder.encode_texts(["a", "bcd"], "de")
    assert rows.shape == (2, 24)
    assert not math.isclose(float(rows[0] @ rows[1]), 1.0, abs_tol=1e-4)
    assert encoder.text_fingerprint("de") == encoder.text_fingerprint("en")


def test_an_encoder_without_any_tokenizer_says_so() -> None:
    ours = tiny_encoder()
    encoder = Encoder(ours.model, architecture="none", preprocessing=ours.preprocessing, vocabulary=None)
    with pytest.raises(ValueError, match="neither a vocabulary nor a tokenizer"):
        encoder.tokenize(["a"])


def test_rows_are_hashed_a_few_at_a_time_as_they_would_be_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(towers, "_ROWS_AT_ONCE", 3)
    table, rows = torch.randn(20, 4), torch.tensor([7, 0, 19, 3, 4, 5, 6])
    once, parts = hashlib.sha256(), hashlib.sha256()
    towers.hash_tensors(once, [("rows", table[rows])])
    towers.hash_rows(parts, "rows", table, rows)
    assert parts.digest() == once.digest()
