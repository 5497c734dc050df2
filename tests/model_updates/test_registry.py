"""Strategies of other packages: found by their entry points, loaded when asked for, refused with advice."""

import subprocess
import sys
from pathlib import Path

import pytest

from model_updates.errors import StrategyRefused
from model_updates.options import options_of
from model_updates.registry import Registry
from model_updates.strategies import STRATEGIES
from model_updates.strategy import Strategy
from tests.model_updates.tiny import teach, tiny_encoder

OWN = {"finetune": "model_updates.strategies.finetune:Finetune"}
L2_SP = '''
"""L2-SP: fine-tuning that pays for the distance from where it started."""

from model_updates.strategy import Family
from model_updates.parts.two_towers import TwoTowers


class L2Sp(TwoTowers):
    """Fine-tuning near its start."""

    name = "l2-sp"
    summary = "Fine-tunes both towers and makes every weight pay for leaving its place."
    paper = "Li et al., ICML 2018, eq. 3"
    family = Family.HELD_WEIGHTS

    def before_update(self, context):
        super().before_update(context)
        self._start = [value.detach().clone() for value in context.encoder.model.parameters()]

    def terms(self, batch):
        pairs = zip(self._encoder.model.parameters(), self._start, strict=True)
        return {**super().terms(batch), "stay": 0.01 * sum((now - start).square().sum() for now, start in pairs)}
'''


def installed(folder: Path, package: str, entries: dict[str, str], code: str = L2_SP) -> Path:
    """Puts a package and what an installer writes of it into a folder, as pip does."""
    module = package.replace("-", "_")
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    facts = folder / f"{module}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {module}:{target}" for name, target in entries.items()]
    (facts / "entry_points.txt").write_text("\n".join(["[perennial.strategies]", *lines, ""]))
    return folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_strategy_of_an_installed_package_is_listed_last_and_learns(site: Path) -> None:
    installed(site, "l2-sp-plugin", {"l2-sp": "L2Sp"})
    registry = Registry(OWN)
    assert list(registry) == ["finetune", "l2-sp"]
    assert len(registry) == 2
    kind, encoder = registry["l2-sp"], tiny_encoder()
    before = encoder.image_fingerprint()
    report = teach(encoder, kind(options_of(kind, {"epochs": 2, "batch_size": 8})))
    assert encoder.image_fingerprint() != before
    assert report.history[-1]["stay"] > 0


def test_a_package_is_not_imported_before_its_strategy_is_asked_for(site: Path) -> None:
    installed(site, "noisy-plugin", {"noisy": "Noisy"}, "raise ImportError('no such library')")
    registry = Registry(OWN)
    assert "noisy" in registry
    assert registry["finetune"].name == "finetune"
    with pytest.raises(
        StrategyRefused,
        match="'noisy' of the package noisy-plugin 1.0 .* cannot be imported: no such library. Mend or uninstall",
    ):
        registry["noisy"]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (
            {"finetune": "L2Sp"},
            "two strategies are named 'finetune': that of Perennial .* of the package plugin 1.0",
        ),
        ({"L2 SP": "L2Sp"}, "a strategy named 'L2 SP', and a name is made of small letters"),
        ({"l2-sp-": "L2Sp"}, "a strategy named 'l2-sp-', and a name is made of small letters"),
    ],
)
def test_a_name_that_is_taken_or_none_is_refused_in_the_list(
    site: Path, entries: dict[str, str], said: str
) -> None:
    installed(site, "plugin", entries)
    registry = Registry(OWN)
    with pytest.raises(StrategyRefused, match=f"{said}.* uninstall"):
        list(registry)
    assert registry["finetune"].name == "finetune"  # Perennial's own goes on


def test_two_packages_cannot_bring_the_same_name(site: Path) -> None:
    installed(site, "plugin-a", {"l2-sp": "L2Sp"})
    installed(site, "plugin-b", {"l2-sp": "L2Sp"})
    with pytest.raises(StrategyRefused, match=r"the package plugin-a 1.0 .* the package plugin-b 1.0"):
        list(Registry(OWN))


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"l2-sp": "Missing"}, "cannot be imported"),
        ({"l2-sp": "__doc__"}, "a strategy is a class that inherits from model_updates.strategy.Strategy"),
        ({"other": "L2Sp"}, "calls itself 'l2-sp'"),
    ],
)
def test_what_is_no_strategy_or_has_another_name_is_refused(
    site: Path, entries: dict[str, str], said: str
) -> None:
    installed(site, "plugin", entries)
    (name,) = entries
    with pytest.raises(StrategyRefused, match=said):
        Registry(OWN)[name]


@pytest.mark.usefixtures("starts_at_once")
def test_the_command_line_lists_what_an_installed_package_brings(tmp_path: Path) -> None:
    installed(tmp_path, "l2-sp-plugin", {"l2-sp": "L2Sp"})
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
        "from app.commands.cli import app; app(['methods', 'l2-sp'])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "makes every weight pay" in said.stdout


@pytest.mark.usefixtures("starts_at_once")
def test_a_strategy_of_ours_is_loaded_without_the_others() -> None:
    code = (
        "from model_updates.strategies import strategy_named; strategy_named('finetune'); "
        "import sys; print('model_updates.strategies.evergreen' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
    assert next(iter(STRATEGIES)) == "finetune"


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_no_strategy_is_more_than_three_classes_deep(name: str) -> None:
    # `Strategy`, a base that several share, the strategy; what else they share are parts that they are made of.
    def depth(kind: type) -> int:
        bases = [base for base in kind.__bases__ if issubclass(base, Strategy)]
        return 1 + max(map(depth, bases), default=0)

    assert depth(STRATEGIES[name]) <= 3
