"""The desk of a server, over HTTP.

An operation that has a route is asked by it, as the protocol says it; here are only those that send or receive files,
and those that wait.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import httpx

from app.client.connection import Connection, address_part, document_in, typed
from app.client.errors import Refused, ServerAway
from app.desk.chunks import Added
from app.desk.desk import Desk
from app.desk.errors import JobFailed, UsageProblem
from app.desk.health import Examination
from app.desk.jobs import Stage
from app.desk.operation import Operation, document_of, operations
from app.desk.releases import Exported, Imported
from ingest.records import FINAL_STATES, JobRecord
from ingest.upload_zip import sendable

if TYPE_CHECKING:
    from app.desk.desk import OnJob, OnStage
    from app.desk.jobs import StartUpdate
    from ingest.intake import IntakeOptions

_RECONNECT_SECONDS = 2.0
_PATIENCE_SECONDS = 60.0
_UNAVAILABLE = 503  # a server that starts, ends or is busy
# A release is read whole, and packed, before the first byte of it comes.
_PACKING = httpx.Timeout(600.0)


class ServerDesk(Connection):
    """A server's desk; a context manager. Each operation of `Desk` raises `Refused`, or `ServerAway`."""

    @property
    def where(self) -> str:
        """The server's address."""
        return self.url

    def add_chunk(self, source: Path, options: IntakeOptions, on_stage: OnStage) -> Added:
        """Uploads what `sendable` makes one file of, and waits until it is taken in."""
        if options.forget:
            raise UsageProblem(
                "A server does not know your folder, so it cannot forget what is gone from it. Run --forget on its "
                "own machine, without --server."
            )
        done = self._done(self.start_chunk(source, options), on_stage)
        desk = as_desk(self)
        report = done.result["report"]
        chunk = desk.chunk(report["chunk_id"])
        is_live = done.result["commit"] is not None
        release = next((one.id for one in desk.releases() if one.live), None) if is_live else None
        again = done.result.get("made_again", "")
        return Added(chunk, report, done.result["images_embedded"], release, done.id, again)

    def start_chunk(self, source: Path, options: IntakeOptions, then: StartUpdate | None = None) -> JobRecord:
        """Uploads what `sendable` makes one file of, which a job of the server takes in."""
        name = options.name or (source.name if options.pictures else None)
        said = {"language": options.language, "domain": options.domain, "name": name}
        form: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        form["map"] = [f"{theirs}={ours}" for theirs, ours in options.mapping.items()]
        form |= {} if options.in_gallery else {"gallery": "false"}
        form |= {"fetch": "true"} if options.fetch else {}
        if then is not None:
            form |= {"update": "true"} | ({"strategy": then.strategy} if then.strategy else {})
        with sendable(source, options) as file, file.open("rb") as opened:
            answer = self.ask("POST", "/v1/chunks", data=form, files={"file": (file.name, opened)})
        return cast(JobRecord, typed(JobRecord, document_in(answer)["job"]))

    def follow(self, job: str, on_change: OnJob) -> JobRecord:
        """Is told of a job until it has ended, or the server gives it up; connects again when the line drops."""
        silent_since = time.monotonic()
        while True:
            try:
                for is_over, record in self._events(job):
                    silent_since = time.monotonic()
                    on_change(record)
                    if is_over or record.state in FINAL_STATES:
                        return record
            except (ServerAway, Refused) as error:
                passes = isinstance(error, ServerAway) or error.status == _UNAVAILABLE
                if not passes or time.monotonic() - silent_since > _PATIENCE_SECONDS:
                    raise
            time.sleep(_RECONNECT_SECONDS)

    def require_update(self, asked: StartUpdate) -> None:
        """Refuses nothing: the server does when it is asked."""

    def leave(self, job: str) -> str:
        """Leaves a job to the server."""
        return f"Job {job} goes on on the server; `status` shows it."

    def export(self, release: str, to: Path) -> Exported:
        """Fetches a release as one file for another home; nothing stays where that fails."""
        from app.home.package import place_of

        release = as_desk(self).release(release).id
        target = place_of(release, to)
        target.parent.mkdir(exist_ok=True)
        partial = target.with_name(f".{target.name}.part")
        try:
            path = f"/v1/releases/{address_part(release)}/package"
            with self.stream("GET", path, timeout=_PACKING) as stream:
                sha256 = _received(stream, partial)
            partial.rename(target)
        finally:
            partial.unlink(missing_ok=True)
        return Exported(release, target, target.stat().st_size, sha256)

    def start_import(self, source: Path, sha256: str | None = None) -> JobRecord:
        """Uploads a release of another home, which a job of the server takes in."""
        if not source.is_file():
            raise UsageProblem(f"There is no file {source}.")
        with source.open("rb") as opened:
            files = {"file": (source.name, opened)}
            answer = self.ask("POST", "/v1/packages", data={"sha256": sha256 or ""}, files=files)
        return cast(JobRecord, typed(JobRecord, document_in(answer)["job"]))

    def import_release(self, source: Path, sha256: str | None, on_stage: OnStage) -> Imported:
        """Uploads a release of another home, and waits until it is taken in."""
        done = self._done(self.start_import(source, sha256), on_stage)
        return cast(Imported, typed(Imported, done.result))

    def start_examination(self, every_byte: bool = True) -> JobRecord:
        """Has a job of the server look for everything that can be wrong with its home."""
        answer = self.ask("POST", "/v1/doctor", json={"every_byte": every_byte})
        return cast(JobRecord, typed(JobRecord, document_in(answer)))

    def examine(self, every_byte: bool, on_stage: OnStage) -> Examination:
        """Has the server look for everything that can be wrong with its home, and waits for it."""
        done = self._done(self.start_examination(every_byte), on_stage)
        return cast(Examination, typed(Examination, done.result))

    def _done(self, job: JobRecord, on_stage: OnStage) -> JobRecord:
        """Waits for a job that has to end well.

        Raises:
            JobFailed: it did not.
        """

        def tell(row: JobRecord) -> None:
            said = row.progress
            fraction = said.get("fraction")
            name, message = str(said.get("name", row.state)), str(said.get("message", "waiting"))
            on_stage(Stage(name, message, fraction, said.get("details") or {}))

        done = self.follow(job.id, tell)
        if done.state != "succeeded":
            raise JobFailed(done)
        return done

    def _events(self, job: str) -> Iterator[tuple[bool, JobRecord]]:
        # A stream is silent for as long as nothing changes; the server sends a sign of life every 15 seconds.
        with self.stream("GET", f"/v1/jobs/{address_part(job)}/events") as stream:
            name = ""
            for line in stream.iter_lines():
                if line.startswith("event:"):
                    name = line.removeprefix("event:").strip()
                elif line.startswith("data:"):
                    yield name == "end", typed(JobRecord, json.loads(line.removeprefix("data:")))


