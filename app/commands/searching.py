"""The verb that searches."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from app.commands.terminal import HomeOption, JsonOption, LanguageOption, show, workspace_for
from app.errors import UsageProblem

if TYPE_CHECKING:
    from app.query.question import QueryAnswer
    from app.search import Answer, Snapshot
    from app.workspace import Workspace

_ID_SHOWN = 12
_FILTERS = "Filters"
_Several = list[str] | None
Choice = TypeVar("Choice", bound=StrEnum)


def _option(name: str, says: str) -> Any:
    return typer.Option(name, help=says, show_default=False)


def _filter(name: str, says: str) -> Any:
    return typer.Option(name, help=says, show_default=False, rich_help_panel=_FILTERS)


def search(  # noqa: PLR0913 - one parameter per option
    query: Annotated[
        _Several,
        typer.Argument(
            help="What the pictures show: texts, picture files and weights, such as: 2:red car + ./a.jpg - fruit",
            show_default=False,
            metavar="QUERY",
        ),
    ] = None,
    language: LanguageOption = "auto",
    translation: Annotated[str, _option("--translation", "The query in English; both count.")] = "",
    k: Annotated[int | None, typer.Option("--k", "-k", min=1, help="How many.", show_default=False)] = None,
    like: Annotated[_Several, _option("--like", "More like this picture of the gallery, by its id.")] = None,
    mode: Annotated[
        str, typer.Option(help="Look it up in vectors, captions, or both fused: hybrid.")
    ] = "vectors",
    domain: Annotated[_Several, _filter("--domain", "Only pictures of this domain.")] = None,
    captioned: Annotated[
        _Several, _filter("--captioned", "Only pictures captioned in this language.")
    ] = None,
    chunk: Annotated[_Several, _filter("--chunk", "Only pictures of this chunk.")] = None,
    since: Annotated[datetime | None, _filter("--since", "Taken in on this day (UTC) or later.")] = None,
    until: Annotated[datetime | None, _filter("--until", "Taken in on this day (UTC) or earlier.")] = None,
    caption: Annotated[str, _filter("--caption", "Only pictures with these words in a caption.")] = "",
    fold: Annotated[bool, typer.Option("--fold", help="Show of near-copies only the best.")] = False,
    page: Annotated[str, _option("--next", "The next page, by the cursor of the answer before.")] = "",
    least: Annotated[
        str | None, _option("--min-relevance", "Leave out hits that are worth less: strong or weak.")
    ] = None,
    captions: Annotated[
        int, typer.Option("--captions", min=0, help="Show so many captions, too, nearest first.")
    ] = 0,
    captions_in: Annotated[
        _Several, _option("--captions-in", "Of this language; all learned ones without it.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say how near each part is.")] = False,
    release: Annotated[str | None, _option("--release", "Ask this release, not the live one.")] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Updates must keep the first answer.")] = False,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Let the release's fusion encoder order the first 50.")
    ] = False,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Search pictures by texts, by pictures, or by both."""
    with workspace_for(home) as workspace:
        from app.query.filters import Filters
        from app.query.finder import Finder
        from app.query.grammar import Kind, Term
        from app.query.parts import query_terms, read_file, read_pictures
        from app.query.question import Mode, Question
        from app.query.relevance import Relevance

        settings = workspace.settings
        # Words that a shell has split; a lone + or - of theirs is an operator as in one argument.
        asked = " ".join(query or [])
        terms = query_terms(asked, longest=settings.max_query_characters) if asked or not like else ()
        question = Question(
            (*terms, *(Term(Kind.ITEM, one.removeprefix("#").lower()) for one in like or [])),
            read_pictures(terms, read_file),
            language=language,
            translation=translation,
            filters=Filters(
                languages=tuple(captioned or ()),
                domains=tuple(domain or ()),
                chunks=tuple(chunk or ()),
                since=since.date() if since else None,
                until=until.date() if until else None,
                caption=caption,
            ),
            k=k or settings.default_k,
            cursor=page,
            mode=_one_of(Mode, mode, "--mode"),
            least=_one_of(Relevance, least, "--min-relevance") if least else None,
            captions=captions,
            caption_languages=tuple(captions_in or ()),
            fold=fold,
            rerank=rerank,
            explain=explain,
        )
        if pin and [(term.kind, term.weight) for term in question.terms] != [(Kind.TEXT, 1.0)]:
            raise UsageProblem("Only a query that is one text can be pinned.")
        answer = Finder(workspace).find(_snapshot(workspace, release, page), question)
        lines = said_of(answer)
        if pin:
            lines.append(_pin(workspace, answer))
        document = asdict(answer)
        # What `--json` writes is read by programs: an embedding of theirs need not come back.
        document["terms"] = [{k: v for k, v in term.items() if k != "vector"} for term in document["terms"]]
        show(is_json, document, *lines, _table(workspace, answer), *_captions_table(answer))


