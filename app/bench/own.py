"""The sequence over chunks of a home's own: what its live release knows is measured beside what they bring.

A benchmark that starts from the live encoder and measures new chunks alone would say nothing of what they make it
forget. So all chunks that measure an update are the base: what taught the live release, and what came with the encoder.
"""

from collections.abc import Sequence

from app.bench.material import chunk_named
from app.bench.sequence import LIVE, OWN, BenchSequence, Choice, SequenceStep
from app.desk.errors import UsageProblem
from app.home.workspace import Workspace
from app.learning.going_live import live_release
from app.learning.yardstick import trusted_chunks


def own_sequence(workspace: Workspace, chunks: Sequence[str], encoder: str = LIVE) -> BenchSequence:
    """Returns the sequence that teaches chunks one after another.

    `chunks` are ids, or names that their uploads had; every run starts from `encoder`, as `init --model` takes it, or
    "live".

    Raises:
        UsageProblem: a chunk is not there, or taught the encoder that every run would start from.
    """
    steps = tuple(SequenceStep(name=name, chunks=(name,)) for name in chunks)
    about = "Chunks of this home."
    if encoder != LIVE:
        return BenchSequence(name=OWN, about=about, encoder=encoder, steps=steps)
    record = live_release(workspace)[1]
    ids = [chunk_named(workspace, name) for name in chunks]
    taught = [name for name, chunk in zip(chunks, ids, strict=True) if chunk in record.manifest.chunks]
    if taught:
        raise UsageProblem(
            f"Release {record.id} is live and has learned {', '.join(taught)}: every strategy would start from an "
            "encoder that knows it. Name chunks that wait to be taught, or start from the encoder as it came with "
            "--encoder perennial-tiny."
        )
    trusted = trusted_chunks(workspace, record) - set(ids)
    known = tuple(chunk.id for chunk in workspace.catalog.standings() if chunk.id in trusted)
    base = Choice(name="known before", chunks=known, languages=record.manifest.languages) if known else None
    return BenchSequence(name=OWN, about=about, encoder=LIVE, base=base, steps=steps)
