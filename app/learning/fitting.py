"""Whether a strategy that somebody named fits a chunk: asked before a job is queued, and again before it runs."""

from app.desk.errors import UsageProblem
from app.desk.jobs import UpdateRequest
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.standing import require_teachable
from ingest.pair import Split
from ingest.records import ChunkRecord
from ingest.sentence import phrase
from model_updates.errors import StrategyMisfit
from model_updates.options import options_of
from model_updates.prospect import Prospect
from model_updates.strategies import strategy_named
from model_updates.strategy import Strategy


def require_fit(workspace: Workspace, request: UpdateRequest) -> None:
    """Refuses a chunk that may not teach, and a named strategy that would have nothing to do with its chunk.

    Raises:
        ChunkHeld: the chunk waits for a person's word, or was withdrawn.
        UsageProblem: it has nothing to train on.
        StrategyMisfit: says why, and what to do instead.
        UnknownChunk, UnknownStrategy, BadStrategyOption, NoRelease: the request cannot be carried out at all.
    """
    chunk = workspace.catalog.chunk(request.chunk)
    require_teachable(chunk)
    require_training_pair(workspace, chunk)
    if request.strategy is None:
        return
    kind = strategy_named(request.strategy)
    reason = misfit(workspace, chunk, kind(options_of(kind, request.options)))
    if reason is not None:
        raise StrategyMisfit(reason)


def require_training_pair(workspace: Workspace, chunk: ChunkRecord) -> None:
    """Refuses a chunk that has nothing to train on.

    Raises:
        UsageProblem: with what it has.
    """
    if not workspace.catalog.pairs(chunk=chunk.id, split=Split.TRAIN):
        raise UsageProblem(
            phrase(
                "Chunk {chunk} has no captioned picture to train on ({images} pictures, {pairs} pairs, none of them in "
                "the training split). Its pictures are searchable all the same.",
                chunk=chunk.id,
                images=chunk.images,
                pairs=chunk.pairs,
            )
        )


def misfit(
    workspace: Workspace, chunk: ChunkRecord, strategy: Strategy, release: ReleaseRecord | None = None
) -> str | None:
    """Returns why a strategy does not fit a chunk that a release (live when None) would be taught, or None."""
    record = release or going_live.live_release(workspace)[1]
    encoder = workspace.open_encoder(record.version)
    return strategy.fits(
        Prospect(
            encoder=encoder,
            languages=frozenset(chunk.languages),
            domains=frozenset(chunk.domains),
            learned_languages=frozenset(record.manifest.languages),
            learned_domains=frozenset(encoder.image_routes),
        )
    )
