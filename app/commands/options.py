"""The options and arguments of verbs that work on a home and on a server, each written once for both.

What only one of them can mean stays with its verb.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from app.desk.errors import AppError

_FILTERS = "Filters"


def source_path(word: str) -> Path:
    """Reads SOURCE; an empty word, from a shell variable that is not set, would mean the working directory."""
    if not word.strip():
        raise typer.BadParameter("it is empty; name a folder or a file.")
    return Path(word)


def release_names(context: typer.Context, incomplete: str) -> list[str]:
    """Returns the home's releases that begin as what was typed, for a shell to complete."""
    from app.home.settings import load_settings

    try:
        home = Path(context.params.get("home") or load_settings().home)
        return sorted(path.name for path in (home / "releases").iterdir() if path.name.startswith(incomplete))
    except (OSError, AppError):  # a shell shows nothing rather than an error
        return []


def _said(*names: str, says: str, **more: Any) -> Any:
    return typer.Option(*names, help=says, show_default=False, **more)


def _named(says: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Argument(help=says, metavar=metavar, show_default=False, **more)


def _filter(name: str, says: str) -> Any:
    return _said(name, says=says, rich_help_panel=_FILTERS)


LineageOption = Annotated[
    bool, typer.Option("--lineage", help="Draw where each comes from, and say when it was live and why.")
]
WhyOption = Annotated[str, typer.Option("--why", help="A sentence for the history.")]

# Searching and comparing

_QUERY = "What the pictures show: texts, picture files and weights, such as: 2:red car + ./a.jpg - fruit"
QueryArgument = Annotated[list[str] | None, _named(_QUERY, "QUERY")]
TextArgument = Annotated[str, _named("What the pictures show.")]
LanguageOption = Annotated[str, typer.Option("--language", help="A learned language, such as de, or auto.")]
TranslationOption = Annotated[str, _said("--translation", says="The query in English; both count.")]
HitsOption = Annotated[int | None, _said("--k", "-k", says="How many.", min=1)]
LikeOption = Annotated[
    list[str] | None, _said("--like", says="More like this picture of the gallery, by its id.")
]
ModeOption = Annotated[
    str, typer.Option("--mode", help="Look it up in vectors, captions, or both fused: hybrid.")
]
DomainFilter = Annotated[list[str] | None, _filter("--domain", "Only pictures of this domain.")]
CaptionedFilter = Annotated[
    list[str] | None, _filter("--captioned", "Only pictures captioned in this language.")
]
ChunkFilter = Annotated[list[str] | None, _filter("--chunk", "Only pictures of this chunk.")]
SinceFilter = Annotated[datetime | None, _filter("--since", "Taken in on this day (UTC) or later.")]
UntilFilter = Annotated[datetime | None, _filter("--until", "Taken in on this day (UTC) or earlier.")]
CaptionFilter = Annotated[str, _filter("--caption", "Only pictures with these words in a caption.")]
FoldOption = Annotated[bool, typer.Option("--fold", help="Show of near-copies only the best.")]
CursorOption = Annotated[str, _said("--next", says="The next page, by the cursor of the answer before.")]
LeastOption = Annotated[
    str | None, _said("--min-relevance", says="Leave out hits that are worth less: strong or weak.")
]
CaptionsOption = Annotated[
    int, typer.Option("--captions", min=0, help="Show so many captions, too, nearest first.")
]
CaptionsInOption = Annotated[
    list[str] | None, _said("--captions-in", says="Of this language; all learned ones without it.")
]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Say how near each part is.")]
AskedRelease = Annotated[
    str | None,
    _said("--release", says="Ask this release, not the live one.", autocompletion=release_names),
]
PinOption = Annotated[bool, typer.Option("--pin", help="Updates must keep the first answer.")]
RerankOption = Annotated[
    bool, typer.Option("--rerank", help="Let the release's fusion encoder order the first 50.")
]

OffsetOption = Annotated[int, typer.Option("--offset", help="Pass over so many hits.", min=0)]
CsvOption = Annotated[Path | None, _said("--csv", says="Write what was found as a table, too.")]
ZipOption = Annotated[
    Path | None, _said("--zip", says="Write the pictures with their table into a zip, too; up to 100.")
]

# Judging

QueriesOption = Annotated[
    Path | None,
    _said(
        "--queries",
        says="A file with a query a line; without it canaries and held-out captions are asked.",
        exists=True,
        dir_okay=False,
    ),
]
ComparedHits = Annotated[int, typer.Option("--k", "-k", min=1, help="How many hits are compared.")]
MostOption = Annotated[int, typer.Option("--most", min=1, max=100, help="How many answers to show.")]
MetricOption = Annotated[str, typer.Option("--metric", help="t2i_r1, t2i_r5, t2i_r10 or t2i_mean.")]
ViewOption = Annotated[str, typer.Option("--view", help="own, mixed or memory.")]
ProposalOption = Annotated[Path | None, _said("--to", says="Write the proposed chunk into this zip.")]
LeaveOutOption = Annotated[
    list[str] | None, _said("--leave-out", says="A pair by its id, as listed; may be repeated.")
]
DriftPairsOption = Annotated[
    int, typer.Option("--pairs", min=2, max=2000, help="Most held-out pairs to look at.")
]

# Taking in and learning

_SOURCES = "A folder, a zip or tar, a csv, tsv, jsonl or parquet table, or a saved Hugging Face dataset."
SourceArgument = Annotated[Path, _named(_SOURCES, "SOURCE", parser=source_path)]
TaughtSource = Annotated[
    Path | None, _named("Take this in first, then learn from it.", "SOURCE", parser=source_path)
]
StatedLanguage = Annotated[
    str | None, _said("--language", says="Of captions that state none, such as de; else it is detected.")
]
StatedDomain = Annotated[str | None, _said("--domain", says="Of pictures that state none, such as photo.")]
MappingOption = Annotated[list[str] | None, _said("--map", says="A table's column as ours: text=caption.")]
NameOption = Annotated[str | None, _said("--name", says="What to call the chunk.")]
GalleryOption = Annotated[bool, typer.Option(help="Let search find the pictures.")]
ReportOption = Annotated[Path | None, _said("--report", says="Write what became of each row as CSV.")]
TaughtChunk = Annotated[str | None, _said("--chunk", says="Learn from a chunk that is in already.")]
StrategyOption = Annotated[
    str | None, _said("--strategy", says="See `methods`; chosen by the chunk when not given.")
]
StrategyOptions = Annotated[list[str] | None, _said("--option", says="Of the strategy: key=value.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what it would take, with --chunk, and start nothing.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Of every random choice.", min=0, max=2**31 - 1)]
PromoteOption = Annotated[bool, typer.Option(help="Make it live when it passes the gate.")]
ResumeOption = Annotated[str | None, _said("--resume", says="Go on with a stopped job.", metavar="JOB")]
CancelOption = Annotated[str | None, _said("--cancel", says="Stop a running job.", metavar="JOB")]

# Chunks and releases

ChunkArgument = Annotated[str, _named("A chunk's id, or its beginning.", "CHUNK")]
ReasonOption = Annotated[str, _said("--why", says="The reason; it is kept with the chunk.")]
HeldChunk = Annotated[
    str | None,
    typer.Argument(help="A chunk; all that wait when not given.", metavar="[CHUNK]", show_default=False),
]
HeldLimit = Annotated[int, typer.Option("--limit", help="Of all chunks, how many.", min=1, max=1000)]
AcceptedPairs = Annotated[list[int] | None, _said("--accept", says="A held pair, by its number.", min=1)]
LeftOutPairs = Annotated[list[int] | None, _said("--leave-out", says="A held pair, by its number.", min=1)]
TakenOutPairs = Annotated[
    list[int] | None, _said("--take-out", says="A pair of the chunk that its checks name.", min=1)
]
CaptionLanguage = Annotated[
    str | None, _said("--language", says="Of accepted captions that state none, such as de.")
]
NoteOption = Annotated[str, _said("--why", says="A note; it is kept with the decision.")]
MeasureOption = Annotated[
    bool, typer.Option("--measure", help="Its held-out pairs measure other updates too.")
]
JudgedArgument = Annotated[
    str, _named("A release, such as r3, or an update's job, such as j7.", "JOB|RELEASE")
]
ReleaseArgument = Annotated[str, _named("A release, such as r3.", autocompletion=release_names)]
BackToArgument = Annotated[
    str | None,
    _named("Where to; the one live before when not given.", autocompletion=release_names),
]
ExportOption = Annotated[Path, typer.Option("--to", help="A file, or a folder.")]
PackageArgument = Annotated[Path, _named("A file that `export` wrote.")]
Sha256Option = Annotated[
    str | None,
    _said("--sha256", says="What its export printed: the file that came is the one that was sent."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Even if the gate asks for a review.")]
