"""Writes what is installed, with versions and licences, and asks whether a weakness is known in any of it.

    python benchmarks/audit.py

`make audit` runs it. The list is build/sbom.json, a bill of materials in CycloneDX 1.6. The two programs that make the
list and ask are pinned here and lie in build/audit, apart from what Perennial needs. It ends with 0 where nothing is
known, with 1 where something is, and with 3 where nobody could be asked: an audit that asked nobody has found nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
TOOLS = ("cyclonedx-bom==7.5.0", "pip-audit==2.10.1")
KNOWN, NOBODY_ASKED = 1, 3
_PATIENCE_SECONDS = 15
_VALID = (
    "import pathlib, sys; from cyclonedx.schema import SchemaVersion; "
    "from cyclonedx.validation.json import JsonStrictValidator as Validator; "
    "sys.exit(str(Validator(SchemaVersion.V1_6).validate_str(pathlib.Path(sys.argv[1]).read_text()) or '') or 0)"
)


def main() -> int:
    """Writes the list, asks, and says in a sentence what was found."""
    tools = _tools()
    listed = BUILD / "sbom.json"
    _run(tools / "cyclonedx-py", "environment", sys.executable, "--pyproject", ROOT / "pyproject.toml",
         "--spec-version", "1.6", "--output-reproducible", "--output-file", listed)  # fmt: skip
    bill = json.loads(listed.read_text(encoding="utf-8"))
    add_licences(bill)
    listed.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    _run(tools / "python", "-c", _VALID, listed)
    print(f"{listed.relative_to(ROOT)} lists {len(bill['components'])} packages.")
    packages = sysconfig.get_path("purelib")
    asked = subprocess.run(
        [tools / "pip-audit", "--path", packages, "--format", "json", "--timeout", str(_PATIENCE_SECONDS),
         "--progress-spinner", "off"], capture_output=True, text=True, check=False)  # fmt: skip
    code, sentence = verdict(asked.stdout)
    print(sentence, file=sys.stderr if code else sys.stdout)
    return code


def add_licences(bill: dict[str, Any]) -> None:
    """Fills in what the metadata of a package says of its licence in words, or else its licence file's first line."""
    for one in bill["components"]:
        if not one.get("licenses"):
            one["licenses"] = [{"license": {"name": _licence(one["name"])}}]


def _licence(package: str) -> str:
    found = metadata.distribution(package)
    said = str(found.metadata["License"] or "").strip()
    if said and said != "UNKNOWN":
        return said.splitlines()[0]
    for file in found.files or ():
        if file.name.upper().startswith("LICEN"):
            lines = file.read_text(encoding="utf-8").split("\n")
            return next(line.strip() for line in lines if line.strip())
    return "not declared"


def verdict(report: str) -> tuple[int, str]:
    """Returns how to end, and a sentence, from what pip-audit reports as JSON.

    pip-audit ends well, too, where its database knows none of the packages: nobody was asked then.
    """
    try:
        packages = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        packages = []
    looked_up = [one for one in packages if "skip_reason" not in one]
    if not looked_up:
        return NOBODY_ASKED, (
            "The database of known weaknesses could not be reached, so nothing was audited. Run `make audit` where "
            "there is a network."
        )
    weak = [(one, known) for one in looked_up for known in one["vulns"]]
    lines = [
        f"{one['name']} {one['version']}: {known['id']}, mended in {' or '.join(known['fix_versions']) or 'no version'}"
        for one, known in weak
    ]
    if lines:
        return KNOWN, "\n".join([*lines, f"{len(lines)} weaknesses are known."])
    left = len(packages) - len(looked_up)
    return 0, f"No weakness is known in {len(looked_up)} packages; the database does not know {left} others."


def _tools() -> Path:
    """Returns the folder of the programs, which are installed when the pins here have changed."""
    folder, mark = BUILD / "audit", BUILD / "audit" / "pins"
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    if not mark.exists() or mark.read_text(encoding="utf-8").split() != list(TOOLS):
        venv.create(folder, with_pip=True, clear=True)
        _run(programs / "python", "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *TOOLS)
        mark.write_text("\n".join(TOOLS), encoding="utf-8")
    return programs


def _run(*command: str | Path) -> None:
    subprocess.run([str(one) for one in command], check=True)


if __name__ == "__main__":
    sys.exit(main())
