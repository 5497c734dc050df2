"""One snapshot of release, encoder and generation: what a query is answered from.

A request takes the snapshot once, so that its query encoder and its index always belong together. `LiveSnapshot` loads
the next one beside the old and swaps with a single assignment.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.desk.errors import HomeDamaged, NoRelease, ReleaseDamaged
from app.desk.health import SkippedCommit
from app.desk.troubles import OWN_ERRORS
from app.home.damage import is_passing
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.language.detection import warm_up
from index.errors import VectorsRefused, VectorsUnreachable
from index.faiss_index import FaissVectors
from index.generation import Generation, Ids, Rows
from ingest.errors import CatalogError
from ingest.pair import BASE_LANGUAGE
from ingest.sentence import joined, phrase
from model_updates.errors import NeedsLearning
from model_updates.portable_encoder import PortableEncoder
from model_updates.search_encoder import SearchEncoder

if TYPE_CHECKING:
    from app.query.reranking import Reranker

logger = logging.getLogger(__name__)

# What each tag of BCP 47 looks like; whether there is such a language is nothing that a search waits for.
_TAG = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")

_LOADING_MAY_FAIL: tuple[type[Exception], ...] = (*OWN_ERRORS, OSError, MemoryError)
# What keeps a release from being loaded and is no fault of its own.
_NOTHING_WRONG = (CatalogError, NeedsLearning, MemoryError, VectorsUnreachable, VectorsRefused)
_REFUSED_SECONDS = 600.0
_UNSERVED = "A newer release cannot be served"

Vectors = NDArray[np.float32]


class LastTexts:
    """The vectors of the texts that were asked for last, by what read them: pages ask for one again, of any release."""

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._known: OrderedDict[tuple[str, tuple[str, ...], tuple[str, ...]], Vectors] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, encoder: SearchEncoder, text: str, languages: tuple[str, ...]) -> Vectors:
        """Returns the (r, dim) vectors of a text in r languages, read by one pass where they are not known."""
        asked = text, languages, tuple(map(encoder.text_fingerprint, languages))
        with self._lock:
            if asked in self._known:
                self._known.move_to_end(asked)
                return self._known[asked]
        rows = encoder.encode_readings(text, languages)
        rows.flags.writeable = False  # they are everybody's
        with self._lock:
            self._known[asked] = rows
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        return rows


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
    # The snapshots of a server share it.
    texts: LastTexts = field(default_factory=LastTexts, compare=False, repr=False)

    @property
    def pictures(self) -> int:
        """How many a search may find."""
        return len(self.generation) - len(self.hidden)

    @cached_property
    def shown(self) -> Rows | None:
        """The rows of its index that a search may find; None for all."""
        return self.generation.without(self.hidden) if self.hidden else None

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
            except (
                CatalogError,
                NeedsLearning,
                MemoryError,
                VectorsUnreachable,
                VectorsRefused,
            ):  # nothing is wrong with it
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
            encoder.text_fingerprint(BASE_LANGUAGE)
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


def _hidden(workspace: Workspace, generation: Generation) -> frozenset[str]:
    """Returns the pictures of an index that are none of the gallery; what it holds is not gone through for them."""
    catalog = workspace.catalog
    out = frozenset(generation.among(catalog.outside_gallery()))
    if len(generation) - len(out) <= catalog.gallery_size():
        return out
    return frozenset(generation.ids) - set(catalog.gallery_ids())  # an older catalog was put back beside it


def _until_then(generation: Generation) -> str:
    if all(isinstance(one.segment.index, FaissVectors) for one in generation.portions):
        return phrase("Until it answers, this server searches the index in its files.")
    return phrase("Until it answers, searches are refused.")


class LiveSnapshot:
    """The one reference that a server answers from."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._refreshing = threading.Lock()
        self._refused = 0  # the newest commit that cannot be served; it is not tried again for some minutes
        self._refused_until = 0.0
        self.problem: str | None = None
        self.engine_away = (
            ""  # why what is to search the index does not, and what follows; empty where all is well
        )
        self._texts = LastTexts()
        self.current = self._ready()
        self._passed(self.current.skipped)

    def _ready(self) -> Snapshot:
        """Loads what is live, with the words and the tower that a first query would wait for."""
        return replace(Snapshot.load(self._workspace, is_warm=True), texts=self._texts)

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

    @property
    def reached(self) -> int:
        """The newest commit that it answers from, or in place of."""
        return max(self.current.commit, self._refused)

    def hide(self) -> None:
        """Hides at once what has left the gallery, and shows what came back; the index follows in its time."""
        with self._refreshing:
            hidden = _hidden(self._workspace, self.current.generation)
            self.current = replace(self.current, hidden=hidden)

    def _has_moved(self) -> bool:
        """Whether what answers is to be searched elsewhere; not while nobody can say."""
        generation = self.current.generation
        try:
            has_moved = self._workspace.is_searched_elsewhere(generation)
        except (CatalogError, HomeDamaged) as error:
            logger.warning("where the index is searched cannot be asked: %s", error)
            return False
        except (VectorsUnreachable, VectorsRefused) as error:
            self.engine_away = joined((str(error), _until_then(generation)))
            logger.warning("%s", self.engine_away)
            return False
        self.engine_away = ""
        return has_moved

    def refresh(self, *, anew: bool = False) -> bool:
        """Swaps to the newest release if there is one; keeps the old one, and says why, when it cannot be loaded.

        What is live already is loaded `anew` where that is asked.
        """
        with suppress(*_LOADING_MAY_FAIL):  # it is said below
            self._workspace.releases.fetch_live()
        has_moved = self._has_moved()
        with self._refreshing:
            try:
                releases = self._workspace.releases
                commit = releases.current()
                if releases.has_gone_back(self.current.commit, self.current.release.id):
                    logger.warning("commit %d is none any more: the log was put back", self.current.commit)
                    anew = True
                if has_moved:
                    logger.info("the index of %s was carried to another place", self.current.release.id)
                    anew = True
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
                is_unknown = isinstance(error, CatalogError)  # the database that has the commits
                what = "Whether a newer release is live cannot be looked up" if is_unknown else _UNSERVED
                self.problem = f"{what}: {error}"
                logger.warning("%s; still serving %s", self.problem, self.current.release.id)
                return False
            if fresh.commit == self.current.commit and not anew:
                self._passed(fresh.skipped)
                return False
            self.current = fresh  # the swap: one assignment
            self._passed(fresh.skipped)
            logger.info("serving release %s (commit %d)", fresh.release.id, fresh.commit)
            return True
