"""What an install brings: all our files and no others in their place, and what it needs in pinned versions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import perennial

ROOT = Path(__file__).parent.parent
PACKAGES = ("perennial", "app", "index", "ingest", "model_updates")
LINES = [
    line
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def _wanted(*but: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    extras = [line for name, lines in optional.items() if name not in but for line in lines]
    return [Requirement(line) for line in [*project["dependencies"], *extras]]


def _pins() -> dict[str, list[Requirement]]:
    pins: dict[str, list[Requirement]] = defaultdict(list)
    for line in LINES:
        pin = Requirement(line)
        pins[canonicalize_name(pin.name)].append(pin)
    return pins


def _holds(requirement: Requirement, extra: str = "") -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


@pytest.mark.parametrize("wanted", _wanted(), ids=str)
def test_what_pyproject_asks_for_is_pinned_to_a_version_it_allows(wanted: Requirement) -> None:
    pins = _pins()[canonicalize_name(wanted.name)]
    versions = [next(iter(pin.specifier)).version for pin in pins]
    assert versions, "run `make constraints`"
    assert all(wanted.specifier.contains(version) for version in versions), "run `make constraints`"


def test_each_line_names_one_version_and_no_place_to_get_it_from() -> None:
    for line in LINES:
        pin = Requirement(line)
        assert pin.url is None
        assert [part.operator for part in pin.specifier] == ["=="], line
    assert not re.search(r"://|^\s*-|@", "\n".join(LINES), re.MULTILINE)


def test_of_two_versions_of_a_package_only_one_holds_here() -> None:
    for name, pins in _pins().items():
        assert sum(_holds(pin) for pin in pins) <= 1, name


def test_everything_that_came_with_this_install_is_pinned() -> None:
    pinned = {name for name, pins in _pins().items() if any(map(_holds, pins))}
    todo: list[tuple[Requirement, str]] = [
        (wanted, "") for wanted in _wanted("gpu", "scale", "milvus", "ray")
    ]
    met: set[tuple[str, ...]] = set()
    while todo:
        requirement, extra = todo.pop()
        name = canonicalize_name(requirement.name)
        if not _holds(requirement, extra) or (name, *sorted(requirement.extras)) in met:
            continue
        met.add((name, *sorted(requirement.extras)))
        assert name in pinned, f"{name} is not in constraints.txt: run `make constraints`"
        for line in metadata.requires(name) or ():
            todo += [(Requirement(line), asked) for asked in ("", *requirement.extras)]
    assert len(met) > 60


def test_make_and_the_image_install_what_is_pinned() -> None:
    installs = [
        line
        for name in ("Makefile", "Dockerfile")
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if re.search(r"(pip|PIP\)) install", line)
    ]
    assert len(installs) == 10
    for line in installs:
        # One package, of one version, and nothing with it.
        is_pinned_alone = "--no-deps" in line and "==" in line
        assert is_pinned_alone or "--constraint constraints.txt" in line or "$(PINNED)" in line, line


def test_the_image_may_copy_what_it_copies() -> None:
    allowed = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    copied = re.findall(
        r"^COPY (?!--)(.+) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE
    )
    for name in " ".join(copied).split():
        assert name in allowed, f"{name} is copied into the image, but .dockerignore keeps it out"
        assert (ROOT / name).exists()


def _pip(*arguments: str | Path) -> None:
    offline = ("--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check", "--quiet")
    command, *rest = map(str, arguments)
    subprocess.run([sys.executable, "-m", "pip", command, *offline, *rest], check=True, capture_output=True)


def test_a_wheel_brings_every_file_and_the_command(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, source)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    files = {
        path.relative_to(source).as_posix()
        for name in PACKAGES
        for path in (source / name).rglob("*")
        if path.is_file()
    }
    _pip("wheel", "--wheel-dir", tmp_path, source)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        brought = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert brought == files

    made = tmp_path / "venv"
    venv.create(made)
    _pip("install", "--prefix", made, "--ignore-installed", wheel)
    # What it needs is here already; our own packages are not, since an editable install lies outside.
    theirs = next(made.glob("lib/python*/site-packages"))
    (theirs / "needed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    said = subprocess.run(
        [made / "bin" / "perennial", "--version"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"perennial {perennial.__version__}\n"


@pytest.mark.parametrize("file", ["app.py", *(f"{name}/__init__.py" for name in PACKAGES[1:])])
def test_a_package_of_the_same_name_in_the_way_is_named(tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    search_path = os.pathsep.join([str(tmp_path), str(ROOT)])
    imported, command = (
        subprocess.run(
            [sys.executable, *start],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": search_path},
            capture_output=True,
            text=True,
            check=False,
        )
        for start in (["-c", "import perennial"], ["-m", "perennial", "--version"])
    )
    place = tmp_path / file.removesuffix("/__init__.py")
    sentence = f"Python finds {place}. Start it from another folder"
    assert f"ImportError: Perennial needs its own package {place.stem!r}" in imported.stderr
    assert sentence in imported.stderr
    assert (command.returncode, command.stdout) == (1, "")
    assert command.stderr.startswith("Perennial needs its own package")
    assert sentence in command.stderr
