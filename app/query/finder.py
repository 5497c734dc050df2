"""The search engine: one question in, one page of one release's answer out. Command line, REST and pages share it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.desk.errors import BadQuery
from app.desk.hits import FURTHEST, Compared, FoundCaption, Mode, ReadPart, SearchAnswer, Sort, Timing
from app.desk.slices import recalls_of
from app.home.workspace import Workspace
from app.query import copies, filters, fusion
from app.query.browsing import browsed
from app.query.caption_index import CaptionIndexes
from app.query.gauges import Levels
from app.query.grammar import Kind, literal, written
from app.query.pages import Place, next_page, start_of
from app.query.parts import Encoded, encode
from app.query.question import Question
from app.query.ranking import FIRST, MOST_RESULTS, Hit, as_found, moved, ranked, reranked
from app.query.relevance import FEWEST, Calibration
from app.query.snapshot import Snapshot
from app.query.translation import Eta, Etas, fused
from index.generation import Rows
from ingest.catalog import Catalog
from ingest.pair import BASE_LANGUAGE
from ingest.selection import Conditions
from ingest.sentence import joined, phrase
from ingest.spans import span

BEST = 200
"""Hits that are put in the order of their dates, where that is asked."""
VECTORS, CAPTIONS = "vectors", "captions"
_VALUE = 200  # characters of a part that an answer repeats
_HELP = "Give an English translation with it, or upload pairs in this language and teach them."


class Finder:
    """Answers questions.

    A patient one waits for captions to be embedded, however many they are.
    """

    def __init__(self, workspace: Workspace, *, patient: bool = True) -> None:
        self._catalog = workspace.catalog
        self._calibration = Calibration(workspace)
        self._etas = Etas(workspace.catalog, workspace.features)
        self._captions = CaptionIndexes(workspace, patient=patient)

    def prepare(self, snapshot: Snapshot) -> None:
        """Makes ready what a release's first queries would wait for."""
        self._calibration.prepare(snapshot)

    def find(self, snapshot: Snapshot, question: Question) -> SearchAnswer:
        """Returns a page of what a question finds; of one without parts, of all pictures, the newest first.

        The snapshot is taken once for the whole request; `k` is clipped to 1 … 1,000.

        Raises:
            BadQuery: a part, filter or cursor cannot be used, or the release cannot re-rank.
        """
        if not question.terms:
            return browsed(self._catalog, snapshot, question)
        place = start_of(question, snapshot.release.id)
        k = max(1, min(question.k, MOST_RESULTS))
        asked = question.asked
        with span("catalog"):
            wanted = filters.given(asked, self._catalog)
            allowed = snapshot.holding(self._catalog.packed_ids_where(**wanted)) if wanted else None
        started = time.perf_counter()
        encoded = encode(snapshot, question.terms, question.pictures, asked.language)
        eta = self._eta(snapshot, question, encoded)
        if eta is not None:
            encoded = fused(snapshot, encoded, asked.translation, eta)
        encoding = time.perf_counter()
        with span("relevance"):
            levels = self._levels(snapshot, question, encoded, eta)
        search = _Search(self._catalog, snapshot, question, encoded, wanted, allowed, levels, place.after)
        with span("index"):
            hits, begin = search.behind(place, k)
        page = search.told(hits[begin : begin + k], place.offset)
        if asked.explain:
            search.explain(page)
        goes_on = len(hits) > begin + k and place.offset + k < FURTHEST
        unlearned = _unlearned(snapshot, question, encoded)
        end = time.perf_counter()
        return SearchAnswer(
            release=snapshot.release.id,
            commit=snapshot.commit,
            query=_query(question, encoded),
            language=_languages(encoded),
            detected=encoded.guesses,
            recalls=_recalls(snapshot, encoded),
            note=joined([snapshot.instead, encoded.note, _HELP if unlearned else ""]),
            unlearned=unlearned,
            timing=Timing(encoding - started, end - encoding - search.rerank_seconds, search.rerank_seconds),
            hits=as_found(page),
            mode=asked.mode,
            parts=tuple(ReadPart(one.kind, one.value[:_VALUE], one.weight, one.at) for one in question.terms),
            index_size=len(snapshot.generation),
            searched=search.available,
            first=place.offset,
            next=next_page(place, [hit.id for hit in page]) if goes_on else "",
            relevance=search.best(hits),
            measured_in=levels.language if levels else "",
            captions=self._nearest_captions(snapshot, question, encoded),
            eta=None if eta is None else eta.value,
        )

    def compare(self, a: Snapshot, b: Snapshot, question: Question) -> Compared:
        """Asks two releases the same, and says how pictures moved; nobody asks here what their cosines are worth.

        Raises:
            BadQuery: a part cannot be used in one of them.
        """
        return moved((a, b), [self._bare(snapshot, question) for snapshot in (a, b)])

    def _bare(self, snapshot: Snapshot, question: Question) -> SearchAnswer:
        """Returns the first hits of a question's parts."""
        started = time.perf_counter()
        encoded = encode(snapshot, question.terms, question.pictures, question.asked.language)
        encoding = time.perf_counter()
        k = max(1, min(question.k, MOST_RESULTS))
        with span("index"):
            hits = _Search(self._catalog, snapshot, question, encoded, {}, None, None, "").first(k)[:k]
        return SearchAnswer(
            release=snapshot.release.id,
            commit=snapshot.commit,
            query=_query(question, encoded),
            language=_languages(encoded),
            detected=encoded.guesses,
            recalls=_recalls(snapshot, encoded),
            note=encoded.note,
            timing=Timing(encoding - started, time.perf_counter() - encoding),
            hits=as_found(replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1)),
        )

    def _eta(self, snapshot: Snapshot, question: Question, encoded: Encoded) -> Eta | None:
        """Returns how much the translation counts; None where there is none."""
        if not question.asked.translation.strip():
            return None
        if not is_one_text(question):
            raise BadQuery(
                phrase("Only a query that is one text has a translation. Write the parts in English.")
            )
        return self._etas.of(snapshot, encoded.guesses[0][0])

    def _nearest_captions(
        self, snapshot: Snapshot, question: Question, encoded: Encoded
    ) -> tuple[FoundCaption, ...]:
        asked = question.asked
        if asked.captions < 1:
            return ()
        count = min(asked.captions, MOST_RESULTS)
        return self._captions.nearest(snapshot, encoded.vectors[0], asked.caption_languages or (), count)

    def _levels(
        self, snapshot: Snapshot, question: Question, encoded: Encoded, eta: Eta | None
    ) -> Levels | None:
        """Returns what cosines of a question mean; None where nobody has measured that."""
        levels = None
        if is_one_text(question):
            only_english = eta is not None and eta.value == 1
            # Words in no learned language are read as some language's, and mean nothing in it.
            language = BASE_LANGUAGE if only_english else encoded.guesses[0][0]
            if language in snapshot.languages or language in snapshot.encoder.readable:
                gauge = self._calibration.gauge(snapshot, language)
                if gauge is not None:
                    text = question.asked.translation if only_english else encoded.text
                    levels = gauge.levels(text, encoded.scale * encoded.vectors[0])
        if levels is None and question.asked.min_relevance is not None:
            raise BadQuery(
                f"Relevance is known of a query that is one text, where its language or English has {FEWEST} or "
                "more held-out captions of gallery pictures; not of this one. Search without a least relevance."
            )
        return levels


