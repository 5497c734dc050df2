"""The verbs that work on a running server, with `--server URL`; named and shown like those that work on a home."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.chunks import SourceArgument, source_path
from app.commands.learning import EXIT_CODES, JobFailed
from app.commands.terminal import JsonOption, LanguageOption, WhyOption, pairs_of, show
from app.errors import AppError, UsageProblem

if TYPE_CHECKING:
    from app.client import Client, SearchAnswer, WentLiveAnswer
    from ingest.records import JobRecord

PASSWORD = "PERENNIAL_SERVER_PASSWORD"
_ID_SHOWN = 12
_JOBS_SHOWN = 10
_CHUNK = typer.Argument(help="A chunk's id, or its beginning.", metavar="CHUNK", show_default=False)
_RELEASE = typer.Argument(help="A release, such as r3.", show_default=False)


_Several = list[str] | None


def _option(name: str, says: str) -> Any:
    return typer.Option(name, help=says, show_default=False)


@contextmanager
def _connected(context: typer.Context) -> Iterator[Client]:
    """Connects to the server of `--server`, as the account in its address or the environment."""
    from urllib.parse import unquote, urlsplit

    from app.client import Client

    url = str(context.find_root().params["server"])
    parts = urlsplit(url)
    name = unquote(parts.username or "")
    password = unquote(parts.password or "") or os.environ.get(PASSWORD, "")
    if name and not password:
        raise UsageProblem(f"Put the password of {name} into {PASSWORD}.")
    with Client(url, auth=(name, password) if name else None) as client:
        yield client


def search(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help="What the pictures show: texts, picture files and weights, such as: 2:red car + ./a.jpg - fruit",
            show_default=False,
            metavar="QUERY",
        ),
    ] = None,
    language: LanguageOption = "auto",
    k: Annotated[int | None, typer.Option("--k", "-k", min=1, help="How many.", show_default=False)] = None,
    like: Annotated[_Several, _option("--like", "More like this picture of the gallery, by its id.")] = None,
    mode: Annotated[str, typer.Option(help="Look it up in vectors, captions, or both: hybrid.")] = "vectors",
    domain: Annotated[_Several, _option("--domain", "Only pictures of this domain.")] = None,
    captioned: Annotated[
        _Several, _option("--captioned", "Only pictures captioned in this language.")
    ] = None,
    chunk: Annotated[_Several, _option("--chunk", "Only pictures of this chunk.")] = None,
    since: Annotated[str | None, _option("--since", "Taken in on this day (UTC) or later.")] = None,
    until: Annotated[str | None, _option("--until", "Taken in on this day (UTC) or earlier.")] = None,
    caption: Annotated[
        str | None, _option("--caption", "Only pictures with these words in a caption.")
    ] = None,
    fold: Annotated[bool, typer.Option("--fold", help="Show of near-copies only the best.")] = False,
    page: Annotated[str | None, _option("--next", "The next page, by the cursor of the one before.")] = None,
    release: Annotated[str | None, _option("--release", "Ask this release, not the live one.")] = None,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Let the release's fusion encoder order the first 50.")
    ] = False,
    is_json: JsonOption = False,
) -> None:
    """Search pictures by texts, by pictures, or by both."""
    from app.messages import plain, table

    text = " ".join(query or [])
    options: dict[str, Any] = {
        "images": _pictures_in(text),
        "items": like or None,
        "language": language,
        "k": k,
        "mode": mode,
        "domains": domain,
        "languages": captioned,
        "chunks": chunk,
        "since": since,
        "until": until,
        "caption": caption,
        "dedup": fold or None,
        "cursor": page,
        "release": release,
        "rerank": rerank or None,
    }
    with _connected(context) as client:
        answer = client.search(text or None, **options)
    rows = [
        (hit.rank, f"{hit.score:.3f}", hit.id[:_ID_SHOWN], _caption(answer, hit.id)) for hit in answer.hits
    ]
    said = [f"Release {answer.release}, read as {answer.language}.", answer.note]
    said += [f"There are more: --next {answer.next}"] if answer.next else []
    found: Any = table(("rank", "score", "picture", "caption"), rows) if rows else "Nothing was found."
    show(is_json, answer.model_dump(), *[plain(line) for line in said if line], found)


def _pictures_in(query: str) -> dict[str, str] | None:
    """Reads the files that a query names, to be sent along."""
    import base64

    from app.query.grammar import Kind, parse

    if not query.strip():
        return None
    sent = {}
    for name in {term.value for term in parse(query) if term.kind is Kind.IMAGE}:
        try:
            sent[name] = base64.b64encode(Path(name).expanduser().read_bytes()).decode("ascii")
        except (OSError, RuntimeError) as error:
            raise UsageProblem(
                f"The picture {name} cannot be read ({getattr(error, 'strerror', None) or error})."
            ) from error
    return sent or None


def compare(
    context: typer.Context,
    a: Annotated[str, _RELEASE],
    b: Annotated[str, typer.Argument(help="Another one.", show_default=False)],
    query: Annotated[str, typer.Argument(help="What the pictures show.", show_default=False)],
    language: LanguageOption = "auto",
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="How many.")] = 10,
    is_json: JsonOption = False,
) -> None:
    """Ask two releases the same and show how pictures moved."""
    from app.messages import table

    with _connected(context) as client:
        answer = client.compare(query, a, b, language=language, k=k)
    rows = [
        (
            move.id[:_ID_SHOWN],
            move.rank_a,
            move.rank_b,
            _caption(answer.b, move.id) or _caption(answer.a, move.id),
        )
        for move in answer.moves
    ]
    header = ("picture", f"rank in {answer.a.release}", f"rank in {answer.b.release}", "caption")
    common = f"{100 * answer.overlap:.0f} % of the pictures are the same."
    show(is_json, answer.model_dump(), common, table(header, rows))


def ingest(
    context: typer.Context,
    source: SourceArgument,
    language: Annotated[
        str | None, typer.Option(help="Of captions that state none, such as de.", show_default=False)
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="Of pictures that state none, such as photo.", show_default=False)
    ] = None,
    mapping: Annotated[
        list[str] | None,
        typer.Option("--map", help="A table's column as ours: text=caption.", show_default=False),
    ] = None,
    is_json: JsonOption = False,
) -> None:
    """Upload a chunk of pictures and captions."""
    from app import messages

    columns = pairs_of(mapping, "--map", "text=caption")
    with _connected(context) as client:
        done, chunk = _take_in(client, source, language, domain, columns, is_json=is_json)
    said = messages.outcome(done)
    if chunk.standing == "held":
        said.append(f"It is held and teaches nothing yet: {messages.plain(chunk.standing_why)}")
    elif chunk.standing == "new":
        said.append(f"Teach it: `update --chunk {chunk.id}`.")
    show(is_json, {"job": done.id, "state": done.state, "standing": chunk.standing, **done.result}, *said)


def update(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Argument(
            help="Upload this first, then learn from it.",
            show_default=False,
            parser=source_path,
            metavar="[SOURCE]",
        ),
    ] = None,
    chunk: Annotated[
        str | None, typer.Option(help="Learn from a chunk that is in already.", show_default=False)
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="Chosen by the chunk when not given.", show_default=False)
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", help="Of the strategy: key=value.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of every random choice.", min=0, max=2**31 - 1)] = 0,
    promote: Annotated[bool, typer.Option(help="Make it live when it passes the gate.")] = True,
    is_json: JsonOption = False,
) -> None:
    """Learn from a chunk; what passes the gate goes live."""
    from app import messages

    if (source is None) == (chunk is None):
        raise UsageProblem("Say what to learn from: a SOURCE to upload, or --chunk ID of one that is in.")
    options = pairs_of(option, "--option", "epochs=5")
    with _connected(context) as client:
        taught = chunk or _take_in(client, Path(str(source)), None, None, {}, is_json=is_json)[1].id
        job = client.update(taught, strategy=strategy, options=options, seed=seed, promote=promote)
        done = _watch(client, job, is_json=is_json)
    if done.state not in EXIT_CODES:
        raise JobFailed(done.error or f"Job {done.id} is {done.state}.", done.result)
    document = {"job": done.id, "state": done.state, "error": done.error, **done.result}
    show(is_json, document, *messages.outcome(done))
    raise typer.Exit(EXIT_CODES[done.state])


def check(context: typer.Context, chunk: Annotated[str, _CHUNK], is_json: JsonOption = False) -> None:
    """Show what a chunk's checks found, what it counts for, and what to do next."""
    from app.chunk_text import chunk_parts

    with _connected(context) as client:
        record = client.chunk(chunk)
    show(is_json, asdict(record), *chunk_parts(record))


