"""What comments at fields explain."""

import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

from app.home.settings import Settings
from model_updates.checked import Checked, Count, explained


@dataclass(frozen=True)
class Base(Checked):
    rank: Count = 16  # ä rank, after an umlaut
    # how many; said
    # above it
    many: Count = 2
    silent: str = "# no comment"


@dataclass(frozen=True)
class Grown(Base):
    name: str = "ü"  # said beside it
    many: Count = 3  # said anew


def test_a_field_is_explained_by_the_comment_beside_or_above_it() -> None:
    assert explained(Base) == {"rank": "ä rank, after an umlaut", "many": "how many; said above it"}


def test_what_a_class_inherits_is_explained_by_its_bases_unless_it_says_more() -> None:
    assert explained(Grown) == explained(Base) | {"name": "said beside it", "many": "said anew"}


def test_every_setting_is_explained() -> None:
    says = explained(Settings)
    assert [name for name in Settings.model_fields if not says.get(name)] == []


def test_a_module_without_its_source_explains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = ModuleType("packed")
    monkeypatch.setitem(sys.modules, "packed", packed)
    exec("class Options:\n    rank: int = 1  # said, and lost", vars(packed))
    assert explained(packed.Options) == {}
