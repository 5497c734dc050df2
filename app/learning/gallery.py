"""From a gallery of pictures to a published generation, and the checks that one must pass.

Routes that did not change keep their vectors; when none did, the generation stays (mode *none*). New pictures, and
those of a domain that got an insert, are a *delta*: only they are embedded. A new head on features that are kept embeds
nothing (*mapped*). A changed tower embeds all (*full*); what it has embedded before comes from the feature store either
way.
"""

import logging
import shutil
import statistics
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.desk.errors import ReleaseDamaged
from app.desk.jobs import Stage, counted
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.bulk import Bulk
from app.learning.growth import Planner
from app.learning.outcomes import Tell, say_nothing
from app.learning.untaught import Learned
from index.agreement import agreement
from index.errors import GenerationDamaged
from index.faiss_index import FaissVectors
from index.generation import Generation
from index.kinds import AUTO, ELSEWHERE, Chosen
from index.segment import Segment
from index.tuning import chosen
from index.vectors import unit_rows
from index.writing import contents_of, grow_generation
from ingest.pair import BASE_LANGUAGE
from ingest.sentence import phrase
from model_updates.features import image_features, text_features
from model_updates.routes import BASE
from model_updates.search_encoder import SearchEncoder

logger = logging.getLogger(__name__)

SAMPLED_QUERIES = 64
TIMED_QUERIES = 8
WORST_AGREEMENT = 0.99
SLOWEST_QUERY_SECONDS = 1.0
OF_FEW = 0.04
ASKED = 100  # pictures whose captions an approximate index is tuned on
COMPARED = 32  # pictures whose vectors are looked at; a mix-up of a tenth is then missed 3 times in 100
SAME_VECTOR = 0.99  # a cosine; rounding and quantised codes stay above it, other pictures below

Vectors = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


@dataclass(frozen=True)
class PublishedGeneration:
    """A published generation and what making it cost."""

    generation: str  # its id
    mode: str  # how it got its vectors (`index.generation.MODES`)
    images_embedded: int  # pictures that went through the image tower for it
    # that it was to hold beside what it shares with the generation before; more may have been taken in since
    pictures: Sequence[str]
    moved: bool = False  # whether some route has another fingerprint than in the generation before, or is new


def sound(workspace: Workspace, generation: str, tell: Tell = say_nothing) -> Generation | None:
    """Opens a generation to make another from; of a damaged one, told, what is sound of it, or None.

    What is lost is made again of features that are kept.
    """
    try:
        return workspace.open_generation(generation)
    except GenerationDamaged as error:
        logger.warning("its vectors are made again from kept features: %s", error)
    try:
        left = workspace.open_generation(generation, but_damaged=True)
    except GenerationDamaged:
        said = phrase("The index is damaged; it is made again from what is kept of the pictures.")
        tell(Stage("embed", said))
        return None
    said = phrase(
        "A part of the index is damaged; the vectors of {count} pictures are made again, and {kept} stay as they are.",
        count=left.lost,
        kept=len(left),
    )
    tell(Stage("embed", said))
    return left


def embed_gallery(
    workspace: Workspace,
    encoder: SearchEncoder,
    *,
    previous: Generation | None,
    tell: Tell = say_nothing,
    since: int | None = None,
    known: Learned | None = None,
    version: str = "",
) -> PublishedGeneration:
    """Publishes the generation of today's gallery under an encoder, doing no work twice.

    `version` is what the encoder was published as or read from; where none is told, a cluster is not asked to embed.
    `since` is the encoder's `image_forwards` before it was measured, which embeds pictures of the gallery too; now when
    None. Pictures that nobody taught stand aside of what is `known`, where that is told.
    """
    choice = _choice(workspace, previous, workspace.catalog.gallery_size(), encoder.dim)
    forwards = encoder.image_forwards if since is None else since

    def progress(done: int, total: int) -> None:
        tell(
            counted("embed", phrase("{count} of {all} pictures embedded", count=done, all=total), done, total)
        )

    bulk = Bulk(workspace, encoder, version, progress)
    planner = Planner(workspace, encoder, known, bulk)
    came = None if previous is None else planner.since(previous, choice)
    ids, gone, routes, used, rests_on = came or planner.whole(previous)
    fresh = _fresh(previous, ids, routes, used)
    lost = 0 if previous is None else previous.lost
    if previous is not None and not (fresh or gone or lost) and previous.fingerprints == used:
        return PublishedGeneration(previous.id, "none", 0, ids)
    is_kind = previous is not None and previous.choice.kind == choice.kind
    can_grow = is_kind and (lost or 2 * len(fresh) <= len(ids))
    grown, added = (previous, fresh) if came or can_grow else (None, ids)
    bulk.fill(added, routes)
    raw = image_features(
        encoder, added, workspace.load_image, workspace.features, routes=routes, progress=progress
    )
    # Measuring also embeds held-out pictures that are in no gallery.
    embedded_images = min(encoder.image_forwards - forwards, len(fresh))
    is_same = previous is not None and not gone and len(previous.among(fresh)) == len(fresh)
    mode = _mode(previous, used, is_mapped=is_same and embedded_images == 0)
    staged = workspace.home.staging / f"generation-{uuid.uuid4().hex}"

    def asked() -> Vectors:
        return asked_of(workspace, encoder, planner.all_routes(previous, routes), known)

    try:
        grow_generation(
            staged,
            grown,
            contents_of(added, unit_rows(raw), routes, rests_on),
            fingerprints=used,
            mode=mode,
            choice=choice,
            taken_out=gone,
            queries=asked,
        )
        generation = workspace.publish_generation(staged, asked)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return PublishedGeneration(
        generation, mode, embedded_images, ids, previous is None or previous.fingerprints != used
    )