def gate(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(help="A release, or an update's job.", metavar="JOB|RELEASE", show_default=False)
    ],
    is_json: JsonOption = False,
) -> None:
    """Show why an update passed the gate, or did not."""
    from app import messages
    from app.gate_text import gate_parts
    from model_updates.gate.report import GateReport

    with _connected(context) as client:
        judged = client.judged(name)
    parts: list[Any] = [messages.plain(judged["sentence"])]
    if judged["gate"] is not None:
        parts += gate_parts(GateReport.from_json(judged["gate"]), messages.console().width)
    show(is_json, judged, *parts)


def accept(
    context: typer.Context,
    chunk: Annotated[str, _CHUNK],
    why: Annotated[str, typer.Option(help="The reason; it is kept with the chunk.", show_default=False)],
    measure: Annotated[
        bool, typer.Option("--measure", help="Its held-out pairs measure other updates too.")
    ] = False,
    is_json: JsonOption = False,
) -> None:
    """Let a chunk teach in spite of what its checks found."""
    with _connected(context) as client:
        record = client.accept(chunk, why=why, measure=measure)
    show(is_json, asdict(record) | {"report": None}, f"Chunk {record.id} is accepted.")


def withdraw(
    context: typer.Context,
    chunk: Annotated[str, _CHUNK],
    why: Annotated[str, typer.Option(help="The reason; it is kept with the chunk.", show_default=False)],
    is_json: JsonOption = False,
) -> None:
    """Take a chunk's pairs and pictures out of training, measuring and search."""
    from app.messages import plain

    with _connected(context) as client:
        gone = client.withdraw(chunk, why=why)
    show(is_json, gone, plain(gone["sentence"]))


