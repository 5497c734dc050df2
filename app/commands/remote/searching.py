"""Verbs that ask a server: search, compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from app.commands.answers import (
    ID_SHOWN,
    ShownAnswer,
    ShownCaption,
    ShownHit,
    answer_parts,
    written_lines,
)
from app.commands.option_records import SearchOptions, with_options
from app.commands.options import ComparedHits, LanguageOption, ReleaseArgument, TextArgument
from app.commands.remote.connection import connected
from app.commands.terminal import JsonOption, show
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.client import Client, FoundHit, SearchAnswer


@with_options
def search(context: typer.Context, asked: SearchOptions, is_json: JsonOption = False) -> None:
    """Search pictures by texts, by pictures, or by both."""
    asked.check()
    body = _body(asked)
    with connected(context) as client:
        answer = client.search(**body)
        if asked.pin and [(part.kind, part.weight) for part in answer.parts] != [("text", 1.0)]:
            raise UsageProblem("Only a query that is one text can be pinned.")
        shown = [*answer_parts(_shown(answer)), *_files(client, asked, body | {"release": answer.release})]
        if asked.pin:
            shown.append(_pinned(client, answer))
    show(is_json, answer.model_dump(), *shown)


def _body(asked: SearchOptions) -> dict[str, Any]:
    """Returns what is sent; None leaves a field to the server."""
    return {
        "text": asked.text or None,
        "images": _pictures_in(asked.text),
        "items": asked.items or None,
        "language": asked.language,
        "translation": asked.translation or None,
        "k": asked.k,
        "mode": asked.mode,
        "domains": asked.domain,
        "languages": asked.captioned,
        "chunks": asked.chunk,
        "since": asked.since.date().isoformat() if asked.since else None,
        "until": asked.until.date().isoformat() if asked.until else None,
        "caption": asked.caption or None,
        "dedup": asked.fold or None,
        "cursor": asked.page or None,
        "offset": asked.offset or None,
        "min_relevance": asked.least,
        "captions": asked.captions or None,
        "caption_languages": asked.captions_in,
        "explain": asked.explain or None,
        "release": asked.release,
        "rerank": asked.rerank or None,
    }


def _files(client: Client, asked: SearchOptions, body: dict[str, Any]) -> list[str]:
    """Writes what was found, by the release that has just answered, into the files that were asked for."""
    return written_lines(
        asked,
        zipped=lambda: client.results("zip", **body),
        tabled=lambda: client.results("csv", **body),
    )


def _pictures_in(query: str) -> dict[str, str] | None:
    """Reads the files that a query names, to be sent along."""
    import base64

    from app.query.grammar import Kind, parse

    if not query.strip():
        return None
    sent = {}
    for name in {term.value for term in parse(query) if term.kind is Kind.IMAGE}:
        try:
            sent[name] = base64.b64encode(Path(name).expanduser().read_bytes()).decode("ascii")
        except (OSError, RuntimeError) as error:
            raise UsageProblem(
                f"The picture {name} cannot be read ({getattr(error, 'strerror', None) or error})."
            ) from error
    return sent or None


def _pinned(client: Client, answer: SearchAnswer) -> str:
    if not answer.hits:
        return "Nothing to pin."
    first = answer.hits[0]
    client.pin(client.thumb(answer, first, "up")["id"])
    return f"Pinned: updates must keep {first.id[:ID_SHOWN]} as the first answer to {answer.query!r}."


def _shown(answer: SearchAnswer) -> ShownAnswer:
    return ShownAnswer(
        release=answer.release,
        language=answer.language,
        note=answer.note,
        asked=answer.query if len(answer.parts) > 1 else "",
        mode=answer.mode,
        gallery=answer.index_size,
        searched=answer.searched,
        relevance=answer.relevance,
        next=answer.next,
        hits=[
            ShownHit(
                hit.id,
                hit.rank,
                hit.score,
                _caption(hit),
                *(hit.relevance, hit.by, hit.copies, hit.parts),
            )
            for hit in answer.hits
        ],
        captions=[ShownCaption(one.score, one.language, one.text, one.images) for one in answer.captions],
    )


def _caption(hit: FoundHit | None) -> str:
    """The first caption; the server puts that in the language of the query first."""
    return f"{hit.captions[0].text} ({hit.captions[0].language})" if hit and hit.captions else ""


def compare(
    context: typer.Context,
    a: ReleaseArgument,
    b: ReleaseArgument,
    query: TextArgument,
    language: LanguageOption = "auto",
    k: ComparedHits = 10,
    is_json: JsonOption = False,
) -> None:
    """Ask two releases the same and show how pictures moved."""
    from app.words.messages import moved_table

    with connected(context) as client:
        answer = client.compare(query, a, b, language=language, k=k)
    hits = {hit.id: hit for hit in (*answer.a.hits, *answer.b.hits)}
    moves = [(move.id, move.rank_a, move.rank_b, _caption(hits.get(move.id))) for move in answer.moves]
    common = f"{100 * answer.overlap:.0f} % of the pictures are the same."
    show(is_json, answer.model_dump(), common, moved_table(answer.a.release, answer.b.release, moves))
