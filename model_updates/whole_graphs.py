"""Graphs for other programs, from what `onnx_loader` prepares to unit vectors: one for each way of reading.

They are made of the parts that a version is searched with, so that torch follows no tower twice, and none of an
embedded encoder.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from model_updates.encoder import Encoder
from model_updates.errors import NotPortable
from model_updates.inserts import reading
from model_updates.kept_tokenizer import portable
from model_updates.portable_writer import TriedPart, head_part, text_part, tokens_part, trunk_part

if TYPE_CHECKING:
    from onnx import ModelProto

LOADER = Path(__file__).with_name("onnx_loader.py")
OUTPUT = "vectors"
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
    read = reading(encoder.inserts, "text", language)
    part = tokens_part(encoder, read) if encoder.vocabulary is None else text_part(encoder, read)
    _write(_graph(part, file), file)


def write_picture_graph(encoder: Encoder, domain: str, file: Path) -> None:
    """Writes what maps prepared pixels (n, 3, size, size) to vectors (n, dim).

    Raises:
        NotPortable: torch cannot write it.
    """
    seen = reading(encoder.inserts, "image", domain)
    whole = _graph(trunk_part(encoder, seen), file)
    if hasattr(encoder.model, "image_head") or any(not one.runs_in_tower for one in seen):
        whole = _joined(whole, _graph(head_part(encoder, seen), file))
    _write(whole, file)


def _graph(part: TriedPart, file: Path) -> ModelProto:
    try:
        return part.graph()
    except NotPortable as error:
        raise NotPortable(f"{file.name} cannot be written: {error}") from error


def _joined(trunk: ModelProto, head: ModelProto) -> ModelProto:
    """Returns a graph in which a head takes what a trunk gives."""
    from onnx import compose

    edge = (trunk.graph.output[0].name, head.graph.input[0].name)
    graph = compose.merge_graphs(trunk.graph, head.graph, [edge], prefix2="head/")
    trunk.graph.CopyFrom(graph)
    return trunk


def _write(model: ModelProto, file: Path) -> None:
    """Has a graph end with rows of length 1, and writes it, large tensors beside it where one file cannot hold them."""
    import onnx

    graph = model.graph
    features = graph.output[0].name
    graph.node.append(onnx.helper.make_node("LpNormalization", [features], [OUTPUT], axis=-1, p=2))
    graph.output[0].name = OUTPUT
    del model.metadata_props[:]  # of a part, not of the whole
    beside: dict[str, Any] = {}
    if sum(len(one.raw_data) for one in graph.initializer) > _LARGEST:
        beside = {"save_as_external_data": True, "location": f"{file.name}.data"}
    onnx.save_model(model, file, **beside)