def releases(context: typer.Context, is_json: JsonOption = False) -> None:
    """List the releases, newest first."""
    from app.messages import table

    with _connected(context) as client:
        found = client.releases()
    rows = [
        (one.id, "live" if one.live else "", str(one.created)[:19], one.strategy, one.mode, one.verdict)
        + (", ".join(one.languages),)
        for one in found
    ]
    header = ("release", "", "created", "strategy", "mode", "verdict", "languages")
    show(is_json, [one.model_dump() for one in found], table(header, rows) if rows else "There are none yet.")


def promote(
    context: typer.Context,
    release: Annotated[str, _RELEASE],
    why: WhyOption = "",
    force: Annotated[bool, typer.Option("--force", help="Even if the gate asks for a review.")] = False,
    is_json: JsonOption = False,
) -> None:
    """Make a release live."""
    with _connected(context) as client:
        _show_live(client.promote(release, why=why, force=force), is_json=is_json)


def rollback(
    context: typer.Context,
    release: Annotated[
        str | None, typer.Argument(help="Where to; the one live before when not given.", show_default=False)
    ] = None,
    why: WhyOption = "",
    is_json: JsonOption = False,
) -> None:
    """Go back to an earlier release."""
    with _connected(context) as client:
        _show_live(client.roll_back(release, why=why), is_json=is_json)


