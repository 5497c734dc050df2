"""Search: one snapshot of release, encoder and generation, and the queries on it.

A request takes the snapshot once, so that its query encoder and its index always belong together. `LiveSnapshot` loads
the next one beside the old and swaps with a single assignment.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.desk.errors import BadQuery, NoRelease, ReleaseDamaged
from app.desk.health import SkippedCommit
from app.desk.hits import AUTO, Compared, Found, RankMove, SearchAnswer
from app.desk.operation import grown
from app.desk.probes import shown_slices
from app.desk.troubles import OWN_ERRORS
from app.home.damage import is_passing
from app.home.store import ReleaseRecord
from app.home.workspace import Workspace
from app.language.detection import UNDETERMINED, Guess, Reading, handicaps, unfamiliar, warm_up
from app.language.reading import read
from index.generation import Generation, Ids, Rows
from ingest.captions import normalise_caption, normalise_language
from ingest.errors import BadCaption, CatalogError
from ingest.pair import BASE_LANGUAGE
from ingest.sentence import Sentence, joined, phrase
from model_updates.errors import NeedsLearning, NoFusion
from model_updates.portable_encoder import PortableEncoder
from model_updates.readings import NEIGHBOUR, background, fused
from model_updates.search_encoder import SearchEncoder

if TYPE_CHECKING:
    from app.query.reranking import Reranker

FIRST = 50
"""Hits that are laid one by one beside a text, where somebody asks for that."""

logger = logging.getLogger(__name__)

# What each tag of BCP 47 looks like; whether there is such a language is nothing that a search waits for.
_TAG = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")

_LOADING_MAY_FAIL: tuple[type[Exception], ...] = (*OWN_ERRORS, OSError, MemoryError)
_REFUSED_SECONDS = 600.0

MOST_RESULTS = 1000
# Of each reading of an unsure query at least so many hits are looked at, which most often will do, and at most so many
# to find what all readings find near.
SHALLOWEST, DEEPEST = 100, 4096

Vectors = NDArray[np.float32]
Encode = Callable[[SearchEncoder, str, tuple[str, ...]], Vectors]

_VECTORS_KEPT = 512


def _keeping() -> Encode:
    """Returns what reads a text in some languages by one pass, and keeps the last texts: pages ask for one again."""

    @lru_cache(maxsize=_VECTORS_KEPT)
    def encode(encoder: SearchEncoder, text: str, languages: tuple[str, ...]) -> Vectors:
        rows = encoder.encode_readings(text, languages)
        rows.flags.writeable = False  # they are everybody's
        return rows

    return encode


@dataclass(frozen=True)
class Snapshot:
    """Everything one answer needs, of one release."""

    release: ReleaseRecord
    commit: int
    encoder: SearchEncoder
    generation: Generation
    languages: tuple[str, ...]
    hidden: frozenset[str] = frozenset()  # pictures of its index that were withdrawn since
    skipped: tuple[SkippedCommit, ...] = ()  # newer commits that it answers in place of, newest first
    reranker: Reranker | None = None  # of a release that has a fusion encoder
    # encoder, text and languages to its (r, dim) vectors, those asked for last kept; a snapshot that differs in what is
    # hidden shares them
    vectors: Encode = field(default_factory=_keeping, compare=False, repr=False)

    @property
    def pictures(self) -> int:
        """How many a search may find."""
        return len(self.generation) - len(self.hidden)

    @cached_property
    def shown(self) -> Rows | None:
        """The rows of its index that a search may find; None for all."""
        return ~self.generation.holding(self.hidden) if self.hidden else None

    def holding(self, ids: Ids) -> Rows:
        """Returns the rows of some pictures that a search may find."""
        rows = self.generation.holding(ids)
        return rows if self.shown is None else rows & self.shown

    def among(self, ids: Sequence[str], allowed: Rows | None = None) -> list[str]:
        """Returns those of some pictures that a search may find, of allowed rows, in their order."""
        return self.generation.among(ids, self.shown if allowed is None else allowed)

    @property
    def untaught(self) -> tuple[str, ...]:
        """The languages that it reads though nobody taught them."""
        return tuple(sorted(self.encoder.readable.keys() - set(self.languages)))

    def beginning(self, text: str, most: int) -> list[str]:
        """Returns ids of pictures that a search may find and that begin so, at most so many."""
        return self.generation.beginning(text, most, self.shown)

    @classmethod
    def load(cls, workspace: Workspace, release_id: str | None = None, *, is_warm: bool = False) -> Snapshot:
        """Loads a release, verified and checked; without a name, the newest one of the commits that can be served.

        With what a first query would wait for, where it `is_warm`.

        Raises:
            NoRelease: nothing is live yet, or nothing can be served.
            UnknownRelease, ReleasePruned, ReleaseDamaged: the release cannot be served.
        """
        if release_id is None:
            return cls._newest(workspace, is_warm)
        record = workspace.releases.release(release_id).require_kept()
        # Not `current`: a release is tried so before it mends a home without an intact one.
        commit = workspace.releases.standing().commit
        return cls._of(workspace, record, commit.number if commit and commit.release == record.id else 0)

    @classmethod
    def _newest(cls, workspace: Workspace, is_warm: bool) -> Snapshot:
        """Steps down the commits to one that can be served; why those above cannot is noted in the home."""
        releases, refused = workspace.releases, dict[int, str]()
        while (commit := releases.current(refused)) is not None:
            record = releases.release(commit.release)
            try:
                return replace(
                    cls._of(workspace, record, commit.number, is_warm=is_warm), skipped=commit.skipped
                )
            except (CatalogError, NeedsLearning, MemoryError):  # nothing is wrong with it
                raise
            except Exception as error:  # whatever a release that came from elsewhere makes go wrong
                is_known = isinstance(error, OWN_ERRORS)
                unknown = None if is_known else error
                logger.warning("commit %d cannot be served: %s", commit.number, error, exc_info=unknown)
                workspace.forget_version(record.version)
                if not releases.find_damage(record):
                    if isinstance(error, OSError) or is_passing(error):  # it may be another in a moment
                        raise
                elif releases.standing(refused=refused).commit != commit:
                    continue  # its mark has it passed over
                refused[commit.number] = str(error) if is_known else repr(error)
        raise NoRelease(phrase("This home has no live release yet. Run `perennial init`."))

    @classmethod
    def _of(
        cls, workspace: Workspace, record: ReleaseRecord, number: int, *, is_warm: bool = False
    ) -> Snapshot:
        encoder = workspace.open_searcher(record.version)
        if is_warm:
            encoder.encode_texts(["warm up"], BASE_LANGUAGE)
        generation = workspace.open_generation(record.generation)
        # What else is to be checked of an index was, before its release was published.
        generation.require_made_by(encoder.image_fingerprint)
        learned = record.manifest.languages or (BASE_LANGUAGE,)
        if wrong := [tag for tag in learned if not _TAG.fullmatch(tag)]:
            raise ReleaseDamaged(
                phrase(
                    "{release} names a language that is none: {tag}.", release=record.id, tag=wrong[0][:40]
                )
            )
        warm_up(learned, encoder.profiles)
        hidden = _hidden(workspace, generation)
        reranker = _reranker(workspace, record, encoder, generation)
        return cls(record, number, encoder, generation, learned, hidden, reranker=reranker)

    @property
    def instead(self) -> str:
        """Says that it answers instead of a newer release that is damaged; nothing where there is none."""
        return _instead(self.skipped, self.release.id)


def _instead(skipped: tuple[SkippedCommit, ...], answers: str) -> str:
    """Says that commits after the one that counts cannot be trusted; nothing where there is none."""
    if not skipped:
        return ""
    return phrase(
        "What went live last cannot be served: {why} {release} answers; `perennial repair` mends it.",
        why=skipped[0].why,
        release=answers,
    )


def _reranker(
    workspace: Workspace, record: ReleaseRecord, encoder: SearchEncoder, generation: Generation
) -> Reranker | None:
    if isinstance(encoder, PortableEncoder):
        return None  # a fusion encoder is read by torch
    from app.query.reranking import Reranker

    return Reranker.of(workspace.open_encoder(record.version), workspace.load_image, generation.routes)


@dataclass(slots=True)
class Hit:
    """One picture found: cosine of query and picture, and its place from 1.

    Not frozen: a deep page has thousands of hits before it, and frozen ones take three times as long to make.

    Where the query was read in several languages, the likeliest one's are cosines and the others' are levelled with
    them (see `ranked`). Where hits were re-ranked, `match` is the log-odds that text and picture belong together,
    and scores need not fall.
    """

    id: str
    score: float
    rank: int
    match: float | None = None
    by: tuple[str, ...] = ()  # which halves of a search found it: vectors, captions
    fused: float | None = None  # what it was ranked by where both were asked
    copies: tuple[str, ...] = ()  # near-copies of it that were found too and are folded under it
    parts: tuple[float, ...] = ()  # the cosine of each part of the query, where that was asked
    relevance: str = ""  # strong, weak or nothing; empty where nobody can say (see `app.query.relevance`)


def as_found(hits: Iterable[Hit]) -> tuple[Found, ...]:
    """Returns hits as answers have them; who knows the catalog adds what is known of the pictures."""
    return tuple(grown(Found, hit) for hit in hits)


def words(query: str) -> str:
    """Returns a query's text as the encoder reads it.

    Raises:
        BadQuery: it is empty or not a text.
    """
    try:
        return normalise_caption(query).text
    except BadCaption as error:
        if any(0xD800 <= ord(character) <= 0xDFFF for character in query):
            raise BadQuery("The query is not valid text; send it as UTF-8.") from error
        raise BadQuery(
            "There is nothing to look for. Type what the picture shows, such as: two red boats."
        ) from error


def ranked(
    snapshot: Snapshot,
    vectors: Vectors,
    chosen: Sequence[Reading],
    k: int,
    allowed: Rows | None = None,
) -> tuple[Hit, ...]:
    """Returns the pictures nearest to a query, each with its score by all readings together, best first.

    Args:
        snapshot: of the request.
        vectors: (r, dim) float32, the query as each of r readings has it.
        chosen: the readings.
        k: how many.
        allowed: of which rows of the index, all of which may be shown; any that may where None.

    Raises:
        BadQuery: a vector is not finite.
    """
    if not np.isfinite(vectors).all():
        raise BadQuery("This query could not be encoded; try other words.")
    generation = snapshot.generation
    allowed = snapshot.shown if allowed is None else allowed
    if len(chosen) == 1:
        scores, ids = generation.search(vectors, k, allowed=allowed)
        return _hits(zip(ids[0], scores[0].tolist(), strict=False))
    return _together(generation, vectors, chosen, snapshot.encoder.similarity_scale, k, allowed)


def _together(
    generation: Generation,
    vectors: Vectors,
    chosen: Sequence[Reading],
    scale: float,
    k: int,
    allowed: Rows | None,
) -> tuple[Hit, ...]:
    """Returns the first k by several readings.

    A reading's search says nothing of pictures that another one found, so those are looked up; and a picture that none
    found may still be ahead of some by being near in all, so it goes deeper until that cannot be.
    """
    lowered = np.asarray(handicaps(chosen, scale), dtype=np.float32)
    depth = max(k, SHALLOWEST, NEIGHBOUR)
    while True:
        scores, ids = generation.search(vectors, depth, allowed=allowed)
        taken_off = background(scores)
        taken_off -= taken_off[0]  # the likeliest reading's scores stay its cosines
        union = list(dict.fromkeys(image_id for row in ids for image_id in row))
        if not union:
            return ()
        found = fused(generation.scores_of(vectors, union) - taken_off[:, None], lowered, scale)
        # What no reading found is in each of them no nearer than the last that it found.
        beyond = fused(scores[:, -1:] - taken_off[:, None], lowered, scale)[0]
        is_all = any(len(row) < depth for row in ids)
        if is_all or depth >= DEEPEST or (found >= beyond).sum() >= k:
            ordered = sorted(zip(union, found.tolist(), strict=True), key=lambda hit: (-hit[1], hit[0]))
            return _hits(ordered[:k])
        depth *= 4


def moved(snapshots: Sequence[Snapshot], answers: Sequence[SearchAnswer]) -> Compared:
    """Says how pictures moved from the first of two answers to the second."""
    rank_a, rank_b = ({hit.id: hit.rank for hit in answer.hits} for answer in answers)
    union = list(dict.fromkeys([*rank_b, *rank_a]))
    common = len(rank_a.keys() & rank_b.keys())
    measured = [shown_slices(snapshot.release.manifest.slices) for snapshot in snapshots]
    return Compared(
        a=answers[0],
        b=answers[1],
        overlap=common / max(1, min(len(rank_a), len(rank_b))),
        moves=tuple(RankMove(one, rank_a.get(one), rank_b.get(one)) for one in union),
        slices=dict(zip("ab", measured, strict=True)),
    )


def _hidden(workspace: Workspace, generation: Generation) -> frozenset[str]:
    """Returns the pictures of an index that are none of the gallery; what it holds is not gone through for them."""
    catalog = workspace.catalog
    out = frozenset(generation.among(catalog.outside_gallery()))
    if len(generation) - len(out) <= catalog.gallery_size():
        return out
    return frozenset(generation.ids) - set(catalog.gallery_ids())  # an older catalog was put back beside it


class LiveSnapshot:
    """The one reference that a server answers from."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._refreshing = threading.Lock()
        self._refused = 0  # the newest commit that cannot be served; it is not tried again for some minutes
        self._refused_until = 0.0
        self.problem: str | None = None
        self.current = self._ready()
        self._passed(self.current.skipped)

    def _ready(self) -> Snapshot:
        """Loads what is live, with the words and the tower that a first query would wait for."""
        return Snapshot.load(self._workspace, is_warm=True)

    def _passed(self, skipped: tuple[SkippedCommit, ...]) -> None:
        """Keeps why newer commits are not the one that answers."""
        self._refused = skipped[0].number if skipped else 0
        self._refused_until = time.monotonic() + _REFUSED_SECONDS
        self.problem = _instead(skipped, self.current.release.id) or None

    def _has_rotted(self) -> bool:
        """Whether somebody read the files of what answers and found them changed."""
        record, home = self.current.release, self._workspace.home
        folders = home.versions / record.version, home.generations / record.generation
        return any(self._workspace.releases.damage.of(folder) is not None for folder in folders)

    def hide(self) -> None:
        """Hides at once what has left the gallery, and shows what came back; the index follows in its time."""
        with self._refreshing:
            hidden = _hidden(self._workspace, self.current.generation)
            self.current = replace(self.current, hidden=hidden)

    def refresh(self, *, anew: bool = False) -> bool:
        """Swaps to the newest release if there is one; keeps the old one, and says why, when it cannot be loaded.

        What is live already is loaded `anew` where that is asked.
        """
        with self._refreshing:
            try:
                commit = self._workspace.releases.current()
                # What answers may be damaged on the disk meanwhile; it goes on answering from what is mapped, unless
                # it was read, and has changed.
                if commit is None or (
                    commit.number <= self.current.commit and not (anew or self._has_rotted())
                ):
                    self._passed(commit.skipped if commit else ())
                    return False
                if commit.number == self._refused and time.monotonic() < self._refused_until:
                    return False
                fresh = self._ready()
            except _LOADING_MAY_FAIL as error:
                self.problem = f"A newer release cannot be served: {error}"
                logger.warning("%s; still serving %s", self.problem, self.current.release.id)
                return False
            if fresh.commit == self.current.commit and not anew:
                self._passed(fresh.skipped)
                return False
            self.current = fresh  # the swap: one assignment
            self._passed(fresh.skipped)
            logger.info("serving release %s (commit %d)", fresh.release.id, fresh.commit)
            return True


