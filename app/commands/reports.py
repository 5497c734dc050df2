"""Verbs that show why: `gate` for an update, `check` for a chunk."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.commands.options import ChunkArgument, JudgedArgument
from app.commands.terminal import HomeOption, JsonOption, settings_for, show

if TYPE_CHECKING:
    from app.home.folder import Home
    from ingest.catalog import Catalog


def gate(name: JudgedArgument, home: HomeOption = None, is_json: JsonOption = False) -> None:
    """Show why an update passed the gate, or did not."""
    settings = settings_for(home)
    from app.home.folder import Home
    from app.home.store import ReleaseStore
    from app.learning import judged
    from app.words import messages
    from app.words.gate_tables import gate_parts

    opened = Home.open(settings.home)
    if judged.is_job(name):
        with _catalog(opened) as catalog:
            found = judged.judged_job(catalog, name)
    else:
        found = judged.judged_release(ReleaseStore(opened), name)
    parts: list[Any] = [messages.plain(found.sentence)]
    if found.report is not None:
        parts += gate_parts(found.report, messages.console().width)
    show(is_json, asdict(found), *parts)


def check(chunk: ChunkArgument, home: HomeOption = None, is_json: JsonOption = False) -> None:
    """Show what a chunk's checks found, what it counts for, and what to do next."""
    settings = settings_for(home)
    from app.home.folder import Home
    from app.words.chunk_tables import chunk_parts

    with _catalog(Home.open(settings.home)) as catalog:
        record = catalog.chunk(chunk)
    document = asdict(record)
    report = document.pop("report")
    document |= {"findings": report.get("findings", []), "report": report}
    show(is_json, document, *chunk_parts(record))


def _catalog(home: Home) -> Catalog:
    from ingest.catalog import Catalog

    return Catalog.open(home.require_stores().catalog)
