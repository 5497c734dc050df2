"""Brings the catalogues up to date with the sources: `python -m app.words.extraction`, which `make docs` runs.

A message is what a source marks by `phrase`, `template`, `say` or `label`, what a component of Gradio shows, what a
list named `...HEADERS` holds, and what settings and strategies say of themselves. A text that a catalogue has already
stays while it stands anywhere in the sources, so names of states need no mark. What is gone is dropped; git keeps it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from app.home.settings import Settings, described
from app.words import strategies as strategy_words
from app.words.catalogue import BASE, FOLDER, HEADER, LANGUAGES
from model_updates.strategy_facts import by_family
from model_updates.strategy_pages import every_strategy

SOURCES = ("ingest", "index", "model_updates", "app")
_MARKS = {"phrase", "Sentence", "template", "say", "label", "words_of"}
_SHOWN = {"label", "info", "placeholder"}
_WORD = re.compile(r"[^\W\d_]{2}")
_WIDTH = 110
_ROOT = Path(__file__).parents[2]


def marked(tree: ast.Module) -> Iterator[str]:
    """Returns the messages that a source marks."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if _name(node.func) in _MARKS:
            yield from _texts(node.args[:1])
        elif isinstance(node.func, ast.Attribute) and _name(node.func.value) == "gr":
            yield from _texts(node.args[:1])
            yield from _texts([one.value for one in node.keywords if one.arg in _SHOWN])


def headers(tree: ast.Module) -> Iterator[str]:
    """Returns what heads the columns of a source's tables: the words in what it assigns to `...HEADERS`."""
    for node in tree.body:
        if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Dict):
            continue  # a dict holds headers of HTTP
        if any(_name(name).endswith("HEADERS") for name in node.targets):
            inner = [one for one in ast.walk(node.value) if isinstance(one, ast.expr)]
            yield from filter(_WORD.search, _texts(inner))


def _name(func: ast.expr) -> str:
    while isinstance(func, ast.Call):  # words_of(request)("Choose a file first.")
        func = func.func
    return func.id if isinstance(func, ast.Name) else ""


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and any(map(str.isalpha, node.value))
        ):
            yield node.value


def trees(root: Path = _ROOT) -> Iterator[tuple[str, ast.Module]]:
    """Returns every source by the name of its file."""
    for path in sorted(path for package in SOURCES for path in (root / package).rglob("*.py")):
        yield path.relative_to(root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def sources(root: Path = _ROOT) -> tuple[dict[str, list[str]], set[str]]:
    """Returns the messages that are marked, each with its files, and all texts that stand in the sources."""
    messages: dict[str, list[str]] = {}
    standing: set[str] = set()
    for name, tree in trees(root):
        for text in dict.fromkeys([*marked(tree), *headers(tree)]):
            messages.setdefault(text, []).append(name)
        for text in _texts([node for node in ast.walk(tree) if isinstance(node, ast.expr)]):
            standing |= {text, text.replace("_", " ")}  # codes of reasons and checks are shown as words
    for text, name in dict.fromkeys(described_texts()):
        messages.setdefault(text, []).append(name)
    return messages, standing


def described_texts() -> Iterator[tuple[str, str]]:
    """Returns what settings and strategies say of themselves, with the package that says it."""
    for setting in described(Settings()):
        yield setting.says, "app/home/settings.py"
    for family, ones in by_family(every_strategy().values()):
        for text in (family.title.lower(), *(one.summary for one in ones)):
            yield text, "model_updates/strategies"
        for text in dict.fromkeys(text for one in ones for told in strategy_words.said(one) for text in told):
            yield text, "model_updates/strategies"


def update(language: str, messages: dict[str, list[str]], standing: set[str]) -> tuple[int, int]:
    """Writes the catalogue of a language anew; returns how many messages there are, and how many lack a translation."""
    path = FOLDER / f"{language}.po"
    with path.open("rb") as file:
        known = read_po(file, locale=language)
    wanted = Catalog(locale=language, creation_date=known.creation_date)
    for text, files in messages.items():
        if known.get(text, HEADER) and not known.get(text):
            continue  # it only heads a column
        wanted.add(text, locations=[(name, 0) for name in files])
    for message in known:
        text = str(message.id)
        if text in standing and (message.context or text not in messages):
            wanted.add(text, context=message.context)
    known.update(wanted, no_fuzzy_matching=True)
    with path.open("wb") as file:
        write_po(file, known, width=_WIDTH, sort_output=True, include_lineno=False, ignore_obsolete=True)
    said = [message for message in known if message.id]
    return len(said), sum(not message.string for message in said)


if __name__ == "__main__":
    found = sources()
    for tag in LANGUAGES:
        if tag != BASE:
            count, missing = update(tag, *found)
            sys.stdout.write(f"{tag}: {count} messages, {missing} not translated\n")