def read_query(
    snapshot: Snapshot, text: str, language: str
) -> tuple[tuple[Reading, ...], tuple[Guess, ...], str]:
    """Decides which token tables read the query; languages that share a table are read once."""
    language = AUTO if not language.strip() else language
    learned = ", ".join(snapshot.languages)
    if language != AUTO:
        language = normalise_language(language)
        told = (Reading(language, 1.0),), ((language, 1.0),)
        if language in snapshot.languages:
            return *told, ""
        known = _readable(snapshot, language)
        if known:
            note: str = "" if known in snapshot.languages else _untaught([known])
            return (Reading(known, 1.0),), ((known, 1.0),), note
        note = phrase(
            "{language} is not learned yet; the words are read as they are. Learned: {learned}.",
            language=language,
            learned=learned,
        )
        return *told, note
    chosen, guesses = read(text, snapshot.languages, snapshot.encoder)
    if guesses[0][0] == UNDETERMINED:
        note = phrase(
            "This is in none of the learned languages; the words are read as they are. Learned: {learned}.",
            learned=learned,
        )
        return chosen, guesses, note
    named = [reading.language for reading in chosen]
    notes: list[str] = []
    if len(named) > 1:
        notes = [
            phrase("unsure between {names}", names=_listed(named)),
            phrase("both were searched") if len(named) == 2 else phrase("all were searched"),
        ]
    untaught = [language for language in named if language not in snapshot.languages]
    if untaught:
        return chosen, guesses, joined([_untaught(untaught), joined(notes, "; ")])
    if unfamiliar(text, guesses, snapshot.encoder.profiles):
        notes.insert(0, phrase("This may be in none of the learned languages ({learned})", learned=learned))
    return chosen, guesses, joined(notes, "; ")


