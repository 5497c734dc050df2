"""The encoder: an open_clip model with its preprocessing and vocabulary; images and texts in, vectors out.

Any open_clip architecture takes the same path: the embedded `perennial-tiny`, a named architecture with a
pretrained tag, or one with a local ``.safetensors`` file. Towers that pool a causal text at its end token
(CLIP's own and those built like it) use our expandable `Vocabulary`; all others keep the tokenizer that open_clip
pairs with them.

A fingerprint is the sha256 of what makes a vector: parameters, preprocessing, segmentation, inserts. It belongs to a
route: a text's is its language, a picture's its domain. So an update that touches only German rows, or adds an
insert for line drawings, provably leaves every other vector alone.
"""

from __future__ import annotations

import copy
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from model_updates.errors import WeightsMismatch
from model_updates.fingerprints import image_digest, text_body_digest, text_digest, trunk_digest
from model_updates.inserts import (
    BASE,
    ENCODER,
    Insert,
    Route,
    Router,
    RunTokens,
    by_route,
    extended,
    loudness,
    reading,
)
from model_updates.language_profiles import LanguageProfile
from model_updates.preprocessing import Preprocessing
from model_updates.towers import (
    by_length,
    embed,
    foreign_text_features,
    image_head,
    image_trunk,
    pool_at,
    text_body,
    text_parts,
    training_precision,
)
from model_updates.vocabulary import SHARED, Vocabulary

if TYPE_CHECKING:
    from hashlib import _Hash

INSERTS = "inserts."
IMAGE_BATCH = 64
TEXT_BATCH = 256

ForeignTokenizer = Callable[[list[str]], Tensor]


class SecondTower(Protocol):
    """A frozen text tower beside the one that can be taught; its numbers follow those of that one in a vector."""

    dim: int  # how many
    first: frozenset[str]  # languages that the tower before it knows without a table of their own

    @property
    def written(self) -> Mapping[str, frozenset[str]]:
        """By language that it reads, the scripts that is written in."""
        ...

    def features(self, texts: Sequence[str], languages: Sequence[str]) -> NDArray[np.float32]:
        """Returns (n, dim) float32 of n texts, each read in its language; all of one length."""
        ...

    def trust(self, language: str) -> float:
        """Returns how far the tower before it is believed in a language that it does not know, 0 … 1."""
        ...

    def trusted(self, first: NDArray[np.float32], languages: Sequence[str]) -> NDArray[np.float32]:
        """Returns what that tower's vectors (n, d) of texts in such languages are worth."""
        ...

    def write(self, folder: Path) -> dict[str, Any]:
        """Writes it for `model_updates.onnx_loader`; returns what that has to know, its languages among it."""
        ...


