"""A cell is of the code that teaches and measures its strategy: what else changes makes it no older."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.bench import sources

TRAINER = "model_updates/trainer.py"


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sources, which is what is read."""
    for package in ("model_updates", "app/bench"):
        for path in (sources.ROOT / package).rglob("*.py"):
            target = tmp_path / path.relative_to(sources.ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    sources._read.cache_clear()
    return tmp_path


@pytest.mark.parametrize(
    ("file", "more", "changed"),
    [
        (TRAINER, "\nMORE = 1\n", {"finetune", "ctp+er", "zero-shot"}),
        ("model_updates/strategies/ctp.py", "\nMORE = 1\n", {"ctp+er"}),
        ("model_updates/strategies/afec.py", "\nMORE = 1\n", set()),
        ("app/bench/charts.py", "\nMORE = 1\n", set()),
        (TRAINER, "\n# Said, not done.\n", set()),
    ],
)
def test_a_cell_is_as_old_as_the_code_that_it_runs(
    copied: Path, file: str, more: str, changed: set[str]
) -> None:
    names = ("finetune", "ctp+er", "zero-shot")
    before = {name: sources.sources_of(name) for name in names}
    path = copied / file
    path.write_text(path.read_text(encoding="utf-8") + more, encoding="utf-8")
    sources._read.cache_clear()
    assert {name for name in names if sources.sources_of(name) != before[name]} == changed


def test_docstrings_make_no_difference(tmp_path: Path) -> None:
    digests = []
    for number, text in enumerate(('"""One."""\nX = 1\n', '"""Two."""\nX = 1\n', "X = 2\n")):
        path = tmp_path / f"{number}.py"
        path.write_text(text, encoding="utf-8")
        digests.append(sources._read(path)[0])
    assert digests[0] == digests[1] != digests[2]
