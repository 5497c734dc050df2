"""Gradio is loaded without what it does for editors."""

import inspect
import subprocess
import sys

COUNT = """
import sys
from pathlib import Path
read = []
sys.addaudithook(lambda event, args: read.append(str(args[0])) if event == "open" else None)
from app.ui.start import start_gradio
start_gradio(Path("uploads"))
import gradio
assert gradio.Blocks
print(sum(name.endswith((".py", ".pyi")) and "gradio" in name for name in read))
"""


def test_gradio_reads_no_sources_of_its_own_to_write_stubs() -> None:
    counted = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    assert int(counted.stdout) < 5  # 240 otherwise
    assert inspect.getfile(subprocess).endswith("subprocess.py")
