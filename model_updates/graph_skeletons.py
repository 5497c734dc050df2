"""Graphs without their weights, so that a tower is followed by torch once and filled with numbers as often as wanted.

torch takes three seconds to follow a tower into a graph and a blink to fill one. Those of the embedded encoders come
with the package; `python -m model_updates.portable_writer` writes them again where a tower has changed.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from model_updates.errors import NotPortable
from model_updates.onnx_graphs import Tower
from model_updates.onnx_sessions import SHIPPED

if TYPE_CHECKING:
    from onnx import ModelProto

_SHAPE = "shape"  # of the metadata: what the graph was made for; graphs of before are made again with it, to the byte
_MOST_KEPT = 64
_known: dict[str, bytes] = {}


def filled(
    name: str, tower: Tower, inputs: Mapping[str, Tensor], moving: Mapping[str, dict[int, str]]
) -> ModelProto:
    """Returns a tower's graph with its weights; arguments and errors as `lacking`."""
    state = tower.state_dict()
    model, _ = lacking(name, tower, inputs, moving)
    for one in model.graph.initializer:
        if one.data_location == one.EXTERNAL:
            one.ClearField("data_location")
            one.ClearField("external_data")
            values = state[one.name].detach().cpu().contiguous().numpy()
            one.raw_data = values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
    return model


def lacking(
    name: str, tower: Tower, inputs: Mapping[str, Tensor], moving: Mapping[str, dict[int, str]]
) -> tuple[ModelProto, list[str]]:
    """Returns a tower's graph without its weights, and the names of those that whoever opens it has to give.

    Args:
        name: of the encoder's architecture and the part of it; a shipped graph is found by it.
        tower: the part.
        inputs: such that it takes, by name.
        moving: by input, its axes that may have any length.

    Raises:
        NotPortable: torch does not follow it into a graph.
    """
    from onnx import load_model_from_string

    state = tower.state_dict()
    model = load_model_from_string(
        skeleton_of(name, tower) or _followed(tower, inputs, moving, _shape(name, tower))
    )
    lacks = [one for one in model.graph.initializer if one.name in state]
    for one in lacks:
        one.dims[:] = state[one.name].shape
        one.data_location = one.EXTERNAL
        one.ClearField("external_data")
        one.external_data.add(key="location", value=one.name)
    return model, [one.name for one in lacks]


def _shape(name: str, tower: Tower) -> str:
    """Returns the sha256 (hex) of what decides a graph but for its numbers; the token table is in none."""
    tensors = [
        [key, str(value.dtype), list(value.shape)]
        for key, value in tower.model.state_dict().items()
        if "token_embedding" not in key
    ]
    inserts = [
        [insert.kind, {key: value for key, value in insert.config.items() if key not in insert.only_counts}]
        + [sorted(key for key in insert.only_counts if insert.config.get(key))]
        for insert in tower.outwards
    ]
    said = [name, sorted(map(repr, tensors)), inserts]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def skeleton_of(name: str, tower: Tower) -> bytes | None:
    """Returns the graph without numbers that fits a tower, if one was shipped or made in this process."""
    shape = _shape(name, tower)
    if shape not in _known and (file := SHIPPED / f"{name}{kinds_of(tower)}.onnx").exists():
        skeleton = file.read_bytes()
        if _fits(skeleton, tower, shape):
            _known[shape] = skeleton
    return _known.get(shape)


def kinds_of(tower: Tower) -> str:
    """Returns what the name of a shipped graph says of a tower's inserts."""
    return "".join(f"-{insert.kind}" for insert in tower.outwards)


def _fits(skeleton: bytes, tower: Tower, shape: str) -> bool:
    """Whether a shipped graph is that of a tower: made for the same, or without inserts and with what the graph lacks.

    What else the encoder has does not count then: without its second space `perennial-photo` sees as it does with it.
    """
    from onnx import load_model_from_string

    state, model = tower.state_dict(), load_model_from_string(skeleton)
    if tower.outwards:
        return any(one.key == _SHAPE and one.value == shape for one in model.metadata_props)
    waits = [one for one in model.graph.initializer if not one.raw_data]
    return all(one.name in state and list(one.dims) == list(state[one.name].shape) for one in waits)


def _followed(
    tower: Tower, inputs: Mapping[str, Tensor], moving: Mapping[str, dict[int, str]], shape: str
) -> bytes:
    said = io.StringIO()
    try:
        with torch.no_grad(), warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said):
            warnings.simplefilter("ignore")  # of torch, which also prints what it tried before what it did
            program = torch.onnx.export(
                tower.eval(),
                tuple(inputs.values()),
                input_names=list(inputs),
                output_names=["features"],
                dynamic_shapes=tuple(moving.values()),
                dynamo=True,
                verbose=False,
                optimize=False,  # see `_bare`
            )
    except Exception as error:  # what it cannot follow it fails at in any way
        kinds = ", ".join(insert.kind for insert in tower.outwards) or "the tower"
        cause = type(error.__cause__ or error).__name__
        raise NotPortable(f"torch does not follow {kinds} into a graph ({cause})") from error
    if program is None:
        raise NotPortable("torch has written no graph")
    skeleton = _bare(program.model_proto, set(tower.state_dict()), shape)
    if len(_known) >= _MOST_KEPT:
        _known.clear()
    _known[shape] = skeleton
    return skeleton


def _bare(model: ModelProto, names: set[str], shape: str) -> bytes:
    """Returns a graph made simpler, without the tower's numbers and without what torch says of its own source."""
    from onnx import helper
    from onnxscript import optimizer

    numbers = [one for one in model.graph.initializer if one.name in names]
    inputs = len(model.graph.input)
    # What is asked for cannot be computed beforehand, so that no number of the tower ends up in another tensor.
    for one in numbers:
        model.graph.initializer.remove(one)
        model.graph.input.append(helper.make_tensor_value_info(one.name, one.data_type, one.dims))
    model = optimizer.optimize(model)
    del model.graph.input[inputs:]
    for one in numbers:
        one.ClearField("raw_data")
        model.graph.initializer.append(one)
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    for part in (*nodes, *model.graph.input, *model.graph.output):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    del model.graph.value_info[:], model.metadata_props[:], model.graph.metadata_props[:]
    model.metadata_props.add(key=_SHAPE, value=shape)
    bare: bytes = model.SerializeToString()
    return bare
