"""Checkpoints: whole or not there, and only for the update they are of."""

import dataclasses
from pathlib import Path

import pytest
import torch
from timm.optim.lamb import Lamb

from model_updates import checkpoint
from model_updates.checkpoint import Progressed
from model_updates.strategy import State
from model_updates.validation import Score
from tests.model_updates.tiny import assert_same_state, context_for, make_strategy, tiny_encoder, toy_pairs


def trained() -> tuple[torch.nn.Linear, torch.optim.Optimizer]:
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    for _ in range(3):
        layer.zero_grad()
        layer(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    return layer, optimizer


def write(folder: Path, progressed: Progressed, owner: str = "me") -> torch.nn.Linear:
    layer, optimizer = trained()
    checkpoint.save(
        folder,
        progressed,
        owner=owner,
        weights={"a.weight": layer.weight},
        kept=checkpoint.Kept({"a.weight": layer.weight * 2}, {"queue": torch.tensor([3])}),
        strategy={"queue": torch.tensor([1, 2])},
        optimizer=optimizer,
    )
    return layer


def test_all_of_it_comes_back(tmp_path: Path) -> None:
    progressed = Progressed(3, 2, Score(41.5, 2.0), [{"loss": 1.0}])
    layer = write(tmp_path / "new", progressed)
    drawn = torch.rand(4)
    loaded = checkpoint.load(tmp_path / "new", owner="me")
    assert loaded is not None
    assert loaded.progressed == progressed
    assert_same_state(loaded.weights, {"a.weight": layer.weight.detach()})
    assert_same_state(loaded.kept.weights, {"a.weight": 2 * layer.weight.detach()})
    assert_same_state(loaded.kept.strategy, {"queue": torch.tensor([3])})
    assert_same_state(loaded.strategy, {"queue": torch.tensor([1, 2])})
    loaded.restore_random(torch.device("cpu"))
    assert torch.equal(torch.rand(4), drawn)


@dataclasses.dataclass
class NewerProgressed(Progressed):
    paused: int = 2


def test_what_a_newer_release_counts_beside_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, NewerProgressed(3, 2, Score(41.5, 2.0), [{"loss": 1.0}]))
    loaded = checkpoint.load(tmp_path, owner="me")
    assert loaded is not None
    assert loaded.progressed == Progressed(3, 2, Score(41.5, 2.0), [{"loss": 1.0}])


def test_an_optimizer_goes_on_with_its_moments(tmp_path: Path) -> None:
    write(tmp_path, Progressed())
    layer, optimizer = trained()
    loaded = checkpoint.load(tmp_path, owner="me")
    assert loaded is not None
    fresh = torch.optim.AdamW(layer.parameters(), lr=0.1)
    loaded.restore_optimizer(fresh)
    for parameter in layer.parameters():
        assert_same_state(fresh.state[parameter], optimizer.state[parameter])


def test_a_count_of_steps_that_lamb_keeps_with_its_groups_goes_on_too(tmp_path: Path) -> None:
    ends = []
    for stop in (None, 2):
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 2)
        optimizer: torch.optim.Optimizer = Lamb(layer.parameters(), lr=0.1)
        for step in range(4):
            if step == stop:
                checkpoint.save(
                    tmp_path,
                    Progressed(),
                    owner="me",
                    weights={},
                    kept=checkpoint.Kept(),
                    strategy={},
                    optimizer=optimizer,
                )
                loaded = checkpoint.load(tmp_path, owner="me")
                assert loaded is not None
                optimizer = Lamb(layer.parameters(), lr=0.1)
                loaded.restore_optimizer(optimizer)
            layer.zero_grad()
            layer(torch.tensor([[1.0, 2.0, -1.0]])).square().sum().backward()
            optimizer.step()
        ends.append(layer.state_dict())
    assert_same_state(*ends)


def test_there_is_none_at_first(tmp_path: Path) -> None:
    assert checkpoint.load(tmp_path / "nothing", owner="me") is None


def test_the_one_of_another_update_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, Progressed(), owner="someone")
    assert checkpoint.load(tmp_path, owner="me") is None
    assert "of another update" in caplog.text


@pytest.mark.parametrize("cut", [0, 4, 200])
def test_a_damaged_one_counts_as_none(tmp_path: Path, cut: int, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, Progressed())
    file = tmp_path / checkpoint.FILE
    file.write_bytes(file.read_bytes()[:cut])
    assert checkpoint.load(tmp_path, owner="me") is None
    assert "is damaged" in caplog.text


def test_a_new_one_replaces_the_one_before_and_leaves_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, Progressed(epoch=1))
    write(tmp_path, Progressed(epoch=2))
    loaded = checkpoint.load(tmp_path, owner="me")
    assert loaded is not None
    assert loaded.progressed.epoch == 2
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint.FILE]


def test_an_owner_is_everything_that_makes_an_update_what_it_is() -> None:
    def owner(
        name: str = "teir", seed: int = 1, encoder_seed: int = 0, pairs: int = 16, **options: int
    ) -> str:
        context = context_for(tiny_encoder(encoder_seed), toy_pairs()[:pairs], seed=seed)
        return checkpoint.owner_of(make_strategy(name, **options), context)

    same = owner()
    assert owner() == same
    others = [owner("cll-clip"), owner(seed=2), owner(encoder_seed=1), owner(pairs=15), owner(epochs=9)]
    assert len({same, *others}) == 6


def test_an_owner_holds_the_state_from_earlier_updates() -> None:
    context = context_for(tiny_encoder(), toy_pairs())
    strategy = make_strategy("teir")
    before = checkpoint.owner_of(strategy, context)
    strategy.carry(State({"counts": torch.ones(543, dtype=torch.int64)}))
    assert checkpoint.owner_of(strategy, context) != before


def test_an_owner_holds_the_texts() -> None:
    pairs = toy_pairs()
    changed = [*pairs[:-1], dataclasses.replace(pairs[-1], text="anders")]
    strategy, encoder = make_strategy("teir"), tiny_encoder()
    owners = {checkpoint.owner_of(strategy, context_for(encoder, some)) for some in (pairs, changed)}
    assert len(owners) == 2
