"""What Markdown cannot say: tables with coloured cells and drawings, as HTML and SVG in which all text is escaped.

The content security policy forbids what `gr.HTML` needs, so they stand in a Markdown component that does not sanitize.
Nothing but `Markup`, which only `tag` makes, may get there.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

import gradio as gr

from app.ui.words import ENGLISH, Words

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_SPACE = re.compile(r"\s+")

_VOID = frozenset({"br", "hr", "img", "input"})  # elements that have no end
Attribute = str | float | None


class Markup(str):
    """HTML or SVG that `tag` has made: nothing in it has to be escaped again."""

    __slots__ = ()


def tag(name: str, *inside: object, **attributes: Attribute) -> Markup:
    """Returns an element; text inside and attributes are escaped, `Markup` inside is not.

    Args:
        name: of the element.
        inside: text, numbers, `Markup`, or several of them in a list.
        attributes: `class_` and the like lose their underscore, others become hyphens; None is left out.

    Raises:
        ValueError: a name could break out of the element.
    """
    written = []
    for key, value in attributes.items():
        said = key.rstrip("_").replace("_", "-")
        if value is not None:
            written.append(f' {_sound(said)}="{_escaped(value)}"')
    opening = f"<{_sound(name)}{''.join(written)}>"
    return Markup(opening if name in _VOID else f"{opening}{_joined(inside)}</{name}>")


def framed_table(
    header: Sequence[str | Markup], rows: Sequence[Markup], *, kind: str = "", say: Words = ENGLISH
) -> Markup:
    """Returns a table that scrolls by itself where it is too wide.

    Args:
        header: of its columns; one without a word heads nothing.
        rows: `tr` elements.
        kind: a class of the style sheet.
        say: the words, for readers who do not see it.
    """
    head = [tag("th", one, scope="col") if one else tag("td") for one in header]
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", list(rows)), class_=kind or None)
    return tag("div", table, class_="scrolls", tabindex=0, role="group", aria_label=say("A table"))


def drawing(elem_id: str, kind: str = "", *, visible: bool = False) -> gr.Markdown:
    """Returns the empty component that `drawn` fills."""
    return gr.Markdown(
        "",
        sanitize_html=False,
        latex_delimiters=[],
        elem_id=elem_id,
        elem_classes=["drawn", *kind.split()],
        visible=visible,
    )


def drawn(markup: Markup | None) -> gr.Markdown:
    """Returns the component with a drawing in it; without one it is hidden."""
    if markup is None:
        return gr.Markdown("", visible=False)
    # A blank line would end the block of HTML; `_escaped` leaves none.
    return gr.Markdown(tag("div", markup), visible=True)


def _joined(inside: Iterable[object]) -> str:
    parts = []
    for one in inside:
        if isinstance(one, (list, tuple)):
            parts.append(_joined(one))
        else:
            parts.append(one if isinstance(one, Markup) else _escaped(one))
    return "".join(parts)


def _escaped(value: object) -> str:
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return html.escape(_SPACE.sub(" ", shown))


def _sound(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an element or attribute")
    return name
