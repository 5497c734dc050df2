"""The contract that every registered strategy keeps, on a tiny random encoder."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption, ForeignTokenizer, UnknownStrategy
from model_updates.options import options_of
from model_updates.pairs import Batch
from model_updates.strategies import STRATEGIES, strategy_named
from model_updates.strategy import Schedule, State, Strategy, UpdateContext
from model_updates.versions import load_state, read_inserts, write_version
from tests.model_updates.tiny import (
    DOMAIN,
    TEXT_ONLY,
    assert_same_state,
    context_for,
    data_for,
    draw,
    image_ids,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

every_strategy = pytest.mark.parametrize("name", list(STRATEGIES))


def begin(name: str, **options: Any) -> tuple[Strategy, UpdateContext, Batch]:
    """A strategy that is ready for its first step, and the batch of that step."""
    encoder = tiny_encoder()
    strategy = make_strategy(name, **options)
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    torch.manual_seed(context.seed)
    strategy.before_update(context)
    strategy.take(data)
    load = data.load_image if strategy.reads_pictures else None
    strategy.parameter_groups()
    encoder.train()
    batches = Batches(
        data.train, encoder, size=8, load_image=load, memory=data.memory, replay=strategy.replay
    )
    return strategy, context, next(iter(batches.epoch(0)))


def parameters_of(strategy: Strategy) -> list[nn.Parameter]:
    return [parameter for group in strategy.parameter_groups() for parameter in group.parameters]


@every_strategy
def test_terms_are_named_finite_scalars(name: str) -> None:
    strategy, _, batch = begin(name)
    terms = strategy.terms(strategy.prepare_batch(batch))
    assert terms
    assert all(term.shape == () and bool(torch.isfinite(term)) for term in terms.values())


@every_strategy
def test_every_parameter_that_trains_gets_a_gradient(name: str) -> None:
    strategy, _, batch = begin(name)
    parameters = parameters_of(strategy)
    torch.stack(list(strategy.terms(batch).values())).sum().backward()  # type: ignore[no-untyped-call]
    assert parameters
    assert all(parameter.grad is not None for parameter in parameters)
    assert (
        sum(float(parameter.grad.abs().sum()) for parameter in parameters if parameter.grad is not None) > 0
    )


@every_strategy
def test_the_teacher_gets_no_gradient_and_does_not_move(name: str) -> None:
    strategy, context, batch = begin(name)
    teacher = context.open_previous()
    before = {key: value.clone() for key, value in teacher.model.state_dict().items()}
    torch.stack(list(strategy.terms(batch).values())).sum().backward()  # type: ignore[no-untyped-call]
    assert all(parameter.grad is None for parameter in teacher.model.parameters())
    assert_same_state(teacher.model.state_dict(), before)
    given = [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    assert not any(isinstance(value, Tensor) and value.requires_grad for value in given)


@every_strategy
def test_no_parameter_trains_that_the_optimizer_does_not_know(name: str) -> None:
    strategy, context, _ = begin(name)
    known = {id(parameter) for parameter in parameters_of(strategy)}
    loose = [n for n, p in context.encoder.parameters() if p.requires_grad and id(p) not in known]
    assert not loose


@every_strategy
def test_the_same_seed_gives_the_same_weights(name: str) -> None:
    first, second = tiny_encoder(), tiny_encoder()
    teach(first, make_strategy(name))
    torch.rand(100)  # another place in the global random sequence
    teach(second, make_strategy(name))
    assert_same_state(first.state(), second.state())


@every_strategy
def test_another_seed_gives_other_weights(name: str) -> None:
    first, second = tiny_encoder(), tiny_encoder()
    teach(first, make_strategy(name), seed=1)
    teach(second, make_strategy(name), seed=2)
    ours, theirs = first.state(), second.state()
    assert any(not torch.equal(ours[key], theirs[key]) for key in ours)


@every_strategy
def test_a_saved_and_loaded_strategy_takes_the_identical_next_step(name: str) -> None:
    results: list[dict[str, Tensor]] = []
    saved: dict[str, Tensor] = {}
    for resumed in (False, True):
        strategy, context, batch = begin(name)
        optimizer = torch.optim.SGD(parameters_of(strategy), lr=0.1)
        if resumed:
            strategy.load_progress(saved)
        else:
            saved = {key: value.clone() for key, value in strategy.progress().items()}
        torch.manual_seed(11)
        strategy.learning_rate = 0.1
        torch.stack(list(strategy.terms(batch).values())).sum().backward()  # type: ignore[no-untyped-call]
        strategy.after_backward()
        optimizer.step()
        strategy.after_step()
        results.append(
            {f"encoder.{k}": v for k, v in context.encoder.state().items()}
            | {f"strategy.{k}": v for k, v in strategy.progress().items()}
        )
    assert_same_state(*results)


@every_strategy
def test_an_update_changes_some_text_or_image_vector(name: str) -> None:
    encoder = tiny_encoder()
    before = encoder.copy()
    strategy = make_strategy(name)
    teach(encoder, strategy)
    assert strategy.touches_image == (encoder.image_fingerprint(DOMAIN) != before.image_fingerprint(DOMAIN))
    assert strategy.touches_text == (encoder.text_fingerprint("de") != before.text_fingerprint("de"))


@every_strategy
def test_nothing_of_an_update_is_left_in_the_encoder(name: str) -> None:
    encoder = tiny_encoder()
    layout = {key for key in encoder.model.state_dict()}
    teach(encoder, make_strategy(name))
    assert set(encoder.model.state_dict()) == layout
    assert not encoder.model.training
    assert not any(parameter.requires_grad for _, parameter in encoder.parameters())


@every_strategy
def test_a_version_that_it_made_answers_the_same_after_a_cold_start(name: str, tmp_path: Path) -> None:
    encoder = tiny_encoder()
    strategy = make_strategy(name)
    teach(encoder, strategy)
    said = Path(tmp_path) / "version"
    write_version(said, encoder, {}, {name: strategy.carried()})
    opened = load_inserts(said, encoder)
    texts, pictures = [pair.text for pair in toy_pairs()], [draw(image_id) for image_id in image_ids()]
    assert np.array_equal(opened.encode_texts(texts, "de"), encoder.encode_texts(texts, "de"))
    assert np.array_equal(opened.encode_images(pictures, DOMAIN), encoder.encode_images(pictures, DOMAIN))
    again = load_state(said, name) or State()
    assert_same_state(again.tensors, strategy.carried().tensors)
    assert again.facts == strategy.carried().facts


def load_inserts(folder: Path, encoder: Encoder) -> Encoder:
    """A copy of the encoder without its inserts, given those of a version on disk."""
    copy = encoder.copy()
    copy.inserts = read_inserts(folder, copy.model)
    return copy


@pytest.mark.parametrize("name", TEXT_ONLY)
def test_text_only_strategies_leave_the_image_tower_bit_identical(name: str) -> None:
    encoder = tiny_encoder()
    before = encoder.image_fingerprint()
    report = teach(encoder, make_strategy(name), validation=toy_pairs())
    assert encoder.image_fingerprint() == before
    assert report.image_forwards == 0


@pytest.mark.parametrize("name", TEXT_ONLY)
def test_text_only_strategies_leave_the_text_body_bit_identical(name: str) -> None:
    encoder = tiny_encoder()
    before = {k: v.clone() for k, v in encoder.model.state_dict().items() if "token_embedding" not in k}
    teach(encoder, make_strategy(name))
    after = {k: v for k, v in encoder.model.state_dict().items() if "token_embedding" not in k}
    assert_same_state(before, after)


def test_finetune_moves_both_towers() -> None:
    encoder = tiny_encoder()
    image, text = encoder.image_fingerprint(), encoder.text_fingerprint()
    teach(encoder, make_strategy("finetune"))
    assert encoder.image_fingerprint() != image
    assert encoder.text_fingerprint() != text


@pytest.mark.parametrize("name", TEXT_ONLY)
def test_a_foreign_tokenizer_is_refused_by_strategies_that_grow_a_vocabulary(name: str) -> None:
    ours = tiny_encoder()
    foreign = Encoder(
        ours.model,
        architecture="ViT-B-16-SigLIP",
        preprocessing=ours.preprocessing,
        vocabulary=None,
        foreign_tokenizer=ours.tokenize,
    )
    with pytest.raises(
        ForeignTokenizer,
        match="SigLIP brings a tokenizer of its own, and .* grows the vocabulary. Use finetune or c-clip",
    ):
        make_strategy(name).before_update(context_for(foreign, toy_pairs()))


def test_an_unknown_strategy_is_told_the_known_ones() -> None:
    with pytest.raises(UnknownStrategy, match="no strategy 'tier'; choose one of: finetune, cll-clip, teir"):
        strategy_named("tier")


def test_registered_names_are_the_strategies_own() -> None:
    assert all(kind.name == name and kind.summary for name, kind in STRATEGIES.items())


def test_an_unknown_option_is_told_the_known_ones() -> None:
    with pytest.raises(BadStrategyOption, match="'teir' has no option 'lamda'; it has: epochs"):
        options_of(STRATEGIES["teir"], {"lamda": 1})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"epochs": "3"}, 3),
        ({"epochs": 3.0}, 3),
        ({"learning_rate": "1e-3"}, 1e-3),
        ({"learning_rate": 1}, 1.0),
        ({"initialise": "no"}, False),
        ({"initialise": False}, False),
        ({"apply_to": " update "}, "update"),
    ],
)
def test_options_are_read_from_text_and_json(given: dict[str, Any], expected: object) -> None:
    options = options_of(STRATEGIES["teir"], given)
    (name,) = given
    value = getattr(options, name)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("teir", {"epochs": "many"}, "epochs must be a number"),
        ("teir", {"epochs": 2.5}, "epochs must be a whole number"),
        ("teir", {"epochs": None}, "epochs must be a number"),
        ("teir", {"epochs": -1}, "at least 1 epoch"),
        ("teir", {"batch_size": 1}, "batches of 2"),
        ("teir", {"learning_rate": "nan"}, "finite"),
        ("teir", {"learning_rate": -1}, "not negative"),
        ("teir", {"weight_decay": -1}, "not negative"),
        ("teir", {"initialise": "perhaps"}, "yes or no"),
        ("teir", {"apply_to": "both"}, "'grad' or 'update'"),
        ("teir", {"apply_to": 3}, "is a word"),
        ("teir", {"vocabulary": 512}, "512 byte symbols"),
        ("cll-clip", {"cross_modal": 0, "cross_lingual": 0}, "at least one above zero"),
        ("finetune", {"epochs": -1}, "at least 1 epoch"),
        ("c-clip", {"towers": "text"}, "'auto', 'both' or 'image'"),
        ("c-clip", {"targets": "all"}, "targets is one of"),
        ("c-clip", {"merge": -0.1}, "above 0"),
        ("c-clip", {"rank": 0}, "rank is at least 1"),
        ("c-clip", {"dropout": 1}, "dropout below 1"),
        ("c-clip", {"text_rate": -1}, "not negative"),
    ],
)
def test_unusable_options_are_refused_with_a_sentence(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        options_of(STRATEGIES[name], given)


def test_an_unknown_decay_is_refused() -> None:
    with pytest.raises(BadStrategyOption, match="'constant' or 'cosine'"):
        Schedule(decay="linear")


@pytest.mark.gpu
@every_strategy
def test_a_bf16_update_on_cuda_lands_near_the_cpu_result(name: str, tmp_path: Path) -> None:
    options = {"dropout": 0.0} if name == "c-clip" else {}
    cpu, cuda = tiny_encoder(), tiny_encoder().to("cuda")
    teach(cpu, make_strategy(name, **options), checkpoints=tmp_path / "cpu")
    teach(cuda, make_strategy(name, **options), checkpoints=tmp_path / "cuda")
    texts = [pair.text for pair in toy_pairs()]
    cosines = (cpu.encode_texts(texts, "de") * cuda.to("cpu").encode_texts(texts, "de")).sum(axis=1)
    assert float(cosines.min()) > 0.95