def _one_of(kind: type[Choice], name: str, option: str) -> Choice:
    try:
        return kind(name)
    except ValueError as error:
        raise UsageProblem(f"{option} is one of {', '.join(kind)}; found {name!r}.") from error


def _snapshot(workspace: Workspace, release: str | None, cursor: str) -> Snapshot:
    """Loads a release: one that is named, that of a cursor, or the live one."""
    from app.query.pages import snapshot_of
    from app.search import Snapshot

    if release is not None or not cursor:
        return Snapshot.load(workspace, release)
    return snapshot_of(cursor, lambda name: Snapshot.load(workspace, name))


def said_of(answer: QueryAnswer) -> list[str]:
    """Says how a query was understood, and what it was searched in."""
    from app.messages import plain

    read = f", read as {answer.language}" if answer.language else ""
    lines = [f"Release {answer.release}{read}.", answer.note]
    if len(answer.terms) > 1:
        lines.append("Asked: " + answer.query)
    if answer.searched < answer.gallery:
        lines.append(f"{answer.searched} of {answer.gallery} pictures were searched.")
    if answer.hits and answer.relevance == "nothing":
        lines.append("Probably nothing here fits; these are the nearest.")
    if answer.next:
        lines.append(f"There are more: --next {answer.next}")
    return [plain(line) for line in lines if line]


def _table(workspace: Workspace, answer: QueryAnswer) -> Any:
    from app.messages import table
    from app.query.question import Mode

    if not answer.hits:
        return "Nothing was found."
    header = ["rank", "score", "picture", "caption"]
    more: list[tuple[str, list[str]]] = []
    if any(hit.relevance for hit in answer.hits):
        more.append(("relevance", [hit.relevance for hit in answer.hits]))
    if answer.mode is not Mode.VECTORS:
        more.append(("found by", [" + ".join(hit.by) for hit in answer.hits]))
    if any(hit.copies for hit in answer.hits):
        more.append(("copies", [str(len(hit.copies) or "") for hit in answer.hits]))
    if any(hit.parts for hit in answer.hits):
        more.append(("parts", [" ".join(f"{near:.3f}" for near in hit.parts) for hit in answer.hits]))
    rows = [
        (
            hit.rank,
            f"{hit.score:.3f}",
            hit.image_id[:_ID_SHOWN],
            caption_of(workspace, hit.image_id, answer),
            *(column[n] for _, column in more),
        )
        for n, hit in enumerate(answer.hits)
    ]
    return table([*header, *(name for name, _ in more)], rows)


def _captions_table(answer: QueryAnswer) -> list[Any]:
    from app.messages import table

    rows = [
        (f"{one.score:.3f}", one.language, one.text, ", ".join(image[:_ID_SHOWN] for image in one.images))
        for one in answer.captions
    ]
    return [table(("score", "language", "caption", "pictures"), rows)] if rows else []


def _pin(workspace: Workspace, answer: Answer) -> str:
    if not answer.hits:
        return "Nothing to pin."
    first = answer.hits[0].image_id
    workspace.catalog.set_pin(answer.query, answer.language.split(" + ")[0], first)
    return f"Pinned: updates must keep {first[:_ID_SHOWN]} as the first answer to {answer.query!r}."


def caption_of(workspace: Workspace, image_id: str, answer: Answer) -> str:
    """Returns a picture's first caption, in the language of the query if it has one."""
    captions = workspace.catalog.captions_of(image_id)
    wanted = answer.language.split(" + ")
    captions.sort(
        key=lambda caption: wanted.index(caption.language) if caption.language in wanted else len(wanted)
    )
    return f"{captions[0].text} ({captions[0].language})" if captions else ""
