"""From a gallery of pictures to a published generation, and the checks that one must pass.

Routes that did not change keep their vectors; when none did, the generation stays (mode *none*). New pictures, and
those of a domain that got an insert, are a *delta*: only they are embedded. A new head on features that are kept embeds
nothing (*mapped*). A changed tower embeds all (*full*); what it has embedded before comes from the feature store either
way.
"""

import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.desk.errors import ReleaseDamaged
from app.desk.jobs import counted
from app.home.workspace import Workspace
from app.learning.outcomes import Tell, say_nothing
from app.learning.routes import picture_routes
from app.learning.untaught import Learned, untaught_routes
from index.agreement import agreement
from index.generation import Generation, write_generation
from index.vectors import unit_rows
from ingest.sentence import phrase
from model_updates.encoder import Encoder
from model_updates.features import image_features
from model_updates.inserts import BASE

SAMPLED_QUERIES = 64
WORST_AGREEMENT = 0.99
SLOWEST_QUERY_SECONDS = 1.0
SMALLEST_APPROXIMATE = 10_000  # pictures; exact search among fewer takes well under a millisecond
COMPARED = 32  # pictures whose vectors are looked at; a mix-up of a tenth is then missed 3 times in 100
SAME_VECTOR = 0.99  # a cosine; rounding and quantised codes stay above it, other pictures below

Vectors = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


@dataclass(frozen=True)
class PublishedGeneration:
    """A published generation and what making it cost."""

    generation: str  # its id
    mode: str  # how it got its vectors (`index.generation.MODES`)
    images_embedded: int  # pictures that went through the image tower for it
    moved: bool = False  # whether some route has another fingerprint than in the generation before, or is new


def embed_gallery(
    workspace: Workspace,
    encoder: Encoder,
    *,
    previous: Generation | None,
    tell: Tell = say_nothing,
    since: int | None = None,
    known: Learned | None = None,
) -> PublishedGeneration:
    """Publishes the generation of today's gallery under an encoder, doing no work twice.

    `since` is the encoder's `image_forwards` before it was measured, which embeds pictures of the gallery too; now when
    None. Pictures that nobody taught stand aside of what is `known`, where that is told.
    """
    ids = workspace.catalog.gallery_ids()
    forwards = encoder.image_forwards if since is None else since

    def progress(done: int, total: int) -> None:
        tell(
            counted("embed", phrase("{count} of {all} pictures embedded", count=done, all=total), done, total)
        )

    routes = picture_routes(workspace, encoder, ids, previous, progress=progress)
    if known is not None:
        routes |= untaught_routes(workspace, encoder, routes, known)
    used = {BASE: encoder.image_fingerprint()} | {
        route: encoder.image_fingerprint(route) for route in sorted(set(routes.values()))
    }
    if previous is not None and (previous.ids, previous.routes, previous.fingerprints) == (ids, routes, used):
        return PublishedGeneration(previous.id, "none", 0)
    raw = image_features(
        encoder,
        ids,
        workspace.load_image,
        workspace.features,
        routes=routes,
        progress=progress,
    )
    # Measuring also embeds held-out pictures that are in no gallery.
    embedded_images = min(encoder.image_forwards - forwards, _changed(previous, ids, routes, used))
    mode = _mode(previous, ids, used, embedded_images)
    staged = workspace.home.staging / f"generation-{uuid.uuid4().hex}"
    try:
        write_generation(
            staged,
            fingerprint=used[BASE],
            ids=ids,
            vectors=unit_rows(raw),
            mode=mode,
            factory=workspace.settings.index if len(ids) >= SMALLEST_APPROXIMATE else "Flat",
            routes=routes,
            route_fingerprints=used,
        )
        generation = workspace.releases.publish_generation(staged)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return PublishedGeneration(
        generation, mode, embedded_images, previous is None or previous.fingerprints != used
    )


def _changed(
    previous: Generation | None, ids: Sequence[str], routes: Mapping[str, str], used: Mapping[str, str]
) -> int:
    """Returns how many pictures are new or on a route that another tower or insert made before."""
    if previous is None:
        return len(ids)
    positions, before = previous.positions, previous.fingerprints
    return sum(
        image_id not in positions
        or before.get(previous.routes.get(image_id, BASE)) != used[routes.get(image_id, BASE)]
        for image_id in ids
    )


