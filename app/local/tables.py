"""Tables of a home for other programs: who may have them, and what they are called."""

from __future__ import annotations

from app.desk.errors import NotAllowed, UsageProblem
from app.desk.tables import MEDIA, TableForm, TableKind, WrittenTable
from app.local.opened import Opened


class Tables(Opened):
    """What writes tables."""

    def table(
        self, what: TableKind, form: TableForm, release: str | None = None, paths: bool = False
    ) -> WrittenTable:
        from app.learning import going_live
        from app.local import arrow_tables

        self._require_table(what, form, release, paths=paths)
        with self.packing():
            if what == "captions":
                made, name = arrow_tables.captions(self.catalog), "captions"
            elif what == "vectors":
                snapshot = self.snapshot(release)
                seen = self.seen_at(snapshot.generation.ids) if paths else None
                made, name = (
                    arrow_tables.vectors(snapshot, self.catalog, seen),
                    f"{snapshot.release.id}-vectors",
                )
            else:
                live = going_live.live_release(self.workspace)[1]
                record = live if release is None else self.store.release(release)
                made, name = arrow_tables.measurements(record), f"{record.id}-measurements"
            return WrittenTable(f"{name}.{form}", MEDIA[form], arrow_tables.written(made, form))

    def _require_table(self, what: TableKind, form: TableForm, release: str | None, *, paths: bool) -> None:
        if what == "vectors" and form == "csv":
            raise UsageProblem("Vectors are written as Parquet or JSON lines (jsonl), not as CSV.")
        if what == "captions" and release is not None:
            raise UsageProblem("Captions belong to no release; leave the release out.")
        if paths and what != "vectors":
            raise UsageProblem("Only the table of vectors has paths; leave them out.")
        if paths and not self.may_see_places():
            raise NotAllowed(
                "Your account may not know where pictures lie; the setting `places_for` says which may. Ask without "
                "paths."
            )
