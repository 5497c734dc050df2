"""docs/strategies.md says what the code says."""

from pathlib import Path

from model_updates.strategies import STRATEGIES
from model_updates.strategy_pages import facts, strategies_page

PAGE = Path(__file__).parents[2] / "docs" / "strategies.md"


def test_the_page_is_what_the_code_writes() -> None:
    written = strategies_page(STRATEGIES)
    assert PAGE.read_text(encoding="utf-8") == written, (
        "write it again: python -m app methods --markdown > docs/strategies.md"
    )


def test_every_strategy_and_every_option_is_on_it() -> None:
    page = strategies_page(STRATEGIES)
    for kind in STRATEGIES.values():
        section = page.partition(f"\n## {kind.name}\n")[2].partition("\n## ")[0]
        rows = [line for line in section.splitlines() if line.startswith("| `")]
        assert len(rows) == len(facts(kind)["options"])
        assert not [row for row in rows if row.endswith("|  |")], "an option without a meaning"
