"""How far two releases' encoders lie apart on today's held-out pairs."""

from app.desk.errors import UsageProblem
from app.desk.verdicts import ReleaseDrift
from app.home.workspace import Workspace
from app.learning.yardstick import held_out, own_trusted
from ingest.sentence import phrase
from model_updates.batches import sampled
from model_updates.drift import drift, embedded
from model_updates.pairs import TrainingPair


def drift_between(workspace: Workspace, before: str, after: str, *, most: int) -> ReleaseDrift:
    """Compares two releases' encoders on held-out pairs in the languages that both know.

    The retrieval of `before` decides which pairs count as retrieved. Of more than `most` pairs, a sample that stays the
    same is compared.

    Raises:
        UnknownRelease: there is no such release.
        UsageProblem: there is no held-out pair to compare on.
    """
    first, second = (workspace.releases.release(name).require_kept() for name in (before, after))
    languages = tuple(tag for tag in first.manifest.languages if tag in second.manifest.languages)
    slices = held_out(workspace, languages, own_trusted(workspace, first, second))
    every = [
        TrainingPair(image_id, text, one.key.language, one.key.domain)
        for one in slices
        for image_id, text in one.captions
    ]
    if len(every) < 2:
        raise UsageProblem(
            phrase(
                "There are {count} held-out pairs in the languages that {a} and {b} both know, and "
                "drift needs at least 2. Take in a chunk, or compare other releases.",
                count=len(every),
                a=first.id,
                b=second.id,
            )
        )
    pairs = sampled(every, most)
    seen = [
        embedded(workspace.open_encoder(record.version), pairs, workspace.load_image, workspace.features)
        for record in (first, second)
    ]
    return ReleaseDrift(first.id, second.id, languages, len(pairs), drift(*seen))
