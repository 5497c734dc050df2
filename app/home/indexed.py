"""What the index of a release is like, and why: said by its manifests, without opening it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from app.desk.health import IndexSegment, IndexStatus
from app.home.releases import ReleaseRecord
from index.generation import read_taken_out
from index.kinds import AUTO, ELSEWHERE, EXACT_BELOW, HALVED, SLOW, Chosen
from index.manifest import Manifest, files_of, read_manifest, segments_of
from index.segment import file_names
from ingest.sentence import Sentence, phrase

if TYPE_CHECKING:
    from index.vector_index import VectorIndex

_NOWHERE: Mapping[str, VectorIndex] = MappingProxyType({})


def index_status(
    record: ReleaseRecord, folder: Path, elsewhere: Mapping[str, VectorIndex] = _NOWHERE
) -> IndexStatus:
    """Describes the index of a release, which lies in a folder; what is `elsewhere` (by sha256) is searched there.

    Raises:
        GenerationDamaged: its manifest cannot be trusted.
    """
    manifest = read_manifest(folder)
    files, taken_out = files_of(folder, manifest), read_taken_out(folder, manifest)
    segments, start = [], 0
    for said in segments_of(manifest):
        end = start + said["count"]
        tuned, kind = said.get("tuned", {}), said["factory"]
        if (table := elsewhere.get(str(files[file_names(said["number"])[0]]["sha256"]))) is not None:
            tuned, kind = {"kept": table.kept, "parameters": table.parameters}, table.engine_name
        segments.append(
            IndexSegment(
                number=said["number"],
                kind=kind,
                vectors=said["count"],
                taken_out=int(((taken_out >= start) & (taken_out < end)).sum()),
                bytes=sum(int(files[name]["bytes"]) for name in file_names(said["number"]) if name in files),  # type: ignore[call-overload]
                kept=tuned.get("kept", 1.0),
                parameters=tuned.get("parameters", ""),
            )
        )
        start = end
    figures = record.manifest.integrity
    return IndexStatus(
        release=record.id,
        generation=folder.name,
        kind=(kind := max(segments, key=lambda one: one.vectors).kind),
        why=_why_elsewhere(kind) or _why(manifest),
        pictures=start - len(taken_out),
        taken_out=len(taken_out),
        bytes=sum(one.bytes for one in segments),
        milliseconds=round(1000 * figures["query_seconds"], 2) if "query_seconds" in figures else None,
        kept=figures.get("agreement"),
        segments=tuple(segments),
    )


def _why_elsewhere(kind: str) -> Sentence | None:
    if kind == "pgvector":
        return phrase("The database searches it, where the catalog lies.")
    return phrase("Milvus searches it.") if kind == "Milvus" else None


def _why(manifest: Manifest) -> Sentence:
    """Says why an index is of its kind."""
    chosen = Chosen.of_manifest(manifest)
    if not chosen.asked:
        return phrase("An earlier version of the program chose it.")
    if chosen.of < EXACT_BELOW:
        return phrase("Fewer than {count} pictures are always compared in full.", count=f"{EXACT_BELOW:,}")
    if chosen.asked == ELSEWHERE:
        return phrase("Another engine is to search it, and has not got it yet.")
    if chosen.asked != AUTO:
        return phrase("The setting `index` asks for {kind}.", kind=chosen.asked)
    if not chosen.ms:
        return phrase(
            "{count} pictures are compared in full in little time anywhere.", count=f"{chosen.of:,}"
        )
    times = {"count": f"{chosen.of:,}", "full": _ms(chosen.ms["Flat"]), "half": _ms(chosen.ms[HALVED])}
    if chosen.kind == "Flat":
        return phrase(
            "To compare all of {count} pictures takes {full} ms here; up to {most} ms all their digits are kept.",
            most=f"{SLOW:.0f}",
            **times,
        )
    if chosen.kind == HALVED:
        return phrase(
            "To compare all of {count} pictures would take {full} ms here; with half the digits it takes {half}.",
            **times,
        )
    tried = next((said["tried"] for said in segments_of(manifest) if "tried" in said), None)
    if tried is not None:
        return phrase(
            "Lists were tried: to look through some finds {kept} % of what comparing all finds, in {ms} ms in place of "
            "{exact}. So all of {count} pictures are compared, with half the digits.",
            kept=f"{100 * tried['kept']:.1f}",
            ms=_ms(tried["ms"]),
            exact=_ms(tried["exact_ms"]),
            **times,
        )
    return phrase(
        "To compare all of {count} pictures would take {half} ms here, even with half the digits; so a search looks "
        "through some lists of them.",
        **times,
    )


def _ms(taken: float) -> str:
    return f"{taken:.1f}" if taken < 10 else f"{taken:.0f}"