class Encoder:
    """Both towers, preprocessing and vocabulary.

    Attributes:
        model: the open_clip model, in eval mode unless `training` is entered.
        architecture: name that open_clip (or our assets) knows the architecture by.
        preprocessing: how pictures are prepared.
        vocabulary: ours, or None when the text tower has a foreign tokenizer.
        inserts: small modules that one route alone reads (see `model_updates.inserts`).
        profiles: what the captions of its languages look like, for telling a query's language.
        spares_second: whether a second tower reads only texts that the first does not know, whose numbers are 0 in the
            vectors of others. A copy is whole, so that strategies learn with both.
        image_forwards: pictures that ran through the image tower so far.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        architecture: str,
        preprocessing: Preprocessing,
        vocabulary: Vocabulary | None,
        foreign_tokenizer: ForeignTokenizer | None = None,
        inserts: Sequence[Insert] = (),
        profiles: Mapping[str, LanguageProfile] | None = None,
    ) -> None:
        # Nothing trains until a strategy says so: torch multiplies by a weight that trains in another way, which gives
        # other last bits on some processors, and an encoder has to answer alike before and after an update.
        self.model = model.eval().requires_grad_(False)
        self.inserts = [insert.eval().requires_grad_(False) for insert in inserts]
        self.architecture = architecture
        self.preprocessing = preprocessing
        self.vocabulary = vocabulary
        self.foreign_tokenizer = foreign_tokenizer
        self.profiles = dict(profiles or {})
        self.image_forwards = 0
        self.spares_second = False
        self._transform = preprocessing.transform()
        self._fingerprints: dict[str, str] = {}
        self._body: _Hash | None = None
        # An insert in a tower may swap the tower's weights while it runs, and a server has many threads.
        self._turns = {"image": threading.RLock(), "text": threading.RLock()}
        if vocabulary is not None:
            pool_at(model, vocabulary.end_row)

    @cached_property
    def dim(self) -> int:
        """Length of an image or text vector."""
        return self.tower_dim + (0 if self.second is None else self.second.dim)

    @property
    def second(self) -> SecondTower | None:
        """What gives the rest of a text's vector; None for a model of one text tower."""
        return getattr(self.model, "second", None)

    @cached_property
    def tower_dim(self) -> int:
        """Length of what the text tower gives (`forward_tokens`): the first numbers of a vector, or all."""
        projection = getattr(text_parts(self.model), "text_projection", None)
        if isinstance(projection, Tensor):
            return int(projection.shape[1])
        with torch.inference_mode():
            return int(self.forward_tokens(self.tokenize(["a"])).shape[1])

    def tower_part(self, features: Tensor) -> Tensor:
        """Returns of features (n, dim) what lies in the text tower's own space, (n, tower_dim)."""
        return features[:, : self.tower_dim]

    @cached_property
    def trunk_dim(self) -> int:
        """Length of a row of trunk features: what the image tower gives out before a head."""
        return int(getattr(self.model, "trunk_dim", self.dim))

    @property
    def image_routes(self) -> tuple[str, ...]:
        """The domains whose pictures have a route of their own, sorted."""
        owners = {insert.owner for insert in self.inserts if insert.tower == "image"}
        return tuple(sorted(owner.name for owner in owners if owner.kind == "domain"))

    def image_route(self, domain: str) -> str:
        """Returns the route of a picture of a domain: the domain where it has an insert, else `BASE`."""
        return domain if domain in self.image_routes else BASE

    @property
    def device(self) -> torch.device:
        """Where the parameters live."""
        return next(self.model.parameters()).device

    def to(self, device: torch.device | str) -> Encoder:
        """Moves the model and returns this encoder."""
        self.model.to(device)
        for insert in self.inserts:
            insert.to(device)
        return self

    @property
    def can_guess_routes(self) -> bool:
        """True when the encoder holds a router, so that pictures whose domain nobody stated find theirs."""
        return any(isinstance(insert, Router) for insert in self.inserts)

    def nearest_routes(self, trunk: NDArray[np.float32]) -> list[str]:
        """Returns the taught domain each picture is nearest to, however far; `BASE` where nothing can tell."""
        for insert in self.inserts:
            if isinstance(insert, Router):
                return insert.nearest(trunk)
        return [self.image_routes[0] if len(self.image_routes) == 1 else BASE] * len(trunk)

    def guess_routes(self, trunk: NDArray[np.float32]) -> list[str]:
        """Returns the domain each picture looks like by (n, trunk_dim) base trunk features; `BASE` for none."""
        for insert in self.inserts:
            if isinstance(insert, Router):
                return insert.guess(trunk)
        return [BASE] * len(trunk)

    def train(self, mode: bool = True) -> None:
        """Puts model and inserts in train mode, or back in eval mode."""
        self.model.train(mode)
        for insert in self.inserts:
            insert.train(mode)

    def parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yields every parameter by the name it has in `state`."""
        yield from self.model.named_parameters()
        for number, insert in enumerate(self.inserts):
            yield from insert.named_parameters(prefix=f"{INSERTS}{number}")

    def state(self) -> dict[str, Tensor]:
        """Returns the tensors of the model, and those of each insert under ``inserts.<number>.``."""
        state: dict[str, Tensor] = dict(self.model.state_dict())
        for number, insert in enumerate(self.inserts):
            state |= {f"{INSERTS}{number}.{name}": value for name, value in insert.state_dict().items()}
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Puts tensors of `state` back, all of them or a part; names it does not know are refused."""
        unknown = sorted(state.keys() - self.state().keys())
        if unknown:
            raise WeightsMismatch(f"the encoder has no tensor {unknown[0]!r} ({len(unknown)} are unknown)")
        model = {name: value for name, value in state.items() if not name.startswith(INSERTS)}
        self.model.load_state_dict(model, strict=False)
        for number, insert in enumerate(self.inserts):
            prefix = f"{INSERTS}{number}."
            own = {name.removeprefix(prefix): v for name, v in state.items() if name.startswith(prefix)}
            insert.load_state_dict(own, strict=False)
        self.forget_fingerprints()

    def copy(self) -> Encoder:
        """Returns an independent copy in eval mode (for teachers and candidates)."""
        return self.around(copy.deepcopy(self.model), copy.deepcopy(self.inserts))

    def around(self, model: nn.Module, inserts: Sequence[Insert] = ()) -> Encoder:
        """Returns an encoder of another model of the same architecture, all else as here."""
        return Encoder(
            model,
            architecture=self.architecture,
            preprocessing=self.preprocessing,
            vocabulary=None if self.vocabulary is None else self.vocabulary.copy(),
            foreign_tokenizer=self.foreign_tokenizer,
            inserts=inserts,
            profiles=self.profiles,
        )

    # ---------------------------------------------------------------- images

    def prepare_images(self, images: Sequence[Image.Image]) -> Tensor:
        """Returns (n, 3, size, size) float32, resized, cropped and normalised."""
        size = self.preprocessing.size
        if not images:
            return torch.empty(0, 3, size, size)
        return torch.stack([self._transform(image) for image in images])

    def forward_images(self, prepared: Tensor, route: Route = BASE) -> Tensor:
        """Runs the image side: (n, 3, size, size) to raw (n, dim) features, with gradients if enabled."""
        return self.project(self.forward_trunk(prepared, route), route)

    def forward_trunk(self, prepared: Tensor, route: Route = BASE) -> Tensor:
        """Runs the image tower: (n, 3, size, size) to (n, trunk_dim) trunk features."""
        self.image_forwards += len(prepared)

        def run(inserts: list[Insert], pixels: Tensor) -> Tensor:
            forward = partial(image_trunk, self.model)
            for insert in reversed(inserts):
                forward = partial(insert.around_image, self.model, forward)
            with self._turn("image"), training_precision(self.model, self.device):
                return forward(pixels)

        return by_route(self.inserts, "image", route, run, prepared.to(self.device))

    def project(self, trunk: Tensor, route: Route = BASE) -> Tensor:
        """Maps trunk features (n, trunk_dim) to raw (n, dim) features; no picture is needed again."""

        def run(inserts: list[Insert], rows: Tensor) -> Tensor:
            forward = partial(image_head, self.model)
            for insert in reversed(inserts):
                forward = partial(insert.around_head, forward)
            return forward(rows)

        rows = by_route(self.inserts, "image", route, run, trunk.to(self.device))
        shares = [loudness(one)[1] for one in ([route] if isinstance(route, str) else route)]
        return rows if all(share == 1 for share in shares) else self._turned(rows, shares)

    def _turned(self, rows: Tensor, shares: Sequence[float]) -> Tensor:
        """Returns rows (n, dim), of which those with a share below 1 are turned away from all texts; see `quiet`."""
        if self.apart is None:
            raise ValueError("this encoder has no direction apart from texts, so no picture can be quiet")
        apart, share = self.apart.to(rows), torch.tensor(shares).to(rows)[:, None]
        across = functional.normalize(rows - (rows @ apart)[:, None] * apart, dim=-1)
        return torch.where(share < 1, share * across + torch.sqrt(1 - share**2) * apart, rows)

    @property
    def apart(self) -> Tensor | None:
        """A unit direction (dim,) that no text has a part in; None for a model that knows of none."""
        found: Tensor | None = getattr(getattr(self.model, "image_head", None), "apart", None)
        return found

    def trunk_features(self, images: Sequence[Image.Image], route: str = BASE) -> NDArray[np.float32]:
        """Returns (n, trunk_dim) float32 trunk features: what a cache keeps of pictures."""
        rows = []
        with torch.inference_mode():
            for start in range(0, len(images), IMAGE_BATCH):
                prepared = self.prepare_images(images[start : start + IMAGE_BATCH])
                rows.append(self.forward_trunk(prepared, route).float().cpu().numpy())
        return np.concatenate(rows) if rows else np.empty((0, self.trunk_dim), dtype=np.float32)

    def projected(self, trunk: NDArray[np.float32], route: str = BASE) -> NDArray[np.float32]:
        """Returns raw (n, dim) float32 features of cached trunk features."""
        with torch.inference_mode():
            return self.project(torch.from_numpy(trunk), route).float().cpu().numpy()

    def image_features(self, images: Sequence[Image.Image], route: str = BASE) -> NDArray[np.float32]:
        """Returns raw (n, dim) float32 image features, not normalised."""
        return self.projected(self.trunk_features(images, route), route)

    def encode_images(self, images: Sequence[Image.Image], route: str = BASE) -> NDArray[np.float32]:
        """Returns (n, dim) float32 unit vectors of decoded RGB pictures."""
        return unit(self.image_features(images, route))

    # ----------------------------------------------------------------- texts

    def tokenize(self, texts: Sequence[str], language: str = SHARED) -> Tensor:
        """Returns (n, longest) int64 token ids; padded to the longest text when the tower is causal."""
        if self.vocabulary is None:
            if self.foreign_tokenizer is None:
                raise ValueError("this encoder has neither a vocabulary nor a tokenizer")
            return self.foreign_tokenizer(list(texts))
        return torch.from_numpy(self.vocabulary.pad(self.vocabulary.encode(texts, language)))

    def forward_tokens(self, tokens: Tensor, route: Route = SHARED, *, together: bool = False) -> Tensor:
        """Runs the text tower: (n, length) int64 to raw (n, dim) features, with gradients if enabled.

        The tokens are read with the language's own segmentation; the route is the language, one for all rows or one for
        each. All texts of a route run `together` for those who watch the tower at work; else texts of like length do,
        each group as far as its longest reaches.
        """
        vocabulary = self.vocabulary
        if vocabulary is None:
            return by_route(self.inserts, "text", route, self._foreign_texts, tokens.to(self.device))

        def run(inserts: list[Insert], rows: Tensor) -> Tensor:
            forward = partial(text_body, self.model)
            for insert in reversed(inserts):
                forward = partial(insert.around_text, self.model, forward)

            def body(rows: Tensor, ends: Tensor) -> Tensor:
                return forward(embed(self.model, rows), ends)

            # An insert of the whole encoder may remember what a batch chose; those of a language look at single texts.
            whole = together or any(insert.owner == ENCODER for insert in inserts)
            ends = (rows == vocabulary.end_row).int().argmax(dim=-1)
            with self._turn("text"):
                return body(rows, ends) if whole else by_length(body, rows, ends)

        return by_route(self.inserts, "text", route, run, tokens.to(self.device))

    def _foreign_texts(self, inserts: list[Insert], tokens: Tensor) -> Tensor:
        forward: RunTokens = partial(foreign_text_features, self.model)
        for insert in reversed(inserts):
            forward = partial(insert.around_tokens, self.model, forward)
        with self._turn("text"):
            return forward(tokens)

    def text_features(self, texts: Sequence[str], language: str = SHARED) -> NDArray[np.float32]:
        """Returns raw (n, dim) float32 text features, each text read with the language's token table."""
        rows = []
        with torch.inference_mode():
            for start in range(0, len(texts), TEXT_BATCH):
                part = texts[start : start + TEXT_BATCH]
                tokens = partial(self.tokenize, part, language)
                rows.append(self._whole(part, [language] * len(part), tokens))
        return np.concatenate(rows) if rows else np.empty((0, self.dim), dtype=np.float32)

    def _whole(
        self, texts: Sequence[str], languages: Sequence[str], tokens: Callable[[], Tensor]
    ) -> NDArray[np.float32]:
        """Returns raw (n, dim) features of n texts: the tower's, of unit length where others follow, and those."""
        second = self.second
        if second is None:
            route = languages[0] if len(set(languages)) == 1 else languages
            return self.forward_tokens(tokens(), route).float().cpu().numpy()
        read = [
            n for n, language in enumerate(languages) if self.tower_reads(language) or second.trust(language)
        ]
        first = np.zeros((len(texts), self.tower_dim), dtype=np.float32)
        if read:
            features = self.forward_tokens(tokens()[read], [languages[n] for n in read])
            first[read] = unit(features.float().cpu().numpy())
        strange = [n for n in read if not self.tower_reads(languages[n])]
        first[strange] = second.trusted(first[strange], [languages[n] for n in strange])
        rest = np.zeros((len(texts), second.dim), dtype=np.float32)
        asked = [n for n, language in enumerate(languages) if not self._spares(language)]
        if asked:
            rest[asked] = second.features([texts[n] for n in asked], [languages[n] for n in asked])
        for language in dict.fromkeys(languages):
            rows = [n for n, own in enumerate(languages) if own == language]
            for insert in reading(self.inserts, "text", language):
                parts = insert.beside(
                    *(torch.from_numpy(part[rows]).to(self.device) for part in (first, rest))
                )
                first[rows], rest[rows] = (part.cpu().numpy() for part in parts)
        return np.concatenate([first, rest], axis=1)

    def whole(self) -> Encoder:
        """Returns this encoder, or one of the same model with which both towers read every text."""
        return self.around(self.model, self.inserts) if self.spares_second else self

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

    def encode_texts(self, texts: Sequence[str], language: str = SHARED) -> NDArray[np.float32]:
        """Returns (n, dim) float32 unit vectors of texts in one language."""
        return unit(self.text_features(texts, language))

    def text_route(self, language: str) -> str:
        """Returns the name of what reads a language: its own where it has a table or an insert, else `SHARED`.

        A second tower alone reads each in its own way, too.
        """
        if not self.tower_reads(language) or any(
            insert.tower == "text" and insert.owner.name == language for insert in self.inserts
        ):
            return language
        return SHARED if self.vocabulary is None else self.vocabulary.table_name(language)

    def encode_readings(self, text: str, languages: Sequence[str]) -> NDArray[np.float32]:
        """Returns (n, dim) float32 unit vectors of one text read as n languages, by one forward pass."""
        vocabulary = self.vocabulary
        if vocabulary is None or len(languages) == 1:
            return np.concatenate([self.encode_texts([text], language) for language in languages])

        def tokens() -> Tensor:
            return torch.from_numpy(vocabulary.pad([vocabulary.encode([text], tag)[0] for tag in languages]))

        with torch.inference_mode():
            return unit(self._whole([text] * len(languages), languages, tokens))

    @property
    def similarity_scale(self) -> float:
        """How steeply the towers were trained to tell cosines apart, 1 … 100; 30 where the model does not say."""
        scale = getattr(self.model, "logit_scale", None)
        return 30.0 if scale is None else min(100.0, max(1.0, float(scale.detach().exp())))

    # ---------------------------------------------------------- fingerprints

    def image_fingerprint(self, route: str = BASE) -> str:
        """Sha256 (hex) of what turns a picture of this domain into a vector: tower, head, preprocessing, inserts."""
        inserts = reading(self.inserts, "image", route)

        def digest() -> str:
            loud, share = extended(self._image_side(), inserts), loudness(route)[1]
            return loud if share == 1 else hashlib.sha256(f"{loud}|{share}".encode()).hexdigest()

        return self._cached(f"image:{route}", digest)

    def trunk_fingerprint(self, route: str = BASE) -> str:
        """Sha256 (hex) of what turns a picture of this domain into trunk features."""
        inserts = [insert for insert in reading(self.inserts, "image", route) if insert.runs_in_tower]
        return self._cached(f"trunk:{route}", lambda: extended(self._trunk(), inserts))

    def text_fingerprint(self, language: str = SHARED) -> str:
        """Sha256 (hex) of what turns a text of this language into a vector: body, rows, segmentation, inserts."""
        inserts = reading(self.inserts, "text", language)
        return self._cached(f"text:{language}", lambda: extended(self._text_side(language), inserts))

    def forget_fingerprints(self) -> None:
        """Drops the remembered fingerprints; call after changing a parameter or the vocabulary."""
        self._fingerprints.clear()
        self._body = None

    def _turn(self, tower: str) -> AbstractContextManager[object]:
        swaps = any(insert.tower == tower and insert.runs_in_tower for insert in self.inserts)
        return self._turns[tower] if swaps else nullcontext()

    def _image_side(self) -> str:
        return self._cached("image", lambda: image_digest(self.model, self.preprocessing, self.architecture))

    def _trunk(self) -> str:
        if not hasattr(self.model, "image_head"):
            return self._image_side()  # what the tower gives out is the vector itself
        return self._cached("trunk", lambda: trunk_digest(self.model, self.preprocessing, self.architecture))

    def _text_body(self) -> _Hash:
        # Every language's table is read with it, and it weighs more than all of them.
        if self._body is None:
            self._body = text_body_digest(self.model, self.architecture)
        return self._body

    def _text_side(self, language: str) -> str:
        table = SHARED if self.vocabulary is None else self.vocabulary.table_name(language)
        digest = self._cached(
            f"table:{table}", lambda: text_digest(self._text_body(), self.model, self.vocabulary, table)
        )
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


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns rows divided by their length, (n, dim) float32."""
    tensor = functional.normalize(torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)), dim=-1)
    return tensor.numpy()


@contextmanager
def training(encoder: Encoder) -> Iterator[None]:
    """Puts the model in train mode inside the block and back in eval mode after it."""
    encoder.train()
    try:
        yield
    finally:
        encoder.train(False)
        encoder.forget_fingerprints()
