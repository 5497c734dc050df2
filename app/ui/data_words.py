"""The words of the Data tab: chunks, what waits for a decision, pictures of one thing, removing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from app.desk.chunks import HeldRow
from app.desk.pictures import OneThing
from app.ui.report_words import standing_view
from app.ui.wording import escaped, moment, thumbnail_url
from app.ui.words import ENGLISH, Words
from app.words import chunk as chunk_words
from ingest.records import ChunkRecord, JobRecord

CHUNK_HEADERS = [
    "chunk",
    "name",
    "standing",
    "taught",
    "pairs",
    "pictures",
    "languages",
    "domains",
    "taken in (UTC)",
]
HELD_HEADERS = ["pair", "chunk", "upload", "where", "reason", "what it means"]
REMOVE_HELP = (
    "Withdrawing a chunk stops it from teaching; what was learned of it stays in the encoder. Removing goes further: "
    "what is live is rebuilt from the last version before this chunk, and what was taught after it is taught again. "
    "Every step passes the gate, and until the last one has, what is live stays live. It needs the reason above."
)


def chunk_rows(
    chunks: Sequence[ChunkRecord], taught: Collection[str], say: Words = ENGLISH
) -> list[list[str]]:
    """Returns the table of chunks, a row each, in the given order; `taught` by what is live."""
    return [
        [
            chunk.id,
            chunk.name,
            say.said(chunk.standing) + (f", {say.said('measures')}" if chunk.measures else ""),
            f"● {say.said('live')}" if chunk.id in taught else "",
            str(chunk.pairs),
            str(chunk.images),
            _counts(chunk.languages),
            _counts(chunk.domains),
            moment(chunk.created),
        ]
        for chunk in chunks
    ]


def overview(chunks: Sequence[ChunkRecord], gallery: int, waiting: int, held: int) -> str:
    """Says how much there is, and how much of it waits for a person."""
    counted = [chunk for chunk in chunks if chunk.standing != "withdrawn"]
    pairs = sum(chunk.new_pairs for chunk in counted)
    said = (
        f"Chunks: **{len(counted)}** · pairs: **{pairs:,}** · pictures that can be searched: **{gallery:,}**"
    )
    if waiting:
        said += f" · held, waiting for your word: **{waiting}** (select one to give it)"
    if held:
        said += f" · rows of uploads that were held: **{held:,}**"
    return said


def chunk_view(
    chunk: ChunkRecord,
    learned: Sequence[str],
    samples: Sequence[tuple[str, str]],
    base: str,
    say: Words = ENGLISH,
) -> str:
    """Returns what is known of a chunk: standing, who learned from it, what speaks against it, and some pictures."""
    lines = [f"## Chunk `{chunk.id}` · {escaped(chunk.name)}", say.said(standing_view(chunk))]
    told = ", ".join(f"`{name}`" for name in learned)
    taught = f"Releases that learned from it: {told}." if learned else "No release has learned from it."
    lines.append(say.said(taught))
    against = chunk_words.against(chunk)
    if against:
        lines.append("\n".join(say.said(f"- {escaped(one)}") for one in against))
    pictures = [
        f"![{escaped(text) or say.said('a picture without a caption')}]({thumbnail_url(base, image_id)})"
        for image_id, text in samples
    ]
    return "\n\n".join([*lines, " ".join(pictures)]).rstrip()


def held_rows(rows: Sequence[HeldRow], say: Words = ENGLISH) -> list[list[str]]:
    """Returns the table of rows that intake held."""
    return [
        [
            str(row.pair.id) if row.pair else "",
            row.chunk,
            row.name,
            row.where,
            say.said(row.code.replace("_", " ")),
            say.said(row.sentence),
        ]
        for row in rows
    ]


def held_line(total: int, shown: int) -> str:
    """Says what held rows are, and what to do with them."""
    if not total:
        return "No row of an upload is held."
    some = f" The first {shown:,} are shown; each chunk's report has all of its own." if shown < total else ""
    return (
        f"{total:,} rows were not taken in, because only a person can say what is right. Those with a number can be "
        "decided: select their chunk above. Others correct as the last column says and upload again: what is here "
        f"already counts once.{some}"
    )


def things_line(total: int, first: int, shown: int) -> str:
    """Says how many things have several pictures, and which are shown."""
    if not total:
        return "No two pictures of the gallery show the same thing."
    return (
        f"{total:,} things have more than one picture: near-copies, or stated to be one thing by an upload. They are "
        f"in one split and count once; search can fold them. Shown are {first + 1:,} to {first + shown:,}."
    )


def things_view(things: Sequence[OneThing], base: str, say: Words = ENGLISH) -> str:
    """Returns a card for each thing with its first pictures."""
    return "\n".join(
        "- "
        + " ".join(
            f"![{say.said(f'picture {n} of {len(one.images)}')}]({thumbnail_url(base, image_id)})"
            for n, image_id in enumerate(one.images[:_PICTURES], start=1)
        )
        + f"  \n  {say('pictures', count=len(one.images))} · `{one.images[0][:12]}`"
        for one in things
    )


def removal_view(job: JobRecord) -> str:
    """Says where a removal is, or how it ended."""
    if job.error:
        return f"**{escaped(job.error)}**"
    said = job.result.get("sentence")
    if said:
        live = f" `{job.result['release']}` is live." if job.result.get("commit") else ""
        return f"**{escaped(said)}**{live}"
    doing = job.progress.get("message") or "waiting for its process"
    return f"Removing (job {escaped(job.id)}): {escaped(doing)}"


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counted.items()) or "–"


_PICTURES = 6
