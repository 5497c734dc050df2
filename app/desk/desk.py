"""The desk: everything that can be asked of Perennial, whoever asks and whatever stands behind it.

Two things implement it: `app.local` works on an opened home in this process, `app.client` asks a server over HTTP. An
operation's route stands beside it; the server, the client and the congruence suite read it from here. It is one file
because it is read as one: the list of what Perennial can do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self

from pydantic import Field, StrictBool

from app.desk.chunks import Added, Chunk, Decided, Held, NamedDomain, PutAside, Withdrawn
from app.desk.health import Described, Examination, IndexStatus, RepairPlan, Status
from app.desk.hits import (
    MOST_AT_ONCE,
    MOST_PARTS,
    Choices,
    Compared,
    Embeddings,
    FileName,
    ManyCompared,
    Name,
    Picture,
    SearchAnswer,
    Searched,
    SearchRequest,
)
from app.desk.jobs import Forecast, Stage, StartUpdate
from app.desk.operation import acts, reads
from app.desk.opinions import Opinion, Opinions, Proposal, ShadowReport, Votes
from app.desk.pictures import MOST_ITEMS, Item, ItemResults, NewItem, Original, PictureSide, TakenOut, Things
from app.desk.releases import (
    Difference,
    Evaluated,
    Exported,
    Imported,
    ListedRelease,
    Node,
    PrunePlan,
    ReleaseWords,
    WentLive,
)
from app.desk.tables import TableForm, TableKind, WrittenTable
from app.desk.verdicts import Judged, Quality, ReleaseDetail, ReleaseDrift, SliceMoves
from ingest.facets import Facets
from ingest.feedback import FeedbackRecord
from ingest.pair import Caption
from ingest.records import ChunkRecord, JobRecord, Pin
from ingest.release_words import ReleaseWord

if TYPE_CHECKING:
    from ingest.intake import IntakeOptions

Slug = Annotated[str, Field(min_length=1, max_length=80)]
Language = Annotated[str, Field(max_length=40)]
Note = Annotated[str, Field(max_length=500)]
Reason = Annotated[str, Field(min_length=1, max_length=500)]
Hits = Annotated[int | None, Field(ge=1, le=500)]
Limit = Annotated[int, Field(ge=1, le=1000)]
Offset = Annotated[int, Field(ge=0, lt=2**31)]
Lines = Annotated[int, Field(ge=1, le=5000, description="How many, counted from the newest.")]
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]  # of SQLite
Numbers = Annotated[Sequence[Number], Field(max_length=1000)]
Ids = Annotated[Sequence[Name], Field(min_length=1, max_length=500)]
Keep = Annotated[int, Field(ge=0, le=10_000, description="How many of the newest releases stay in any case.")]
Names = Annotated[Sequence[Name], Field(max_length=10_000)]
Probes = Annotated[bool, Field(description="The built-in checks too: drawn pictures that guard updates.")]
Metric = Annotated[str, Field(max_length=20, description="t2i_r1, t2i_r5, t2i_r10 or t2i_mean")]
View = Annotated[str, Field(max_length=20, description="own, mixed or memory")]
Pairs = Annotated[Sequence[Annotated[str, Field(max_length=32)]] | None, Field(max_length=10_000)]
Texts = Annotated[Sequence[Annotated[str, Field(max_length=2000)]], Field(max_length=MOST_AT_ONCE)]
Images = Annotated[Mapping[FileName, Picture], Field(max_length=MOST_PARTS)]
Pictures = Annotated[Sequence[Picture], Field(max_length=MOST_AT_ONCE)]

OnJob = Callable[[JobRecord], None]
OnStage = Callable[[Stage], None]


class Desk(Protocol):
    """What can be asked of a home or of a server; a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    @property
    def where(self) -> str:
        """The home's folder, or the server's address."""

    # Searching

    @acts("/v1/search", role="anyone")
    def search(self, asked: SearchRequest) -> SearchAnswer:
        """Finds pictures by texts, pictures, both, or what is like some of the gallery's."""

    @acts("/v1/searches", role="anyone", wraps="results")
    def searches(
        self, searches: Annotated[Sequence[dict[str, Any]], Field(min_length=1, max_length=MOST_AT_ONCE)]
    ) -> list[Searched]:
        """Asks up to 64 searches; one that cannot be answered does not keep the others from it."""

    @reads("/v1/choices")
    def choices(self, release: Name | None = None) -> Choices:
        """Says what the fields of a search may be filled with, of a release or of the live one."""

    @acts("/v1/facets", role="anyone")
    def facets(self, asked: SearchRequest) -> Facets:
        """Counts what a search's filters leave, whatever its query, by domain, language, year and folder."""

    @acts("/v1/search.csv", role="anyone", media="text/csv", file="results.csv")
    def results_table(self, asked: SearchRequest) -> bytes:
        """Returns what a search finds as CSV, for a spreadsheet."""

    @acts("/v1/search.zip", role="anyone", media="application/zip", file="results.zip")
    def results_archive(self, asked: SearchRequest) -> bytes:
        """Returns the pictures that a search finds in a zip with their table; up to 100 at once."""

    @acts("/v1/compare", role="anyone")
    def compare(
        self,
        text: str,
        a: Slug,
        b: Slug,
        language: Language = "auto",
        k: Hits = None,
        images: Images = MappingProxyType({}),
    ) -> Compared:
        """Asks two releases the same; says how pictures moved and what each release measured.

        `images` are the pictures that the text names, as a search has them.
        """

    @acts("/v1/comparisons", role="anyone")
    def comparisons(
        self,
        a: Slug,
        b: Slug,
        queries: Annotated[Sequence[str], Field(min_length=1, max_length=MOST_AT_ONCE)],
        language: Language = "auto",
        k: Hits = None,
        images: Images = MappingProxyType({}),
    ) -> ManyCompared:
        """Asks two releases up to 64 queries; one that cannot be answered does not keep the others from it."""

    @reads("/v1/comparisons/changed")
    def changed(
        self,
        a: Slug,
        b: Slug,
        language: Language = "auto",
        k: Hits = None,
        most: Annotated[int, Field(ge=1, le=100)] = 20,
    ) -> ManyCompared:
        """Asks two releases canaries and a sample of held-out captions; returns those whose answers changed most."""

    @acts("/v1/embed", role="anyone")
    def embed(
        self,
        texts: Texts = (),
        images: Pictures = (),
        language: Language = "auto",
        release: Name | None = None,
    ) -> Embeddings:
        """Embeds texts, taken as they are, and pictures; one that cannot be embedded does not keep the others from it.

        A text in a language nobody stated is read in the likeliest one. What comes back may be sent as the `embedding`
        of a search.
        """

    @reads("/v1/captions", wraps="captions")
    def captions(
        self, text: Annotated[str, Field(min_length=1, max_length=500)], limit: Limit = 50
    ) -> list[Caption]:
        """Finds captions that contain all words of a text, the last of them perhaps only begun."""

    # Pictures

    @reads("/v1/images/{image}", media="image/webp")
    def picture(self, image: str) -> bytes:
        """Returns a picture to look at: drawn anew, so that nothing hidden in the uploaded file goes out."""

    @reads("/v1/images/{image}/original")
    def original(self, image: str) -> Original:
        """Returns a picture's file as it was taken in, for those who may know where pictures are."""

    @reads("/v1/images/{image}/thumbnail", media="image/webp")
    def thumbnail(self, image: str, size: PictureSide = PictureSide.SMALL) -> bytes:
        """Returns a picture's thumbnail; the larger ones are drawn from the picture."""

    @reads("/v1/items/{item}/thumb", media="image/webp")
    def item_thumbnail(self, item: Annotated[str, Field(max_length=80)]) -> bytes:
        """Returns the thumbnail of a picture, by its id or a beginning of it."""

    @reads("/v1/items/{item}")
    def item(self, item: Annotated[str, Field(max_length=80)]) -> Item:
        """Returns what is known of a picture, by its id or a beginning of it."""

    @acts("/v1/items", role="contributor", status=202)
    def add_items(
        self,
        items: Annotated[Sequence[NewItem], Field(min_length=1, max_length=MOST_ITEMS)],
        name: Annotated[str, Field(max_length=120)] = "items",
        domain: Name = "",
        gallery: StrictBool = True,
    ) -> ItemResults:
        """Starts taking pictures in as one chunk; what cannot be used is left out and says why, by itself.

        The job's result holds the chunk and its report, as that of `POST /v1/chunks`.
        """

    @acts("/v1/items/delete")
    def take_out(self, ids: Ids, why: Reason) -> ItemResults:
        """Takes pictures out: from now on nothing shows them, trains on them or measures by them.

        What encoders have learned from them stays learned. `POST /v1/items/restore` puts them back.
        """

    @acts("/v1/items/restore")
    def put_back(self, ids: Ids) -> ItemResults:
        """Puts pictures back that somebody took out, with all they had; search has them all when the job has ended."""

    @reads("/v1/withheld", role="admin", wraps="withheld")
    def taken_out(self) -> list[TakenOut]:
        """Lists the pictures that somebody took out, the latest first."""

    @reads("/v1/copies")
    def copies(self, limit: Limit = 100, offset: Offset = 0) -> Things:
        """Returns pictures of the gallery that show one thing, a list for each thing, the longest first."""

    # Chunks

    @reads("/v1/chunks", wraps="chunks")
    def chunks(self, probes: Probes = False) -> list[ChunkRecord]:
        """Lists all chunks, newest first, without their reports."""

    @reads("/v1/chunks/{chunk}")
    def chunk(self, chunk: Slug) -> Chunk:
        """Returns a chunk with its standing, what its checks found, and its intake report."""

    @reads("/v1/chunks/{chunk}/report.csv", media="text/csv", file="chunk-{chunk}.csv")
    def chunk_report(self, chunk: Slug) -> bytes:
        """Returns the rows of a chunk's report that have something to say, as CSV."""

    def add_chunk(self, source: Path, options: IntakeOptions, on_stage: OnStage) -> Added:
        """Takes a folder, archive or table in and waits until it is; `on_stage` is told how far it is."""

    def start_chunk(self, source: Path, options: IntakeOptions, then: StartUpdate | None = None) -> JobRecord:
        """Starts taking an archive or a table in and returns the job; `then` is an update that follows.

        The chunk of `then` is the one that is taken in. The source stays where it is.
        """

    @acts("/v1/chunks/{chunk}/accept")
    def accept(self, chunk: Slug, why: Reason, measure: StrictBool = False) -> Chunk:
        """Lets a chunk teach in spite of what its checks found; with `measure` its held-out pairs measure others."""

    @acts("/v1/chunks/{chunk}/withdraw")
    def withdraw(self, chunk: Slug, why: Reason) -> Withdrawn:
        """Takes a chunk out of training, measuring and search; says which releases learned from it."""

    @acts("/v1/domains/{domain}/name")
    def name_domain(self, domain: Name, to: Name) -> NamedDomain:
        """Gives a domain that nothing was learned of another name; one that there is takes its pictures in."""

    @acts("/v1/chunks/{chunk}/remove", status=202)
    def remove(self, chunk: Slug, why: Reason) -> JobRecord:
        """Withdraws a chunk that what is live has learned from, and starts rebuilding that without it.

        What was taught after the chunk is taught again, with the same strategies, options and seeds, to the last
        version before it. Each step passes the gate; until the last one has, what is live stays live.
        """

    @reads("/v1/held", role="admin")
    def held(self, limit: Limit = 100, offset: Offset = 0) -> Held:
        """Returns what waits for a person's word: whole chunks by id, and rows that intake held."""

    @reads("/v1/chunks/{chunk}/aside", role="admin")
    def put_aside(self, chunk: Slug) -> PutAside:
        """Returns what may be decided of a chunk, what was decided, and what intake rejected of its upload."""

    @reads("/v1/aside/{pair}/thumbnail", role="admin", media="image/webp")
    def aside_thumbnail(self, pair: Number) -> bytes:
        """Returns the small picture of a held or rejected pair; for admins, as nobody has let it in."""

    @acts("/v1/chunks/{chunk}/decide")
    def decide(
        self,
        chunk: Slug,
        accept: Numbers = (),
        leave_out: Numbers = (),
        take_out: Numbers = (),
        language: Language | None = None,
        why: Note = "",
    ) -> Decided:
        """Accepts held pairs, leaves out others, takes out pairs of the chunk; until something was taught from it.

        `take_out` names `questioned` pairs; `language` is of accepted captions that state none.
        """

    # Learning and jobs

    @acts("/v1/updates", status=202)
    def update(self, asked: StartUpdate) -> JobRecord:
        """Starts learning from a chunk and returns the job."""

    def require_update(self, asked: StartUpdate) -> None:
        """Refuses what an update could not do later, before its chunk is taken in; a server refuses when asked."""

    @acts("/v1/updates/forecast")
    def forecast(self, asked: StartUpdate) -> Forecast:
        """Says which strategy would teach a chunk and why, whether it fits, and what it would take; starts nothing."""

    @reads("/v1/jobs", wraps="jobs")
    def jobs(self) -> list[JobRecord]:
        """Lists the latest jobs, newest first."""

    @reads("/v1/jobs/{job}")
    def job(self, job: Slug) -> JobRecord:
        """Returns a job with its progress and result."""

    @reads("/v1/jobs/{job}/gate")
    def job_verdict(self, job: Slug) -> Judged:
        """Returns the gate's whole report of an update, also of a rejected one; null before it was judged."""

    @reads("/v1/jobs/{job}/log", role="admin", wraps="lines")
    def job_log(self, job: Slug, lines: Lines = 200) -> list[str]:
        """Returns the last lines that a job's process wrote; none once its folder has been removed."""

    @acts("/v1/jobs/{job}/cancel")
    def cancel(self, job: Slug) -> JobRecord:
        """Stops a job; nothing live changes."""

    @acts("/v1/jobs/{job}/resume", status=202)
    def resume(self, job: Slug) -> JobRecord:
        """Goes on with a job that was interrupted, cancelled or failed, from its last checkpoint."""

    def follow(self, job: str, on_change: OnJob) -> JobRecord:
        """Waits for a job to end; `on_change` is told it now and whenever it changes."""

    def leave(self, job: str) -> str:
        """Does what is right when the person who follows a job goes away; returns a sentence about it."""

    # Releases

    @reads("/v1/releases", wraps="releases")
    def releases(self) -> list[ListedRelease]:
        """Lists all releases, newest first."""

    @reads("/v1/releases/{release}")
    def release(self, release: Slug) -> ReleaseDetail:
        """Returns a release with its gate report, and what its shadow has shown, if it was in one."""

    @reads("/v1/lineage", wraps="releases")
    def lineage(self) -> list[Node]:
        """Lists every release with its parent, and when it was live, by whom and why; newest first."""

    @reads("/v1/releases/{a}/difference/{b}")
    def difference(self, a: Slug, b: Slug) -> Difference:
        """Says what a second release has that the first has not, and the other way round."""

    @acts("/v1/releases/{release}/promote")
    def promote(self, release: Slug, why: Note = "", force: StrictBool = False) -> WentLive:
        """Makes a release live."""

    @acts("/v1/rollback")
    def roll_back(self, release: Name | None = None, why: Note = "") -> WentLive:
        """Goes back to an earlier release; without a name, to the one that was live before."""

    @acts("/v1/releases/{release}/reject")
    def reject(self, release: Slug, why: Note = "") -> ReleaseWord:
        """Rejects a candidate with a note; promoting it then needs `force`."""

    @acts("/v1/releases/{release}/keep")
    def keep(self, release: Slug, why: Note = "") -> ReleaseWord:
        """Keeps a candidate for later, with a note; takes a rejection back."""

    @acts("/v1/pin")
    def pin(self, why: Note = "") -> ReleaseWord:
        """Pins what is live: what passes waits, and promoting another version asks to unpin first."""

    @acts("/v1/unpin")
    def unpin(self, why: Note = "") -> ReleaseWord:
        """Takes the pin away."""

    @reads("/v1/release-words")
    def release_words(self) -> ReleaseWords:
        """Lists what people said of releases, newest first, and the pin that holds what is live, if any."""

    @reads("/v1/prune", role="admin")
    def prune_plan(self, keep: Keep = 5) -> PrunePlan:
        """Says which old releases could give up encoder and index, what room that leaves, and why the others stay."""

    @acts("/v1/prune")
    def prune(self, releases: Names, keep: Keep = 5, why: Note = "") -> PrunePlan:
        """Removes encoder and index of releases that the plan for `keep` names; their reports and history stay.

        What is live or needed is refused; then nothing is removed.
        """

    def export(self, release: str, to: Path) -> Exported:
        """Writes a release into one file for another home: into `to`, or under its own name into that folder."""

    def start_import(self, source: Path, sha256: str | None = None) -> JobRecord:
        """Starts taking in a release of another home and returns the job; the source stays where it is."""

    def import_release(self, source: Path, sha256: str | None, on_stage: OnStage) -> Imported:
        """Takes a release of another home in; it is not live before somebody promotes it."""

    # Tables for other programs

    @reads("/v1/tables/{what}.{form}", role="contributor")
    def table(
        self,
        what: TableKind,
        form: TableForm,
        release: Name | None = None,
        paths: bool = False,
    ) -> WrittenTable:
        """Returns vectors, captions, or what was measured as Parquet, CSV or JSON lines.

        Vectors and measurements are of a release, or of the live one. Vectors have the `paths` of their pictures where
        that is asked for, by those who may know where pictures lie.
        """

    # How good releases are

    @reads("/v1/quality")
    def quality(self, metric: Metric = "t2i_r10", view: View = "own", probes: Probes = False) -> Quality:
        """Returns recall of each slice under each released version, its coverage, and what languages are asked for."""

    @reads("/v1/quality/moves", role="admin")
    def moves(
        self,
        language: Annotated[str, Field(min_length=1, max_length=40)],
        domain: Slug,
        before: Slug,
        after: Slug,
        view: View = "own",
    ) -> SliceMoves:
        """Looks a slice's captions up under two releases, today; returns those that lost and won most."""

    @reads("/v1/drift", role="admin")
    def drift(
        self, before: Slug, after: Slug, pairs: Annotated[int, Field(ge=2, le=2000)] = 500
    ) -> ReleaseDrift:
        """Says how far the vectors of two releases have turned, on held-out pairs (SAM, RAM, ImAM)."""

    @acts("/v1/evaluate")
    def evaluate(self, release: Name | None = None, probes: Probes = False) -> Evaluated:
        """Measures a release, or the live one, on today's held-out pairs."""

    @reads("/v1/releases/{release}/shadow")
    def shadow(self, release: Slug) -> ShadowReport:
        """Says how far its answers to live queries lay from the live ones, by language: means, never queries."""

    @reads("/v1/shadow", wraps="release")
    def in_shadow(self) -> str:
        """Returns the id of the release that is in the shadow now; empty where none is."""

    @acts("/v1/releases/{release}/shadow")
    def start_shadow(
        self, release: Slug, share: Annotated[float | None, Field(gt=0, le=1)] = None
    ) -> ShadowReport:
        """Puts a candidate into the shadow: it is asked a share of the live queries, and nobody sees its answers."""

    @acts("/v1/releases/{release}/shadow/stop")
    def stop_shadow(self, release: Slug, why: Note = "") -> ShadowReport:
        """Ends the shadow of a release; what it has shown is kept."""

    # What people say of answers

    @acts("/v1/feedback", role="anyone", status=201)
    def give_feedback(self, said: Opinion) -> FeedbackRecord:
        """Keeps a thumb or a vote; a person's newest word on the same thing takes the place of an earlier one."""

    @reads("/v1/feedback", role="admin")
    def feedback(self, limit: Annotated[int, Field(ge=1, le=10_000)] = 1000) -> Opinions:
        """Lists feedback, newest first, and counts all votes by pair of releases."""

    @reads("/v1/votes")
    def votes(self, a: Slug, b: Slug) -> Votes:
        """Counts the votes between two releases, the earlier one as `a`; with a 95 % interval of the share for `b`."""

    @acts("/v1/feedback/{number}/pin")
    def pin_feedback(
        self, number: Number, image: Annotated[str, Field(max_length=64)] = "", language: Language = ""
    ) -> Pin:
        """Makes what somebody said a canary: updates must keep this picture as the first answer of this query.

        `image` is the right picture, which only a thumb up names by itself.
        """

    @reads("/v1/canaries", role="admin", wraps="canaries")
    def canaries(self) -> list[Pin]:
        """Lists the queries whose first answer updates must keep."""

    @acts("/v1/canaries/remove")
    def remove_canary(
        self, query: Annotated[str, Field(min_length=1, max_length=2000)], language: Language = ""
    ) -> Pin:
        """Takes a canary away: updates need not keep its picture any more.

        `query` is as it was pinned; `language` is needed where it is pinned in several.
        """

    @reads("/v1/feedback/proposal", role="admin")
    def proposal(self) -> Proposal:
        """Lists the pairs that could be taught of what people said, and counts what was left out and why."""

    @acts("/v1/feedback/proposal.zip", media="application/zip", file="feedback.zip")
    def proposal_file(self, pairs: Pairs = None) -> bytes:
        """Returns the proposed chunk as a zip to look at: its pictures and a table of their captions."""

    @acts("/v1/feedback/proposal", status=202, wraps="job")
    def take_proposal(self, pairs: Pairs = None) -> JobRecord:
        """Takes pairs of the proposal in as a chunk, which is held until an admin accepts it; returns the job."""

    # Upkeep

    @reads("/v1/status")
    def status(self, probes: Probes = False) -> Status:
        """Says what is live, the chunks and the jobs, and how full the disk is."""

    @reads("/v1/index")
    def index(self) -> IndexStatus:
        """Says of which kind the live index is and why, its segments, what a search takes and what it keeps."""

    @reads("/v1/verify", role="admin", wraps="damaged")
    def verify(self) -> list[str]:
        """Reads every byte of every release; returns a sentence for each that cannot be trusted."""

    def start_examination(self, every_byte: bool = True) -> JobRecord:
        """Starts looking for everything that can be wrong and returns the job; one that is under way instead."""

    def examine(self, every_byte: bool, on_stage: OnStage) -> Examination:
        """Looks for everything that can be wrong with the home, and waits for it; nothing is changed."""

    @reads("/v1/repair", role="admin")
    def repair_plan(self) -> RepairPlan:
        """Says what repairing would do and how long it would take; reads every byte of what is live."""

    @acts("/v1/repair", status=202)
    def repair(self) -> JobRecord:
        """Starts mending what is damaged: the catalog from its copy, an index from kept vectors; returns the job."""

    @reads("/v1/log", role="admin", wraps="lines")
    def log(self, lines: Lines = 200) -> list[str]:
        """Returns the last lines of the log, oldest first."""

    @reads("/v1/settings", role="admin", wraps="settings")
    def settings(self) -> list[Described]:
        """Returns every setting: its value, its default and what it means."""
