"""The body of multilingual-e5-small as an ONNX graph whose matrices stay at 4 bits.

Like every text graph here it begins after the token table, which is data. It is BERT: positions from 0, each sum
normalised, an exact GELU, and the mean over all tokens of a text, start and end among them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from model_updates.photo.e5_file import BLOCK, HEADS, LAYERS, WIDTH, PackedFile, graph_numbers

EPSILON = 1e-12
_OURS = "com.microsoft"  # onnxruntime's own operators


def body_graph(file: PackedFile, most: int) -> ModelProto:
    """Returns what maps embedded tokens (n, length, 384) and lengths (n,), at most `most`, to unit vectors (n, 384)."""
    return _model(_Body(graph_numbers(file, most)))


def bare_graph(file: PackedFile, most: int) -> ModelProto:
    """Returns the same without its numbers, which whoever opens it gives by their names (`e5_file.graph_numbers`)."""
    model, numbers = body_graph(file, most), graph_numbers(file, most)
    for one in model.graph.initializer:
        if one.name in numbers:
            one.ClearField("raw_data")
            one.data_location = TensorProto.EXTERNAL
            one.external_data.add(key="location", value=one.name)
    return model


class _Body:
    def __init__(self, numbers: Mapping[str, NDArray[Any]]) -> None:
        self._numbers = numbers
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []

    def layer(self, hidden: str, ends: str, name: str) -> str:
        """One layer over (n, length, 384); `ends` is each text's length."""
        query, key, value = (self.times(hidden, f"{name}.{part}", WIDTH) for part in "qkv")
        attended = self.add("MultiHeadAttention", query, key, value, "", ends, num_heads=HEADS, ours=True)
        hidden = self.summed(hidden, self.times(attended, f"{name}.ao", WIDTH), f"{name}.aln")
        inner = self.add("Gelu", self.times(hidden, f"{name}.fi", WIDTH))
        return self.summed(hidden, self.times(inner, f"{name}.fo", 4 * WIDTH), f"{name}.oln")

    def times(self, hidden: str, name: str, across: int) -> str:
        """Returns `hidden` (..., across) times a matrix, plus its bias."""
        tensors = [self.number(f"{name}.w"), self.number(f"{name}.w.step"), "", "", self.number(f"{name}.b")]
        wide = len(self._numbers[f"{name}.b"])
        settings = {"K": across, "N": wide, "bits": 4, "block_size": BLOCK}
        return self.add("MatMulNBits", hidden, *tensors, ours=True, **settings)

    def summed(self, left: str, right: str, name: str) -> str:
        """Returns the normalised sum of two."""
        return self.add("SkipLayerNormalization", left, right, *self.norm(name), epsilon=EPSILON, ours=True)

    def norm(self, name: str) -> list[str]:
        """Returns the weight and the bias of a normalisation."""
        return [self.number(f"{name}.{one}") for one in "wb"]

    def mean(self, hidden: str, longest: str) -> str:
        """Returns the unit mean (n, 384) over the tokens that a text has."""
        zero, one = self.keep(np.array(0)), self.keep(np.array(1))
        places = self.add("Range", zero, self.add("Squeeze", longest), one)
        inside = self.add("Less", places, self.add("Unsqueeze", "lengths", self.keep(np.array([1]))))
        weights = self.add(
            "Unsqueeze", self.add("Cast", inside, to=TensorProto.FLOAT), self.keep(np.array([1]))
        )
        total = self.add("Squeeze", self.add("MatMul", weights, hidden), self.keep(np.array([1])))
        return self.add("LpNormalization", total, axis=-1, p=2)

    def add(self, kind: str, *inputs: str, ours: bool = False, **settings: Any) -> str:
        """Adds a node and returns what its output is called."""
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], domain=_OURS if ours else "", **settings))
        return name

    def number(self, name: str) -> str:
        """Adds one of the encoder's tensors, and returns its name."""
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(self._numbers[name]), name))
        return name

    def keep(self, values: NDArray[Any]) -> str:
        """Adds a constant and returns what it is called."""
        name = f"constant_{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name


def _model(body: _Body) -> ModelProto:
    zero, longest = (
        body.keep(np.array([0])),
        body.add("Gather", body.add("Shape", "embedded"), body.keep(np.array([1]))),
    )
    placed = body.add("Add", "embedded", body.add("Slice", body.number("positions"), zero, longest, zero))
    hidden = body.add("LayerNormalization", placed, *body.norm("emb.ln"), epsilon=EPSILON)
    ends = body.add("Cast", "lengths", to=TensorProto.INT32)
    for layer in range(LAYERS):
        hidden = body.layer(hidden, ends, f"l{layer}")
    vectors = body.mean(hidden, longest)
    inputs = [
        helper.make_tensor_value_info("embedded", TensorProto.FLOAT, ["texts", "length", WIDTH]),
        helper.make_tensor_value_info("lengths", TensorProto.INT64, ["texts"]),
    ]
    output = helper.make_tensor_value_info(vectors, TensorProto.FLOAT, ["texts", WIDTH])
    graph = helper.make_graph(body.nodes, "multilingual-e5-small", inputs, [output], body.tensors)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(_OURS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