def _choice(workspace: Workspace, previous: Generation | None, count: int, dim: int) -> Chosen:
    """Returns the kind that the index is to be of: the one before it while that was chosen for about as many."""
    asked, engine = workspace.settings.index, workspace.vector_engine
    if asked == AUTO and engine is not None and engine.are_kept:
        if previous is not None and any(previous.choice.holds(one, count) for one in (asked, ELSEWHERE)):
            return previous.choice
        choice = chosen(asked, count, dim)
        return replace(choice, kind=choice.kind.rpartition(",")[2], asked=ELSEWHERE)
    if previous is not None and previous.choice.holds(asked, count):
        return previous.choice
    return chosen(asked, count, dim)


def asked_of(
    workspace: Workspace,
    encoder: SearchEncoder,
    routes: Mapping[str, str],
    known: Learned | None,
) -> Vectors:
    """Returns what people may ask of a gallery, (q, dim) float32 unit rows: captions of some of its pictures.

    Those of learned languages, beside pictures, a little disturbed.
    """
    ids = workspace.catalog.gallery_ids()
    some = ids[:: max(1, len(ids) // ASKED)]
    rows = [_disturbed(embedded(workspace, encoder, some[:SAMPLED_QUERIES], routes))]
    for language in sorted({BASE_LANGUAGE, *(known.languages if known else ())}):
        texts = [said[0] for said in workspace.catalog.captions_in(language, some).values()]
        if texts:
            rows.append(unit_rows(text_features(encoder, texts, language, workspace.features)))
    return np.concatenate(rows)


def _fresh(
    previous: Generation | None, ids: Sequence[str], routes: Mapping[str, str], used: Mapping[str, str]
) -> Sequence[str]:
    """Returns the pictures that are new, or on a route that they did not take or that something else made before."""
    if previous is None:
        return ids
    known, before = set(previous.among(ids)), previous.fingerprints
    taken = previous.routes if before.keys() - {BASE} else {}
    moved = {route for route, fingerprint in used.items() if before.get(route) != fingerprint}
    return [
        image_id
        for image_id in ids
        if (route := routes.get(image_id, BASE)) in moved
        or image_id not in known
        or taken.get(image_id, BASE) != route
    ]


def _mode(previous: Generation | None, used: Mapping[str, str], *, is_mapped: bool) -> str:
    if previous is None or previous.fingerprint != used[BASE]:
        return "full"
    return "mapped" if is_mapped else "delta"


def joined(workspace: Workspace, encoder: SearchEncoder, previous: Generation) -> PublishedGeneration:
    """Publishes a generation with few segments in place of one with many."""
    staged = workspace.home.staging / f"generation-{uuid.uuid4().hex}"
    nothing = np.empty((0, previous.dim), dtype=np.float32)

    def asked() -> Vectors:
        return asked_of(workspace, encoder, previous.routes, None)

    try:
        grow_generation(
            staged,
            previous,
            contents_of([], nothing, {}, Planner.said_by(previous)),
            fingerprints=previous.fingerprints,
            mode="none",
            choice=previous.choice,
            queries=asked,
        )
        return PublishedGeneration(workspace.publish_generation(staged, asked), "none", 0, ())
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def require_published(
    workspace: Workspace, made: PublishedGeneration, encoder: SearchEncoder, before: ReleaseRecord
) -> dict[str, float]:
    """Runs the integrity gate (`require_own`) on what is to follow a release."""
    opened, known = workspace.open_generation(made.generation), sound(workspace, before.generation)
    return require_own(workspace, opened, encoder, made.pictures, known)


def require_own(
    workspace: Workspace,
    generation: Generation,
    encoder: SearchEncoder,
    wanted: Sequence[str] = (),
    before: Generation | None = None,
) -> dict[str, float]:
    """Runs the integrity gate on a generation, whose vectors must be those that the encoder gives.

    What it shares with the one `before` was looked at when that was published.
    """

    def expected(ids: Sequence[str]) -> Vectors:
        return embedded(workspace, encoder, ids, generation.routes_of(ids))

    return require_sound(generation, encoder, wanted, expected, before)


def embedded(
    workspace: Workspace, encoder: SearchEncoder, ids: Sequence[str], routes: Mapping[str, str] | None = None
) -> Vectors:
    """Returns the (n, dim) float32 unit vectors that pictures must have: kept features, or embedded now."""
    raw = image_features(encoder, list(ids), workspace.load_image, workspace.features, routes=routes)
    return unit_rows(raw)


def require_sound(
    generation: Generation,
    encoder: SearchEncoder,
    wanted: Sequence[str],
    expected: Callable[[Sequence[str]], Vectors],
    before: Generation | None = None,
) -> dict[str, float]:
    """Runs the integrity gate on a generation loaded cold, which must hold `wanted`, and returns its figures.

    `expected` gives the vectors that pictures must have, whatever the generation says. A reader trusts what was checked
    before it went live.

    Raises:
        ReleaseDamaged: another tower made it, pictures are missing or have the vectors of others, it disagrees with
            exact search, or is too slow.
    """
    generation.require_made_by(encoder.image_fingerprint)
    missing = int(np.count_nonzero(generation.positions_of(wanted) < 0))
    if missing:
        raise ReleaseDamaged(
            f"generation {generation.id} lacks {missing} of {len(wanted)} gallery pictures; build it again"
        )
    if not len(generation):
        return {"coverage": 1.0, "agreement": 1.0, "query_seconds": 0.0}
    known = set() if before is None else {portion.segment for portion in before.portions}
    added = [portion for portion in generation.portions if portion.segment not in known]
    _require_own_vectors(generation, [one for portion in added for one in portion.ids], expected)
    queries = sample_queries(generation)
    kept = [portion.segment.index.kept for portion in generation.portions]
    agreed = min([*kept, *(_agreement(portion.segment, queries) for portion in added)])
    if agreed < WORST_AGREEMENT:
        raise ReleaseDamaged(
            f"generation {generation.id} agrees with exact search on {100 * agreed:.1f} % of answers; "
            f"at least {100 * WORST_AGREEMENT:.0f} % are needed"
        )
    taken = []
    for query in queries[:TIMED_QUERIES]:
        started = time.monotonic()
        generation.search(query[None], 10)
        taken.append(time.monotonic() - started)
    seconds = statistics.median(taken)
    if seconds > SLOWEST_QUERY_SECONDS:
        raise ReleaseDamaged(
            f"generation {generation.id} takes {seconds:.2f} s a query; that is too slow to serve"
        )
    return {"coverage": 1.0, "agreement": agreed, "query_seconds": seconds}


def _agreement(segment: Segment, queries: Vectors) -> float:
    if not isinstance(segment.index, FaissVectors):  # it was compared with its file when it was made
        return segment.index.kept
    found = agreement(segment.index, queries, 10)
    # What is found of so few queries may lie a little below what was found of many when it was tuned.
    kept = segment.index.kept
    return kept if found >= kept - OF_FEW else found


def _require_own_vectors(
    generation: Generation, ids: Sequence[str], expected: Callable[[Sequence[str]], Vectors]
) -> None:
    """Compares some vectors with those the encoder gives: an index agrees with itself, right or wrong."""
    compared = ids[:: max(1, len(ids) // COMPARED)]
    if not compared:
        return
    cosines = np.einsum("nd,nd->n", generation.vectors(compared), expected(compared))
    wrong = int((cosines < SAME_VECTOR).sum())
    if wrong:
        raise ReleaseDamaged(
            f"generation {generation.id} has other vectors than its encoder gives for {wrong} of {len(compared)} "
            "pictures that were compared; build it again"
        )


def sample_queries(generation: Generation) -> Vectors:
    """Returns up to 64 fixed unit queries, (q, dim) float32: pictures of the gallery, a little disturbed."""
    return _disturbed(generation.vectors(generation.spread(SAMPLED_QUERIES)))


def _disturbed(vectors: Vectors) -> Vectors:
    rng = np.random.default_rng(0)
    return unit_rows(vectors + 0.02 * rng.standard_normal(vectors.shape).astype(np.float32))
