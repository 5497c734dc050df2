"""Chunks, updates and jobs of a server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from app.client.connection import Connection, address_part, given, record_of, typed
from app.client.errors import ServerAway
from ingest.records import FINAL_STATES, AsidePair, ChunkRecord, JobRecord, QuestionedPair

if TYPE_CHECKING:
    from app.desk.chunks import HeldRow, PutAside

_RECONNECT_SECONDS = 2.0
_PATIENCE_SECONDS = 60.0


class Teaching(Connection):
    """What takes chunks in, learns from them, and follows jobs."""

    # Chunks

    def chunks(self) -> list[ChunkRecord]:
        """Returns all chunks, newest first, without their reports."""
        return [record_of(ChunkRecord, {"report": {}} | one) for one in self.get("/v1/chunks")["chunks"]]

    def chunk(self, chunk: str) -> ChunkRecord:
        """Returns a chunk with its report and what its checks found."""
        document = self.get(f"/v1/chunks/{address_part(chunk)}")
        return record_of(ChunkRecord, document)

    def add_chunk(
        self,
        file: Path | BinaryIO,
        *,
        name: str | None = None,
        language: str | None = None,
        domain: str | None = None,
        columns: Mapping[str, str] | None = None,
        in_gallery: bool = True,
    ) -> JobRecord:
        """Uploads a zip, tar or table and returns the job that takes it in.

        Args:
            file: Its path, or the open file.
            name: What to call it; the file's own name when not given.
            language: Of captions that state none.
            domain: Of pictures that state none.
            columns: Their columns by ours.
            in_gallery: Whether search is to find the pictures.
        """
        gallery = None if in_gallery else "false"
        form: dict[str, Any] = given(
            {"language": language, "domain": domain, "name": name, "gallery": gallery}
        )
        form["map"] = [f"{theirs}={ours}" for theirs, ours in (columns or {}).items()]
        if isinstance(file, Path):
            with file.open("rb") as opened:
                return self._upload(file.name, opened, form)
        return self._upload(name or "upload.zip", file, form)

    def _upload(self, name: str, file: BinaryIO, form: Mapping[str, Any]) -> JobRecord:
        answer = self._ask("POST", "/v1/chunks", data=dict(form), files={"file": (name, file)})
        return record_of(JobRecord, answer.json()["job"])

    def chunk_report(self, chunk: str) -> bytes:
        """Returns what became of a chunk's rows, as CSV."""
        return self._ask("GET", f"/v1/chunks/{address_part(chunk)}/report.csv").content

    def accept(self, chunk: str, *, why: str, measure: bool = False) -> ChunkRecord:
        """Lets a chunk teach in spite of what its checks found."""
        return record_of(
            ChunkRecord,
            self.post(f"/v1/chunks/{address_part(chunk)}/accept", {"why": why, "measure": measure}),
        )

    def withdraw(self, chunk: str, *, why: str) -> dict[str, Any]:
        """Takes a chunk out of training, measuring and search; `sentence` says what became of it."""
        return self.post(f"/v1/chunks/{address_part(chunk)}/withdraw", {"why": why})

    def remove(self, chunk: str, *, why: str) -> JobRecord:
        """Withdraws a chunk and starts rebuilding what is live without it."""
        return record_of(JobRecord, self.post(f"/v1/chunks/{address_part(chunk)}/remove", {"why": why}))

    def held_rows(self, *, limit: int = 100) -> tuple[int, list[HeldRow]]:
        """Returns how many held rows nobody has decided, and the first of them."""
        from app.desk.chunks import HeldRow

        answer = self.get("/v1/held", limit=limit)
        return int(answer["total"]), [typed(HeldRow, row) for row in answer["rows"]]

    def put_aside(self, chunk: str) -> PutAside:
        """Returns what may be decided of a chunk, pair by pair."""
        from app.desk.chunks import PutAside

        answer = self.get(f"/v1/chunks/{address_part(chunk)}/aside")
        pairs = tuple(record_of(AsidePair, pair) for pair in answer["pairs"])
        questioned = tuple(record_of(QuestionedPair, pair) for pair in answer["questioned"])
        return PutAside(answer["chunk"], answer["counts"], pairs, questioned)

    def decide(
        self,
        chunk: str,
        *,
        accept: Sequence[int] = (),
        leave_out: Sequence[int] = (),
        take_out: Sequence[int] = (),
        language: str | None = None,
        why: str = "",
    ) -> dict[str, Any]:
        """Accepts held pairs of a chunk by their numbers, leaves out others, and takes out pairs that it has."""
        numbers = {"accept": list(accept), "leave_out": list(leave_out), "take_out": list(take_out)}
        said = numbers | {"language": language, "why": why}
        return self.post(f"/v1/chunks/{address_part(chunk)}/decide", given(said))

    # Updates and jobs

    def update(self, chunk: str, **options: Any) -> JobRecord:
        """Starts learning from a chunk; options are the fields of `POST /v1/updates`."""
        return record_of(JobRecord, self.post("/v1/updates", {"chunk": chunk, **given(options)}))

    def forecast(self, chunk: str, **options: Any) -> dict[str, Any]:
        """Returns what an update would take; options as in `update`. Nothing is started."""
        return self.post("/v1/updates/forecast", {"chunk": chunk, **given(options)})

    def jobs(self) -> list[JobRecord]:
        """Returns the latest jobs, newest first."""
        return [record_of(JobRecord, one) for one in self.get("/v1/jobs")["jobs"]]

    def job(self, job: str) -> JobRecord:
        """Returns a job."""
        return record_of(JobRecord, self.get(f"/v1/jobs/{address_part(job)}"))

    def cancel(self, job: str) -> JobRecord:
        """Stops a job; nothing live changes."""
        return record_of(JobRecord, self.post(f"/v1/jobs/{address_part(job)}/cancel", {}))

    def resume(self, job: str) -> JobRecord:
        """Goes on with a job that was interrupted, cancelled or failed, from its last checkpoint."""
        return record_of(JobRecord, self.post(f"/v1/jobs/{address_part(job)}/resume", {}))

    def follow(self, job: str) -> Iterator[JobRecord]:
        """Yields a job now and whenever it changes, until it has ended; connects again when the line drops."""
        silent_since = time.monotonic()
        while True:
            try:
                for record in self._events(job):
                    silent_since = time.monotonic()
                    yield record
                    if record.state in FINAL_STATES:
                        return
            except ServerAway:
                if time.monotonic() - silent_since > _PATIENCE_SECONDS:
                    raise
            time.sleep(_RECONNECT_SECONDS)

    def wait(self, job: str) -> JobRecord:
        """Returns a job once it has ended."""
        return [*self.follow(job)][-1]

    def examine(self, *, every_byte: bool = True) -> JobRecord:
        """Starts looking for everything that can be wrong with the server's home; the job's result says what is."""
        return record_of(JobRecord, self.post("/v1/doctor", {"every_byte": every_byte}))
