"""Claims about drawings: whatever stands in them was escaped."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.ui import drawn as module
from app.ui.drawn import Markup, drawn, tag


def test_text_and_attributes_are_escaped_and_elements_are_not() -> None:
    inner = tag("b", "<script>", class_='x" onload="alert(1)')
    assert inner == '<b class="x&quot; onload=&quot;alert(1)">&lt;script&gt;</b>'
    assert tag("p", inner, [" & ", inner]) == f"<p>{inner} &amp; {inner}</p>"


def test_no_text_ends_the_block_of_html() -> None:
    assert "\n" not in tag("p", "one\n\n# two", title="a\n\nb")


def test_numbers_and_names_are_written_as_svg_wants_them() -> None:
    assert tag("rect", x=1.5, stroke_width=2.0, fill=None) == '<rect x="1.5" stroke-width="2"></rect>'


def test_what_holds_nothing_has_no_end() -> None:
    assert tag("p", "a", tag("br"), "b") == "<p>a<br>b</p>"  # browsers read </br> as a second break


@pytest.mark.parametrize("name", ["p onload", "", "p>", "1"])
def test_a_name_cannot_break_out(name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        tag(name)


def test_without_a_drawing_nothing_is_shown() -> None:
    assert drawn(None).visible is False
    assert drawn(tag("p", "x")).visible is True


def test_nobody_else_makes_markup() -> None:
    here = Path(module.__file__).parent
    assert [p.name for p in here.glob("*.py") if "Markup(" in p.read_text(encoding="utf-8")] == ["drawn.py"]
    assert isinstance(tag("p"), Markup)
