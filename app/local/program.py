"""A home or a server as programs and notebooks use it: the desk in few words, and answers that show themselves."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from app.desk.chunks import Added
from app.desk.desk import Desk
from app.desk.errors import JobFailed, NoHome, UsageProblem
from app.desk.hits import Found, SearchAnswer, SearchRequest
from app.desk.jobs import Stage, StartUpdate
from app.desk.operation import grown
from app.desk.pictures import Original
from app.desk.troubles import request_of
from app.home.folder import Home
from app.home.settings import load_settings
from app.local.at_home import AtHome
from app.query.named_files import pictures_in
from ingest.intake import IntakeOptions
from ingest.records import ChunkRecord, JobRecord

if TYPE_CHECKING:
    from PIL import Image

_JUDGED = ("succeeded", "rejected", "review")
_MOST_SHOWN = 60  # a notebook keeps what it shows in its file, ten kilobytes a picture


@dataclass(frozen=True)
class PictureHit(Found):
    """A picture found, which fetches what it shows when that is asked for."""

    desk: Desk = field(kw_only=True, repr=False, compare=False)  # that found it

    @property
    def path(self) -> str:
        """Of its file; empty where it lies in none of its own, or where you may not know (`sources` has all places)."""
        return self.file

    @property
    def name(self) -> str:
        """What its file, or its row of a table, is called; else the beginning of its id."""
        return next((one.label for one in self.sources if one.label), self.id[:12])

    @cached_property
    def image(self) -> Image.Image:
        """The picture to look at: upright, with a longer side of up to 1600 pixels."""
        from PIL import Image

        return Image.open(io.BytesIO(self.desk.picture(self.id)))

    def original(self) -> Original:
        """Returns its file to the byte, with name and type.

        Raises:
            NotAllowed, Refused: you may not have it.
        """
        return self.desk.original(self.id)


@dataclass(frozen=True)
class Answer(SearchAnswer):
    """What a search found, best first: a sequence of its hits, which a notebook shows as pictures."""

    hits: tuple[PictureHit, ...]

    def __iter__(self) -> Iterator[PictureHit]:
        """Goes over the hits."""
        return iter(self.hits)

    def __len__(self) -> int:
        """Counts the hits."""
        return len(self.hits)

    def __getitem__(self, place: int) -> PictureHit:
        """Returns a hit by its place, from 0."""
        return self.hits[place]

    def _repr_html_(self) -> str:
        """Returns the pictures in a row, with scores and names, as a document of its own."""
        shown = "".join(map(_figure, self.hits[:_MOST_SHOWN]))
        more = len(self.hits) - _MOST_SHOWN
        said = [self.note, f"and {more} more" if more > 0 else "", "" if self.hits else "Nothing was found."]
        below = " ".join(filter(None, said))
        return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{shown}</div><p>{html.escape(below)}</p>'


class Perennial:
    """An opened home, or a server: search, add, teach; a context manager."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk  # everything else that can be asked, see `app.desk.desk`

    def search(
        self,
        text: str | None = None,
        *,
        image: str | Path | bytes | Image.Image | None = None,
        k: int | None = None,
        **more: Any,
    ) -> Answer:
        """Finds pictures; without text, image and the like, it shows the newest.

        Args:
            text: what they show, in the query grammar: "2:red car + ./a.jpg - fruit".
            image: a picture that they are to be like: its file, the bytes of one, or a picture of Pillow's.
            k: how many.
            more: every other field of `SearchRequest`: language, domains, since, release, dedup, …

        Raises:
            UsageProblem: there is no such field, or it cannot have this value.
            BadQuery, Refused: this cannot be looked for.
        """
        given = {"text": text, "image": None if image is None else _packed(image), "k": k}
        asked = {name: value for name, value in given.items() if value is not None} | more
        asked.setdefault("images", pictures_in(text or ""))
        answer = self.desk.search(request_of(SearchRequest, **asked))
        hits = tuple(grown(PictureHit, hit, desk=self.desk) for hit in answer.hits)
        return grown(Answer, answer, hits=hits)

    def add(  # noqa: PLR0913 - one parameter per option
        self,
        source: str | Path,
        *,
        language: str | None = None,
        domain: str | None = None,
        name: str | None = None,
        columns: Mapping[str, str] | None = None,
        pictures: str | Path | None = None,
        forget: bool = False,
        fetch: bool = False,
        tell: Callable[[Stage], None] | None = None,
    ) -> Added:
        """Takes pictures and captions in and waits until search finds them.

        Args:
            source: a folder, an archive, or a table (docs/ingest.md).
            language: of captions that state none, such as `de`; else it is detected.
            domain: of pictures that state none, such as `photo`.
            name: what to call the chunk.
            columns: a table's columns by ours: {"text": "caption"}.
            pictures: the folder of the pictures that a table names, where it is not the table's own.
            forget: whether pictures of a folder whose files are gone are removed for good.
            fetch: whether pictures that a table names by http(s) address are fetched.
            tell: is told how far it is.

        Raises:
            BadUpload, NoValidPair, Refused: nothing of it can be used, and nothing has changed.
        """
        options = IntakeOptions(
            language=language,
            domain=domain,
            name=name,
            mapping=dict(columns or {}),
            pictures=Path(pictures).expanduser() if pictures else None,
            forget=forget,
            fetch=fetch,
        )
        return self.desk.add_chunk(Path(source).expanduser(), options, tell or _ignore)

    def teach(
        self,
        chunk: str | Added | ChunkRecord,
        *,
        tell: Callable[[JobRecord], None] | None = None,
        **more: Any,
    ) -> JobRecord:
        """Learns from a chunk, in a process of its own, and waits for the end; what passes the gate goes live.

        Args:
            chunk: what `add` returned, or a chunk's name or id.
            tell: is told how far the job is.
            more: every other field of `StartUpdate`: strategy, options, seed, promote, why.

        Returns:
            The job. Its `state` is `succeeded`, `rejected` by the gate, or `review` where a person decides; its
            `result` has the `sentence`, the `release` and more.

        Raises:
            UsageProblem: it cannot be taught so.
            JobFailed: it did not end well; the sentence says why.
        """
        record = chunk.chunk if isinstance(chunk, Added) else chunk
        named = record if isinstance(record, str) else record.id
        asked = request_of(StartUpdate, chunk=named, **more)
        self.desk.require_update(asked)
        job = self.desk.update(asked)
        try:
            done = self.desk.follow(job.id, tell or _ignore)
        except KeyboardInterrupt:
            self.desk.leave(job.id)
            raise
        if done.state not in _JUDGED:
            raise JobFailed(done)
        return done

    def close(self) -> None:
        """Closes what is open."""
        self.desk.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Perennial at {self.desk.where}>"


