"""Verbs that ask queries: search, compare, changes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from app.commands.answers import ID_SHOWN, answer_parts, caption_of, written_lines
from app.commands.option_records import SearchOptions, with_options
from app.commands.options import (
    ComparedHits,
    LanguageOption,
    MostOption,
    QueriesOption,
    ReleaseArgument,
    TextArgument,
)
from app.commands.terminal import HomeOption, JsonOption, desk_for, show
from app.desk.errors import BadQuery, UsageProblem

if TYPE_CHECKING:
    from app.desk.desk import Desk
    from app.desk.hits import Asked, ManyCompared, SearchAnswer


@with_options
def search(
    context: typer.Context, asked: SearchOptions, home: HomeOption = None, is_json: JsonOption = False
) -> None:
    """Search pictures by texts, by pictures, or by both."""
    asked.check()
    with desk_for(context, home) as desk:
        request = asked.request(_pictures_in(asked.text))
        answer = desk.search(request)
        if asked.pin and [(part.kind, part.weight) for part in answer.parts] != [("text", 1.0)]:
            raise UsageProblem("Only a query that is one text can be pinned.")
        same = request.model_copy(update={"release": answer.release})
        shown = [*answer_parts(answer)]
        shown += written_lines(
            asked,
            zipped=lambda: desk.results_archive(same),
            tabled=lambda: desk.results_table(same),
        )
        if asked.pin:
            shown.append(_pinned(desk, answer))
    show(is_json, answer, *shown)


def _pictures_in(query: str) -> dict[str, str]:
    """Reads the files that a query names, to be sent along."""
    from app.query.grammar import Kind, parse
    from app.query.parts import read_file

    if not query.strip():
        return {}
    names = {term.value for term in parse(query) if term.kind is Kind.IMAGE}
    return {name: base64.b64encode(read_file(name)).decode("ascii") for name in names}


def _pictures_in_all(queries: Sequence[str]) -> dict[str, str]:
    """Reads the files that queries name; a query whose file cannot be read is refused when it is asked."""
    found: dict[str, str] = {}
    for query in queries:
        try:
            found |= _pictures_in(query)
        except BadQuery:
            continue
    return found


def _pinned(desk: Desk, answer: SearchAnswer) -> str:
    from app.desk.opinions import Opinion

    if not answer.hits:
        return "Nothing to pin."
    first = answer.hits[0].id
    language = answer.language.split(" + ")[0] or "auto"
    said = Opinion(query=answer.query, language=language, release=answer.release, image=first, verdict="up")
    desk.pin_feedback(desk.give_feedback(said).id)
    return f"Pinned: updates must keep {first[:ID_SHOWN]} as the first answer to {answer.query!r}."


def compare(
    context: typer.Context,
    a: ReleaseArgument,
    b: ReleaseArgument,
    query: TextArgument,
    language: LanguageOption = "auto",
    k: ComparedHits = 10,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Ask two releases the same and show how pictures moved."""
    from app.words.messages import moved_table

    with desk_for(context, home) as desk:
        answer = desk.compare(query, a, b, language, k, _pictures_in(query))
    hits = {hit.id: hit for hit in (*answer.a.hits, *answer.b.hits)}
    moves = [(move.id, move.rank_a, move.rank_b, caption_of(hits[move.id])) for move in answer.moves]
    common = f"{100 * answer.overlap:.0f} % of the pictures are the same."
    show(is_json, answer, common, moved_table(answer.a.release, answer.b.release, moves))


def changes(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    a: ReleaseArgument,
    b: ReleaseArgument,
    queries: QueriesOption = None,
    language: LanguageOption = "auto",
    k: ComparedHits = 10,
    most: MostOption = 20,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Ask two releases many queries and show which answers changed most."""
    asked = None if queries is None else queries_in(queries)
    with desk_for(context, home) as desk:
        if asked is None:
            compared = desk.changed(a, b, language, k, most)
        else:
            compared = _asked_in_turn(desk, a, b, asked, language, k)
    _show_changes(compared, most, is_json=is_json)


def _asked_in_turn(desk: Desk, a: str, b: str, queries: Sequence[str], language: str, k: int) -> ManyCompared:
    """Asks queries, as many at once as a server takes."""
    from app.desk.hits import MOST_AT_ONCE, ManyCompared
    from app.query.comparison import distinct, mean_overlap

    wanted = distinct(queries)
    told = [
        desk.comparisons(a, b, part, language, k, _pictures_in_all(part))
        for part in (wanted[start : start + MOST_AT_ONCE] for start in range(0, len(wanted), MOST_AT_ONCE))
    ]
    every = tuple(one for part in told for one in part.results)
    return ManyCompared(told[0].a, told[0].b, len(every), mean_overlap(every), every)


def queries_in(file: Path) -> list[str]:
    """Returns the queries of a file, one a line.

    Raises:
        UsageProblem: there is none in it.
    """
    queries = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    if not any(map(str.strip, queries)):
        raise UsageProblem(f"--queries {file}: there is no query in it. Write one a line.")
    return queries


def _show_changes(compared: ManyCompared, most: int, *, is_json: bool) -> None:
    """Shows the answers that changed most, and what could not be asked."""
    from app.query.comparison import most_changed
    from app.words.messages import plain

    changed = most_changed(compared.results, most)
    refused = [one for one in compared.results if one.change is None]
    document = {
        "a": compared.a,
        "b": compared.b,
        "queries": compared.queries,
        "overlap": compared.overlap,
        "changed": [one.change for one in changed],
        "refused": [{"query": one.query, "error": one.error} for one in refused],
    }
    said = [f"{compared.queries} queries were asked."]
    if compared.overlap is not None:
        said.append(f"On average {100 * compared.overlap:.0f} % of the pictures are the same.")
    said += [plain(f"Refused: {one.error}") for one in refused[:5]]
    if len(refused) > 5:
        said.append(f"… and {len(refused) - 5} more were refused.")
    show(is_json, document, *said, _changes_table(changed) if changed else "No answer changed.")


def _changes_table(changed: Sequence[Asked]) -> Any:
    from app.words.messages import table

    rows = [
        (
            f"{100 * one.change.overlap:.0f} %",
            "the same" if one.change.same_first else "another",
            f"{one.change.moved:.1f}",
            f"{one.change.read_a} / {one.change.read_b}",
            one.query,
        )
        for one in changed
        if one.change is not None
    ]
    return table(("in common", "first picture", "moved by", "read in", "query"), rows)
