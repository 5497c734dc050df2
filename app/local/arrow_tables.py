"""What a home knows as tables for other programs: vectors of pictures, captions, and what a release measured."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.parquet

from app.feedback.votes import wilson
from ingest.report import guarded
from model_updates.gate.report import GateReport
from model_updates.recalls import MEAN, TEXT_RECALLS, mean_text_recall

if TYPE_CHECKING:
    from app.desk.hits import SeenAt
    from app.desk.tables import TableForm
    from app.home.manifest import ReleaseManifest
    from app.home.releases import ReleaseRecord
    from app.query.snapshot import Snapshot
    from ingest.catalog import Catalog

_STRING = pyarrow.string()
_OFTEN = pyarrow.dictionary(pyarrow.int32(), _STRING)  # a column with few different texts
_CAPTION_FIELDS = {"id": _STRING, "language": _OFTEN, "text": _STRING, "split": _OFTEN, "domain": _OFTEN}
_MEASUREMENT_FIELDS = {
    **dict.fromkeys(("release", "version", "language", "domain", "view", "metric"), _STRING),
    **dict.fromkeys(("images", "captions"), pyarrow.int32()),
    **dict.fromkeys(("percent", "low", "high", "change", "change_low", "change_high"), pyarrow.float64()),
}


def vectors(snapshot: Snapshot, catalog: Catalog, seen: Mapping[str, Sequence[SeenAt]] | None) -> Any:
    """Returns the vectors of a release's pictures as an Arrow table, with paths where it is told where they were seen.

    What has left the gallery is left out. `fingerprint` names what made a vector: two of the same can be compared.
    """
    generation = snapshot.generation
    ids = [one for one in generation.ids if one not in snapshot.hidden]
    known = catalog.images(ids)
    made_by = [generation.fingerprints[generation.routes.get(one, "")] for one in ids]
    rows = pyarrow.array(generation.vectors(ids).reshape(-1), pyarrow.float32())
    columns: dict[str, Any] = {
        "id": pyarrow.array(ids, _STRING),
        "domain": _often([known[one].domain if one in known else "" for one in ids]),
        "taken": pyarrow.array([known[one].taken if one in known else "" for one in ids], _STRING),
        "vector": pyarrow.FixedSizeListArray.from_arrays(rows, generation.dim),
        "release": _often([snapshot.release.id] * len(ids)),
        "version": _often([snapshot.release.version] * len(ids)),
        "fingerprint": _often(made_by),
    }
    if seen is not None:
        paths = [[place.path for place in seen.get(one, ())] for one in ids]
        columns["paths"] = pyarrow.array(paths, pyarrow.list_(_STRING))
    return pyarrow.table(columns)


def captions(catalog: Catalog) -> Any:
    """Returns all captions that count as an Arrow table, in the order they came; `id` is their picture's."""
    rows = (
        {
            "id": one.image_id,
            "language": one.language,
            "text": one.text,
            "split": one.split,
            "domain": one.domain,
        }
        for one in catalog.pairs()
    )
    return pyarrow.Table.from_pylist(list(rows), pyarrow.schema(_CAPTION_FIELDS))


def measurements(record: ReleaseRecord) -> Any:
    """Returns what a release measured as an Arrow table: a row for each slice, view and metric, in percent.

    `low` and `high` are the 95 % score interval, in which each different thing counts as one trial: its captions say
    nothing new of each other. `change` is that against what was live, in points, with the gate's own bounds; empty
    where the gate compared nothing.
    """
    return pyarrow.Table.from_pylist(list(_measured(record)), pyarrow.schema(_MEASUREMENT_FIELDS))


def _measured(record: ReleaseRecord) -> Iterator[dict[str, Any]]:
    changes = _changes(record.manifest)
    for one in record.manifest.slices:
        recalls = {**one.recalls, MEAN: mean_text_recall(one.recalls)}
        for name, percent in recalls.items():
            low, high = wilson(percent / 100 * one.images, one.images) if one.images else (0.0, 1.0)
            yield {
                "release": record.id,
                "version": record.version,
                "language": one.language,
                "domain": one.domain,
                "view": one.view,
                "metric": name,
                "images": one.images,
                "captions": one.captions,
                "percent": percent,
                "low": 100 * low,
                "high": 100 * high,
                **changes.get((f"{one.language}/{one.domain}", one.view, one.captions, name), {}),
            }


def _changes(manifest: ReleaseManifest) -> dict[tuple[str, str, int, str], dict[str, float | None]]:
    """Returns what the gate compared, by slice, view, captions and metric: change, lower and upper bound."""
    if manifest.gate is None:
        return {}
    report = GateReport.from_json(manifest.gate)
    found: dict[tuple[str, str, int, str], dict[str, float | None]] = {}
    for row in report.rows:
        first = {"change": row.first_difference, "change_low": row.first_low, "change_high": None}
        found[row.slice, row.view, row.captions, TEXT_RECALLS[0]] = first
        judged: dict[str, float | None] = {
            "change": row.difference,
            "change_low": row.low,
            "change_high": row.high,
        }
        found[row.slice, row.view, row.captions, report.policy.metric] = judged
    return found


def written(table: Any, form: TableForm) -> bytes:
    """Returns a table as a file; in CSV no cell is one that a spreadsheet would run as a formula."""
    if form == "parquet":
        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(table, sink, compression="zstd")
        return bytes(sink.getvalue())
    text = io.StringIO(newline="")
    if form == "jsonl":
        for row in _rows(table):
            text.write(json.dumps(row, ensure_ascii=False) + "\n")
        return text.getvalue().encode()
    out = csv.writer(text)
    out.writerow(table.column_names)
    for row in _rows(table):
        out.writerow([guarded(one) if isinstance(one, str) else one for one in row.values()])
    return text.getvalue().encode("utf-8-sig")


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=1000):
        yield from batch.to_pylist()


def _often(values: Sequence[str]) -> Any:
    return pyarrow.array(values, _STRING).dictionary_encode()
