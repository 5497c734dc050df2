"""Claims about what the sources have to say to translators."""

from __future__ import annotations

import ast

from app.words.extraction import headers, marked, sources

SOURCE = """
HELD_HEADERS = ["pair", "R@10", "moved by"] + [f"R@10 {side}" for side in SIDES]
_HEADERS = {"X-Frame-Options": "SAMEORIGIN"}
OTHERS = ["of no table"]
said = phrase("Chunk {chunk} is held.", chunk=chunk)
again = words_of(request)("Choose a file first.")
box = gr.Textbox("12", label="Your note", elem_id="why")
"""


def test_a_message_is_what_is_marked_and_what_a_component_shows() -> None:
    found = list(marked(ast.parse(SOURCE)))
    assert found == ["Chunk {chunk} is held.", "Choose a file first.", "Your note"]


def test_the_words_over_the_columns_of_a_table_need_no_mark() -> None:
    assert list(headers(ast.parse(SOURCE))) == ["pair", "moved by"]


def test_every_message_says_where_it_stands() -> None:
    messages, standing = sources()
    assert "app/ui/wording.py" in messages["time (UTC)"]
    assert len(messages) > 1_000
    assert messages.keys() & standing
