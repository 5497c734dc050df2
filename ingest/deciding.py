"""Held pairs that a person accepts: judged like an upload, and added to the chunk that they came with."""

from collections.abc import Sequence
from dataclasses import replace

from ingest.blobs import BlobStore
from ingest.captions import normalise_language
from ingest.catalog import Catalog
from ingest.errors import BadOption, BadUpload, NoValidPair
from ingest.harvest import Harvest
from ingest.limits import DEFAULT_LIMITS
from ingest.plan import IntakePlan
from ingest.records import AsidePair, ChunkRecord, NewChunk, Recorded
from ingest.sentence import phrase
from ingest.tally import Tally
from ingest.unsettled import as_row

# That one caption stands on many pictures is what the person has judged.
_LIMITS = replace(DEFAULT_LIMITS, repeated_caption_images=2**62)


def accept_pairs(
    catalog: Catalog,
    blobs: BlobStore,
    chunk: ChunkRecord,
    pairs: Sequence[AsidePair],
    *,
    language: str | None,
    by: str,
    why: str,
) -> Recorded:
    """Adds held pairs to their chunk, checked like any upload, and returns what is new.

    `language` is of those that state none.

    Raises:
        BadOption: one of them cannot be taken in, and the sentence says why; nothing changed.
        UnknownLanguage: it is no language tag.
        UnknownImage: the picture of one was not kept.
        StoreError: the file of one was removed meanwhile.
    """
    spoken = normalise_language(language) if language else None
    silent = [str(pair.id) for pair in pairs if not (pair.language or spoken)]
    if silent:
        raise BadOption(
            phrase(
                "Pair {pair} states no language: say which language the caption is in, such as de.",
                pair=", ".join(silent),
            )
        )
    known = {
        image_id
        for image_id, record in catalog.images({p.image_id for p in pairs}).items()
        if not record.withdrawn
    }
    plan = IntakePlan()
    for pair in pairs:
        plan.add(as_row(pair, language=spoken, is_known=pair.image_id in known))
    harvest = Harvest(catalog, blobs, language=None, domain=None, limits=_LIMITS, before=Tally())
    try:
        pictures = ((image_id, blobs.aside_original(image_id)) for image_id in plan.rows)
        blobs.put(harvest.gather(pictures, plan, None))
        harvest.settle()
    except NoValidPair:
        pass  # the rows say why
    except BadUpload:
        harvest.forget(harvest.stored)
        raise
    refused = [
        phrase("Pair {pair}: {why}", pair=row.where, why=row.sentence)
        for row in harvest.rows
        if row.outcome != "accepted"
    ]
    if refused:
        harvest.forget(harvest.stored)
        raise BadOption(phrase("Nothing was accepted. {refused}", refused=" ".join(refused)))
    harvest.require_stored()
    brought = NewChunk(
        id=chunk.id,
        name=chunk.name,
        in_gallery=chunk.in_gallery,
        images=list(harvest.images.values()),
        captions=[(pair.image_id, pair.language, pair.text) for pair in harvest.pairs],
    )
    recorded = catalog.accept_aside(brought, [pair.id for pair in pairs], by=by, why=why)
    blobs.drop_aside({pair.image_id for pair in pairs})  # they are stored like any picture now
    return recorded
