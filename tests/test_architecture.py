"""The shape of the project: names, layers and what stays out of a quick start."""

from __future__ import annotations

import importlib.metadata
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from app import DISTRIBUTION

ROOT = Path(__file__).parent.parent
PACKAGES = ("app", "index", "ingest", "model_updates")
HEAVY = ("torch", "faiss", "gradio", "open_clip", "peft", "transformers")


@pytest.mark.parametrize("package", ["perennial", *PACKAGES])
def test_no_other_distribution_owns_a_package_name(package: str) -> None:
    owners = set(importlib.metadata.packages_distributions().get(package, [])) - {DISTRIBUTION}

    assert owners == set(), f"{owners} would overwrite our {package}/"


def test_help_imports_nothing_heavy() -> None:
    code = f"import app.commands.cli, sys; print([m for m in {HEAVY!r} if m in sys.modules])"

    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "[]"


@pytest.mark.usefixtures("starts_at_once")
def test_a_search_and_a_job_start_without_what_one_strategy_needs() -> None:
    code = "import app.home.workspace, app.learning.update_cycle, sys; print('peft' in sys.modules)"

    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "False"


def test_the_architecture_page_names_modules_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:app|index|ingest|model_updates|tests)/[\w/]+\.py)", text))

    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", ["modules", "settings"])
def test_what_is_written_of_the_code_is_as_new_as_the_code(name: str) -> None:
    written = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    now = runpy.run_path(str(ROOT / "docs" / f"write_{name}.py"))["page"]()

    assert written == now, f"docs/{name}.md is older than the code; `make docs` writes it anew"


def test_every_page_is_on_the_site_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", tmp_path],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert built.returncode == 0, built.stderr
    assert (tmp_path / "models" / "perennial-photo" / "index.html").is_file()


def test_the_version_is_the_same_wherever_it_stands() -> None:
    said = importlib.metadata.version(DISTRIBUTION)

    assert f"\nversion: {said}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {said} - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_source_file_unpickles() -> None:
    banned = re.compile(
        r"\bpickle\b|torch\.load\((?!.*weights_only=True)|allow_pickle=True|joblib"  # one package ships .pth
    )
    guilty = [
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if any(banned.search(line) for line in _code(path))
    ]

    assert guilty == []


def _code(path: Path) -> list[str]:
    """Lines that are neither comments nor docstring prose."""
    text = re.sub(r'"""(?:.|\n)*?"""', "", path.read_text(encoding="utf-8"))
    return [line.split("#")[0] for line in text.splitlines()]