def status(context: typer.Context, is_json: JsonOption = False) -> None:
    """Show what is live, the chunks and the jobs."""
    from app.messages import plain, table

    with _connected(context) as client:
        ready, chunks, jobs = client.get("/readyz"), client.chunks(), client.jobs()[:_JOBS_SHOWN]
        address = client.url
    document = {
        "server": address,
        "live": ready,
        "chunks": [
            {
                "id": one.id,
                "name": one.name,
                "pairs": one.pairs,
                "images": one.images,
                "standing": one.standing,
            }
            for one in chunks
        ],
        "jobs": [asdict(one) for one in jobs],
    }
    lines = [f"Server {address}", f"Live: {ready['release']}, commit {ready['commit']}"]
    if ready["problem"]:
        lines.append(str(ready["problem"]))
    tables: list[Any] = []
    if chunks:
        rows = [(one.id, one.name, one.pairs, one.images, one.standing) for one in chunks]
        tables.append(table(("chunk", "name", "pairs", "pictures", "standing"), rows))
    if jobs:
        of_jobs = [(one.id, one.kind, one.state, one.created[:19], one.error or "") for one in jobs]
        tables.append(table(("job", "kind", "state", "created", "about"), of_jobs))
    show(is_json, document, *map(plain, lines), *tables)


def mcp(context: typer.Context) -> None:
    """Serve search as tools for assistants, on standard input and output."""
    with _connected(context) as client:
        serve_tools(client)


def serve_tools(client: Client) -> None:
    """Serves until standard input ends.

    Raises:
        UsageProblem: the package for it is not installed.
    """
    try:
        from app.assistant import assistant_server
    except ModuleNotFoundError as error:
        raise UsageProblem(
            "Tools for assistants need a package more: pip install 'perennial[mcp]'."
        ) from error
    assistant_server(client).run("stdio")


VERBS = (
    *(search, compare, ingest, update, check, gate, accept, withdraw),
    *(releases, promote, rollback, status, mcp),
)


def _caption(answer: SearchAnswer, image_id: str) -> str:
    captions = next((hit.captions for hit in answer.hits if hit.id == image_id), ())
    return f"{captions[0].text} ({captions[0].language})" if captions else ""


def _show_live(done: WentLiveAnswer, *, is_json: bool) -> None:
    said = f"{done.release} is live (commit {done.commit}, {done.reason})."
    if done.job is not None:
        said += (
            f" {done.left_out} pictures were taken in after it; job {done.job['id']} makes them searchable."
        )
    show(is_json, done.model_dump(), said)


def _take_in(
    client: Client,
    source: Path,
    language: str | None,
    domain: str | None,
    columns: dict[str, str],
    *,
    is_json: bool,
) -> tuple[JobRecord, Any]:
    """Uploads a file, or a folder as a zip, and waits until it is in; returns the job and the chunk."""
    if not source.exists():
        raise UsageProblem(f"There is nothing at {source}.")
    with tempfile.TemporaryDirectory() as scratch:
        file = _packed(source, Path(scratch)) if source.is_dir() else source
        job = client.add_chunk(file, name=file.name, language=language, domain=domain, columns=columns)
    done = _watch(client, job, is_json=is_json)
    if done.state != "succeeded":
        raise JobFailed(done.error or f"Job {done.id} is {done.state}.", done.result)
    return done, client.chunk(done.result["report"]["chunk_id"])


def _packed(folder: Path, scratch: Path) -> Path:
    """Packs a folder; stored, since pictures are compressed already."""
    packed = scratch / f"{folder.resolve().name}.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                archive.write(path, path.relative_to(folder))
    return packed


def _watch(client: Client, job: JobRecord, *, is_json: bool) -> JobRecord:
    """Follows a job to its end; Ctrl-C leaves it to the server."""
    from app import messages

    try:
        with messages.progress_bar(is_quiet=is_json) as move:
            for row in client.follow(job.id):
                said = row.progress
                move(
                    str(said.get("name", row.state)),
                    str(said.get("message", "waiting")),
                    said.get("fraction"),
                )
                job = row
    except KeyboardInterrupt:
        raise AppError(f"Job {job.id} goes on on the server; `status` shows it.", exit_code=130) from None
    return job
