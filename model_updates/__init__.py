"""How the model learns without forgetting."""

import os

# onnxruntime tells its makers of each graph that is opened, under a number that it keeps for the machine, unless it is
# told not to before it is loaded (its Privacy.md). Nothing here calls home.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
