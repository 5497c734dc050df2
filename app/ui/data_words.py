"""The words of the Data tab: chunks, what waits for a decision, pictures of one thing, removing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from app.desk.chunks import Chunk, HeldRow
from app.desk.health import Status
from app.desk.pictures import OneThing
from app.desk.probes import DOMAIN, is_probes
from app.ui.report_words import chunk_title, standing_view
from app.ui.wording import escaped, moment, thumbnail_url
from app.ui.words import ENGLISH, Words
from app.words import chunk as chunk_words
from ingest.records import ChunkRecord, JobRecord
from ingest.sentence import phrase

CHUNK_HEADERS = [
    "chunk",
    "name",
    "status",
    "taught",
    "pairs",
    "pictures",
    "languages",
    "domains",
    "added (UTC)",
]
HELD_HEADERS = ["pair", "chunk", "upload", "where", "reason", "what it means"]
REMOVE_HELP = phrase(
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


def overview(
    chunks: Sequence[ChunkRecord], gallery: int, waiting: int, held: int, say: Words = ENGLISH
) -> str:
    """Says how much there is, and how much of it waits for a person."""
    counted = [chunk for chunk in chunks if chunk.standing != "withdrawn"]
    pairs = sum(chunk.new_pairs for chunk in counted)
    said = [
        say("Chunks: **{count}**", count=len(counted)),
        say("pairs: **{count}**", count=f"{pairs:,}"),
        say("pictures that can be searched: **{count}**", count=f"{gallery:,}"),
    ]
    if waiting:
        said.append(say("held, waiting for your decision: **{count}** (select one to decide)", count=waiting))
    if held:
        said.append(say("held rows: **{count}**", count=f"{held:,}"))
    return " · ".join(said)


def built_in_view(status: Status, say: Words = ENGLISH) -> str:
    """Says what the built-in checks are, and how what is live does on them; `status` has them too."""
    pictures = sum(chunk.images for chunk in status.chunks if is_probes(chunk))
    if not pictures:
        return say("This home has no built-in checks.")
    said = say(
        "{count} drawn pictures with English captions came with this home. No update may lose them; they are in no "
        "search and in no count.",
        count=pictures,
    )
    measured = [one for one in (status.live.slices if status.live else ()) if one.domain == DOMAIN]
    found = [
        say(
            "The live release finds {share} % of the held-out ones among its first ten.",
            share=f"{one.recalls['t2i_r10']:.0f}",
        )
        for one in measured
        if one.view == "own"
    ]
    return " ".join([said, *found])


def chunk_view(chunk: Chunk, base: str, say: Words = ENGLISH) -> str:
    """Returns what is known of a chunk: standing, who learned from it, what speaks against it, and some pictures."""
    lines = [f"## {chunk_title(chunk, say)} · {escaped(chunk.name)}", standing_view(chunk, say)]
    releases = ", ".join(f"`{name}`" for name in chunk.learned)
    lines.append(
        say("Releases that learned from it: {releases}.", releases=releases)
        if chunk.learned
        else say("No release has learned from it.")
    )
    against = [
        f"- {escaped(say.said(chunk_words.check_name(one)))}: {escaped(say.said(one.sentence))}"
        for one in chunk_words.against(chunk)
    ]
    if against:
        lines.append("\n".join(against))
    pictures = [
        f"![{escaped(one.text) or say.said('a picture without a caption')}]({thumbnail_url(base, one.image_id)})"
        for one in chunk.samples
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


def held_line(total: int, shown: int, say: Words = ENGLISH) -> str:
    """Says what held rows are, and what to do with them."""
    if not total:
        return say("No rows are held.")
    said = say(
        "{count} rows were not added because a person has to decide about them. For rows with a number, select "
        "their chunk above and decide there. Correct the others as the last column says and upload them again; "
        "nothing counts twice.",
        count=f"{total:,}",
    )
    if shown == total:
        return said
    some = say("The first {count} are shown; each chunk's report has all of its own.", count=f"{shown:,}")
    return f"{said} {some}"


def things_line(total: int, first: int, shown: int, say: Words = ENGLISH) -> str:
    """Says how many things have several pictures, and which are shown."""
    if not total:
        return say("No two pictures show the same thing.")
    return say(
        "{count} groups have more than one picture: near-duplicates, or pictures that an upload said show the "
        "same thing. Each group counts once, and search can show just its best match. Shown: {first} to {last}.",
        count=f"{total:,}",
        first=f"{first + 1:,}",
        last=f"{first + shown:,}",
    )


def things_view(things: Sequence[OneThing], base: str, say: Words = ENGLISH) -> str:
    """Returns a card for each thing with its first pictures."""
    return "\n".join(
        "- "
        + " ".join(
            f"![{say('picture {count} of {all}', count=n, all=len(one.images))}]({thumbnail_url(base, image_id)})"
            for n, image_id in enumerate(one.images[:_PICTURES], start=1)
        )
        + f"  \n  {say('{count} pictures', count=len(one.images))} · `{one.images[0][:12]}`"
        for one in things
    )


def removal_view(job: JobRecord, say: Words = ENGLISH) -> str:
    """Says where a removal is, or how it ended."""
    if job.error:
        return f"**{escaped(say.said(job.error))}**"
    said = job.result.get("sentence")
    if said:
        live = say("`{release}` is live.", release=job.result["release"]) if job.result.get("commit") else ""
        return f"**{escaped(say.said(said))}** {live}".rstrip()
    doing = say.said(job.progress.get("message") or phrase("waiting for its process"))
    return say("Removing (job {job}): {why}", job=escaped(job.id), why=escaped(doing))


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counted.items()) or "–"


_PICTURES = 6
