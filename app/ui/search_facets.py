"""The facets below the filters: years, folders, domains and languages with counts, each a link that narrows it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.desk.hits import SearchRequest
from app.ui.address import address_of
from app.ui.wording import escaped
from app.ui.words import Words
from app.words.language_names import name_in
from ingest.facets import Facets, FacetValue

_JOINING = re.compile(r'"(?:[^"\\]|\\.)*"|[()]|(?P<either>\bor\b)|(?P<both>\s+and\s+)', re.IGNORECASE)
_SHOWN = 12  # values of a facet; the box takes any other


def facet_links(found: Facets, asked: SearchRequest, say: Words) -> str:
    """Returns a line for each facet that tells pictures apart; a chosen value is bold, and its link takes it away."""
    lines = [
        _line(say("Year"), "taken", found.years, asked, say),
        _line(say("Folder"), "folder", found.folders, asked, say),
        _line(say("Domain"), "domain", found.domains, asked, say),
        _line(say("Captioned in"), "language", found.languages, asked, say),
    ]
    return "  \n".join(filter(None, lines))


def _line(name: str, field: str, values: Iterable[FacetValue], asked: SearchRequest, say: Words) -> str:
    links = [_link(field, one, asked, say) for one in list(values)[:_SHOWN]]
    tells = len(links) > 1 or any(link.startswith("**") for link in links)
    return f"{escaped(name)}: {' · '.join(links)}" if tells else ""


def _link(field: str, one: FacetValue, asked: SearchRequest, say: Words) -> str:
    condition = f"{field} = {_quoted(one.value)}"
    is_chosen = condition in _conditions(asked.where)
    where = without(asked.where, condition) if is_chosen else joined(asked.where, condition)
    address = address_of(asked.model_copy(update={"where": where})) or "?"
    shown = _shown(field, one.value, say)
    mark = "**" if is_chosen else ""
    return f"{mark}[{escaped(shown)}]({address}){mark} {one.count:,}"


def _shown(field: str, value: str, say: Words) -> str:
    if field == "language":
        return name_in(value, say.language)
    # The end of a path tells folders apart; the whole stands in the address.
    return "/".join(value.rstrip("/").rsplit("/", 2)[-2:]) if field == "folder" else value


def joined(where: str, condition: str) -> str:
    """Returns a filter that asks for a condition, too."""
    return " AND ".join([*_conditions(where), condition])


def without(where: str, condition: str) -> str:
    """Returns a filter without one of the conditions that must all hold; as it is where that is none of them."""
    left = _conditions(where)
    if condition not in left:
        return where
    left.remove(condition)
    is_one = len(left) == 1 and left[0].startswith("(") and left[0].endswith(")") and left[0].count("(") == 1
    return left[0][1:-1] if is_one else " AND ".join(left)


def _conditions(where: str) -> list[str]:
    """Returns the conditions of a filter that must all hold, as they are written; one that holds by OR in brackets."""
    where, found, start, depth = where.strip(), [], 0, 0
    for part in _JOINING.finditer(where):
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if depth == 0 and part["either"]:
            return [f"({where})"]
        if depth == 0 and part["both"]:
            found.append(where[start : part.start()])
            start = part.end()
    return [one for one in (*found, where[start:]) if one]


def _quoted(value: str) -> str:
    plain = value.replace("-", "").replace(".", "").replace("/", "").replace("_", "")
    if plain.isalnum() and plain.isascii() and not value.startswith("."):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
