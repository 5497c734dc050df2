"""Image to text: the captions nearest to a query, from one caption generation for each language's text tower.

A caption generation is an index like that of the gallery, over the captions of one language. It lies in the home's
`captions` folder under a name that says which tower made it of which captions, and is built when it is first asked for;
vectors come from the feature store, so of a new chunk only its own captions are embedded. While neither tower nor
captions change it is never built again, whatever else an update changes.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.desk.errors import BadQuery, CaptionsNotReady
from app.desk.hits import FoundCaption
from app.home.workspace import Workspace
from app.query.snapshot import Snapshot, Vectors
from index.errors import IndexingError
from index.generation import Generation, load_generation
from index.vectors import unit_rows
from index.writing import write_generation
from ingest.captions import normalise_language
from ingest.sentence import phrase
from model_updates.features import TEXT, text_features, text_id

logger = logging.getLogger(__name__)

AT_ONCE = 1000
"""Captions that a server embeds while somebody waits; more are embedded in the background."""
_LOADED = 8
_KEPT = 3
_PICTURES = 3


@dataclass(frozen=True)
class _Index:
    """A loaded caption generation; `texts` has by id the caption and its pictures."""

    generation: Generation
    texts: dict[str, tuple[str, tuple[str, ...]]]


class CaptionIndexes:
    """The caption generations of one home.

    A patient one builds whatever is needed while the caller waits, as a command line does; else only little.
    """

    def __init__(self, workspace: Workspace, *, patient: bool) -> None:
        self._workspace, self._patient = workspace, patient
        self._loaded: OrderedDict[tuple[str, str], _Index | None] = OrderedDict()
        self._turn = threading.Lock()
        self._building: set[str] = set()

    def nearest(
        self, snapshot: Snapshot, vector: Vectors, languages: Sequence[str], count: int
    ) -> tuple[FoundCaption, ...]:
        """Returns the captions nearest to a query vector, best first.

        Args:
            snapshot: of the request.
            vector: (dim,) float32, of unit length.
            languages: of the captions; all that the release has learned when empty.
            count: how many.

        Raises:
            BadQuery: a language is not learned.
            CaptionsNotReady: the captions of a language are being embedded.
        """
        found = []
        for language in self._asked(snapshot, languages):
            index = self._index(snapshot, language)
            if index is None:
                continue
            scores, ids = index.generation.search(vector[None], count)
            for score, caption in zip(scores[0], ids[0], strict=False):
                text, images = index.texts[caption]
                found.append(FoundCaption(text, language, float(score), images))
        found.sort(key=lambda one: (-one.score, one.language, one.text))
        return tuple(found[:count])

    def _asked(self, snapshot: Snapshot, languages: Sequence[str]) -> list[str]:
        asked = [normalise_language(tag) for tag in languages] or list(snapshot.languages)
        unknown = [tag for tag in asked if tag not in snapshot.languages]
        if unknown:
            raise BadQuery(
                f"Captions in {unknown[0]} cannot be ranked: it is not learned yet. "
                f"Learned: {', '.join(snapshot.languages)}."
            )
        return list(dict.fromkeys(asked))

    def _index(self, snapshot: Snapshot, language: str) -> _Index | None:
        """Returns a language's index, loaded or built; None when there is no caption in it."""
        key = (snapshot.encoder.text_fingerprint(language), self._state(language))
        with self._turn:
            if key in self._loaded:
                self._loaded.move_to_end(key)
                return self._loaded[key]
        texts = self._texts(language)
        index = self._open_or_build(snapshot, language, texts) if texts else None
        with self._turn:
            self._loaded[key] = index
            while len(self._loaded) > _LOADED:
                self._loaded.popitem(last=False)
        return index

    def _state(self, language: str) -> str:
        """Returns what changes whenever the captions of a language may, with chunks, pictures or pairs."""
        catalog = self._workspace.catalog
        chunks = [(one.id, one.standing == "withdrawn", one.new_pairs) for one in catalog.standings()]
        out, last = sorted(catalog.withheld.ids()), catalog.last_pairs()
        return hashlib.sha256(repr((language, chunks, out, last)).encode()).hexdigest()

    def _texts(self, language: str) -> dict[str, tuple[str, tuple[str, ...]]]:
        found: dict[str, tuple[str, list[str]]] = {}
        for pair in self._workspace.catalog.pairs(language=language):
            _, images = found.setdefault(text_id(pair.text), (pair.text, []))
            if len(images) < _PICTURES and pair.image_id not in images:
                images.append(pair.image_id)
        return {caption: (text, tuple(images)) for caption, (text, images) in found.items()}

    def _open_or_build(
        self, snapshot: Snapshot, language: str, texts: dict[str, tuple[str, tuple[str, ...]]]
    ) -> _Index:
        fingerprint = snapshot.encoder.text_fingerprint(language)
        named = hashlib.sha256(repr((fingerprint, sorted(texts.items()))).encode()).hexdigest()[:16]
        folder = self._workspace.home.captions / f"{language}-{named}"
        if folder.is_dir():
            try:
                return _Index(load_generation(folder), texts)
            except IndexingError as error:
                logger.warning("building %s again: %s", folder.name, error)
                shutil.rmtree(folder, ignore_errors=True)
        self._refuse_to_wait(snapshot, language, list(texts))
        self._build(snapshot, language, texts, folder)
        return _Index(load_generation(folder), texts)

    def _refuse_to_wait(self, snapshot: Snapshot, language: str, ids: list[str]) -> None:
        """Starts embedding in the background where somebody would wait for long.

        Raises:
            CaptionsNotReady: it was started, or goes on.
        """
        if self._patient:
            return
        fingerprint, dim = snapshot.encoder.text_fingerprint(language), snapshot.encoder.dim
        _, known = self._workspace.features.get(fingerprint, TEXT, ids, dim)
        lacking = len(ids) - int(known.sum())
        if lacking <= AT_ONCE:
            return
        with self._turn:
            is_new = fingerprint not in self._building
            self._building.add(fingerprint)
        if is_new:
            threading.Thread(
                target=self._embed, args=(snapshot, language), name="embed-captions", daemon=True
            ).start()
        raise CaptionsNotReady(
            phrase(
                "{count} captions in {language} are being read for the first time by this release. "
                "Ask again in a few minutes.",
                count=lacking,
                language=language,
            )
        )

    def _embed(self, snapshot: Snapshot, language: str) -> None:
        texts = [text for text, _ in self._texts(language).values()]
        try:
            text_features(snapshot.encoder, texts, language, self._workspace.features)
        finally:
            with self._turn:
                self._building.discard(snapshot.encoder.text_fingerprint(language))

    def _build(
        self,
        snapshot: Snapshot,
        language: str,
        texts: dict[str, tuple[str, tuple[str, ...]]],
        folder: Path,
    ) -> None:
        ids = list(texts)
        rows = text_features(
            snapshot.encoder, [texts[one][0] for one in ids], language, self._workspace.features
        )
        staged = self._workspace.home.staging / f"captions-{uuid.uuid4().hex}"
        try:
            write_generation(
                staged,
                fingerprint=snapshot.encoder.text_fingerprint(language),
                ids=ids,
                vectors=unit_rows(rows),
                mode="full",
            )
            self._workspace.home.captions.mkdir(exist_ok=True)
            if not folder.exists():  # another process may have been quicker
                staged.rename(folder)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        self._forget_older(language)

    def _forget_older(self, language: str) -> None:
        """Keeps the newest few of a language: the live release's, and those that one goes back to."""
        own = [
            path
            for path in self._workspace.home.captions.iterdir()
            if path.name.rpartition("-")[0] == language
        ]
        own.sort(key=lambda path: path.stat().st_mtime)
        for path in own[:-_KEPT]:
            shutil.rmtree(path, ignore_errors=True)
