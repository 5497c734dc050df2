"""docs/gate.md: its pictures are there and can be drawn again, and its numbers are the policy's."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from model_updates.gate.report import Policy
from tests.app.gate_reports import gate_report

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "gate.md"
IMAGES = ROOT / "docs" / "images"


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("gate_pictures")


def test_the_page_shows_every_picture_that_is_drawn_and_no_other(pictures: Any) -> None:
    shown = re.findall(r"!\[[^\]]+\]\(images/gate-([\w-]+)\.svg\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(pictures.PICTURES)
    assert sorted(path.stem.removeprefix("gate-") for path in IMAGES.glob("gate-*.svg")) == sorted(shown)


def test_each_picture_can_be_drawn_again_and_is_a_small_picture(
    pictures: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["gate_pictures.py", "--to", str(tmp_path)])
    pictures.main()
    for name in pictures.PICTURES:
        for folder in (tmp_path, IMAGES):
            path = folder / f"gate-{name}.svg"
            assert ElementTree.parse(path).getroot().attrib["role"] == "img"
            assert path.stat().st_size < 8_000


def test_the_policys_numbers_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 8
    assert {name: float(value) for name, value in rows} == {name: getattr(Policy(), name) for name, _ in rows}


def test_every_rule_has_a_section() -> None:
    headings = " ".join(re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)).lower()
    assert [rule.rule for rule in gate_report("reject").rules if rule.rule not in headings] == []
