"""The worlds in which chunks are damaged: an encoder, a collection of pictures, and what is known of their captions."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from real_input_data import SUFFIXES, read_tsv

from ingest.images import decode
from ingest.limits import Limits
from ingest.samples import scenes
from model_updates.embedded import base_languages
from model_updates.encoder import Encoder
from model_updates.features import NoCache, trunk_features
from model_updates.opening import open_encoder
from model_updates.trust.evidence import UploadedPairs

LEARNED, NEW, ALONE, DOMAIN, MORE = (
    "learned language",
    "new language",
    "new language, nothing beside",
    "new domain",
    "more captions of known pictures",
)
PHOTOS, SCENES = 3_200, 3_200
NAMES = ("sw", "zh", "hi", "th", "fi", "ar", "ko", "tr", "vi", "qu", "de", "ja", "ru", "he", "mi")
SCENE_NAMES = ("de", "fr", "ru", "hi", "ja", "ar", "zh")
PHOTO_NAMES = ("hi", "cs", "uk")
REFERENCE = 600

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class World:
    """Where a chunk comes from and what is known there.

    Attributes:
        encoder: the live one.
        collection: noto, line, flickr8k or scenes.
        kind: what the chunk brings.
        languages: of the chunk, one after another by seed.
        reference: whether trusted pairs of other pictures of the domain are known.
    """

    encoder: str
    collection: str
    kind: str
    languages: tuple[str, ...]
    reference: bool = False

    @property
    def name(self) -> str:
        """A name for files."""
        return f"{self.encoder}.{self.collection}.{self.kind.replace(' ', '-').replace(',', '')}"

    @property
    def beside(self) -> bool:
        """Whether trusted English captions of the same pictures are known."""
        return self.kind in {NEW, MORE}


TINY, PHOTO = "perennial-tiny", "perennial-photo"
WORLDS = (
    World(TINY, "noto", LEARNED, ("en",)),
    World(TINY, "scenes", LEARNED, ("en",)),
    World(TINY, "noto", NEW, NAMES),
    World(TINY, "scenes", NEW, SCENE_NAMES),
    World(TINY, "flickr8k", NEW, PHOTO_NAMES),
    World(TINY, "scenes", ALONE, SCENE_NAMES, reference=True),
    World(TINY, "noto", MORE, ("en",)),
    World(TINY, "line", DOMAIN, ("en",)),
    World(TINY, "flickr8k", DOMAIN, ("en",)),
    World(PHOTO, "flickr8k", LEARNED, ("en", "de", "pt", "fr"), reference=True),
    World(PHOTO, "flickr8k", NEW, PHOTO_NAMES),
    World(PHOTO, "noto", NEW, NAMES),
    World(PHOTO, "flickr8k", ALONE, PHOTO_NAMES, reference=True),
    World(PHOTO, "noto", DOMAIN, ("en", "de", "ja")),
    World(PHOTO, "line", DOMAIN, ("en", "de", "ja")),
)


@dataclass(frozen=True)
class Material:
    """A clean chunk, in the order of its upload.

    Attributes:
        world: it is from.
        language: of its captions.
        pairs: with everything that is known of them.
        held_out: (n,) whether a pair's picture is held out.
        foreign: by language, the same pictures' captions in others.
        vectors: gives (n, e) vectors of captions by the encoder; None when it does not know the language.
        reference: trusted pairs of other pictures; None when there are none.
    """

    world: World
    language: str
    pairs: UploadedPairs
    held_out: NDArray[np.bool_]
    foreign: dict[str, list[str]]
    vectors: Callable[[Sequence[str]], Rows] | None
    reference: UploadedPairs | None = field(default=None, repr=False)


class Collections:
    """Pictures and captions of all collections, and features of an encoder, each computed once and kept."""

    def __init__(self, data: Path, work: Path, encoder: str, say: Callable[[str], None]) -> None:
        self.data, self.name, self._say = data, encoder, say
        self._folder = work / "features"
        self._features: dict[str, tuple[dict[str, int], Rows, Rows]] = {}
        self._captions: dict[str, dict[str, dict[str, list[str]]]] = {}
        self._vectors: dict[tuple[str, str], Rows] = {}
        self._encoder: Encoder | None = None

    @property
    def encoder(self) -> Encoder:
        """The encoder, opened when first asked for."""
        if self._encoder is None:
            self._encoder = open_encoder(self.name)
        return self._encoder

    def material(self, world: World, size: int, seed: int) -> Material | None:
        """Draws a clean chunk; None when there are not so many pictures (nine tenths are enough)."""
        random = np.random.default_rng((seed, size))
        language = world.languages[seed % len(world.languages)]
        captions = self.captions(world.collection)
        places, trunk, projected = self.features(world.collection)
        keys = [key for key in sorted(captions[language]) if key in places and key in captions["en"]]
        order = random.permutation(len(keys))
        chosen = [keys[int(at)] for at in order[:size]]
        if len(chosen) < 0.9 * size:
            return None
        if seed % 2 == 0:
            chosen.sort()  # half of the uploads are in the order of their file names
        said = [self._caption(captions, language, key, world.kind == MORE) for key in chosen]
        # An emoji's name; of a photograph or a scene another caption than the one that is handed in.
        number = -1 if world.collection in {"flickr8k", "scenes"} and world.kind != MORE else 0
        beside = [captions["en"][key][number] for key in chosen] if world.beside else ()
        knows = language in base_languages(self.name)
        at = np.asarray([places[key] for key in chosen])
        pairs = UploadedPairs(
            texts=said,
            images=chosen,
            groups=chosen,
            beside=beside,
            pictures=trunk[at],
            picture_vectors=projected[at] if knows else None,
            text_vectors=self.vectors(said, language) if knows else None,
        )
        rest = [keys[int(n)] for n in order[size : size + REFERENCE]]
        return Material(
            world=world,
            language=language,
            pairs=pairs,
            held_out=random.random(len(chosen)) < 0.15,
            foreign={
                tag: [texts.get(key, captions["en"][key])[0] for key in chosen]
                for tag, texts in captions.items()
            },
            vectors=(lambda texts: self.vectors(texts, language)) if knows else None,
            reference=self._reference(world, rest, language if knows else "en", knows=knows)
            if world.reference and len(rest) >= REFERENCE // 2
            else None,
        )

    def _reference(self, world: World, keys: Sequence[str], language: str, *, knows: bool) -> UploadedPairs:
        captions = self.captions(world.collection)
        places, trunk, projected = self.features(world.collection)
        said = [captions[language][key][0] for key in keys if key in captions[language]]
        at = np.asarray([places[key] for key in keys if key in captions[language]])
        names = [key for key in keys if key in captions[language]]
        vectors = (projected[at], self.vectors(said, language)) if knows else (None, None)
        return UploadedPairs(said, names, names, (), trunk[at], *vectors)

    @staticmethod
    def _caption(captions: dict[str, dict[str, list[str]]], language: str, key: str, last: bool) -> str:
        return captions[language][key][-1 if last else 0]

    def captions(self, collection: str) -> dict[str, dict[str, list[str]]]:
        """Returns captions by language and picture; emoji names are followed by their keywords."""
        kind = "emoji" if collection in SUFFIXES else collection
        if kind not in self._captions:
            found: dict[str, dict[str, list[str]]] = {}
            for language, key, texts in _READERS[kind](self.data):
                found.setdefault(language, {}).setdefault(key, []).extend(texts)
            self._captions[kind] = found
        return self._captions[kind]

    def vectors(self, texts: Sequence[str], language: str) -> Rows:
        """Returns (n, e) raw vectors of captions, each computed once."""
        missing = [text for text in dict.fromkeys(texts) if (language, text) not in self._vectors]
        if missing:
            rows = self.encoder.text_features(missing, language)
            self._vectors |= {(language, text): row for text, row in zip(missing, rows, strict=True)}
        return np.stack([self._vectors[language, text] for text in texts])

    def features(self, collection: str) -> tuple[dict[str, int], Rows, Rows]:
        """Returns where each picture is, and raw trunk and tower features (n, d) of all."""
        if collection not in self._features:
            file = self._folder / f"{self.name}-{collection}.npz"
            if not file.exists():
                self._folder.mkdir(parents=True, exist_ok=True)
                pictures = dict(_pictures(self.data, collection))
                self._say(f"features of {len(pictures)} pictures of {collection} by {self.name}")
                trunk = trunk_features(self.encoder, list(pictures), lambda key: pictures[key](), NoCache())
                projected = self.encoder.projected(trunk)
                np.savez(file, ids=np.asarray(list(pictures)), trunk=trunk, proj=projected)
            kept = np.load(file)
            places = {key: number for number, key in enumerate(kept["ids"].tolist())}
            self._features[collection] = (places, kept["trunk"], kept["proj"])
        return self._features[collection]


Load = Callable[[], Image.Image]


def _pictures(data: Path, collection: str) -> Iterator[tuple[str, Load]]:
    if collection == "scenes":
        drawn = list(scenes.all_scenes())
        for n, at in enumerate(np.random.default_rng(0).permutation(len(drawn))[:SCENES].tolist()):
            scene, style = drawn[at], ("gouache", "flat")[n % 2]
            yield scene.identity, _Drawn(scene, style, at)
    elif collection == "flickr8k":
        files = (data / "flickr8k" / "images").iterdir()
        for file in sorted(files, key=lambda file: hashlib.sha256(file.name.encode()).hexdigest())[:PHOTOS]:
            yield file.name, _Opened(file)
    else:
        for file in sorted((data / "emoji" / collection).iterdir()):
            yield file.stem, _Opened(file)


@dataclass(frozen=True)
class _Opened:
    file: Path

    def __call__(self) -> Image.Image:
        return decode(self.file.read_bytes(), Limits()).image


@dataclass(frozen=True)
class _Drawn:
    scene: scenes.Scene
    style: str
    seed: int

    def __call__(self) -> Image.Image:
        packed = io.BytesIO()
        scenes.draw(self.scene, self.style, size=256, seed=self.seed).save(packed, "WEBP", quality=88)
        return Image.open(packed).convert("RGB")


Told = Iterator[tuple[str, str, list[str]]]


def _emoji(data: Path) -> Told:
    for row in read_tsv(data / "emoji" / "names.tsv"):
        words = [word.strip() for word in row["keywords"].split("|")]
        others = [word for word in words if word and word != row["name"]][:3]
        yield row["lang"], row["key"], [row["name"], *([", ".join(others)] if others else [])]


def _flickr(data: Path) -> Told:
    for row in read_tsv(data / "flickr8k" / "captions.tsv"):
        yield row["lang"], row["image"], [row["text"]]


def _drawn(_data: Path) -> Told:
    for n, scene in enumerate(scenes.all_scenes()):
        for language in scenes.LANGUAGES:
            yield (
                language,
                scene.identity,
                [scenes.caption(scene, language, variant=(n + k) % 3) for k in (0, 1)],
            )


_READERS: dict[str, Callable[[Path], Told]] = {"emoji": _emoji, "flickr8k": _flickr, "scenes": _drawn}
Values = dict[str, Any]
