"""Claims about training in two processes: each strategy learns what it learns in one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, distributed

from model_updates.data_parallel import DataParallelEncoder, up_to_its_end
from tests.model_updates.contract import (
    BOTH,
    CASES,
    IN_CLOSED_FORM,
    first_context,
    first_update,
    made,
    run,
    steps_of,
)
from tests.model_updates.tiny import assert_same_state, tiny_encoder
from tests.model_updates.two_processes import HERE, RESNET, Learned, file_of, learn, start

# One for each way to use the towers; the others with -m slow.
ONE_OF_EACH = [
    *(
        "finetune+er",
        "ewc",
        "c-clip",
        "incclip",
        "ctp",
        "zscl",
        "lora",
        "language-tables",
        "evergreen",
        BOTH,
        "l2p",
    ),
    *("oewc", "ridge-heads", f"finetune@{RESNET}"),
]
OTHERS = [name for name in CASES if name not in ONE_OF_EACH]
# These look at whole batches, or train nothing.
WHOLE = IN_CLOSED_FORM | {
    *("l2p", "dualprompt", "coda-prompt", "teir+dualprompt", "teir+coda-prompt", "cpe-clip", "moe-adapters"),
}
# Of the way that training goes. Adam makes a step of full length of a gradient that is nothing but rounding.
NEAR = 1e-3


@pytest.fixture(
    scope="module", params=[ONE_OF_EACH, pytest.param(OTHERS, marks=pytest.mark.slow)], ids=["some", "rest"]
)
def learned(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Learned]]:
    """What each of two processes learned together, and what one learns alone, by the case."""
    cases, folder = list(request.param), tmp_path_factory.mktemp("two")
    both = start(folder, cases)
    try:
        alone = {case: learn(case, None) for case in cases}
        assert [one.wait(timeout=300) for one in both] == [0, 0]
    finally:
        for one in both:
            one.kill()
    ranks = [torch.load(file_of(folder, rank)) for rank in range(2)]
    return {case: [alone[case], *(Learned(*rank[case]) for rank in ranks)] for case in cases}


def test_every_strategy_learns_what_it_learns_in_one_process(learned: dict[str, list[Learned]]) -> None:
    before = {"": tiny_encoder().state(), RESNET: tiny_encoder(architecture=RESNET).state()}
    far = {}
    for case, (alone, first, _) in learned.items():
        started = before[case.partition("@")[2]]
        share = _length(first.state, alone.state) / max(_length(started, alone.state), 1e-9)
        if not share < NEAR:
            far[case] = share
    assert not far


def test_weights_are_the_same_to_the_bit_in_both_and_so_are_random_numbers(
    learned: dict[str, list[Learned]],
) -> None:
    for case, (alone, first, second) in learned.items():
        assert all(torch.equal(value, second.state[name]) for name, value in first.state.items()), case
        assert first.next_number == second.next_number == alone.next_number, case


def test_towers_are_shared_out_and_pictures_counted_as_in_one(learned: dict[str, list[Learned]]) -> None:
    assert {case: ways[1].shared > 0 for case, ways in learned.items()} == {
        case: case not in WHOLE for case in learned
    }
    assert {case: ways[1].forwards for case, ways in learned.items()} == {
        case: ways[0].forwards for case, ways in learned.items()
    }


def test_an_encoder_of_no_group_runs_alone() -> None:
    encoder = DataParallelEncoder.of(tiny_encoder(), None)
    encoder.train()
    assert encoder.forward_tokens(encoder.tokenize(["a box", "a ball"])).shape == (2, encoder.dim)
    assert encoder.shared == 0
    assert isinstance(encoder.copy(), DataParallelEncoder)


def test_what_no_text_has_reached_has_no_gradient_and_so_does_not_decay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in HERE.items():
        monkeypatch.setenv(name, value)
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        encoder = DataParallelEncoder.of(tiny_encoder(), distributed.group.WORLD)
        encoder.model.requires_grad_(True)
        encoder.forward_tokens(encoder.tokenize(["a box", "a ball"])).sum().backward()  # type: ignore[no-untyped-call]
    finally:
        distributed.destroy_process_group()
    assert encoder.shared == 2
    reached = {name for name, parameter in encoder.parameters() if parameter.grad is not None}
    assert "token_embedding.weight" in reached
    assert not any(name.startswith("visual.") for name in reached)


@pytest.mark.parametrize("name", ONE_OF_EACH[:-1])
def test_who_has_the_last_checkpoint_ends_an_update_that_others_trained(name: str, tmp_path: Path) -> None:
    begins: list[bool] = []
    elsewhere = up_to_its_end(made(name), lambda: begins.append(True))
    run(elsewhere, first_context(name, tiny_encoder()), checkpoints=tmp_path)
    assert begins or name in IN_CLOSED_FORM
    encoder, here = tiny_encoder(), made(name)
    report = run(here, first_context(name, encoder), checkpoints=tmp_path)
    whole = first_update(name)
    assert steps_of(here) == (steps_of(whole.strategy) if name in IN_CLOSED_FORM else 0)
    assert_same_state(encoder.state(), whole.after.state())
    assert (report.history, report.notes) == (whole.report.history, whole.report.notes)


def _length(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> float:
    """How far two states are apart; of what only one has, from nothing."""
    named = {name for name, value in theirs.items() if value.is_floating_point()}
    parts = [
        theirs[name] - ours[name] if name in ours and ours[name].shape == theirs[name].shape else theirs[name]
        for name in named
    ]
    return float(torch.stack([part.double().square().sum() for part in parts]).sum().sqrt())
