"""The verb that searches."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from app.commands.answers import (
    ID_SHOWN,
    ShownAnswer,
    ShownCaption,
    ShownHit,
    answer_parts,
    written_lines,
)
from app.commands.option_records import SearchOptions, with_options
from app.commands.terminal import HomeOption, JsonOption, show, workspace_for
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.home.settings import Settings
    from app.home.workspace import Workspace
    from app.query.filters import Filters
    from app.query.question import QueryAnswer, Question
    from app.query.snapshot import Answer, Snapshot

Choice = TypeVar("Choice", bound=StrEnum)


@with_options
def search(asked: SearchOptions, home: HomeOption = None, is_json: JsonOption = False) -> None:
    """Search pictures by texts, by pictures, or by both."""
    asked.check()
    with workspace_for(home) as workspace:
        from app.query.finder import Finder

        question = _question(asked, workspace.settings)
        snapshot = _snapshot(workspace, asked.release, asked.page)
        answer = Finder(workspace).find(snapshot, question)
        shown = [*answer_parts(_shown(workspace, answer)), *_files(workspace, asked, answer)]
        if asked.pin:
            shown.append(_pin(workspace, answer))
    document = asdict(answer)
    # What `--json` writes is read by programs: an embedding of theirs need not come back.
    document["terms"] = [{k: v for k, v in term.items() if k != "vector"} for term in document["terms"]]
    show(is_json, document, *shown)


def _question(asked: SearchOptions, settings: Settings) -> Question:
    from app.query.grammar import Kind, Term
    from app.query.parts import query_terms, read_file, read_pictures
    from app.query.question import Mode, Question
    from app.query.relevance import Relevance

    text = asked.text
    terms = query_terms(text, longest=settings.max_query_characters) if text or not asked.like else ()
    if asked.pin and ([(term.kind, term.weight) for term in terms] != [(Kind.TEXT, 1.0)] or asked.like):
        raise UsageProblem("Only a query that is one text can be pinned.")
    return Question(
        (*terms, *(Term(Kind.ITEM, one) for one in asked.items)),
        read_pictures(terms, read_file),
        language=asked.language,
        translation=asked.translation,
        filters=_filters(asked),
        k=asked.k or settings.default_k,
        cursor=asked.page,
        offset=asked.offset,
        mode=_one_of(Mode, asked.mode, "--mode"),
        least=_one_of(Relevance, asked.least, "--min-relevance") if asked.least else None,
        captions=asked.captions,
        caption_languages=tuple(asked.captions_in or ()),
        fold=asked.fold,
        rerank=asked.rerank,
        explain=asked.explain,
    )


def _filters(asked: SearchOptions) -> Filters:
    from app.query.filters import Filters

    return Filters(
        languages=tuple(asked.captioned or ()),
        domains=tuple(asked.domain or ()),
        chunks=tuple(asked.chunk or ()),
        since=asked.since.date() if asked.since else None,
        until=asked.until.date() if asked.until else None,
        caption=asked.caption,
    )


def _files(workspace: Workspace, asked: SearchOptions, answer: QueryAnswer) -> list[str]:
    """Writes what was found into the files that were asked for, and says where it is."""
    from app.query.results import archive, table

    found = [(hit.image_id, hit.score) for hit in answer.hits]
    return written_lines(
        asked,
        zipped=lambda: archive(workspace, found, first=answer.first),
        tabled=lambda: table(workspace, found, first=answer.first),
    )


def _one_of(kind: type[Choice], name: str, option: str) -> Choice:
    try:
        return kind(name)
    except ValueError as error:
        raise UsageProblem(f"{option} is one of {', '.join(kind)}; found {name!r}.") from error


def _snapshot(workspace: Workspace, release: str | None, cursor: str) -> Snapshot:
    """Loads a release: one that is named, that of a cursor, or the live one."""
    from app.query.pages import snapshot_of
    from app.query.snapshot import Snapshot

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
