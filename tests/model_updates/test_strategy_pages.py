"""docs/strategies.md says what the code says, and programs are told the same."""

from pathlib import Path

import pytest

from model_updates.references import REFERENCES
from model_updates.strategies import STRATEGIES
from model_updates.strategy_facts import WRITTEN, Family, by_family
from model_updates.strategy_pages import (
    document,
    every_strategy,
    facts_named,
    facts_of,
    strategies_page,
    written,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "strategies.md"


def test_the_page_is_what_the_code_writes() -> None:
    is_new = PAGE.read_text(encoding="utf-8") == strategies_page(STRATEGIES.own(), REFERENCES)
    assert is_new, "docs/strategies.md is older than the code: run `make docs` and commit the page"


def test_what_is_read_without_the_classes_is_what_they_say() -> None:
    is_new = (ROOT / "model_updates" / WRITTEN).read_text(encoding="utf-8") == written()
    assert is_new, f"{WRITTEN} is older than the code: run `make docs` and commit it"
    assert list(every_strategy()) == list(STRATEGIES)
    assert every_strategy()["evergreen"] == facts_of(STRATEGIES["evergreen"]) == facts_named("evergreen")


def test_every_strategy_and_every_option_is_on_it() -> None:
    page = strategies_page(STRATEGIES, REFERENCES)
    for kind in STRATEGIES.values():
        section = page.partition(f"\n### {kind.name}\n")[2].partition("\n### ")[0]
        rows = [line for line in section.splitlines() if line.startswith("| `")]
        assert len(rows) == len(facts_of(kind).options)
        assert not [row for row in rows if row.endswith("|  |")], "an option without a meaning"


def test_every_strategy_stands_once_in_the_table_of_its_family() -> None:
    page = strategies_page(STRATEGIES, REFERENCES)
    for kind in STRATEGIES.values():
        own = page.partition(f"\n## {kind.family.title}\n")[2].partition("\n## ")[0]
        assert page.count(f"| [`{kind.name}`](#") == own.count(f"| [`{kind.name}`](#") == 1


def test_families_come_in_their_order_and_empty_ones_not_at_all() -> None:
    some = [facts_named(name) for name in ("evergreen", "teir", "finetune", "cll-clip")]
    read = [(family, [one.name for one in ones]) for family, ones in by_family(some)]
    assert read == [
        (Family.BOUNDS, ["finetune"]),
        (Family.LANGUAGES, ["teir", "cll-clip"]),
        (Family.OURS, ["evergreen"]),
    ]


@pytest.mark.parametrize(
    ("name", "trains", "embeds_again", "language_at_query"),
    [
        ("finetune", "both towers", "all pictures", False),
        ("teir", "the token table", "no picture", False),
        ("language-tables", "token rows of the new languages", "no picture", True),
        ("domain-adapters", "an adapter for each new domain", "those of the new domains", False),
    ],
)
def test_facts_say_what_trains_and_what_is_asked_of_gallery_and_query(
    name: str, trains: str, embeds_again: str, language_at_query: bool
) -> None:
    said = facts_named(name)
    assert (said.trains, said.embeds_again, said.language_at_query) == (
        trains,
        embeds_again,
        language_at_query,
    )


def test_references_are_no_strategies_and_are_listed_beside_them() -> None:
    assert not REFERENCES.keys() & STRATEGIES.keys()
    listed = document(every_strategy(), REFERENCES)
    assert sorted(said["name"] for said in listed["strategies"]) == sorted(STRATEGIES)
    assert [said["name"] for said in listed["references"]] == ["zero-shot", "translate-test"]
    page = strategies_page(STRATEGIES, REFERENCES)
    bounds = page.partition("\n## Bounds\n")[2].partition("\n## ")[0]
    assert all(f"| `{name}` (a reference) |" in bounds for name in REFERENCES)
