"""The towers of an encoder as ONNX graphs, one for each way that texts or pictures are read, for `onnx_loader`.

A graph begins after the token table, which is data, and after preprocessing; it ends with unit vectors. Inserts of its
language, its domain or the whole encoder are in it. The router, the fusion encoder and language profiles are in none,
as they are part of no vector.
"""

import io
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from model_updates.encoder import Encoder
from model_updates.errors import NotPortable
from model_updates.inserts import Insert, RunImages, RunTexts, RunTokens, reading
from model_updates.kept_tokenizer import portable
from model_updates.towers import embed, foreign_text_features, image_head, image_trunk, text_body

LOADER = Path(__file__).with_name("onnx_loader.py")
_LARGEST = 1 << 30  # a file of protobuf holds two gigabytes; of larger towers the weights lie beside it


def require_portable(encoder: Encoder) -> None:
    """Refuses what cannot be written, before anything is.

    Raises:
        NotPortable: the sentence says what and why.
    """
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise NotPortable(f"ONNX needs {', '.join(missing)}: install Perennial with its dependencies again")
    if encoder.vocabulary is None and portable(encoder.foreign_tokenizer) is None:
        raise NotPortable(
            f"{encoder.architecture} cuts texts by rules that no tokenizer.json can hold, so other programs cannot"
        )
    if encoder.preprocessing.resize_mode == "longest":
        raise NotPortable(
            f"{encoder.architecture} pads its pictures (resize_mode 'longest'), which the loader cannot do"
        )


def write_text_graph(encoder: Encoder, language: str, file: Path) -> None:
    """Writes what maps embedded tokens (n, length, width) and the place of each text's last (n,) to vectors (n, dim).

    The text tower of a tokenizer that is not ours takes tokens (n, longest) alone.

    Raises:
        NotPortable: torch cannot write it.
    """
    tokens = encoder.tokenize(["two red boats", "a boat on a lake"], language)
    inserts = reading(encoder.inserts, "text", language)
    if encoder.vocabulary is None:
        return write_graph(
            _Tokens(encoder.model, inserts, unit=True), {"tokens": tokens}, {"tokens": {0: "texts"}}, file
        )
    inputs = {"embedded": embed(encoder.model, tokens), "ends": torch.tensor([3, tokens.shape[1] - 1])}
    moving = {"embedded": {0: "texts", 1: "length"}, "ends": {0: "texts"}}
    return write_graph(TextGraph(encoder.model, inserts, unit=True), inputs, moving, file)


def write_picture_graph(encoder: Encoder, domain: str, file: Path) -> None:
    """Writes what maps prepared pixels (n, 3, size, size) to vectors (n, dim).

    Raises:
        NotPortable: torch cannot write it.
    """
    size = encoder.preprocessing.size
    inputs, moving = {"pixels": torch.zeros(2, 3, size, size)}, {"pixels": {0: "pictures"}}
    write_graph(_Pictures(encoder.model, reading(encoder.inserts, "image", domain)), inputs, moving, file)


class Tower(nn.Module):
    """A part of an encoder as torch follows it into a graph."""

    def __init__(self, model: nn.Module, inserts: Sequence[Insert], *, unit: bool = False) -> None:
        super().__init__()
        self.model, self.unit = model, unit
        self.outwards = list(reversed(inserts))
        self.registered = nn.ModuleList(inserts)  # so that the graph holds their tensors

    def out(self, rows: Tensor) -> Tensor:
        """Returns rows as they are asked for: raw, or of length 1."""
        return functional.normalize(rows, dim=-1) if self.unit else rows


class TextGraph(Tower):
    """Embedded tokens (n, length, width) and the place of each text's last (n,) to raw features (n, dim)."""

    def forward(self, embedded: Tensor, ends: Tensor) -> Tensor:
        """Runs the text body, with its inserts in it."""
        run: RunTexts = partial(text_body, self.model)
        for insert in self.outwards:
            run = partial(insert.around_text, self.model, run)
        return self.out(run(embedded, ends))


class _Tokens(Tower):
    def forward(self, tokens: Tensor) -> Tensor:
        run: RunTokens = partial(foreign_text_features, self.model)
        for insert in self.outwards:
            run = partial(insert.around_tokens, self.model, run)
        return self.out(run(tokens))


class TrunkGraph(Tower):
    """Prepared pixels (n, 3, size, size) to trunk features (n, trunk_dim)."""

    def forward(self, pixels: Tensor) -> Tensor:
        """Runs the image tower, with its inserts in it."""
        run: RunImages = partial(image_trunk, self.model)
        for insert in self.outwards:
            run = partial(insert.around_image, self.model, run)
        return run(pixels)


class HeadGraph(Tower):
    """Trunk features (n, trunk_dim) to raw features (n, dim)."""

    def forward(self, trunk: Tensor) -> Tensor:
        """Runs the head, with its inserts around it."""
        run: RunImages = partial(image_head, self.model)
        for insert in self.outwards:
            run = partial(insert.around_head, run)
        return run(trunk)


class _Pictures(Tower):
    def __init__(self, model: nn.Module, inserts: Sequence[Insert]) -> None:
        super().__init__(model, inserts, unit=True)
        self.trunk, self.head = TrunkGraph(model, inserts), HeadGraph(model, inserts)

    def forward(self, pixels: Tensor) -> Tensor:
        return self.out(self.head(self.trunk(pixels)))


def write_graph(
    tower: Tower, inputs: dict[str, Tensor], moving: dict[str, dict[int, str]], file: Path
) -> None:
    """Writes a tower that takes these inputs, whose axes `moving` may be of any length.

    Raises:
        NotPortable: torch cannot write it.
    """
    weights, said = sum(value.nbytes for value in tower.state_dict().values()), io.StringIO()
    try:
        with torch.no_grad(), warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said):
            warnings.simplefilter("ignore")  # of torch, which also prints what it tried before what it did
            torch.onnx.export(
                tower.eval(),
                tuple(inputs.values()),
                file,
                input_names=list(inputs),
                output_names=["vectors"],
                dynamic_shapes=tuple(moving.values()),
                dynamo=True,
                external_data=weights > _LARGEST,
                verbose=False,
            )
    except (torch.onnx.OnnxExporterError, RuntimeError, ValueError, TypeError) as error:
        kinds = ", ".join(insert.kind for insert in tower.outwards) or "the tower"
        cause = type(error.__cause__ or error).__name__
        raise NotPortable(
            f"{file.name} cannot be written: torch does not follow {kinds} into a graph ({cause})"
        ) from error
