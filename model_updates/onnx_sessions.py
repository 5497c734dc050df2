"""How onnxruntime is opened here: on the processor, with the threads of OpenMP, which sleep while they wait."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def session(graph: Path | bytes) -> InferenceSession:
    """Opens a graph, given as a file or as its bytes; the library is loaded here and not before a graph is wanted."""
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)  # 0 leaves it to the library
    options.log_severity_level = 3  # errors; it warns of constants that it leaves as they are
    options.add_session_config_entry(
        "session.intra_op.allow_spinning", "0"
    )  # as all threads here (app/home/cores.py)
    source = graph if isinstance(graph, bytes) else str(graph)
    return InferenceSession(source, options, providers=["CPUExecutionProvider"])
