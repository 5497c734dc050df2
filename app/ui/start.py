"""Loads Gradio as the pages need it; nothing else here may be imported before."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch


def start_gradio(uploads: Path) -> None:
    """Loads Gradio: files that people choose lie in `uploads`, and it does not call home.

    On loading it reads its own sources to write stubs for editors beside them, which takes 1.0 of 2.5 s of the
    processor. It leaves that out for a class that has no file, and that is what it is told of each.
    """
    os.environ["GRADIO_TEMP_DIR"] = str(uploads)
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    file_of = inspect.getfile

    def no_stubs(asked: Any) -> str:
        if sys._getframe(1).f_code.co_name == "create_or_modify_pyi":
            raise OSError
        return file_of(asked)

    with patch.object(inspect, "getfile", no_stubs):
        import gradio  # noqa: F401
