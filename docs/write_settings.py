"""Writes docs/settings.md: every setting with its default, what the code says of it, and when to change it.

python docs/write_settings.py
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from app.home.settings import Settings
from index.kinds import AUTO, FACTORIES
from model_updates.checked import explained
from model_updates.gate.report import Policy

PAGE = Path(__file__).resolve().parent / "settings.md"
HEAD = """# Settings

Written by `make docs` from `app/home/settings.py`; do not edit. No setting has to be changed to begin.

A setting stands in `perennial.toml`, in `~/.config/perennial` (`$XDG_CONFIG_HOME/perennial`) or in the working
directory, or in the environment as `PERENNIAL_` and its name in capitals. The later wins: default, the user's file, the
file of the working directory, environment, an option of the command such as `--home` or `--port`. A list in the
environment has commas between its parts, and `PERENNIAL_GATE__SLICE_DROP` is `slice_drop` below `[gate]`.

A name that is no setting is refused in a file, and below `[gate]` anywhere. In the environment one is refused that is
much like a setting's, with the one that was probably meant. All others there are ignored without a word, such as
`PERENNIAL_SLICE_DROP`, since other programs set some (Kubernetes sets `PERENNIAL_SERVICE_HOST`). A server reads its
settings when it starts; its System page and `GET /v1/settings` show them as they are.

```toml
port = 8080
watch = ["~/Pictures"]

[gate]
slice_drop = 3.0
```
"""
# By what people want to do; each setting once, with the reason to change it.
WHEN: Mapping[str, Mapping[str, str]] = {
    "The home and this machine": {
        "home": "to keep it on another disk, or to have several",
        "device": "to `cpu` where other programs need the card",
        "threads": "where other programs share the processor",
        "niceness": "to 0 on a machine that only teaches",
        "log_level": "to `DEBUG` to look into a fault",
    },
    "Searching": {
        "default_k": "to see more or fewer results at once",
        "max_query_characters": "where people paste long texts",
        "index": "where memory is short; `perennial index` says which one is in use, and what it takes",
        "second_tower": "to `where-needed` to be answered sooner ([search](search.md#languages-and-translations))",
        "ask_server": "to false to have the command line answer by itself ([search](search.md#the-query))",
    },
    "A server": {
        "host": "to `0.0.0.0` to let other machines in",
        "port": "where another program has it",
        "processes": "where many ask at once ([interfaces](interfaces.md#several-processes))",
        "poll_seconds": "lower to see sooner what another process or machine made live",
        "max_upload_bytes": "where larger archives are uploaded",
        "watch": "to keep up with folders ([ingest](ingest.md#a-folder-that-is-read-again))",
        "jobs": "to `elsewhere` for workers apart ([interfaces](interfaces.md#server-and-worker-apart))",
        "shadow_share": "higher to know sooner ([interfaces](interfaces.md#a-candidate-in-the-shadow))",
    },
    "Who may come in": {
        "password_file": "to have people sign in ([interfaces](interfaces.md#who-may-do-what))",
        "proxy_user_header": "where a reverse proxy signs people in",
        "proxy_groups_header": "where that proxy sends groups under another name",
        "proxy_addresses": "where that proxy runs on another machine",
        "proxy_admins": "to say who is one, groups as `group:NAME`",
        "proxy_contributors": "likewise",
        "allow_open": "only in a network in which everybody may do everything",
        "places_for": "where more people than admins may know paths and have the files",
        "origins": "where pages of other addresses call the server, or a proxy before it on loopback has a public one",
    },
    "The network": {
        "allow_fetch": "where tables name pictures by address ([ingest](ingest.md#pictures-on-the-web))",
        "fetch_networks": "where such pictures lie in your own network",
        "immich_from": "to let Immich ask for vectors ([Immich](immich.md))",
        "immich_release": "to have Immich keep to one release until you name another",
    },
    "A cluster": {
        "ray": "where embedding takes hours ([scale](scale.md#embedding-on-a-ray-cluster))",
        "training_workers": "where training does ([scale](scale.md#training-on-a-ray-cluster))",
    },
}
# Of what a schema does not know.
MAY_BE: Mapping[str, str] = {
    "index": f"`{AUTO}`, " + ", ".join(f"`{kind}`" for kind in re.split(", | and ", FACTORIES))
}
_TOP = """
| setting | default | what it is | may be | change it |
|---|---|---|---|---|
"""
_GATE = """
## The gate

Below `[gate]`. [The gate](gate.md) explains each rule. A change holds for all updates to come.

| setting | default | what it is | may be |
|---|---|---|---|
"""


def page() -> str:
    """Returns the page: a table for each group of settings.

    Raises:
        ValueError: a setting is in no group, or a group names one that there is not.
    """
    grouped = [name for group in WHEN.values() for name in group]
    if sorted([*grouped, "gate"]) != sorted(Settings.model_fields):
        raise ValueError(f"Each setting is once in WHEN, and nothing else: {sorted(grouped)}.")
    kinds, says, meant = Settings.model_json_schema()["properties"], explained(Settings), explained(Policy)
    parts = [HEAD]
    for title, group in WHEN.items():
        parts.append(f"\n## {title}\n{_TOP}")
        parts += [
            _row(f"`{name}`", _default(name), says[name], MAY_BE.get(name) or _may_be(kinds[name]), when)
            for name, when in group.items()
        ]
    parts.append(_GATE)
    parts += [
        _row(f"`{one.name}`", f"`{json.dumps(one.default)}`", meant[one.name], _ruled(one.name))
        for one in fields(Policy)
    ]
    return "".join(parts)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _default(name: str) -> str:
    """Returns a default as TOML has it; where the home lies follows from whose machine it is."""
    if name == "home":
        return "`~/.local/share/perennial`"
    value = Settings.model_fields[name].get_default()
    return "none" if value is None else f"`{json.dumps(value)}`"


def _may_be(kind: Mapping[str, Any]) -> str:
    """Returns what a schema allows, in words; empty where the type says nothing more."""
    kind = {**kind, **next(iter(kind.get("anyOf", ())), {})}
    if "enum" in kind:
        return ", ".join(f"`{word}`" for word in kind["enum"])
    said = [
        f"{words} {kind[key]:,}"
        for key, words in (("minimum", "at least"), ("exclusiveMinimum", "above"), ("maximum", "at most"))
        if key in kind
    ]
    return ", ".join(said) or {"boolean": "`true`, `false`", "array": "a list"}.get(kind["type"], "")


def _ruled(name: str) -> str:
    """Returns what a field of the gate's policy may be, in words; empty where every number will do."""
    kind = get_type_hints(Policy, include_extras=True)[name]
    if kind is bool:
        return "`true`, `false`"
    return ", ".join(str(rule) for rule in getattr(kind, "__metadata__", ())).replace("'", "`")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"docs/{PAGE.name}\n")
