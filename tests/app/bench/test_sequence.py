from __future__ import annotations

from pathlib import Path

import pytest

from app.bench.sequence import BenchSequence, StrategyRun, read_sequence
from app.desk.errors import UsageProblem

STEPS = '[[steps]]\nlanguages = ["de"]\n[[steps]]\nlanguages = ["fr"]\n[[steps]]\nlanguages = ["ja"]\n'


def _read(folder: Path, text: str) -> BenchSequence:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return read_sequence(path)


def test_a_step_takes_what_it_does_not_say_from_the_sequence(tmp_path: Path) -> None:
    found = _read(tmp_path, f'name = "x"\nchunks = ["names"]\ndomains = ["noto"]\nseeds = 2\n{STEPS}')
    first = found.ordered(0)[0]
    assert (first.chunks, first.languages, first.domains) == (("names",), ("de",), ("noto",))
    assert found.seeds == (0, 1)


def test_orders_go_round_with_the_seeds_and_a_fixed_step_keeps_its_place(tmp_path: Path) -> None:
    fixed = '[[steps]]\nname = "base"\nstrategy = "joint"\n'
    found = _read(tmp_path, f'name = "x"\nseeds = 3\norders = ["given", "reversed"]\n{fixed}{STEPS}')
    taken = [[step.name or step.languages[0] for step in found.ordered(seed)] for seed in found.seeds]
    assert taken == [["base", "de", "fr", "ja"], ["base", "ja", "fr", "de"], ["base", "de", "fr", "ja"]]


def test_a_run_is_another_one_when_its_own_options_or_the_steps_change(tmp_path: Path) -> None:
    text = f'name = "x"\nepochs = 3\n{STEPS}'
    found, changed = _read(tmp_path, text), _read(tmp_path, text.replace("epochs = 3", "epochs = 4"))
    teir, er = StrategyRun(name="teir"), StrategyRun(name="er")
    assert found.digest(teir) != changed.digest(teir)
    tuned = found.model_copy(
        update={"tuned": {"er": {"learning_rate": 0.1}}, "seeds": (5,), "about": "Other words."}
    )
    assert tuned.digest(teir) == found.digest(teir)
    assert tuned.digest(er) != found.digest(er)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'name = "x"\ncolour = "red"\n{STEPS}', r"own.toml, colour: .*not permitted"),
        (f'name = "x"\n{STEPS}[[steps]]\nlanguages = ["de"]\n', "two steps are called 'de'"),
        ('name = "x"\n', "own.toml, steps: "),
        (f'name = "x"\nseeds = []\n{STEPS}', "at least one seed"),
        ('name = "x"\n[[steps]]\npart = "6/5"\n', "one of so many"),
        (f'name = "Not A Name"\n{STEPS}', "own.toml, name: "),
        (f'name = "x"\norders = ["backwards"]\n{STEPS}', "own.toml, orders"),
        ("name = ", "own.toml is not a TOML file"),
        (f'name = "x"\ntuned = "nowhere.toml"\n{STEPS}', "There is no file .*nowhere.toml"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageProblem, match=said):
        _read(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="There is no file"):
        read_sequence(tmp_path / "nothing.toml")


def test_a_line_says_more_than_the_sequence_and_that_more_than_what_was_tuned(tmp_path: Path) -> None:
    (tmp_path / "tuned.toml").write_text("[er]\nalpha = 0.1\nepochs = 2\nbatch_size = 8\n", encoding="utf-8")
    text = f'name = "x"\ntuned = "tuned.toml"\n[defaults.er]\nalpha = 0.5\nepochs = 4\n{STEPS}'
    found = _read(tmp_path, text)
    said = found.options_of(StrategyRun(name="er", options={"epochs": 7}))
    assert said == {"alpha": 0.5, "epochs": 7, "batch_size": 8}
    assert found.options_of(StrategyRun(name="der")) == {}
