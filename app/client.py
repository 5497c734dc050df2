"""A running server from Python: `Client("http://127.0.0.1:7860").search("two red boats")`.

Loads neither torch nor FAISS. What a newer server adds to an answer is kept and does no harm; what the server refuses
is raised with the server's own sentence.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ConfigDict

from app.errors import AppError, UsageProblem
from ingest.records import FINAL_STATES, AsidePair, ChunkRecord, JobRecord

if TYPE_CHECKING:
    from app.inventory import HeldRow, PutAside
    from app.releases.lineage import Node

# A query may wait for a place; an upload of the largest size goes over a slow line.
_SECONDS = httpx.Timeout(60.0, write=600.0)
_RECONNECT_SECONDS = 2.0
_PATIENCE_SECONDS = 60.0
_USAGE, _HELD, _BUSY = 2, 4, 5
_EXIT_CODES = {"chunk_held": _HELD, "update_running": _BUSY, "parent_moved": _BUSY, "bad_query": _USAGE}

Record = TypeVar("Record", ChunkRecord, JobRecord, AsidePair)


class ServerAway(AppError):
    """No server answers at this address, or what answers is none of ours."""


class Refused(AppError):
    """The server did not do what was asked.

    Attributes:
        status: of HTTP.
        code: stable name of the reason.
    """

    def __init__(self, sentence: str, status: int, code: str) -> None:
        usage = _USAGE if status == httpx.codes.UNPROCESSABLE_ENTITY else 1
        super().__init__(sentence, _EXIT_CODES.get(code, usage))
        self.status = status
        self.code = code


class _Answer(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class FoundCaption(_Answer):
    """A caption of a hit."""

    language: str
    text: str


class FoundHit(_Answer):
    """One picture found; addresses are relative to the server's (`Client.picture` fetches them)."""

    id: str
    score: float
    rank: int
    match: float | None = None
    relevance: str = ""
    by: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    parts: tuple[float, ...] = ()
    domain: str | None = None
    captions: tuple[FoundCaption, ...] = ()
    thumb_url: str = ""
    url: str = ""


class AskedPart(_Answer):
    """A part of a query as it was understood."""

    kind: str
    value: str
    weight: float


class NearCaption(_Answer):
    """A caption near to a query; `images` are pictures that have it."""

    text: str
    language: str
    score: float
    images: tuple[str, ...] = ()


class SearchAnswer(_Answer):
    """Hits, and the release that found them; what the fields mean is in docs/search.md."""

    release: str
    commit: int
    query: str
    language: str
    note: str = ""
    mode: str = "vectors"
    parts: tuple[AskedPart, ...] = ()
    index_size: int = 0
    searched: int = 0
    relevance: str = ""
    next: str = ""
    hits: tuple[FoundHit, ...]
    captions: tuple[NearCaption, ...] = ()


class Moved(_Answer):
    """Where a picture stands in two answers; None where it was not found."""

    id: str
    rank_a: int | None
    rank_b: int | None


class Compared(_Answer):
    """One query in two releases."""

    a: SearchAnswer
    b: SearchAnswer
    overlap: float
    moves: tuple[Moved, ...]


class ListedRelease(_Answer):
    """A release in a list."""

    id: str
    live: bool
    version: str
    generation: str
    parent: str | None = None
    strategy: str | None = None
    verdict: str | None = None
    mode: str | None = None
    images_embedded: int | None = None
    languages: tuple[str, ...] = ()
    created: str | None = None


class WentLiveAnswer(_Answer):
    """A change by hand of what is live; `job` adds the pictures that the release does not hold."""

    release: str
    commit: int
    reason: str
    left_out: int = 0
    job: dict[str, Any] | None = None


