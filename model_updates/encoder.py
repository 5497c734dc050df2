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

from model_updates.errors import WeightsMismatch
from model_updates.fingerprints import image_digest, text_body_digest, text_digest, trunk_digest
from model_updates.inserts import ENCODER, Insert, Router, RunTokens, by_route, reading
from model_updates.language_profiles import LanguageProfile
from model_updates.preprocessing import Preprocessing
from model_updates.routes import BASE, Route
from model_updates.search_encoder import SearchEncoder, SecondTower
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

ForeignTokenizer = Callable[[list[str]], Tensor]


class WrittenTower(SecondTower, Protocol):
    """A second tower that a folder for other programs can hold."""

    def write(self, folder: Path) -> dict[str, Any]:
        """Writes it for `model_updates.onnx_loader`; returns what that has to know, its languages among it."""
        ...


class Encoder(SearchEncoder):
    """Both towers in torch, preprocessing and vocabulary; what training teaches.

    Attributes:
        model: the open_clip model, in eval mode unless `training` is entered.
        foreign_tokenizer: what cuts texts where the vocabulary is not ours.
        inserts: small modules that one route alone reads (see `model_updates.inserts`).
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
        super().__init__(
            architecture=architecture,
            preprocessing=preprocessing,
            vocabulary=vocabulary,
            profiles=profiles,
        )
        # Nothing trains until a strategy says so: torch multiplies by a weight that trains in another way, which gives
        # other last bits on some processors, and an encoder has to answer alike before and after an update.
        self.model = model.eval().requires_grad_(False)
        self.inserts = [insert.eval().requires_grad_(False) for insert in inserts]
        self.foreign_tokenizer = foreign_tokenizer
        self._body: _Hash | None = None
        # An insert in a tower may swap the tower's weights while it runs, and a server has many threads.
        self._turns = {"image": threading.RLock(), "text": threading.RLock()}
        if vocabulary is not None:
            pool_at(model, vocabulary.end_row)

    @property
    def second(self) -> WrittenTower | None:
        return getattr(self.model, "second", None)

    @cached_property
    def tower_dim(self) -> int:
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
        return int(getattr(self.model, "trunk_dim", self.dim))

    @property
    def image_routes(self) -> tuple[str, ...]:
        owners = {insert.owner for insert in self.inserts if insert.tower == "image"}
        return tuple(sorted(owner.name for owner in owners if owner.kind == "domain"))

    @property
    def device(self) -> torch.device:
        """Where the parameters live."""
        return next(self.model.parameters()).device

    def to(self, device: torch.device | str) -> Encoder:
        """Moves the model and returns this encoder."""
        if torch.device(device).type == "cuda":
            # Else a card convolves with ten bits, also where it measures and fills the cache of features.
            torch.backends.cudnn.allow_tf32 = False
        self.model.to(device)
        for insert in self.inserts:
            insert.to(device)
        return self

    @property
    def router(self) -> Router | None:
        return next((insert for insert in self.inserts if isinstance(insert, Router)), None)

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
        return torch.from_numpy(self.preprocessing.pixels(images))

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
        """Maps trunk features (n, trunk_dim) to raw (n, dim) features, float32; no picture is needed again."""

        def run(inserts: list[Insert], rows: Tensor) -> Tensor:
            forward = partial(image_head, self.model)
            for insert in reversed(inserts):
                forward = partial(insert.around_head, forward)
            return forward(rows)

        return by_route(self.inserts, "image", route, run, trunk.to(self.device, torch.float32))

    @cached_property
    def apart(self) -> NDArray[np.float32] | None:
        found: Tensor | None = getattr(getattr(self.model, "image_head", None), "apart", None)
        return None if found is None else found.float().cpu().numpy()

    def trunk_of(self, pixels: NDArray[np.float32], route: str = BASE) -> NDArray[np.float32]:
        with torch.inference_mode():
            return self.forward_trunk(torch.from_numpy(pixels), route).float().cpu().numpy()

    def _head(self, trunk: NDArray[np.float32], route: str) -> NDArray[np.float32]:
        with torch.inference_mode():
            return self.project(torch.from_numpy(trunk), route).float().cpu().numpy()

    # ----------------------------------------------------------------- texts

    def tokenize(self, texts: Sequence[str], language: str = SHARED) -> Tensor:
        """Returns (n, longest) int64 token ids; padded to the longest text when the tower is causal."""
        return torch.from_numpy(self.tokens(texts, [language] * len(texts)))

    def _foreign_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        if self.foreign_tokenizer is None:
            raise ValueError("this encoder has neither a vocabulary nor a tokenizer")
        return self.foreign_tokenizer(list(texts)).numpy()

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

    def _first(self, tokens: NDArray[np.int64], languages: Sequence[str]) -> NDArray[np.float32]:
        route = languages[0] if len(set(languages)) == 1 else languages
        with torch.inference_mode():
            return self.forward_tokens(torch.from_numpy(tokens), route).float().cpu().numpy()

    def _beside(
        self, first: NDArray[np.float32], rest: NDArray[np.float32], language: str
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        for insert in reading(self.inserts, "text", language):
            parts = insert.beside(*(torch.from_numpy(part).to(self.device) for part in (first, rest)))
            first, rest = (part.cpu().numpy() for part in parts)
        return first, rest

    def whole(self) -> Encoder:
        return self.around(self.model, self.inserts) if self.spares_second else self

    def text_route(self, language: str) -> str:
        if not self.tower_reads(language) or any(
            insert.tower == "text" and insert.owner.name == language for insert in self.inserts
        ):
            return language
        return SHARED if self.vocabulary is None else self.vocabulary.table_name(language)

    @property
    def similarity_scale(self) -> float:
        scale = getattr(self.model, "logit_scale", None)
        return 30.0 if scale is None else min(100.0, max(1.0, float(scale.detach().exp())))

    # ---------------------------------------------------------- fingerprints

    def forget_fingerprints(self) -> None:
        """Drops the remembered fingerprints; call after changing a parameter or the vocabulary."""
        self._fingerprints.clear()
        self._body = None

    def _turn(self, tower: str) -> AbstractContextManager[object]:
        swaps = any(insert.tower == tower and insert.runs_in_tower for insert in self.inserts)
        return self._turns[tower] if swaps else nullcontext()

    def _side(self, part: str) -> str:
        kind, _, table = part.partition(":")
        if kind == "table":
            # Every language's table is read with the body, which weighs more than all of them.
            if self._body is None:
                self._body = text_body_digest(self.model, self.architecture)
            return text_digest(self._body, self.model, self.vocabulary, table)
        # What a tower without a head gives out is the vector itself.
        digest = trunk_digest if kind == "trunk" and hasattr(self.model, "image_head") else image_digest
        return digest(self.model, self.preprocessing, self.architecture)

    def _digests(self, tower: str, route: str, *, in_tower_alone: bool = False) -> list[str]:
        inserts = reading(self.inserts, tower, route)
        return [one.digest() for one in inserts if one.runs_in_tower or not in_tower_alone]


@contextmanager
def training(encoder: Encoder) -> Iterator[None]:
    """Puts the model in train mode inside the block and back in eval mode after it."""
    encoder.train()
    try:
        yield
    finally:
        encoder.train(False)
        encoder.forget_fingerprints()
