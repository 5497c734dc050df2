"""Verbs that ask a server: search, compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    ReleaseArgument,
    RerankOption,
    SinceFilter,
    TextArgument,
    TranslationOption,
    UntilFilter,
)
from app.commands.remote.connection import connected
from app.commands.terminal import JsonOption, show
from app.errors import UsageProblem

if TYPE_CHECKING:
    from app.client import Client, FoundHit, SearchAnswer


def search(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
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
    is_json: JsonOption = False,
) -> None:
    """Search pictures by texts, by pictures, or by both."""
    text = " ".join(query or [])
    options: dict[str, Any] = {
        "images": _pictures_in(text),
        "items": [one.removeprefix("#") for one in like or []] or None,
        "language": language,
        "translation": translation or None,
        "k": k,
        "mode": mode,
        "domains": domain,
        "languages": captioned,
        "chunks": chunk,
        "since": since.date().isoformat() if since else None,
        "until": until.date().isoformat() if until else None,
        "caption": caption or None,
        "dedup": fold or None,
        "cursor": page or None,
        "min_relevance": least,
        "captions": captions or None,
        "caption_languages": captions_in,
        "explain": explain or None,
        "release": release,
        "rerank": rerank or None,
    }
    with connected(context) as client:
        answer = client.search(text or None, **options)
        shown = answer_parts(_shown(answer))
        if pin:
            shown.append(_pinned(client, answer))
    show(is_json, answer.model_dump(), *shown)


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
    if [(part.kind, part.weight) for part in answer.parts] != [("text", 1.0)]:
        raise UsageProblem("Only a query that is one text can be pinned.")
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
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="How many.")] = 10,
    is_json: JsonOption = False,
) -> None:
    """Ask two releases the same and show how pictures moved."""
    from app.messages import moved_table

    with connected(context) as client:
        answer = client.compare(query, a, b, language=language, k=k)
    hits = {hit.id: hit for hit in (*answer.a.hits, *answer.b.hits)}
    moves = [(move.id, move.rank_a, move.rank_b, _caption(hits.get(move.id))) for move in answer.moves]
    common = f"{100 * answer.overlap:.0f} % of the pictures are the same."
    show(is_json, answer.model_dump(), common, moved_table(answer.a.release, answer.b.release, moves))
