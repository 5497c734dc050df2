"""What the towers say of each word and each patch, beside the one feature that search uses.

The tokens are taken where they come out of a tower's last layer while it runs as always, inserts included, so that one
forward pass gives both. Towers that we know: open_clip's ViT (class token and patches) and modified ResNet (places of
the last map) for pictures, its causal and its `TextTransformer` for texts.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from model_updates.encoder import Encoder
from model_updates.pair_sets import Batch
from model_updates.parts.prompt_pool import TextPrompts
from model_updates.routes import BASE, Route
from model_updates.towers import image_tower, text_parts, token_table
from model_updates.vocabulary import SHARED


@dataclass(frozen=True)
class Read:
    """What a tower makes of n inputs."""

    features: Tensor  # (n, dim) raw features
    tokens: Tensor  # (n, length, width) of its last layer


@dataclass(frozen=True)
class Source:
    """Where tokens come out: a module whose output is (n, length, width), or a map (n, width, height, width)."""

    module: nn.Module
    width: int


def patch_source(model: nn.Module) -> Source | None:
    """Returns where an image tower's patches come out, None for a tower that we do not know."""
    tower: Any = image_tower(model)
    if hasattr(tower, "class_embedding") and hasattr(tower, "transformer"):
        return Source(tower.transformer, len(tower.class_embedding))
    if hasattr(tower, "layer4") and hasattr(tower, "attnpool"):
        return Source(tower.layer4, tower.attnpool.positional_embedding.shape[-1])
    return None


def word_source(model: nn.Module) -> Source | None:
    """Returns where a text tower's words come out, None for a tower that we do not know."""
    tower: Any = getattr(model, "text", model)
    if not hasattr(tower, "ln_final") or token_table(model) is None:
        return None
    return Source(tower.ln_final, tower.ln_final.weight.shape[0])


def no_tokens(encoder: Encoder) -> str | None:
    """Says why no fusion encoder can read a model's towers, None when one can."""
    if any(isinstance(insert, TextPrompts) for insert in encoder.inserts):
        return "its prompts stand among the words that a fusion encoder would read; set fusion=no"
    found = {"image": patch_source(encoder.model), "text": word_source(encoder.model)}
    missing = [side for side, source in found.items() if source is None]
    if not missing:
        return None
    return (
        f"a fusion encoder reads the patches and words of open_clip's own towers, and the {' and '.join(missing)} "
        f"tower of {encoder.architecture} is none that we know; set fusion=no, or use an encoder with ViT or ResNet"
    )


def read_pairs(encoder: Encoder, batch: Batch, *, tokens: bool) -> tuple[Read, Read]:
    """Runs both towers on a batch with pictures; without tokens only the features are given.

    Raises:
        ValueError: the batch has no pictures.
    """
    if batch.images is None:
        raise ValueError("both towers are read, and this batch has no pictures")
    if tokens:
        return read_images(encoder, batch.images, batch.domains), read_texts(
            encoder, batch.tokens, batch.languages
        )
    none = torch.empty(0)
    images = encoder.forward_images(batch.images, batch.domains).float()
    return Read(images, none), Read(encoder.forward_tokens(batch.tokens, batch.languages).float(), none)


def read_images(encoder: Encoder, prepared: Tensor, domains: Sequence[str] = ()) -> Read:
    """Runs the image side on prepared pictures (n, 3, size, size), each on its domain's route."""
    source = _known(patch_source(encoder.model))
    routes = [encoder.image_route(domain) for domain in domains]

    def run(rows: Tensor, route: str) -> Tensor:
        return encoder.forward_images(rows, route)

    return _read(source, run, prepared, routes if any(routes) else BASE)


def read_texts(
    encoder: Encoder,
    tokens: Tensor,
    languages: Sequence[str] = (),
    *,
    hidden: Tensor | None = None,
    mask: Tensor | None = None,
) -> Read:
    """Runs the text side on token rows (n, length), each on its language's route.

    No languages stand for the shared route. Where `hidden` (n, length) is true, `mask` (width,) is read in the place of
    a token's embedding.
    """
    source = _known(word_source(encoder.model))
    tokens = tokens.to(encoder.device)
    routed = any(insert.tower == "text" for insert in encoder.inserts)

    def run(rows: Tensor, route: str) -> Tensor:
        where = None if hidden is None else hidden[_positions(languages, route, routed)].to(rows.device)
        with nullcontext() if where is None or mask is None else _hiding(encoder.model, where, mask):
            return encoder.forward_tokens(rows, route, together=True)

    return _read(source, run, tokens, list(languages) if routed else SHARED)


def real_words(encoder: Encoder, tokens: Tensor) -> Tensor:
    """Returns (n, length) bool: which tokens are of the text, start and end included, and not padding."""
    if encoder.vocabulary is not None:
        ends = (tokens == encoder.vocabulary.end_row).int().argmax(dim=-1, keepdim=True)
        return torch.arange(tokens.shape[1], device=tokens.device)[None, :] <= ends
    padding = int(encoder.tokenize([""])[0, -1])
    real = tokens != padding
    real[:, 0] = True
    return real


def words_to_hide(encoder: Encoder, tokens: Tensor) -> Tensor:
    """Returns (n, length) bool: tokens that are words, neither start nor end nor padding."""
    if encoder.vocabulary is not None:
        special = torch.tensor(encoder.vocabulary.special_rows, device=tokens.device)
    else:
        special = torch.unique(encoder.tokenize([""])[0]).to(tokens.device)
    return real_words(encoder, tokens) & ~torch.isin(tokens, special)


def _known(source: Source | None) -> Source:
    if source is None:
        raise ValueError("this tower gives no tokens; ask no_tokens() first")
    return source


def _positions(names: Sequence[str], route: str, routed: bool) -> list[int] | slice:
    return [n for n, name in enumerate(names) if name == route] if routed else slice(None)


def _read(source: Source, run: Any, rows: Tensor, route: Route) -> Read:
    """Runs the rows of each route by themselves, since a tower gives its tokens in the order that it saw."""
    if isinstance(route, str):
        with _captured(source.module) as given:
            features: Tensor = run(rows, route)
        return Read(features.float(), _as_tokens(given[-1]).float())
    parts, order = [], []
    for name in dict.fromkeys(route):
        positions = [n for n, other in enumerate(route) if other == name]
        order += positions
        with _captured(source.module) as given:
            features = run(rows[positions], name)
        parts.append(Read(features.float(), _as_tokens(given[-1]).float()))
    back = torch.tensor(order, device=rows.device).argsort()
    return Read(
        torch.cat([part.features for part in parts])[back], torch.cat([part.tokens for part in parts])[back]
    )


def _as_tokens(output: Tensor) -> Tensor:
    return output.flatten(2).transpose(1, 2) if output.ndim == 4 else output


@contextmanager
def _captured(module: nn.Module) -> Iterator[list[Tensor]]:
    """Collects what a module gives out in this thread while the block runs; a server has many threads."""
    given: list[Tensor] = []
    thread = threading.get_ident()

    def collect(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        if threading.get_ident() == thread:
            given.append(output)

    hook = module.register_forward_hook(collect)
    try:
        yield given
    finally:
        hook.remove()


@contextmanager
def _hiding(model: nn.Module, hidden: Tensor, mask: Tensor) -> Iterator[None]:
    """Puts a vector in the place of hidden tokens' embeddings while the block runs."""
    holder: Any = text_parts(model)
    hook = holder.token_embedding.register_forward_hook(
        lambda _module, _inputs, output: torch.where(hidden[..., None], mask.to(output.dtype), output)
    )
    try:
        yield
    finally:
        hook.remove()
