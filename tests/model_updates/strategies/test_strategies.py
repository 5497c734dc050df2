"""The contract that every registered strategy keeps, on a tiny random encoder.

What is shared between the tests, and what they know of each term, is in `contract.py`; other towers are in
`test_strategy_towers.py`.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from model_updates.encoder import Encoder
from model_updates.errors import ForeignTokenizer, NothingToLearn, UnknownStrategy
from model_updates.strategies import STRATEGIES, strategy_named
from model_updates.strategy import Family
from model_updates.versions import load_state, write_version
from model_updates.vocabulary import SHARED
from tests.model_updates import later_process
from tests.model_updates.contract import (
    ALONE,
    BOTH,
    CASES,
    FIRST_HAND,
    IN_CLOSED_FORM,
    LEAVES_WEIGHTS,
    MODULES_ALONE,
    WEIGHS_NO_TERM,
    PowerCutError,
    asked,
    begin,
    brought,
    carry,
    first_context,
    first_update,
    gradient_norm,
    holds,
    made,
    moved,
    run,
    second_context,
    second_update,
    speaks_of_a_weight,
    stepped,
    update_of,
    weights_of,
)
from tests.model_updates.tiny import (
    DOMAIN,
    NEGATIVE,
    SKETCH,
    TEXT_ONLY,
    assert_same_state,
    context_for,
    draw,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

registered = pytest.mark.parametrize("name", list(STRATEGIES))
every_strategy = pytest.mark.parametrize("name", asked(CASES))
every_trained = pytest.mark.parametrize("name", asked(name for name in CASES if name not in IN_CLOSED_FORM))
both_updates = pytest.mark.parametrize("update", [1, 2])
CUT_TWICE = frozenset({"finetune", "er", "evergreen", BOTH})
# A second update begins with what a version on the disk holds (see `contract.second_update`), the one that is cut off
# with what is in memory, and both end alike. What another process adds is asked of these; of all with -m slow.
ASKED_LATER = CUT_TWICE | IN_CLOSED_FORM | {"ctp", "l2p", "language-tables"}
later_asked = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in ASKED_LATER else [pytest.mark.slow]) for name in CASES],
)


# What a strategy says of itself


@registered
def test_it_says_what_it_is_where_it_belongs_and_what_it_costs(name: str) -> None:
    kind = STRATEGIES[name]
    assert kind.name == name
    assert isinstance(kind.family, Family)
    assert kind.summary.endswith(".")
    assert all([kind.paper, kind.trains, kind.keeps, kind.overhead])


@every_strategy
def test_what_it_says_that_it_keeps_it_carries_or_takes_from_the_catalog(name: str) -> None:
    first, says_nothing = first_update(name), CASES[name].keeps.startswith("nothing")
    carried, strategy = first.strategy.carried(), made(name)
    if carried.tensors or carried.facts:
        assert not says_nothing
    elif not says_nothing:
        assert strategy.memory(second_context(name, first.after.copy()))


@every_strategy
def test_a_text_is_read_by_its_language_where_the_strategy_says_so(name: str) -> None:
    told = {first_update(name).after.text_route("de"), second_update(name).after.text_route("fr")}
    assert CASES[name].language_at_query == (told != {SHARED})


# Terms


@both_updates
@every_trained
def test_terms_are_named_finite_scalars(name: str, update: int) -> None:
    terms = stepped(name, update).taken
    assert terms
    assert all(term and term == term.strip() for term in terms)
    assert all(term.shape == () and bool(torch.isfinite(term)) for term in terms.values())


@both_updates
@pytest.mark.parametrize("name", ["domain-adapters", BOTH])
def test_what_is_taught_here_has_every_term_of_an_adapter(name: str, update: int) -> None:
    # The claims below say nothing of terms that the toy chunks do not bring about.
    terms = stepped(name, update).taken.keys()
    of_tables = {"cross-modal", "cross-lingual"} if name == BOTH else set()
    assert terms == {"contrast", "visibility", "displacement"} | of_tables


def test_the_default_is_taught_two_domains_and_a_router_between_them_beside_two_languages() -> None:
    first, second = first_update(BOTH).after, second_update(BOTH).after
    assert (first.image_routes, second.image_routes) == ((NEGATIVE,), (NEGATIVE, SKETCH))
    for encoder in (first, second):  # pictures of the base's own domain and of the first one beside it
        assert set(later_process.answers(encoder)["guessed"].tolist()) == {0, 1}
    assert {first.text_route("de"), second.text_route("fr")} == {"de", "fr"}


@pytest.mark.parametrize("name", asked(STRATEGIES))
def test_every_term_beside_the_first_is_weighted_by_an_option_that_speaks_of_a_weight(name: str) -> None:
    weights = weights_of(name)
    terms, weighted = terms_when_moved(name, **weights), set[str]()
    for option in weights:
        alone = ALONE.get((name, option), {})
        given = {**weights, **alone}
        whole = terms_when_moved(name, **given) if alone else terms
        half = terms_when_moved(name, **given | {option: given[option] / 2})
        changed = [term for term in whole if whole[term] != pytest.approx(half[term], rel=1e-4)]
        assert changed, f"{option} weighs nothing"
        for term in changed:
            assert half[term] == pytest.approx(whole[term] / 2, rel=1e-3), (option, term)
        weighted |= set(changed)
    if name in LEAVES_WEIGHTS:
        assert not weights
    elif len(terms) > 1:
        assert terms.keys() - weighted <= FIRST_HAND, "no option says how much these count"


def test_no_exception_from_being_weighted_has_outlived_its_option() -> None:
    spoken = {
        said
        for name in STRATEGIES
        for option in speaks_of_a_weight(name)
        for said in (option, f"{name}.{option}")
    }
    assert spoken >= WEIGHS_NO_TERM.keys() | {f"{name}.{option}" for name, option in ALONE}


def terms_when_moved(name: str, **options: Any) -> dict[str, float]:
    """The terms of a second update away from where it starts, so that what holds is not zero."""
    begun = begin(name, update=2, **options)
    with moved(begun.parameters):
        torch.manual_seed(1)
        return {term: float(value.detach()) for term, value in begun.terms().items()}


# What is at rest in a first update is in a second one, too, beside what holds what the first one left.
@pytest.mark.parametrize("update", [pytest.param(1, marks=pytest.mark.slow), 2])
@every_trained
def test_what_holds_the_encoder_where_it_was_is_at_rest_until_it_moves(name: str, update: int) -> None:
    try:
        begun = begin(name, update=update, new_word="Papier")
    except NothingToLearn:
        return  # every word is known: nothing is taught, and nothing holds
    terms, parameters = begun.terms(), begun.parameters
    scale = gradient_norm(torch.stack(list(terms.values())).sum(), parameters)
    at_rest = {term for term in terms if gradient_norm(terms[term], parameters) <= 1e-3 * scale}
    held = {term for term in terms if holds(name, term)}
    assert held <= at_rest
    if at_rest:
        with moved(parameters):
            away = begun.terms()
            for term in at_rest:
                assert float(away[term].detach()) >= float(terms[term].detach())
            for term in held:
                assert float(away[term].detach()) > float(terms[term].detach())
                assert gradient_norm(away[term], parameters) > 0


@both_updates
@every_trained
def test_every_parameter_that_trains_gets_a_gradient(name: str, update: int) -> None:
    begun = stepped(name, update)
    parameters = begun.parameters
    assert parameters
    assert all(parameter.grad is not None for parameter in parameters)
    assert sum(float(p.grad.abs().sum()) for p in parameters if p.grad is not None) > 0
    known = {id(parameter) for parameter in parameters}
    loose = [n for n, p in begun.context.encoder.parameters() if p.requires_grad and id(p) not in known]
    assert not loose, "they train, and the optimizer does not know them"


@both_updates
@every_trained
def test_teachers_get_no_gradient_and_do_not_move(name: str, update: int) -> None:
    begun = stepped(name, update)
    as_they_were = first_update(name).after if update == 2 else tiny_encoder()
    for teacher in (begun.context.open_previous(), begun.context.open_anchor()):
        assert all(parameter.grad is None for _, parameter in teacher.parameters())
        assert_same_state(teacher.state(), as_they_were.state())
    given = [getattr(begun.batch, field.name) for field in dataclasses.fields(begun.batch)]
    assert not any(isinstance(value, Tensor) and value.requires_grad for value in given)


# Updates


some_trained = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in CUT_TWICE else [pytest.mark.slow])
        for name in CASES
        if name not in IN_CLOSED_FORM
    ],
)


# The seed orders the batches, which is the trainer's work for all alike; every strategy is asked under -m slow.
@some_trained
def test_another_seed_gives_other_weights(name: str) -> None:
    encoder = tiny_encoder()
    run(made(name), first_context(name, encoder, seed=4))
    ours, theirs = first_update(name).after.state(), encoder.state()
    assert any(not torch.equal(ours[key], theirs[key]) for key in ours)


# An update that is cut off, below, goes on from the same in the middle of its way, which is asked of every strategy.
@some_trained
def test_a_saved_and_loaded_strategy_takes_the_identical_next_step(name: str) -> None:
    results: list[dict[str, Tensor]] = []
    saved: dict[str, Tensor] = {}
    for resumed in (False, True):
        begun = begin(name)
        optimizer = torch.optim.SGD(begun.parameters, lr=0.1)
        if resumed:
            begun.strategy.load_progress(saved)
        else:
            saved = {key: value.clone() for key, value in begun.strategy.progress().items()}
        torch.manual_seed(11)
        begun.loss().backward()  # type: ignore[no-untyped-call]
        begun.strategy.after_backward(0.1)
        optimizer.step()
        begun.strategy.after_step()
        results.append(
            {f"encoder.{k}": v for k, v in begun.context.encoder.state().items()}
            | {f"strategy.{k}": v for k, v in begun.strategy.progress().items()}
        )
    assert_same_state(*results)


@every_trained
def test_an_update_that_is_cut_off_at_one_step_after_the_other_ends_bit_identical(
    name: str, tmp_path: Path
) -> None:
    whole, first = second_update(name), first_update(name)
    steps = whole.steps // len(whole.report.history)
    # The first and the last step of the second epoch, from the checkpoint between; before it there is nothing to go on
    # from, and no strategy is asked. Both leave the same checkpoint; that one survives a second cut is the trainer's.
    for done in (steps + 1, steps) if name in CUT_TWICE else (steps + 1,):
        encoder, strategy = first.after.copy(), made(name, cut_after=done)
        carry(strategy, first.strategy.carried())
        with pytest.raises(PowerCutError):
            run(strategy, second_context(name, encoder), tmp_path)
        torch.rand(7)  # a new process stands elsewhere in the random sequence
    encoder, strategy = first.after.copy(), made(name)
    carry(strategy, first.strategy.carried())
    report = run(strategy, second_context(name, encoder), tmp_path)

    assert_same_state(encoder.state(), whole.after.state())
    assert_same_state(strategy.carried().tensors, whole.strategy.carried().tensors)
    assert strategy.carried().facts == whole.strategy.carried().facts
    # A loss that is told adds tensors up in the order in which they were carried, and a file has another one.
    assert report.history == tuple(pytest.approx(epoch, rel=1e-6) for epoch in whole.report.history)
    assert (report.kept_epoch, report.notes) == (whole.report.kept_epoch, whole.report.notes)


# What an update leaves


@both_updates
@every_strategy
def test_what_a_strategy_says_that_it_touches_changes_and_nothing_else(name: str, update: int) -> None:
    ran, (language, domain) = update_of(name, update), brought(name, update)
    before, after, kind = ran.before, ran.after, CASES[name]
    assert ("image" in ran.strategy.touches) == (
        after.image_fingerprint(domain) != before.image_fingerprint(domain)
    )
    assert ("text" in ran.strategy.touches) == (
        after.text_fingerprint(language) != before.text_fingerprint(language)
    )
    others = {"", DOMAIN, *before.image_routes} - {domain}
    if kind.embeds_again or "image" not in ran.strategy.touches:
        for route in others:
            assert after.image_fingerprint(route) == before.image_fingerprint(route)
    if not kind.can_forget:
        was, now = later_process.answers(before), later_process.answers(after)
        known = ["en"] if update == 1 else ["en", "de"]
        known += [f"of {route or 'unknown'}" for route in others]
        assert_same_state({key: now[key] for key in known}, {key: was[key] for key in known})


@every_strategy
def test_nothing_of_an_update_is_left_in_the_encoder(name: str) -> None:
    update = first_update(name)
    assert set(update.after.model.state_dict()) == set(update.before.model.state_dict())
    assert not update.after.model.training
    assert not any(parameter.requires_grad for _, parameter in update.after.parameters())
    assert all(parameter.grad is None for _, parameter in update.after.parameters())
    assert not update.strategy.progress()


@pytest.fixture(scope="module")
def asked_later(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, starts_at_once: None
) -> Path:
    """Versions after the first update of every strategy that is tested, looked at and taught by a new process."""
    folder = tmp_path_factory.mktemp("versions")
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    asked = {str(item.callspec.params["name"]) for item in items if "asked_later" in item.fixturenames}
    for name in sorted(asked):
        update = first_update(name)
        write_version(folder / name, update.after, {}, {name: update.strategy.carried()})
    later_process.start(folder)
    return folder


@later_asked
def test_a_new_process_answers_the_same_with_a_version_that_it_made(name: str, asked_later: Path) -> None:
    answers = load_file(asked_later / name / later_process.ANSWERS)
    assert_same_state(answers, later_process.answers(first_update(name).after))


@later_asked
def test_what_it_carries_survives_a_new_process(name: str, asked_later: Path) -> None:
    carried, again = first_update(name).strategy.carried(), load_state(asked_later / name, name)
    if carried.tensors or carried.facts:
        assert again is not None
        assert_same_state(again.tensors, carried.tensors)
        assert again.facts == carried.facts
    later = load_file(asked_later / name / later_process.TAUGHT)
    assert_same_state(later, dict(second_update(name).after.state()))


@pytest.mark.parametrize("name", TEXT_ONLY)
def test_text_only_strategies_run_no_image_tower_and_leave_the_text_body_bit_identical(name: str) -> None:
    update = first_update(name)
    assert update.report.image_forwards == 0
    before, after = (
        {key: value for key, value in encoder.model.state_dict().items() if "token_embedding" not in key}
        for encoder in (update.before, update.after)
    )
    assert_same_state(before, after)


@pytest.mark.parametrize("name", [name for name in TEXT_ONLY if name not in MODULES_ALONE])
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
        match="SigLIP brings a tokenizer of its own, so its vocabulary cannot grow, and .* grows it. Use finetune",
    ):
        make_strategy(name).before_update(context_for(foreign, toy_pairs()))


def test_an_unknown_strategy_is_told_the_known_ones() -> None:
    with pytest.raises(UnknownStrategy, match="no strategy 'tier'; choose one of: finetune, cll-clip, teir"):
        strategy_named("tier")


@pytest.mark.gpu
@registered
def test_a_bf16_update_on_cuda_lands_near_the_cpu_result(name: str, tmp_path: Path) -> None:
    options = {"dropout": 0.0} if name == "c-clip" else {}
    cpu, cuda = tiny_encoder(), tiny_encoder().to("cuda")
    teach(cpu, make_strategy(name, **options), checkpoints=tmp_path / "cpu")
    teach(cuda, make_strategy(name, **options), checkpoints=tmp_path / "cuda")
    texts = [pair.text for pair in toy_pairs()]
    cosines = (cpu.encode_texts(texts, "de") * cuda.to("cpu").encode_texts(texts, "de")).sum(axis=1)
    assert float(cosines.min()) > 0.95


@pytest.mark.gpu
@pytest.mark.parametrize("then", ["finetune", "cpe-clip", "domain-adapters", "evergreen"])
@pytest.mark.parametrize("first", ["acil", "ridge-heads"])
def test_on_cuda_a_tower_learns_behind_a_head_that_was_solved(first: str, then: str) -> None:
    encoder = tiny_encoder().to("cuda")
    for name in (first, then):
        teach(encoder, make_strategy(name))
    pictures = [draw(pair.image_id) for pair in toy_pairs()]
    assert np.isfinite(encoder.to("cpu").encode_images(pictures, toy_pairs()[0].domain)).all()
