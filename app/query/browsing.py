"""Browsing: the pictures of a release where nothing is looked for, newest first, and words to begin with."""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Sequence
from contextlib import closing
from itertools import islice

import numpy as np

from app.desk.errors import BadQuery
from app.desk.hits import Found, Mode, SearchAnswer, SearchRequest, Sort, Timing
from app.query import copies, filters
from app.query.pages import next_page, start_of
from app.query.question import Question
from app.query.ranking import MOST_RESULTS, Hit
from app.query.snapshot import Snapshot
from ingest.catalog import Catalog
from ingest.checks import DEFAULT_DOMAIN
from ingest.pair import ImageId
from ingest.selection import Conditions
from ingest.sentence import phrase

_OF_A_QUERY = ("translation", "rerank", "min_relevance", "explain", "captions")
_LOOKED_AT = 400  # of the newest pictures, for examples
_SHORTEST, _LONGEST = 10, 64  # characters of an example


def browsed(catalog: Catalog, snapshot: Snapshot, question: Question) -> SearchAnswer:
    """Returns a page of a release's pictures that pass the filters, without scores.

    Raises:
        BadQuery: what only a query can have is asked for, or a filter or cursor cannot be used.
    """
    asked = question.asked
    _require_nothing_of_a_query(asked)
    place = start_of(question, snapshot.release.id)
    k = max(1, min(question.k, MOST_RESULTS))
    started = time.perf_counter()
    wanted = filters.given(asked, catalog)
    searched = snapshot.pictures
    if wanted:
        searched = int(np.count_nonzero(snapshot.holding(catalog.packed_ids_where(**wanted))))
    is_known = bool(place.after and catalog.image(place.after))
    if is_known:
        hits = _newest(catalog, snapshot, wanted, k + 1, asked, place.after)
    else:
        hits = _newest(catalog, snapshot, wanted, place.offset + k + 1, asked)[place.offset :]
    page = [
        Found(hit.id, None, rank, copies=hit.copies)
        for rank, hit in enumerate(hits[:k], start=place.offset + 1)
    ]
    return SearchAnswer(
        release=snapshot.release.id,
        commit=snapshot.commit,
        query="",
        language="",
        detected=(),
        note="",
        timing=Timing(0.0, time.perf_counter() - started),
        hits=tuple(page),
        mode=asked.mode,
        index_size=len(snapshot.generation),
        searched=searched,
        first=place.offset,
        next=next_page(place, [hit.id for hit in page]) if len(hits) > k else "",
    )


def examples(catalog: Catalog, languages: Sequence[str], count: int = 4) -> tuple[str, ...]:
    """Returns words that find something here: captions of some of the newest pictures, or else names of domains.

    Args:
        catalog: of the home.
        languages: that words are read in; the captions take turns between those that have some.
        count: how many words at most.
    """
    with closing(catalog.newest()) as found:
        newest = next(found, [])[:_LOOKED_AT]
    captioned = catalog.languages(in_gallery=True)
    by_language = [
        texts
        for language in languages
        if language in captioned and (texts := _short(catalog.captions_in(language, newest), newest))
    ]
    drawn = [
        _shortest(by_language[turn % len(by_language)], turn, count) for turn in range(count) if by_language
    ]
    others = (name for name in catalog.domains(in_gallery=True) if name != DEFAULT_DOMAIN)
    return tuple(dict.fromkeys(drawn)) or tuple(islice(others, count))


def _shortest(texts: Sequence[str], part: int, parts: int) -> str:
    """Returns the shortest text of a part of them: neighbours often show the same."""
    start, end = (len(texts) * n // parts for n in (part, part + 1))
    return min(texts[start : max(end, start + 1)], key=len)


def _short(captions: dict[ImageId, list[str]], order: Sequence[ImageId]) -> list[str]:
    """Returns the first caption of each picture that is short enough to be an example."""
    first = [captions[image_id][0] for image_id in order if image_id in captions]
    return [text for text in first if _SHORTEST <= len(text) <= _LONGEST]


def _newest(
    catalog: Catalog,
    snapshot: Snapshot,
    wanted: Conditions,
    count: int,
    asked: SearchRequest,
    after: ImageId = "",
) -> list[Hit]:
    """Returns pictures that are wanted and shown, the first behind one of them: a count, or as many as there are."""
    by_taken = asked.sort is Sort.TAKEN
    depth = count
    while True:
        with closing(_shown(catalog, snapshot, wanted, by_taken, after)) as ids:
            found = list(islice(ids, depth))
        if not asked.dedup or not found:
            return _unranked(found)
        groups = catalog.groups(found)
        before: list[ImageId] = []
        if after:  # copies of what earlier pages have shown are not shown again
            of_found = set(groups.values())  # and of nothing else: a deep page has thousands before it
            with closing(_shown(catalog, snapshot, wanted, by_taken, up_to=after, groups=of_found)) as ids:
                before = list(ids)
        passed = set(before)
        hits = copies.folded(_unranked(before + found), groups | catalog.groups(before))
        hits = [hit for hit in hits if hit.id not in passed]
        if len(hits) >= count or len(found) < depth:
            return hits
        depth *= 2  # copies took places


def _shown(
    catalog: Catalog,
    snapshot: Snapshot,
    wanted: Conditions,
    by_taken: bool,
    after: ImageId = "",
    up_to: ImageId = "",
    groups: Collection[str] | None = None,
) -> Generator[ImageId]:
    with closing(
        catalog.newest(by_taken=by_taken, after=after, up_to=up_to, groups=groups, **wanted)
    ) as parts:
        for part in parts:
            yield from snapshot.among(part)


def _unranked(ids: Sequence[ImageId]) -> list[Hit]:
    return [Hit(one, 0.0, 0) for one in ids]


def _require_nothing_of_a_query(asked: SearchRequest) -> None:
    given = [name for name in _OF_A_QUERY if getattr(asked, name)]
    if asked.mode is not Mode.VECTORS:
        given.append("mode")
    if given:
        raise BadQuery(
            phrase(
                "Nothing is looked for, so {names} cannot be used. Say what the pictures show, or leave it out.",
                names=", ".join(given),
            )
        )