def _readable(snapshot: Snapshot, language: str) -> str:
    """Returns the tag under which the encoder reads a language that nobody taught, without a region; "" for none."""
    tags = (language, language.partition("-")[0])
    return next((tag for tag in tags if tag in snapshot.encoder.readable), "")


def _untaught(languages: Sequence[str]) -> Sentence:
    return phrase(
        "Nothing was taught in {languages} here; the words are read with what the encoder already knows.",
        languages=_listed(languages),
    )


def _listed(names: Sequence[str]) -> Sentence | str:
    return (
        phrase("{names} and {last}", names=", ".join(names[:-1]), last=names[-1]) if names[1:] else names[0]
    )


def reranked(snapshot: Snapshot, text: str, language: str, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Puts the first hits in the order of cosines and matching together; the text is read in its likeliest language."""
    first = hits[:FIRST]
    try:
        if snapshot.reranker is None:
            raise NoFusion("it has no fusion encoder; `ctp` with fusion=yes teaches one")
        odds = snapshot.reranker.log_odds(text, language, [hit.id for hit in first])
    except NoFusion as error:
        raise BadQuery(
            f"Release {snapshot.release.id} cannot re-rank: {error}. Or search without."
        ) from error
    scale = snapshot.encoder.similarity_scale
    together = [scale * hit.score + float(match) for hit, match in zip(first, odds, strict=True)]
    order = sorted(range(len(first)), key=lambda n: (-together[n], first[n].rank))
    moved = [replace(first[n], rank=rank, match=float(odds[n])) for rank, n in enumerate(order, start=1)]
    return (*moved, *hits[FIRST:])


def _hits(ordered: Iterable[tuple[str, float]]) -> tuple[Hit, ...]:
    return tuple(Hit(image_id, score, rank) for rank, (image_id, score) in enumerate(ordered, start=1))