class Client:
    """A server's REST interface; a context manager.

    Every method raises `Refused` with the server's sentence, or `ServerAway`.
    """

    def __init__(
        self, url: str, *, auth: tuple[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Prepares; nothing is asked yet.

        Args:
            url: Of the server, such as `https://search.example`; below a proxy's path, with it.
            auth: Name and password of an account.
            headers: Sent with every request.

        Raises:
            UsageProblem: it is no address.
        """
        address = httpx.URL(url) if url.startswith(("http://", "https://")) else None
        if address is None or not address.host:
            raise UsageProblem(f"{url!r} is no address of a server; write it like http://127.0.0.1:7860.")
        self.url = str(address.copy_with(username=None, password=None)).rstrip("/")
        self._http = httpx.Client(
            base_url=self.url,
            auth=auth,
            headers=dict(headers or {}),
            timeout=_SECONDS,
            follow_redirects=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    # Searching

    def search(self, text: str | None = None, **options: Any) -> SearchAnswer:
        """Finds pictures by a text in the query grammar and by what else the options say.

        Options are the fields of `POST /v1/search`: image, items, parts, language, k, domains, mode, cursor, release, …
        """
        return SearchAnswer.model_validate(self.post("/v1/search", _said({"text": text, **options})))

    def compare(self, text: str, a: str, b: str, *, language: str = "auto", k: int | None = None) -> Compared:
        """Asks two releases the same."""
        body = {"text": text, "a": a, "b": b, "language": language, "k": k}
        return Compared.model_validate(self.post("/v1/compare", _said(body)))

    def picture(self, hit: FoundHit, *, thumbnail: bool = False) -> bytes:
        """Returns a hit's picture as WebP."""
        return self._ask("GET", hit.thumb_url if thumbnail else hit.url).content

    # Chunks

    def chunks(self) -> list[ChunkRecord]:
        """Returns all chunks, newest first, without their reports."""
        return [_record(ChunkRecord, {"report": {}} | one) for one in self.get("/v1/chunks")["chunks"]]

    def chunk(self, chunk: str) -> ChunkRecord:
        """Returns a chunk with its report and what its checks found."""
        document = self.get(f"/v1/chunks/{_part(chunk)}")
        return _record(ChunkRecord, document)

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
        form: dict[str, Any] = _said(
            {"language": language, "domain": domain, "name": name, "gallery": gallery}
        )
        form["map"] = [f"{theirs}={ours}" for theirs, ours in (columns or {}).items()]
        if isinstance(file, Path):
            with file.open("rb") as opened:
                return self._upload(file.name, opened, form)
        return self._upload(name or "upload.zip", file, form)

    def _upload(self, name: str, file: BinaryIO, form: Mapping[str, Any]) -> JobRecord:
        answer = self._ask("POST", "/v1/chunks", data=dict(form), files={"file": (name, file)})
        return _record(JobRecord, answer.json()["job"])

    def chunk_report(self, chunk: str) -> bytes:
        """Returns what became of a chunk's rows, as CSV."""
        return self._ask("GET", f"/v1/chunks/{_part(chunk)}/report.csv").content

    def accept(self, chunk: str, *, why: str, measure: bool = False) -> ChunkRecord:
        """Lets a chunk teach in spite of what its checks found."""
        return _record(
            ChunkRecord, self.post(f"/v1/chunks/{_part(chunk)}/accept", {"why": why, "measure": measure})
        )

    def withdraw(self, chunk: str, *, why: str) -> dict[str, Any]:
        """Takes a chunk out of training, measuring and search; `sentence` says what became of it."""
        return self.post(f"/v1/chunks/{_part(chunk)}/withdraw", {"why": why})

    def remove(self, chunk: str, *, why: str) -> JobRecord:
        """Withdraws a chunk and starts rebuilding what is live without it."""
        return _record(JobRecord, self.post(f"/v1/chunks/{_part(chunk)}/remove", {"why": why}))

    def held_rows(self, *, limit: int = 100) -> tuple[int, list[HeldRow]]:
        """Returns how many held rows nobody has decided, and the first of them."""
        from app.inventory import HeldRow

        answer = self.get("/v1/held", limit=limit)
        rows = [
            row | {"pair": _record(AsidePair, row["pair"]) if row["pair"] else None} for row in answer["rows"]
        ]
        return int(answer["total"]), [HeldRow(**row) for row in rows]

    def put_aside(self, chunk: str) -> PutAside:
        """Returns the held and rejected pairs of a chunk's upload."""
        from app.inventory import PutAside

        answer = self.get(f"/v1/chunks/{_part(chunk)}/aside")
        pairs = tuple(_record(AsidePair, pair) for pair in answer["pairs"])
        return PutAside(answer["chunk"], answer["counts"], pairs)

    def decide(
        self,
        chunk: str,
        *,
        accept: Sequence[int] = (),
        leave_out: Sequence[int] = (),
        language: str | None = None,
        why: str = "",
    ) -> dict[str, Any]:
        """Accepts held pairs of a chunk by their numbers, and leaves out others; `sentence` says what was done."""
        said = {"accept": list(accept), "leave_out": list(leave_out), "language": language, "why": why}
        return self.post(f"/v1/chunks/{_part(chunk)}/decide", _said(said))

    # Updates and jobs

    def update(self, chunk: str, **options: Any) -> JobRecord:
        """Starts learning from a chunk; options are the fields of `POST /v1/updates`."""
        return _record(JobRecord, self.post("/v1/updates", {"chunk": chunk, **_said(options)}))

    def forecast(self, chunk: str, **options: Any) -> dict[str, Any]:
        """Returns what an update would take; options as in `update`. Nothing is started."""
        return self.post("/v1/updates/forecast", {"chunk": chunk, **_said(options)})

    def jobs(self) -> list[JobRecord]:
        """Returns the latest jobs, newest first."""
        return [_record(JobRecord, one) for one in self.get("/v1/jobs")["jobs"]]

    def job(self, job: str) -> JobRecord:
        """Returns a job."""
        return _record(JobRecord, self.get(f"/v1/jobs/{_part(job)}"))

    def cancel(self, job: str) -> JobRecord:
        """Stops a job; nothing live changes."""
        return _record(JobRecord, self.post(f"/v1/jobs/{_part(job)}/cancel", {}))

    def resume(self, job: str) -> JobRecord:
        """Goes on with a job that was interrupted, cancelled or failed, from its last checkpoint."""
        return _record(JobRecord, self.post(f"/v1/jobs/{_part(job)}/resume", {}))

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
        return _record(JobRecord, self.post("/v1/doctor", {"every_byte": every_byte}))

    # Releases

    def lineage(self) -> list[Node]:
        """Returns all releases as a drawing lays them out, newest first, each with when it was live and why."""
        from app.releases.lineage import node_of

        return [node_of(one) for one in self.get("/v1/lineage")["releases"]]

    def releases(self) -> list[ListedRelease]:
        """Returns all releases, newest first."""
        return [ListedRelease.model_validate(one) for one in self.get("/v1/releases")["releases"]]

    def judged(self, name: str) -> dict[str, Any]:
        """Returns the gate's report on a release or an update's job; `gate` is null where nothing was judged."""
        if name[:1] == "j":
            judged = self.get(f"/v1/jobs/{_part(name)}/gate")
        else:
            judged = self.get(f"/v1/releases/{_part(name)}")["judged"]
        for side in ("lost", "won"):
            for moved in (judged["gate"] or {}).get(side, ()):
                # Addresses are for pages; what is left is the report as its makers wrote it.
                for extra in ("thumb_url", "first_thumb_url"):
                    moved.pop(extra, None)
        return dict(judged)

    def promote(self, release: str, *, why: str = "", force: bool = False) -> WentLiveAnswer:
        """Makes a release live."""
        body = {"why": why, "force": force}
        return WentLiveAnswer.model_validate(self.post(f"/v1/releases/{_part(release)}/promote", body))

    def roll_back(self, release: str | None = None, *, why: str = "") -> WentLiveAnswer:
        """Goes back to an earlier release; without a name, to the one that was live before."""
        return WentLiveAnswer.model_validate(
            self.post("/v1/rollback", _said({"release": release, "why": why}))
        )

    def shadow(self, release: str) -> dict[str, Any]:
        """Returns what a release has shown when it was asked live queries in the shadow."""
        return self.get(f"/v1/releases/{_part(release)}/shadow")

    def start_shadow(self, release: str, *, share: float | None = None) -> dict[str, Any]:
        """Has a candidate asked a share of the live queries; nobody sees its answers."""
        return self.post(f"/v1/releases/{_part(release)}/shadow", _said({"share": share}))

    def stop_shadow(self, release: str, *, why: str = "") -> dict[str, Any]:
        """Ends the shadow of a release; what it has shown is kept."""
        return self.post(f"/v1/releases/{_part(release)}/shadow/stop", {"why": why})

    def add_release(self, package: Path, *, sha256: str = "") -> JobRecord:
        """Uploads a release of another home and returns the job that takes it in.

        Args:
            package: what `export` wrote.
            sha256: by which it is signed, as its sender told.
        """
        with package.open("rb") as opened:
            answer = self._ask(
                "POST", "/v1/packages", data={"sha256": sha256}, files={"file": (package.name, opened)}
            )
        return _record(JobRecord, answer.json()["job"])

    # What people say of answers

    def thumb(self, answer: SearchAnswer, hit: FoundHit, verdict: str) -> dict[str, Any]:
        """Says whether a hit is a good answer: `up` or `down`."""
        said = {"query": answer.query, "language": answer.language or "auto", "release": answer.release}
        return self.post("/v1/feedback", said | {"image": hit.id, "verdict": verdict})

    def vote(self, query: str, a: str, b: str, choice: str, *, language: str = "auto") -> dict[str, Any]:
        """Says which of two releases answered better: `a`, `b`, `tie` or `both_bad`."""
        said = {"query": query, "language": language, "a": a, "b": b, "choice": choice}
        return self.post("/v1/feedback", said)

    def pin(self, feedback: int) -> dict[str, Any]:
        """Makes a thumb up a canary: updates must keep its picture as the first answer."""
        return self.post(f"/v1/feedback/{feedback}/pin", {})

    # Anything else

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """Returns what a route answers."""
        return _object(self._ask("GET", path, params=_said(query)))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Sends JSON to a route and returns what it answers."""
        return _object(self._ask("POST", path, json=dict(body)))

    def _ask(self, method: str, path: str, **how: Any) -> httpx.Response:
        with self._reaching():
            answer = self._http.request(method, path, **how)
        _check(answer, self.url)
        return answer

    def _events(self, job: str) -> Iterator[JobRecord]:
        # A stream is silent for as long as nothing changes; the server sends a sign of life every 15 seconds.
        with self._reaching(), self._http.stream("GET", f"/v1/jobs/{_part(job)}/events") as stream:
            if stream.is_error:
                stream.read()
            _check(stream, self.url)
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    yield _record(JobRecord, json.loads(line.removeprefix("data:")))

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError as error:
            raise ServerAway(
                f"No answer from {self.url} ({error or type(error).__name__}). "
                "Is `python -m app serve` running there?"
            ) from error


def _part(name: str) -> str:
    return quote(name, safe="") or "-"


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was said; None leaves it to the server."""
    return {name: value for name, value in options.items() if value is not None}


def _check(answer: httpx.Response, url: str) -> None:
    if answer.is_success:
        return
    try:
        said = answer.json()
        sentence, code = str(said["error"]), str(said["code"])
    except (ValueError, KeyError, TypeError):
        raise ServerAway(f"{url} answered {answer.status_code}, and not as Perennial does.") from None
    if code == "sign_in":
        sentence += (
            " Put the name into the address (https://ada@…) and the password into PERENNIAL_SERVER_PASSWORD."
        )
    raise Refused(sentence, answer.status_code, code)


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise ServerAway(f"{answer.url} answered, but not as Perennial does.")
    return document


def _record(kind: type[Record], document: Mapping[str, Any]) -> Record:
    """Builds a record; what a newer server adds is left out."""
    return kind(**{field.name: document[field.name] for field in fields(kind) if field.name in document})