def _method(one: Operation) -> Callable[..., Any]:
    """Returns the method of an operation that has a route."""
    signature = inspect.signature(getattr(Desk, one.name))

    def method(self: ServerDesk, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(self, *args, **kwargs)
        path = one.path.format_map({name: address_part(str(bound.arguments[name])) for name in one.in_path})
        sent = {name: value for name, value in bound.arguments.items() if name in one.others}
        if one.verb == "GET":
            how: dict[str, Any] = {
                "params": {name: value for name, value in sent.items() if value is not None}
            }
        else:
            how = {"json": _body(one, sent)}
        answer = self.ask(one.verb, path, **how)
        if one.media:
            return answer.content
        if one.sends_file:
            name = unquote(answer.headers.get("Content-Disposition", "").rpartition("''")[2])
            return one.returns(name, answer.headers.get("Content-Type", ""), answer.content)
        document = document_in(answer)
        return typed(one.returns, document[one.wraps] if one.wraps else document)

    method.__name__, method.__doc__ = one.name, one.says
    return method


def _body(one: Operation, sent: Mapping[str, Any]) -> Any:
    if one.body is not None:
        return sent[one.body.name].model_dump(mode="json", exclude_unset=True)
    return {name: document_of(value, one.others[name].kind) for name, value in sent.items()}


for _name, _operation in operations(Desk).items():
    setattr(ServerDesk, _name, _method(_operation))


def connect(
    url: str, *, auth: tuple[str, str] | None = None, headers: Mapping[str, str] | None = None
) -> Desk:
    """Returns the desk of a server.

    `url` is like `https://search.example`, below a proxy's path with it; `auth` is name and password of an account,
    and `headers` are sent with every request.

    Raises:
        UsageProblem: it is no address.
    """
    return as_desk(ServerDesk(url, auth=auth, headers=headers))


def as_desk(server: ServerDesk) -> Desk:
    """Returns a server's desk as what it is; its methods are made of the protocol, which a type checker cannot see."""
    return cast(Desk, server)


def _received(stream: httpx.Response, file: Path) -> str:
    """Writes a package that comes into a file and returns its sha256.

    Raises:
        ServerAway: it is not what the server sent.
    """
    digest = hashlib.sha256()
    with file.open("wb") as opened:
        for block in stream.iter_bytes():
            opened.write(block)
            digest.update(block)
    sha256 = digest.hexdigest()
    if sha256 != stream.headers.get("X-Perennial-Sha256"):
        raise ServerAway("The release did not arrive as it was sent. Export it again.")
    return sha256
