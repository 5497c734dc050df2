"""The verb that searches."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from app.commands.answers import ID_SHOWN, ShownAnswer, ShownCaption, ShownHit, answer_parts
from app.commands.options import (
    AskedRelease,
    CaptionedFilter,
    CaptionFilter,
    CaptionsInOption,
    CaptionsOption,
    ChunkFilter,
    CursorOption,
    DomainFilter,
    ExplainOption,
    FoldOption,
    HitsOption,
    LanguageOption,
    LeastOption,
    LikeOption,
    ModeOption,
    PinOption,
    QueryArgument,
    RerankOption,
    SinceFilter,
    TranslationOption,
    UntilFilter,
)
from app.commands.terminal import HomeOption, JsonOption, show, workspace_for
from app.errors import UsageProblem

if TYPE_CHECKING:
    from app.query.question import QueryAnswer
    from app.search import Answer, Snapshot
    from app.workspace import Workspace

Choice = TypeVar("Choice", bound=StrEnum)


def search(  # noqa: PLR0913 - one parameter per option
    query: QueryArgument = None,
    language: LanguageOption = "auto",
    translation: TranslationOption = "",
    k: HitsOption = None,
    like: LikeOption = None,
    mode: ModeOption = "vectors",
    domain: DomainFilter = None,
    captioned: CaptionedFilter = None,
    chunk: ChunkFilter = None,
    since: SinceFilter = None,
    until: UntilFilter = None,
    caption: CaptionFilter = "",
    fold: FoldOption = False,
    page: CursorOption = "",
    least: LeastOption = None,
    captions: CaptionsOption = 0,
    captions_in: CaptionsInOption = None,
    explain: ExplainOption = False,
    release: AskedRelease = None,
    pin: PinOption = False,
    rerank: RerankOption = False,
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
        shown = answer_parts(_shown(workspace, answer))
        if pin:
            shown.append(_pin(workspace, answer))
        document = asdict(answer)
        # What `--json` writes is read by programs: an embedding of theirs need not come back.
        document["terms"] = [{k: v for k, v in term.items() if k != "vector"} for term in document["terms"]]
        show(is_json, document, *shown)


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


def _shown(workspace: Workspace, answer: QueryAnswer) -> ShownAnswer:
    return ShownAnswer(
        release=answer.release,
        language=answer.language,
        note=answer.note,
        asked=answer.query if len(answer.terms) > 1 else "",
        mode=answer.mode,
        gallery=answer.gallery,
        searched=answer.searched,
        relevance=answer.relevance,
        next=answer.next,
        hits=[
            ShownHit(
                hit.image_id,
                hit.rank,
                hit.score,
                caption_of(workspace, hit.image_id, answer),
                *(hit.relevance, hit.by, hit.copies, hit.parts),
            )
            for hit in answer.hits
        ],
        captions=[ShownCaption(one.score, one.language, one.text, one.images) for one in answer.captions],
    )


def _pin(workspace: Workspace, answer: Answer) -> str:
    if not answer.hits:
        return "Nothing to pin."
    first = answer.hits[0].image_id
    workspace.catalog.set_pin(answer.query, answer.language.split(" + ")[0], first)
    return f"Pinned: updates must keep {first[:ID_SHOWN]} as the first answer to {answer.query!r}."


def caption_of(workspace: Workspace, image_id: str, answer: Answer) -> str:
    """Returns a picture's first caption, in the language of the query if it has one, else in English."""
    from ingest.pair import BASE_LANGUAGE

    captions = workspace.catalog.captions_of(image_id)
    wanted = [*answer.language.split(" + "), BASE_LANGUAGE]
    captions.sort(
        key=lambda caption: wanted.index(caption.language) if caption.language in wanted else len(wanted)
    )
    return f"{captions[0].text} ({captions[0].language})" if captions else ""
