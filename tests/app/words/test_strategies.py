"""Strategies in words: the terminal's list and the page's menu."""

from app.words import messages
from app.words import strategies as strategy_words
from model_updates.references import REFERENCES
from model_updates.strategies import STRATEGIES
from model_updates.strategy_pages import every_strategy, facts_named


def shown(parts: list[object]) -> str:
    console = messages.console()
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return captured.get()


def test_the_list_names_every_strategy_and_reference_with_what_it_trains() -> None:
    text = shown(strategy_words.everything(every_strategy(), REFERENCES))
    starts = [line.split(" ")[0] for line in text.splitlines()]
    assert {*STRATEGIES, *REFERENCES} <= set(starts)
    assert "trains: the token table · keeps: how often each token was seen · embeds again: no picture" in text
    assert (
        starts.index("finetune")
        < starts.index("zero-shot")
        < starts.index("cll-clip")
        < starts.index("evergreen")
    )


def test_one_strategy_is_shown_with_the_meaning_of_its_options() -> None:
    text = shown(strategy_words.one(facts_named("language-tables")))
    assert "text and its language, chosen or detected" in text
    assert "pairs per step" in text


def test_the_menu_begins_with_what_is_recommended_and_holds_each_once() -> None:
    choices = strategy_words.menu(every_strategy(), recommended="teir")
    assert choices[0] == ("teir (recommended)", "teir")
    assert sorted(name for _, name in choices) == sorted(STRATEGIES)
    assert ("finetune · bounds", "finetune") in choices
    assert len(strategy_words.menu(every_strategy())) == len(STRATEGIES)