class _Search:
    """One question being answered."""

    def __init__(
        self,
        catalog: Catalog,
        snapshot: Snapshot,
        question: Question,
        encoded: Encoded,
        wanted: Conditions,  # the filters
        allowed: Rows | None,  # of the index, those of pictures that pass the filters; None for all
        levels: Levels | None,
        after: str,  # the last hit of the page before; "" for the first page
    ) -> None:
        self._catalog, self._snapshot, self._levels = catalog, snapshot, levels
        self._question, self._asked, self._encoded = question, question.asked, encoded
        self._wanted = wanted
        self.rerank_seconds = 0.0
        # Who asks for what is like a picture has that picture already.
        self._own = set(encoded.items)
        self._allowed = allowed
        self.available = snapshot.pictures - len(self._own)
        if allowed is not None:
            allowed[snapshot.generation.positions_of(encoded.items)] = False
            self.available = int(np.count_nonzero(allowed))
        self._after, self._left = "", ""
        if after and after not in self._own:
            self._let_through(after)

    def _let_through(self, after: str) -> None:
        """Lets the last hit of the page before be found where it may not be shown any more: it marks the place."""
        rows = self._snapshot.shown if self._allowed is None else self._allowed
        place = self._snapshot.generation.positions_of([after])
        if place[0] < 0:
            return
        self._after = after
        if rows is not None and not rows[place[0]]:
            self._left = after
            self._allowed = rows.copy()
            self._allowed[place] = True

    def behind(self, place: Place, k: int) -> tuple[list[Hit], int]:
        """Returns hits, and which of them begins the page of a place: up to k, and one if there are more."""
        by_date = self._asked.sort is Sort.TAKEN
        count = BEST if by_date else place.offset + k + 1
        while True:
            hits = self.first(count)
            is_all = by_date or self._asked.mode is not Mode.VECTORS or len(hits) < count
            if by_date:
                hits = self._newest_first(hits[:BEST])
            begin = self._passed(hits) if self._after else place.offset
            if self._after and not is_all and (len(hits) <= begin + k if begin else count < FURTHEST):
                count *= 2  # pictures that were put back come before it
                continue
            return hits, begin or place.offset

    def _passed(self, hits: Sequence[Hit]) -> int:
        """Returns how many hits there are up to the last one of the page before; 0 where it is not among them.

        Where a copy of it that was put back is before it by now, it is folded under that.
        """
        found = (
            n for n, hit in enumerate(hits, start=1) if self._after == hit.id or self._after in hit.copies
        )
        return next(found, 0)

    def _newest_first(self, hits: Sequence[Hit]) -> list[Hit]:
        """Orders hits by when they were taken; those of which nobody knows come last, as they were."""
        records = self._catalog.images([hit.id for hit in hits])
        taken = {image_id: record.taken for image_id, record in records.items()}
        return sorted(hits, key=lambda hit: taken.get(hit.id, ""), reverse=True)

    def first(self, count: int) -> list[Hit]:
        """Returns the first hits, as many as there are up to a count."""
        if self._asked.mode is not Mode.VECTORS:
            return self._folded(self._relevant(self._by_words()))
        most = self.available + bool(self._left)
        depth = min(max(count, FIRST) if self._asked.rerank else count, most)
        while True:
            found = self._by_vectors(depth)
            relevant = self._relevant(found)
            hits = self._folded(relevant)
            # What lies deeper is worth less than what was left out.
            if len(hits) >= count or depth >= most or len(relevant) < len(found):
                return hits
            # Copies took places.
            depth = min(most, depth * 2)

    def _by_vectors(self, depth: int) -> list[Hit]:
        if depth == 0:
            return []
        encoded = self._encoded
        # Left out here and not by what is allowed, which without a filter is everything.
        deeper = depth + len(self._own)
        hits = ranked(self._snapshot, encoded.vectors, encoded.readings, deeper, self._allowed)
        if self._own:
            hits = tuple(hit for hit in hits if hit.id not in self._own)
        hits = hits[:depth]
        scale = encoded.scale
        if scale != 1.0:
            hits = tuple(Hit(hit.id, scale * hit.score, hit.rank) for hit in hits)
        return list(self._reranked(hits))

    def _by_words(self) -> list[Hit]:
        """Returns hits of the captions, fused with those of the vectors where both are asked."""
        text = self._encoded.text
        if not text:
            raise BadQuery(
                phrase("Captions are searched by words, and this query has none that should be there.")
            )
        found = self._catalog.captioned_like(text, limit=4 * fusion.DEPTH, **self._wanted)
        allowed = set(self._snapshot.among([one for one, _ in found], self._allowed)) - self._own
        lists = {CAPTIONS: fusion.caption_ranks(found, allowed)}
        scores: dict[str, float] = {}
        if self._asked.mode is Mode.HYBRID:
            near = self._by_vectors(min(fusion.DEPTH, self.available))
            lists = {VECTORS: [hit.id for hit in near], **lists}
            scores = {hit.id: hit.score for hit in near}
        together = fusion.fused(lists)
        lacking = [image_id for image_id, _, _ in together if image_id not in scores]
        scores |= dict(zip(lacking, self._scores(lacking), strict=True))
        return [
            Hit(image_id, scores[image_id], rank, by=by, fused=fused)
            for rank, (image_id, fused, by) in enumerate(together, start=1)
        ]

    def _relevant(self, hits: Sequence[Hit]) -> list[Hit]:
        """Returns hits without those that are worth less than was asked for."""
        levels, least = self._levels, self._asked.min_relevance
        if levels is None or least is None:
            return list(hits)
        floor = levels.least(least)
        return [hit for hit in hits if hit.score >= floor]

    def told(self, page: Sequence[Hit], before: int) -> Sequence[Hit]:
        """Gives the hits of a page, with so many before it, their ranks, what they are worth and what found them.

        Of a page alone: a deep one has thousands of hits before it, which nobody is told about.
        """
        for rank, hit in enumerate(page, start=before + 1):
            hit.rank, hit.by, hit.relevance = rank, hit.by or (VECTORS,), self._worth(hit.score)
        return page

    def best(self, hits: Sequence[Hit]) -> str:
        """Returns what the best of all hits is worth; "" where nobody can say."""
        return (
            self._worth(max((hit.score for hit in hits if hit.id != self._left), default=-1.0))
            if hits
            else ""
        )

    def _worth(self, score: float) -> str:
        return "" if self._levels is None else self._levels.of(score)

    def _scores(self, image_ids: Sequence[str]) -> list[float]:
        """Returns the cosines of pictures and the query as its likeliest reading has it."""
        if not image_ids:
            return []
        rows = self._snapshot.generation.vectors(image_ids)
        return [self._encoded.scale * float(cosine) for cosine in rows @ self._encoded.vectors[0]]

    def _reranked(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        if not self._asked.rerank:
            return hits
        if not is_one_text(self._question):
            raise BadQuery(phrase("Only a query that is one text can be re-ranked. Search without."))
        started = time.perf_counter()
        hits = reranked(self._snapshot, self._encoded.text, self._encoded.readings[0].language, hits)
        self.rerank_seconds += time.perf_counter() - started
        return hits

    def _folded(self, hits: list[Hit]) -> list[Hit]:
        if not self._asked.dedup:
            return hits
        groups = self._catalog.groups([hit.id for hit in hits])
        if self._left:
            groups[self._left] = self._left  # nobody sees it, so its copies are shown themselves
        return copies.folded(hits, groups)

    def explain(self, hits: Sequence[Hit]) -> None:
        """Gives hits the cosine of each part, in the reading that counts most."""
        if hits:
            rows = self._snapshot.generation.vectors([hit.id for hit in hits])
            near = np.asarray(rows @ self._encoded.parts[0].T, dtype=np.float64)
            for hit, own in zip(hits, near.tolist(), strict=True):
                hit.parts = tuple(own)


def is_one_text(question: Question) -> bool:
    """Whether a question is one text and nothing else."""
    return [(term.kind, term.weight > 0) for term in question.terms] == [(Kind.TEXT, True)]


def _query(question: Question, encoded: Encoded) -> str:
    # Thumbs, canaries and comparisons ask it again, so it has to mean what was asked.
    return literal(encoded.text) if is_one_text(question) else written(question.terms)


def _languages(encoded: Encoded) -> str:
    return " + ".join(one.language for one in encoded.readings if one.language)


def _recalls(snapshot: Snapshot, encoded: Encoded) -> dict[str, float]:
    known = recalls_of(snapshot.release.manifest.slices)
    return {one.language: known[one.language] for one in encoded.readings if one.language in known}


def _unlearned(snapshot: Snapshot, question: Question, encoded: Encoded) -> str:
    """Returns the language of words in no learned language that come without a translation; else ""."""
    if not encoded.guesses or question.asked.translation:
        return ""
    first = encoded.guesses[0][0]
    return "" if first in snapshot.languages or first in snapshot.encoder.readable else first
