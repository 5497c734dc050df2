"""The two towers inside an open_clip model: which state belongs to which, and how texts run through one.

open_clip keeps the image tower under ``visual``. A model may bring a head beside it (``image_head``) that maps what the
tower gives out, the *trunk features*, into the joint space; of other models the two are one. The text tower of
`open_clip.CLIP` lies beside the image tower, that of a `CustomTextCLIP` under ``text`` (`text_parts` finds it);
temperature and bias belong to neither.
"""

from collections.abc import Callable, Iterable
from typing import Any

import open_clip
import torch
from open_clip.transformer import TextTransformer
from torch import Tensor, nn

CLIP_ROWS = 49408
"""Rows of the token table that belong to CLIP's own tokenizer."""

_LENGTH_GROUPS = 4
"""Into so many groups of like length a batch of texts is cut: more save little and cost calls."""
_GROUPED_FROM = 16
"""A group holds at least so many texts."""

_ROWS_AT_ONCE = 8192


def causal_text_features(model: nn.Module, tokens: Tensor, end_row: int) -> Tensor:
    """Encodes texts of any length up to the context with a causal text tower of open_clip.

    open_clip's own `encode_text` wants full-length rows. The tower is causal and pools at the end token, so
    what follows it cannot matter, and shorter rows give the same numbers for less work (tested).
    """
    return causal_body_features(model, embed(model, tokens), (tokens == end_row).int().argmax(dim=-1))


def causal_body_features(model: nn.Module, embedded: Tensor, end_position: Tensor) -> Tensor:
    """Runs the text body on embedded tokens (n, length, width), pooling at `end_position` (n,)."""
    tower: Any = text_parts(model)  # nn.Module types every attribute as Tensor | Module
    length, dtype = embedded.shape[1], tower.transformer.get_cast_dtype()
    with training_precision(model, embedded.device):
        hidden = embedded.to(dtype) + tower.positional_embedding[:length].to(dtype)
        hidden = tower.transformer(hidden, attn_mask=tower.attn_mask[:length, :length])
        pooled: Tensor = tower.ln_final(hidden)[
            torch.arange(hidden.shape[0], device=hidden.device), end_position
        ]
        projection = tower.text_projection
        if projection is None:
            return pooled
        projected: Tensor = projection(pooled) if isinstance(projection, nn.Linear) else pooled @ projection
        return projected