def _mode(previous: Generation | None, ids: Sequence[str], used: Mapping[str, str], embedded: int) -> str:
    if previous is None or previous.fingerprint != used[BASE]:
        return "full"
    return "mapped" if embedded == 0 and set(ids) == set(previous.ids) else "delta"


def require_own(
    workspace: Workspace, generation: Generation, encoder: Encoder, wanted: Sequence[str] = ()
) -> dict[str, float]:
    """Runs the integrity gate on a generation, whose vectors must be those that the encoder gives."""

    def expected(ids: Sequence[str]) -> Vectors:
        return embedded(workspace, encoder, ids, generation.routes)

    return require_sound(generation, encoder, wanted, expected)


def embedded(
    workspace: Workspace, encoder: Encoder, ids: Sequence[str], routes: Mapping[str, str] | None = None
) -> Vectors:
    """Returns the (n, dim) float32 unit vectors that pictures must have: kept features, or embedded now."""
    raw = image_features(encoder, list(ids), workspace.load_image, workspace.features, routes=routes)
    return unit_rows(raw)


def require_sound(
    generation: Generation,
    encoder: Encoder,
    wanted: Sequence[str],
    expected: Callable[[Sequence[str]], Vectors] | None = None,
) -> dict[str, float]:
    """Runs the integrity gate on a generation loaded cold, which must hold `wanted`, and returns its figures.

    `expected` gives the vectors that pictures must have, whatever the generation says; a reader has none, and trusts
    what was checked before it went live.

    Raises:
        ReleaseDamaged: another tower made it, pictures are missing or have the vectors of others, it disagrees with
            exact search, or is too slow.
    """
    generation.require_made_by(encoder.image_fingerprint)
    missing = set(wanted) - set(generation.ids)
    if missing:
        raise ReleaseDamaged(
            f"generation {generation.id} lacks {len(missing)} of {len(wanted)} gallery pictures; build it again"
        )
    if not len(generation):
        return {"coverage": 1.0, "agreement": 1.0, "query_seconds": 0.0}
    if expected is not None:
        _require_own_vectors(generation, expected)
    queries = sample_queries(generation)
    vectors = generation.vectors(generation.ids)
    agreed = agreement(generation.index, vectors, queries, 10)
    if agreed < WORST_AGREEMENT:
        raise ReleaseDamaged(
            f"generation {generation.id} agrees with exact search on {100 * agreed:.1f} % of answers; "
            f"at least {100 * WORST_AGREEMENT:.0f} % are needed"
        )
    started = time.monotonic()
    for query in queries:
        generation.search(query[None], 10)
    seconds = (time.monotonic() - started) / len(queries)
    if seconds > SLOWEST_QUERY_SECONDS:
        raise ReleaseDamaged(
            f"generation {generation.id} takes {seconds:.2f} s a query; that is too slow to serve"
        )
    return {"coverage": 1.0, "agreement": agreed, "query_seconds": seconds}


def _require_own_vectors(generation: Generation, expected: Callable[[Sequence[str]], Vectors]) -> None:
    """Compares some vectors with those the encoder gives: an index agrees with itself, right or wrong."""
    step = max(1, len(generation) // COMPARED)
    ids = list(generation.ids[::step])
    cosines = np.einsum("nd,nd->n", generation.vectors(ids), expected(ids))
    wrong = int((cosines < SAME_VECTOR).sum())
    if wrong:
        raise ReleaseDamaged(
            f"generation {generation.id} has other vectors than its encoder gives for {wrong} of {len(ids)} pictures "
            "that were compared; build it again"
        )


def sample_queries(generation: Generation) -> Vectors:
    """Returns up to 64 fixed unit queries, (q, dim) float32: pictures of the gallery, a little disturbed."""
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(generation), size=min(SAMPLED_QUERIES, len(generation)), replace=False)
    vectors = generation.vectors([generation.ids[int(n)] for n in np.sort(chosen)])
    return unit_rows(vectors + 0.02 * rng.standard_normal(vectors.shape).astype(np.float32))
