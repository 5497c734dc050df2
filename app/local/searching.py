"""Searching a home: queries, two releases side by side, vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from app.desk.errors import BadQuery, NotAllowed
from app.desk.hits import (
    MOST_AT_ONCE,
    Choices,
    Compared,
    Embedded,
    Embeddings,
    Found,
    HitCaption,
    LearnedLanguage,
    ManyCompared,
    NamedChunk,
    SearchAnswer,
    Searched,
    SearchRequest,
)
from app.desk.operation import grown
from app.desk.slices import recalls_of
from app.desk.troubles import INVALID, OWN_ERRORS, invalid_sentence, request_of, trouble_of
from app.local.opened import Opened, as_seen
from ingest.facets import Facets
from ingest.pair import BASE_LANGUAGE, Caption
from ingest.sentence import phrase
from ingest.spans import span

if TYPE_CHECKING:
    from app.query.grammar import Term
    from app.query.question import QueryPicture, Question
    from app.query.snapshot import Snapshot
    from ingest.shown import PictureShown

    Part = Callable[[], tuple[Term, dict[str, QueryPicture]]]

_CAPTIONS = 3  # of each hit


class Searching(Opened):
    """What finds pictures."""

    def search(self, asked: SearchRequest) -> SearchAnswer:
        return self._told(self.find(self._question(asked)))

    def find(self, question: Question) -> SearchAnswer:
        """Answers a question; a later page from the release of the first, if no release is named.

        Raises:
            BadQuery: it cannot be searched for, or its page is of a release that is gone.
            UnknownRelease: there is no such release.
        """
        from app.query.pages import snapshot_of

        cursor, release = question.asked.cursor, question.asked.release
        is_next = bool(cursor) and release is None
        snapshot = snapshot_of(cursor, self.snapshot) if is_next else self.snapshot(release)
        with self.answering():
            answer = self.finder.find(snapshot, question)
        if question.terms:
            self.note(question, answer, snapshot, is_live=release is None)
        return answer

    def searches(self, searches: Sequence[dict[str, Any]]) -> list[Searched]:
        return [self._one(item) for item in searches]

    def _one(self, item: dict[str, Any]) -> Searched:
        try:
            return Searched(answer=self.search(SearchRequest.model_validate(item)))
        except ValidationError as error:
            return Searched(422, error=invalid_sentence(error.errors()), code=INVALID)
        except OWN_ERRORS as error:
            return Searched(**trouble_of(error).answered())

    def choices(self, release: str | None = None) -> Choices:
        from app.query.browsing import examples

        snapshot = self.snapshot(release)
        recalls = recalls_of(snapshot.release.manifest.slices)
        chunks = [one for one in self.catalog.standings() if one.in_gallery]
        return Choices(
            release=snapshot.release.id,
            pictures=snapshot.pictures,
            can_rerank=snapshot.reranker is not None,
            learned=tuple(LearnedLanguage(tag, recalls.get(tag)) for tag in snapshot.languages),
            languages=tuple(self.catalog.languages(in_gallery=True)),
            domains=tuple(self.catalog.domains(in_gallery=True)),
            chunks=tuple(NamedChunk(one.id, one.name, one.created) for one in reversed(chunks)),
            examples=examples(self.catalog, snapshot.languages),
            readable=snapshot.untaught,
        )

    def facets(self, asked: SearchRequest) -> Facets:
        from app.query.filters import given

        self._require_public(asked.where)
        snapshot = self.snapshot(asked.release)
        # Only an index that lacks some of the gallery is gone through.
        ids = None
        if snapshot.pictures < self.catalog.gallery_size():
            ids = snapshot.among(snapshot.generation.ids)
        return self.catalog.facets(ids=ids, folders=self.may_see_places(), **given(asked, self.catalog))

    def results_table(self, asked: SearchRequest) -> bytes:
        from app.query import results

        answer = self.find(self._question(asked))
        found = [(hit.id, hit.score) for hit in answer.hits]
        return results.table(self.workspace, found, places=self.may_see_places(), first=answer.first)

    def results_archive(self, asked: SearchRequest) -> bytes:
        from app.query import results

        answer = self.find(self._question(asked))
        found = [(hit.id, hit.score) for hit in answer.hits]
        with self.packing():
            return results.archive(self.workspace, found, places=self.may_see_places(), first=answer.first)

    def compare(
        self,
        text: str,
        a: str,
        b: str,
        language: str = "auto",
        k: int | None = None,
        images: Mapping[str, str] = MappingProxyType({}),
    ) -> Compared:
        asked = request_of(SearchRequest, text=text, language=language, k=k, images=dict(images))
        compared = self.compared(asked, self.snapshot(a), self.snapshot(b))
        return replace(compared, a=self._told(compared.a), b=self._told(compared.b))

    def compared(self, asked: SearchRequest, a: Snapshot, b: Snapshot) -> Compared:
        """Asks two loaded releases the same."""
        question = self._question(asked)
        with self.answering():
            return self.finder.compare(a, b, question)

    def comparisons(
        self,
        a: str,
        b: str,
        queries: Sequence[str],
        language: str = "auto",
        k: int | None = None,
        images: Mapping[str, str] = MappingProxyType({}),
    ) -> ManyCompared:
        from app.query.comparison import ask_all, mean_overlap

        first, second = self.snapshot(a), self.snapshot(b)
        request_of(SearchRequest, language=language, k=k)  # what no query could be asked with is refused once

        def ask(query: str) -> Compared:
            named = {name: data for name, data in images.items() if name in query}
            asked = request_of(SearchRequest, text=query, language=language, k=k, images=named)
            return self.compared(asked, first, second)

        told = ask_all(ask, queries)
        return ManyCompared(first.release.id, second.release.id, len(told), mean_overlap(told), tuple(told))

    def changed(
        self, a: str, b: str, language: str = "auto", k: int | None = None, most: int = 20
    ) -> ManyCompared:
        from app.query.comparison import most_changed
        from app.query.grammar import literal
        from app.query.known_queries import known_queries

        queries = known_queries(self.workspace, *(self.store.release(name) for name in (a, b)))
        # Captions and canaries are meant as they are, whatever signs are in them.
        every = self.comparisons(a, b, list(map(literal, queries)), language, k)
        return ManyCompared(
            every.a, every.b, every.queries, every.overlap, tuple(most_changed(every.results, most))
        )

    def captions(self, text: str, limit: int = 50) -> list[Caption]:
        return self.catalog.find_captions(text, limit=limit)

    def embed(
        self,
        texts: Sequence[str] = (),
        images: Sequence[str] = (),
        language: str = "auto",
        release: str | None = None,
    ) -> Embeddings:
        if not 0 < len(texts) + len(images) <= MOST_AT_ONCE:
            raise BadQuery(f"Send between 1 and {MOST_AT_ONCE} texts and images.")
        snapshot = self.snapshot(release)
        parts = [partial(_text_part, text, self.installed.max_query_characters) for text in texts]
        parts += [partial(_picture_part, data, number) for number, data in enumerate(images, start=1)]
        return Embeddings(
            release=snapshot.release.id,
            version=snapshot.release.version,
            dim=snapshot.generation.dim,
            results=tuple(self._embedded(snapshot, part, language) for part in parts),
        )

    def _embedded(self, snapshot: Snapshot, part: Part, language: str) -> Embedded:
        import numpy as np

        from app.query.parts import encode

        try:
            with self.answering():
                term, pictures = part()
                encoded = encode(snapshot, [term], pictures, language)
        except OWN_ERRORS as error:
            return Embedded(**trouble_of(error).answered())
        row = encoded.vectors[0]
        if not np.isfinite(row).all():
            return Embedded(400, error="This could not be embedded; try another.", code="bad_query")
        sizes = [(one.width, one.height) for one in pictures.values()]
        width, height = sizes[0] if sizes else (None, None)
        spoken = encoded.readings[0].language or None
        return Embedded(embedding=tuple(row.tolist()), language=spoken, width=width, height=height)

    def _question(self, asked: SearchRequest) -> Question:
        from app.query.asking import question_of

        self._require_public(asked.where)
        settings = self.installed
        with span("parse"):
            return question_of(asked, longest=settings.max_query_characters, default_k=settings.default_k)

    def _require_public(self, where: str) -> None:
        """Refuses a filter that would tell who asks where pictures lie."""
        if not where.strip() or self.may_see_places():
            return
        from ingest.where import private_fields

        if private := private_fields(where):
            raise NotAllowed(
                phrase(
                    "Your account may not filter by {fields}; the setting `places_for` says which may.",
                    fields=", ".join(private),
                )
            )

    def _told(self, answer: SearchAnswer) -> SearchAnswer:
        """Joins an answer with what the catalog knows of its pictures.

        Captions in the languages of the query and in English come before others.
        """
        spoken = dict.fromkeys((*answer.language.split(" + "), BASE_LANGUAGE))
        with span("catalog"):
            shown = self.catalog.shown(
                [hit.id for hit in answer.hits],
                languages=[tag for tag in spoken if tag not in {"", "auto"}],
                captions=_CAPTIONS,
                places=self.may_see_places(),
            )
            return replace(answer, hits=tuple(_with(shown.get(hit.id), hit) for hit in answer.hits))


def _with(shown: PictureShown | None, hit: Found) -> Found:
    if shown is None:
        return hit
    return grown(
        Found,
        hit,
        domain=shown.domain,
        taken=shown.taken,
        width=shown.width,
        height=shown.height,
        captions=tuple(HitCaption(one.language, one.text) for one in shown.captions),
        sources=tuple(map(as_seen, shown.sources)),
    )


def _text_part(text: str, longest: int) -> tuple[Term, dict[str, QueryPicture]]:
    from app.query.grammar import Kind, Term

    if len(text) > longest:
        raise BadQuery(f"The text has {len(text)} characters; at most {longest} are read. Shorten it.")
    return Term(Kind.TEXT, text), {}


def _picture_part(data: str, number: int) -> tuple[Term, dict[str, QueryPicture]]:
    from app.query.asking import picture_bytes
    from app.query.grammar import Kind, Term
    from app.query.parts import decoded

    term = Term(Kind.IMAGE, f"image {number}")
    return term, {term.value: decoded(term, picture_bytes(data, term))}
