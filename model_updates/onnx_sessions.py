"""How onnxruntime is opened here: on the processor, with the threads of OpenMP, which sleep while they wait."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ingest.decoding import threads_asked

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


SHIPPED = Path(__file__).parent / "assets" / "graphs"
"""Graphs without numbers that come with the package."""


def session(graph: Path | bytes, numbers: Mapping[str, NDArray[Any]] | None = None) -> InferenceSession:
    """Opens a graph, given as a file or as its bytes; the library is loaded here and not before a graph is wanted.

    `numbers` are the tensors that it lacks, by name. They are used where they lie, so a mapped file stays one.
    """
    from onnxruntime import InferenceSession, OrtValue, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = threads_asked()  # 0 leaves it to the library
    options.log_severity_level = 3  # errors; it warns of constants that it leaves as they are
    options.add_session_config_entry(
        "session.intra_op.allow_spinning", "0"
    )  # as all threads here (app/home/cores.py)
    if numbers:
        values = [OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value)) for value in numbers.values()]
        options.add_external_initializers(list(numbers), values)
    source = graph if isinstance(graph, bytes) else str(graph)
    return InferenceSession(source, options, providers=["CPUExecutionProvider"])
