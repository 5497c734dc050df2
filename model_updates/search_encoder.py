"""What searching asks of an encoder: pictures and texts in, vectors out. No torch is needed to read this module.

Two kinds answer: `encoder.Encoder` runs its towers in torch and can learn; `portable_encoder.PortableEncoder` runs the
graphs that a version brings along. What lies between a text and a tower, and between towers and a vector, is here and
the same for both: preprocessing, segmentation, which tower reads a language, how two spaces make one vector.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from model_updates.language_profiles import LanguageProfile
from model_updates.preprocessing import Preprocessing
from model_updates.routes import BASE, extended, loudness
from model_updates.vocabulary import SHARED, Vocabulary

IMAGE_BATCH = 64
TEXT_BATCH = 256

Rows = NDArray[np.float32]
Tokens = NDArray[np.int64]


class SecondTower(Protocol):
    """A frozen text tower beside the one that can be taught; its numbers follow those of that one in a vector."""

    dim: int  # how many
    first: frozenset[str]  # languages that the tower before it knows without a table of their own

    @property
    def written(self) -> Mapping[str, frozenset[str]]:
        """By language that it reads, the scripts that is written in."""
        ...

    def features(self, texts: Sequence[str], languages: Sequence[str]) -> Rows:
        """Returns (n, dim) float32 of n texts, each read in its language; all of one length."""
        ...

    def trust(self, language: str) -> float:
        """Returns how far the tower before it is believed in a language that it does not know, 0 … 1."""
        ...

    def trusted(self, first: Rows, languages: Sequence[str]) -> Rows:
        """Returns what that tower's vectors (n, d) of texts in such languages are worth."""
        ...


class RouteGuess(Protocol):
    """What tells a picture's domain by its trunk features."""

    def guess(self, trunk: Rows) -> list[str]:
        """Returns a domain for each row of (n, trunk_dim) base trunk features, `BASE` where none is likely."""
        ...

    def nearest(self, trunk: Rows) -> list[str]:
        """Returns the domain with a route that each row of (n, trunk_dim) base trunk features is nearest to."""
        ...


