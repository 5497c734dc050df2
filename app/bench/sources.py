"""Of which code a cell is: the sha256 of the sources that teach and measure a strategy, and of no others.

A source counts without its comments and docstrings, so that only what runs makes a cell old.
"""

import ast
import hashlib
import inspect
from functools import cache
from pathlib import Path

from model_updates.parts.extended import Extended
from model_updates.references import REFERENCES
from model_updates.strategies import strategy_named

ROOT = Path(__file__).parents[2]
WITHIN = ("model_updates", "app.bench")
ROOTS = ("app.bench.cell", "model_updates.trainer")
OTHERS = "model_updates.strategies"  # names every strategy; a cell runs its own


def sources_of(strategy: str) -> str:
    """Returns the sha256 (hex) of the code that a cell of a strategy runs, as far as it learns or measures."""
    kinds = [] if strategy in REFERENCES else [strategy_named(strategy)]
    kinds += [kind.host_kind for kind in kinds if issubclass(kind, Extended)]
    waiting, found = [*ROOTS, *(base.__module__ for kind in kinds for base in inspect.getmro(kind))], {}
    while waiting:
        name = waiting.pop()
        if name in found or name == OTHERS or not name.startswith(WITHIN):
            continue
        file = ROOT.joinpath(*name.split("."))
        path = file.with_suffix(".py") if file.with_suffix(".py").exists() else file / "__init__.py"
        if not path.exists():  # a name inside a module
            continue
        found[name], imported = _read(path)
        waiting += imported
    return hashlib.sha256("".join(f"{name} {found[name]}\n" for name in sorted(found)).encode()).hexdigest()


@cache
def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the sha256 of what a source does, and what it imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [one for one in node.body if not _is_said(one)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(imported)


def _is_said(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
