"""Whether a strategy that somebody named fits a chunk: asked before a job is queued, and again before it runs."""

from app.desk.jobs import UpdateRequest
from app.home.store import ReleaseRecord
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.standing import require_teachable
from ingest.records import ChunkRecord
from model_updates.errors import StrategyMisfit
from model_updates.options import options_of
from model_updates.prospect import Prospect
from model_updates.strategies import strategy_named
from model_updates.strategy import Strategy


def require_fit(workspace: Workspace, request: UpdateRequest) -> None:
    """Refuses a chunk that may not teach, and a named strategy that would have nothing to do with its chunk.

    Raises:
        ChunkHeld: the chunk waits for a person's word, or was withdrawn.
        StrategyMisfit: says why, and what to do instead.
        UnknownChunk, UnknownStrategy, BadStrategyOption, NoRelease: the request cannot be carried out at all.
    """
    chunk = workspace.catalog.chunk(request.chunk)
    require_teachable(chunk)
    if request.strategy is None:
        return
    kind = strategy_named(request.strategy)
    reason = misfit(workspace, chunk, kind(options_of(kind, request.options)))
    if reason is not None:
        raise StrategyMisfit(reason)


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