def by_length(run: Callable[[Tensor, Tensor], Tensor], tokens: Tensor, ends: Tensor) -> Tensor:
    """Runs texts of like length together, each group as far as its longest text reaches.

    Most of a batch of short texts with one long one is padding, which costs what words cost; but not on a card, which
    takes longer to be told what to run than to run it.

    `run` gives (n, dim) features of (n, length) tokens that end at (n,) positions; what follows those must not matter.
    The features come in the order of the texts, equal to one run of all but for float rounding.
    """
    if tokens.is_cuda:
        return run(tokens, ends)
    order = ends.argsort(stable=True)
    reach = (ends[order] + 1).tolist()
    count = min(_LENGTH_GROUPS, len(reach) // _GROUPED_FROM)
    if count < 2 or reach[0] == reach[-1]:
        return run(tokens, ends)
    stops = [len(reach) * number // count for number in range(1, count + 1)]
    parts = []
    for start, stop in zip([0, *stops], stops, strict=False):
        rows = order[start:stop]
        parts.append(run(tokens[rows, : reach[stop - 1]], ends[rows]))
    return torch.cat(parts)[order.argsort()]


def text_body(model: nn.Module, embedded: Tensor, ends: Tensor) -> Tensor:
    """Runs the frozen part of a text tower on embedded tokens: whatever takes embeddings can learn a language.

    The model is of open_clip with a causal text tower, or has a method ``text_features``. Embedded tokens are (n,
    length, width); `ends` (n,) int64 is the position of each text's last, and what follows it must not matter. Returns
    (n, dim) raw features.
    """
    own = getattr(model, "text_features", None)
    if own is not None:
        with training_precision(model, embedded.device):
            features: Tensor = own(embedded, ends + 1)
        return features
    return causal_body_features(model, embedded, ends)


def foreign_text_features(model: nn.Module, tokens: Tensor) -> Tensor:
    """Runs a text tower that takes tokens (n, length) of its own and no embeddings: raw (n, dim) features."""
    with training_precision(model, tokens.device):
        features: Tensor = model.encode_text(tokens)  # type: ignore[operator]
    return features


def image_trunk(model: nn.Module, pixels: Tensor) -> Tensor:
    """Runs the image tower: (n, 3, size, size) pixels to (n, trunk_dim) trunk features."""
    if hasattr(model, "image_head"):
        return image_tower(model)(pixels)  # type: ignore[no-any-return]
    features: Tensor = model.encode_image(pixels)  # type: ignore[operator]
    return features


def image_head(model: nn.Module, trunk: Tensor) -> Tensor:
    """Maps trunk features to raw features of the joint space; CLIP towers have no head of their own."""
    head = getattr(model, "image_head", None)
    return trunk if head is None else head(trunk)


def training_precision(model: nn.Module, device: torch.device) -> torch.autocast:
    """Returns the context that a tower runs in: bf16 autocast while it trains on CUDA, else full precision.

    Only towers run in it. Similarities and losses stay in float32: bf16 has three digits, and a cosine is
    multiplied by up to 100 before the softmax.
    """
    reduced = device.type == "cuda" and model.training
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=reduced)


def image_tower(model: nn.Module) -> nn.Module:
    """Returns the image tower of an open_clip model."""
    tower: nn.Module = model.visual  # type: ignore[assignment]
    return tower


def text_tower(model: nn.Module) -> nn.Module:
    """Returns what holds the text tower's blocks: ``text``, or the transformer beside the image tower."""
    tower: nn.Module = model.text if hasattr(model, "text") else model.transformer  # type: ignore[assignment]
    return tower


def text_parts(model: nn.Module) -> nn.Module:
    """Returns what holds a text tower's token table, positions, blocks, last norm and projection.

    That is ``text`` where open_clip's own tower lies there (`CustomTextCLIP`), else the model (`CLIP`).
    """
    text = getattr(model, "text", None)
    return text if isinstance(text, TextTransformer) else model


def embed(model: nn.Module, tokens: Tensor) -> Tensor:
    """Looks (n, length) tokens up in the token table: (n, length, width)."""
    embedded: Tensor = text_parts(model).token_embedding(tokens)  # type: ignore[operator]
    return embedded


def pool_at(model: nn.Module, end_row: int) -> None:
    """Lets open_clip's own forward pool at a token; by default it takes the largest id, which growing takes away."""
    tower: Any = text_parts(model)
    if isinstance(tower, TextTransformer):
        tower.pool_type, tower.eos_id = "eos", end_row
    else:
        tower.text_pool_type, tower.text_eos_id = "eos", end_row


def is_image_parameter(name: str) -> bool:
    """True for state-dict keys of the image tower."""
    return name.startswith(("visual.", "image_head."))


def is_text_body(name: str) -> bool:
    """True for state-dict keys of the text tower other than the token table."""
    return not is_image_parameter(name) and not name.endswith("token_embedding.weight") and not is_scale(name)


def is_scale(name: str) -> bool:
    """True for the temperature (and SigLIP's bias), which belong to neither tower."""
    return name in {"logit_scale", "logit_bias"}


def token_table(model: nn.Module) -> nn.Parameter | None:
    """Returns the (rows, width) token embedding of an open_clip text tower, None for a foreign tower."""
    for holder in (model, getattr(model, "text", None)):
        embedding = getattr(holder, "token_embedding", None)
        if isinstance(embedding, nn.Embedding) and isinstance(embedding.weight, nn.Parameter):
            return embedding.weight
    return None


def resize_token_table(model: nn.Module, rows: int) -> nn.Parameter:
    """Grows the token embedding to `rows` rows: old rows are copied bit by bit, new ones are zero."""
    old: nn.Embedding = text_parts(model).token_embedding  # type: ignore[assignment]
    if rows < old.num_embeddings:
        raise ValueError(
            f"a token table never shrinks: it has {old.num_embeddings} rows, {rows} were asked for"
        )
    weight = torch.zeros(rows, old.embedding_dim, device=old.weight.device, dtype=old.weight.dtype)
    weight[: old.num_embeddings] = old.weight.detach()
    return replace_token_table(model, weight)


def replace_token_table(model: nn.Module, weight: Tensor) -> nn.Parameter:
    """Puts (rows, width) values in the place of the token embedding, however many rows there were."""
    rows, width = weight.shape
    parts = text_parts(model)
    parts.token_embedding = nn.Embedding(rows, width, _weight=weight)
    for holder in (parts, model):
        holder.vocab_size = rows  # type: ignore[assignment]
    table = token_table(model)
    if table is None:
        raise ValueError("this model has no token table to grow")
    return table


def is_small(dim: int) -> bool:
    """True for joint spaces narrower than CLIP's own (512 and more): their encoders take larger rates (docs/log.md)."""
    return dim < 256


def hash_tensors(digest: Any, tensors: Iterable[tuple[str, Tensor]]) -> None:
    """Feeds named tensors to a hash: name, dtype, shape and bytes, in the order of the names."""
    for name, tensor in sorted(tensors, key=lambda item: item[0]):
        value = tensor.detach().cpu().contiguous()
        digest.update(f"{name}|{value.dtype}|{tuple(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy())


def hash_rows(digest: Any, name: str, table: Tensor, rows: Tensor) -> None:
    """Feeds rows of a table to a hash, as `hash_tensors` would; never all of them are in memory twice."""
    digest.update(f"{name}|{table.dtype}|{(len(rows), *table.shape[1:])}".encode())
    for part in torch.split(rows, _ROWS_AT_ONCE):
        digest.update(table.detach()[part.to(table.device)].cpu().reshape(-1).view(torch.uint8).numpy())


def is_expandable(model: nn.Module) -> bool:
    """True when the text tower is open_clip's causal one, pooling at the end: its vocabulary can grow."""
    tower = _own_text_tower(model)
    return (
        tower is not None
        and getattr(tower, "cls_emb", None) is None
        and tower.attn_mask is not None
        and _pooling(tower) in {"argmax", "eos"}
    )


def why_fixed(model: nn.Module) -> str:
    """Says of a text tower whose vocabulary is not ours why it cannot grow: what follows "the text tower of X"."""
    tower, table = _own_text_tower(model), token_table(model)
    if tower is None or table is None:
        return "brings a tokenizer of its own"
    if getattr(tower, "cls_emb", None) is not None:
        return "pools at a token of its own behind the words"
    if len(table) != CLIP_ROWS:
        return "brings a tokenizer of its own"
    if tower.attn_mask is None:
        return "reads texts in both directions"
    if _pooling(tower) not in {"argmax", "eos"}:
        return "does not pool where a text ends"
    # By rules that are not CLIP's, or in a version from when such towers were taken for foreign ones: what it holds
    # goes on giving the same vectors.
    return "keeps the tokenizer that it was opened with"


def _own_text_tower(model: nn.Module) -> Any:
    tower = text_parts(model)
    return tower if isinstance(tower, open_clip.CLIP | TextTransformer) else None


def _pooling(tower: Any) -> str:
    return str(tower.pool_type if isinstance(tower, TextTransformer) else tower.text_pool_type)
