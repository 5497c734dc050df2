"""Verbs that ask queries: search, compare, changes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.answers import ID_SHOWN, answer_parts, caption_of
from app.commands.options import LanguageOption, ReleaseArgument, argument, option, release_names
from app.commands.terminal import require_place
from app.commands.verb import Shown, verb
from app.desk.errors import BadQuery, UsageProblem
from app.words.messages import moved_table, size, table

if TYPE_CHECKING:
    from app.desk.desk import Desk
    from app.desk.hits import Asked, ManyCompared, SearchAnswer, SearchRequest
    from ingest.facets import Facets

_QUERY = "What the pictures show: texts, picture files and weights, such as: 2:red car + ./a.jpg - fruit"
_CHANGES_NO_FIRST_ANSWER = {"text", "language", "k", "dedup", "captions", "caption_languages", "explain"}
ComparedHits = Annotated[int, typer.Option("--k", "-k", min=1, max=500, help="How many hits are compared.")]


def _filter(name: str, says: str) -> Any:
    return option(name, says=says, rich_help_panel="Filters")


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """What `search` is asked; a field that `SearchRequest` has too goes there as it is."""

    query: Annotated[list[str] | None, argument(_QUERY, "QUERY")] = None
    language: LanguageOption = "auto"
    translation: Annotated[str, option(says="The query in English; both count.")] = ""
    k: Annotated[int | None, option("--k", "-k", says="How many.", min=1)] = None
    like: Annotated[list[str] | None, option(says="More like this picture of the gallery, by its id.")] = None
    mode: Annotated[str, typer.Option(help="Look it up in vectors, captions, or both fused: hybrid.")] = (
        "vectors"
    )
    sort: Annotated[
        str, option(says="The newest first: by when they were added, without a query, or taken.")
    ] = "added"
    domains: Annotated[list[str] | None, _filter("--domain", "Only pictures of this domain.")] = None
    languages: Annotated[
        list[str] | None, _filter("--captioned", "Only pictures captioned in this language.")
    ] = None
    chunks: Annotated[list[str] | None, _filter("--chunk", "Only pictures of this chunk.")] = None
    since: Annotated[datetime | None, _filter("--since", "Taken in on this day (UTC) or later.")] = None
    until: Annotated[datetime | None, _filter("--until", "Taken in on this day (UTC) or earlier.")] = None
    caption: Annotated[str, _filter("--caption", "Only pictures with these words in a caption.")] = ""
    where: Annotated[str, _filter("--where", "A filter, such as: taken = 2024 AND folder = Italy.")] = ""
    dedup: Annotated[bool, typer.Option("--fold", help="Show of near-copies only the best.")] = False
    cursor: Annotated[str, option("--next", says="The next page, by the cursor of the answer before.")] = ""
    offset: Annotated[int, typer.Option(help="Pass over so many hits.", min=0)] = 0
    min_relevance: Annotated[
        str | None, option(says="Leave out hits that are worth less: strong or weak.")
    ] = None
    captions: Annotated[int, typer.Option(min=0, help="Show so many captions, too, nearest first.")] = 0
    caption_languages: Annotated[
        list[str] | None, option("--captions-in", says="Of this language; all learned ones without it.")
    ] = None
    explain: Annotated[bool, typer.Option("--explain", help="Say how near each part is.")] = False
    release: Annotated[
        str | None, option(says="Ask this release, not the live one.", autocompletion=release_names)
    ] = None
    pin: Annotated[bool, typer.Option("--pin", help="Updates must keep the first answer.")] = False
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Let the release's fusion encoder order the first 50.")
    ] = False
    paths: Annotated[bool, typer.Option("--paths", help="Print the paths of files alone, a line each.")] = (
        False
    )
    null: Annotated[
        bool, typer.Option("-0", "--null", help="As --paths, for `xargs -0`.", rich_help_panel=None)
    ] = False
    facets: Annotated[
        bool, _filter("--facets", "Count what the filters leave by domain, language, year and folder.")
    ] = False
    csv: Annotated[Path | None, option(says="Write what was found as a table, too.")] = None
    zip: Annotated[
        Path | None, option(says="Write the pictures with their table into a zip, too; up to 100.")
    ] = None

    def request(self) -> SearchRequest:
        """Returns what the desk is asked, with the files that the query names in base64.

        Raises:
            UsageProblem: an option has no value that it can have, or a file could not be written.
            BadQuery: a file cannot be read.
        """
        from app.desk.hits import SearchRequest
        from app.desk.troubles import request_of
        from app.query.named_files import pictures_in

        for name, file in (("--csv", self.csv), ("--zip", self.zip)):
            if file is not None:
                require_place(file, name)
        _require_one_of(self.mode, "--mode", "vectors", "captions", "hybrid")
        _require_one_of(self.sort, "--sort", "added", "taken")
        _require_one_of(self.min_relevance, "--min-relevance", "strong", "weak", "nothing")
        said = {one.name: getattr(self, one.name) for one in fields(self)}
        asked = {name: value for name, value in said.items() if name in SearchRequest.model_fields}
        # Of words that a shell has split, a lone + or - is an operator as in one argument.
        text = " ".join(self.query or [])
        items = [one.removeprefix("#").lower() for one in self.like or []]
        asked |= {"text": text or None, "images": pictures_in(text), "items": items}
        asked |= {day: said[day].date() for day in ("since", "until") if said[day]}
        return request_of(SearchRequest, **asked)


def _require_one_of(name: str | None, said: str, *choices: str) -> None:
    if name is not None and name not in choices:
        raise UsageProblem(f"{said} is one of {', '.join(choices)}; found {name!r}.")


@verb
def search(desk: Desk, asked: SearchOptions) -> Shown:
    """Search by texts or pictures, or browse."""
    request = asked.request()
    if asked.pin:
        _require_whole(asked, request)
    if asked.facets:
        counted = desk.facets(request)
        return counted, *_facet_tables(counted)
    answer = desk.search(request)
    if asked.pin and [(part.kind, part.weight) for part in answer.parts] != [("text", 1.0)]:
        raise UsageProblem("Only a query that is one text can be pinned.")
    same = request.model_copy(update={"release": answer.release})
    shown = answer_parts(answer)
    for file, made in ((asked.zip, "results_archive"), (asked.csv, "results_table")):
        if file is not None:
            written = size(file.write_bytes(getattr(desk, made)(same)))
            shown.append(f"What was found is in {file} ({written}).")
    if asked.pin:
        shown.append(_pinned(desk, answer))
    return (answer, _paths(answer, asked)) if asked.paths or asked.null else (answer, *shown)


def _require_whole(asked: SearchOptions, request: SearchRequest) -> None:
    """Refuses to pin the answer to anything but a plain query of the live release: the gate asks no other."""
    given = request.model_dump(exclude_defaults=True).keys() - _CHANGES_NO_FIRST_ANSWER
    if given or asked.facets:
        raise UsageProblem(
            "Updates keep the first answer of the live release to the words alone, from all pictures. Leave out "
            "whatever else this search asks for, such as filters, --next or --mode, or leave out --pin."
        )


def _facet_tables(counted: Facets) -> list[Any]:
    told = {
        "domain": counted.domains,
        "language": counted.languages,
        "year": counted.years,
        "folder": counted.folders,
    }
    tables = [
        table((name, "pictures"), [(one.value, one.count) for one in found])
        for name, found in told.items()
        if found
    ]
    return tables or ["No picture is left."]


def _paths(answer: SearchAnswer, asked: SearchOptions) -> bytes:
    """Returns the paths of files for another program; hits that are no files are counted where people read."""
    found = [hit.file for hit in answer.hits if hit.file]
    if others := len(answer.hits) - len(found):
        typer.echo(f"{others} hits are left out: they lie in no file of their own.", err=True)
    return b"".join(os.fsencode(path) + (b"\0" if asked.null else b"\n") for path in found)


def _pictures_in_all(queries: Sequence[str]) -> dict[str, str]:
    """Reads the files that queries name; a query whose file cannot be read is refused when it is asked."""
    from app.query.named_files import pictures_in

    found: dict[str, str] = {}
    for query in queries:
        try:
            found |= pictures_in(query)
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


@verb
def compare(
    desk: Desk,
    a: ReleaseArgument,
    b: ReleaseArgument,
    query: Annotated[str, argument("What the pictures show.")],
    language: LanguageOption = "auto",
    k: ComparedHits = 10,
) -> Shown:
    """Ask two releases the same query.

    Shows how pictures moved from one to the other.
    """
    from app.query.named_files import pictures_in

    answer = desk.compare(query, a, b, language, k, pictures_in(query))
    hits = {hit.id: hit for hit in (*answer.a.hits, *answer.b.hits)}
    moves = [(move.id, move.rank_a, move.rank_b, caption_of(hits[move.id])) for move in answer.moves]
    common = f"{100 * answer.overlap:.0f} % of the pictures are the same."
    return answer, common, moved_table(answer.a.release, answer.b.release, moves)


@verb
def changes(
    desk: Desk,
    a: ReleaseArgument,
    b: ReleaseArgument,
    queries: Annotated[
        Path | None,
        option(
            says="A file with a query a line; without it canaries and held-out captions are asked.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    language: LanguageOption = "auto",
    k: ComparedHits = 10,
    most: Annotated[int, typer.Option(min=1, max=100, help="How many answers to show.")] = 20,
) -> Shown:
    """Ask two releases many queries.

    The answers that changed most come first.
    """
    if queries is None:
        return _changed(desk.changed(a, b, language, k, most), most)
    return _changed(_asked_in_turn(desk, a, b, queries_in(queries), language, k), most)


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


def _changed(compared: ManyCompared, most: int) -> Shown:
    """Shows the answers that changed most, and what could not be asked."""
    from app.query.comparison import most_changed

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
    if not compared.queries:
        return document, (
            "There is nothing to ask: no canary, and no held-out caption of a chunk that was taught. Name queries with "
            "--queries FILE."
        )
    said = [f"{compared.queries} queries were asked."]
    if compared.overlap is not None:
        said.append(f"On average {100 * compared.overlap:.0f} % of the pictures are the same.")
    said += [f"Refused: {one.error}" for one in refused[:5]]
    if len(refused) > 5:
        said.append(f"… and {len(refused) - 5} more were refused.")
    return document, *said, _changes_table(changed) if changed else "No answer changed."


def _changes_table(changed: Sequence[Asked]) -> Any:
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