class SearchEncoder(ABC):
    """Both towers, preprocessing and vocabulary.

    Attributes:
        architecture: name that open_clip (or our assets) knows the architecture by.
        preprocessing: how pictures are prepared.
        vocabulary: ours, or None when the text tower has a foreign tokenizer.
        profiles: what the captions of its languages look like, for telling a query's language.
        spares_second: whether a second tower reads only texts that the first does not know, whose numbers are 0 in the
            vectors of others. A copy is whole, so that strategies learn with both.
        image_forwards: pictures that ran through the image tower so far.
    """

    def __init__(
        self,
        *,
        architecture: str,
        preprocessing: Preprocessing,
        vocabulary: Vocabulary | None,
        profiles: Mapping[str, LanguageProfile] | None,
    ) -> None:
        self.architecture = architecture
        self.preprocessing = preprocessing
        self.vocabulary = vocabulary
        self.profiles = dict(profiles or {})
        self.image_forwards = 0
        self.spares_second = False
        self._fingerprints: dict[str, str] = {}

    # ------------------------------------------------ what a kind of encoder answers

    @property
    @abstractmethod
    def tower_dim(self) -> int:
        """Length of what the text tower gives: the first numbers of a vector, or all."""

    @property
    @abstractmethod
    def trunk_dim(self) -> int:
        """Length of a row of trunk features: what the image tower gives out before a head."""

    @property
    @abstractmethod
    def second(self) -> SecondTower | None:
        """What gives the rest of a text's vector; None for a model of one text tower."""

    @property
    @abstractmethod
    def image_routes(self) -> tuple[str, ...]:
        """The domains whose pictures have a route of their own, sorted."""

    @property
    @abstractmethod
    def router(self) -> RouteGuess | None:
        """What tells the domain of pictures that nobody stated it of; None where nothing can."""

    @property
    @abstractmethod
    def apart(self) -> Rows | None:
        """A unit direction (dim,) that no text has a part in; None where nobody knows one."""

    @property
    @abstractmethod
    def similarity_scale(self) -> float:
        """How steeply the towers were trained to tell cosines apart, 1 … 100; 30 where the model does not say."""

    @abstractmethod
    def _head(self, trunk: Rows, route: str) -> Rows:
        """Maps trunk features (n, trunk_dim) of a domain to raw (n, dim) features."""

    @abstractmethod
    def text_route(self, language: str) -> str:
        """Returns the name of what reads a language: its own where it has a table or an insert, else `SHARED`.

        A second tower alone reads each in its own way, too.
        """

    @abstractmethod
    def _side(self, part: str) -> str:
        """Sha256 (hex) of a part without its inserts: "image", "trunk", or "table:<name>" for texts of a table."""

    @abstractmethod
    def _digests(self, tower: str, route: str, *, in_tower_alone: bool = False) -> list[str]:
        """Sha256 (hex) of each insert that an input of a route runs through, or of those that run in the tower."""

    @abstractmethod
    def whole(self) -> SearchEncoder:
        """Returns this encoder, or one of the same model with which both towers read every text."""

    @abstractmethod
    def _foreign_tokens(self, texts: Sequence[str]) -> Tokens:
        """Returns (n, longest) token ids by the rules of a tokenizer that is not ours."""

    @abstractmethod
    def trunk_of(self, pixels: Rows, route: str = BASE) -> Rows:
        """Runs the image tower: prepared pictures (n, 3, size, size) to (n, trunk_dim) float32 trunk features."""

    @abstractmethod
    def _first(self, tokens: Tokens, languages: Sequence[str]) -> Rows:
        """Runs the text tower: (n, longest) tokens, each in its language, to raw (n, tower_dim)."""

    @abstractmethod
    def _beside(self, first: Rows, rest: Rows, language: str) -> tuple[Rows, Rows]:
        """Maps unit features of the text tower and those of a second one as inserts of the language have it."""

    # ---------------------------------------------------------------- images

    @cached_property
    def dim(self) -> int:
        """Length of an image or text vector."""
        return self.tower_dim + (0 if self.second is None else self.second.dim)

    def image_route(self, domain: str) -> str:
        """Returns the route of a picture of a domain: the domain where it has an insert, else `BASE`."""
        return domain if domain in self.image_routes else BASE

    @property
    def can_guess_routes(self) -> bool:
        """True when pictures whose domain nobody stated find theirs."""
        return self.router is not None

    def nearest_routes(self, trunk: Rows) -> list[str]:
        """Returns the taught domain each picture is nearest to, however far; `BASE` where nothing can tell."""
        if self.router is not None:
            return self.router.nearest(trunk)
        return [self.image_routes[0] if len(self.image_routes) == 1 else BASE] * len(trunk)

    def guess_routes(self, trunk: Rows) -> list[str]:
        """Returns the domain each picture looks like by (n, trunk_dim) base trunk features; `BASE` for none."""
        return [BASE] * len(trunk) if self.router is None else self.router.guess(trunk)

    def projected(self, trunk: Rows, route: str = BASE) -> Rows:
        """Returns raw (n, dim) float32 features of trunk features (n, trunk_dim); no picture is needed again."""
        name, share = loudness(route)
        rows = self._head(trunk, name)
        if share == 1:
            return rows
        if self.apart is None:
            raise ValueError("this encoder has no direction apart from texts, so no picture can be quiet")
        # Turned away from all texts, so that its likeness to each is a share of what it was.
        across = unit(rows - (rows @ self.apart)[:, None] * self.apart)
        quiet: Rows = np.float32(share) * across + np.float32((1 - share**2) ** 0.5) * self.apart
        return quiet

    @property
    def can_be_quiet(self) -> bool:
        """True where a picture can be turned away from all texts; see `model_updates.routes`."""
        return self.apart is not None

    def trunk_features(self, images: Sequence[Image.Image], route: str = BASE) -> Rows:
        """Returns (n, trunk_dim) float32 trunk features: what a cache keeps of pictures."""
        rows = [
            self.trunk_of(self.preprocessing.pixels(images[start : start + IMAGE_BATCH]), route)
            for start in range(0, len(images), IMAGE_BATCH)
        ]
        return np.concatenate(rows) if rows else np.empty((0, self.trunk_dim), dtype=np.float32)

    def image_features(self, images: Sequence[Image.Image], route: str = BASE) -> Rows:
        """Returns raw (n, dim) float32 image features, not normalised."""
        return self.projected(self.trunk_features(images, route), route)

    def encode_images(self, images: Sequence[Image.Image], route: str = BASE) -> Rows:
        """Returns (n, dim) float32 unit vectors of decoded RGB pictures."""
        return unit(self.image_features(images, route))

    # ----------------------------------------------------------------- texts

    def tokens(self, texts: Sequence[str], languages: Sequence[str]) -> Tokens:
        """Returns (n, longest) token ids of n texts, each cut by the rules of its language."""
        vocabulary = self.vocabulary
        if vocabulary is None:
            return self._foreign_tokens(texts)
        if len(set(languages)) == 1:
            return vocabulary.pad(vocabulary.encode(texts, languages[0]))
        read = zip(texts, languages, strict=True)
        return vocabulary.pad([vocabulary.encode([text], language)[0] for text, language in read])

    def text_features(self, texts: Sequence[str], language: str = SHARED) -> Rows:
        """Returns raw (n, dim) float32 text features, each text read with the language's token table."""
        rows = []
        for start in range(0, len(texts), TEXT_BATCH):
            part = texts[start : start + TEXT_BATCH]
            rows.append(self._features(part, [language] * len(part)))
        return np.concatenate(rows) if rows else np.empty((0, self.dim), dtype=np.float32)

    def encode_texts(self, texts: Sequence[str], language: str = SHARED) -> Rows:
        """Returns (n, dim) float32 unit vectors of texts in one language."""
        return unit(self.text_features(texts, language))

    def encode_readings(self, text: str, languages: Sequence[str]) -> Rows:
        """Returns (n, dim) float32 unit vectors of one text read as n languages, by one forward pass."""
        if self.vocabulary is None or len(languages) == 1:
            return np.concatenate([self.encode_texts([text], language) for language in languages])
        return unit(self._features([text] * len(languages), languages))

    def _features(self, texts: Sequence[str], languages: Sequence[str]) -> Rows:
        """Returns raw (n, dim) features of n texts: the tower's, of unit length where others follow, and those."""
        second = self.second
        if second is None:
            return self._first(self.tokens(texts, languages), languages)
        read = [
            n for n, language in enumerate(languages) if self.tower_reads(language) or second.trust(language)
        ]
        first = np.zeros((len(texts), self.tower_dim), dtype=np.float32)
        if read:
            own = [languages[n] for n in read]
            first[read] = unit(self._first(self.tokens([texts[n] for n in read], own), own))
        strange = [n for n in read if not self.tower_reads(languages[n])]
        first[strange] = second.trusted(first[strange], [languages[n] for n in strange])
        rest = np.zeros((len(texts), second.dim), dtype=np.float32)
        asked = [n for n, language in enumerate(languages) if not self._spares(language)]
        if asked:
            rest[asked] = second.features([texts[n] for n in asked], [languages[n] for n in asked])
        for language in dict.fromkeys(languages):
            rows = [n for n, own_language in enumerate(languages) if own_language == language]
            first[rows], rest[rows] = self._beside(first[rows], rest[rows], language)
        return np.concatenate([first, rest], axis=1)

    def _spares(self, language: str) -> bool:
        return self.spares_second and language != SHARED and self.tower_reads(language)

    def tower_reads(self, language: str) -> bool:
        """True where the text tower knows a language; of any other a second tower, where there is one, reads all."""
        if self.second is None or language in {SHARED, *self.second.first}:
            return True
        return self.vocabulary is not None and language in self.vocabulary.tables

    @property
    def readable(self) -> Mapping[str, frozenset[str]]:
        """The languages that a second tower reads untaught, each with its scripts; none where there is no such."""
        return {} if self.second is None else self.second.written

    # ---------------------------------------------------------- fingerprints

    def image_fingerprint(self, route: str = BASE) -> str:
        """Sha256 (hex) of what turns a picture of this domain into a vector: tower, head, preprocessing, inserts."""

        def digest() -> str:
            loud = extended(self.part_digest("image"), self._digests("image", route))
            share = loudness(route)[1]
            return loud if share == 1 else hashlib.sha256(f"{loud}|{share}".encode()).hexdigest()

        return self._cached(f"image:{route}", digest)

    def trunk_fingerprint(self, route: str = BASE) -> str:
        """Sha256 (hex) of what turns a picture of this domain into trunk features."""
        inside = partial(self._digests, "image", route, in_tower_alone=True)
        return self._cached(f"trunk:{route}", lambda: extended(self.part_digest("trunk"), inside()))

    def text_fingerprint(self, language: str = SHARED) -> str:
        """Sha256 (hex) of what turns a text of this language into a vector: body, rows, segmentation, inserts."""
        inserts = partial(self._digests, "text", language)
        return self._cached(f"text:{language}", lambda: extended(self._text_side(language), inserts()))

    def part_digest(self, part: str) -> str:
        """Sha256 (hex) of "image", "trunk" or "table:<name>", without inserts."""
        return self._cached(part, lambda: self._side(part))

    def _text_side(self, language: str) -> str:
        table = SHARED if self.vocabulary is None else self.vocabulary.table_name(language)
        digest = self.part_digest(f"table:{table}")
        second = self.second
        if second is None or language == SHARED:
            return digest
        # It centres every language by itself, so that two languages of one table read the same words differently.
        read = str(self.tower_reads(language) or second.trust(language) or False)
        towers = "first" if self._spares(language) else read
        return hashlib.sha256(f"{digest}|{language}|{towers}".encode()).hexdigest()

    def _cached(self, name: str, compute: Callable[[], str]) -> str:
        if name not in self._fingerprints:
            self._fingerprints[name] = compute()
        return self._fingerprints[name]


def unit(rows: NDArray[Any]) -> Rows:
    """Returns rows divided by their length, (n, dim) float32; a row of zeros stays as it is."""
    rows = np.asarray(rows, dtype=np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    divided: Rows = rows / np.maximum(lengths, np.float32(1e-12))[:, None]
    return divided