def open_home(path: str | Path | None, *, model: str | None, by: str, **settings: Any) -> Perennial:
    """Opens a home; where there is none it makes one with an encoder, if `model` names one (see `perennial.open`)."""
    read = load_settings(home=path, **settings)
    if not Home(read.home).format_file.exists():
        if model is None:
            at = "" if path is None else f"{str(path)!r}, "
            raise NoHome(f"There is no home at {read.home} yet. perennial.open({at}create=True) makes one.")
        from app.learning.beginning import initialise

        initialise(read, model=model)
    Home.open(read.home).require_stores()
    return Perennial(AtHome(read, by=by))


def _ignore(_: object) -> None:
    """Says nothing."""


def _packed(image: str | Path | bytes | Image.Image) -> str:
    """Returns a picture file in base64.

    Raises:
        UsageProblem: there is no such file.
    """
    if isinstance(image, str | Path):
        file = Path(image).expanduser()
        try:
            image = file.read_bytes()
        except OSError as error:
            raise UsageProblem(f"The picture {file} cannot be read: {error.strerror}.") from error
    if not isinstance(image, bytes):
        data = io.BytesIO()
        image.convert("RGB").save(data, "PNG")
        image = data.getvalue()
    return base64.b64encode(image).decode("ascii")


def _figure(hit: PictureHit) -> str:
    data = base64.b64encode(hit.desk.thumbnail(hit.id)).decode("ascii")
    seen = next((one.text for one in hit.captions), hit.name)
    score = "" if hit.score is None else f"{hit.score:.3f} "
    return (
        '<figure style="margin:0;max-width:160px;overflow-wrap:anywhere">'
        f'<img src="data:image/webp;base64,{data}" alt="{html.escape(seen)}" style="height:120px">'
        f"<figcaption>{score}{html.escape(hit.name)}</figcaption></figure>"
    )
