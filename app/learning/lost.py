"""Which captions of a slice one version found and another does not: measured today, on the pairs of today."""

from app.desk.errors import UsageProblem
from app.desk.operation import grown
from app.desk.verdicts import MovedCaption, SliceMoves
from app.home.workspace import Workspace
from app.learning.examples import DEPTH, CaptionMove, changes, described, first_each
from app.learning.past import side_of
from app.learning.yardstick import Yardstick
from ingest.pair import SliceKey
from ingest.sentence import phrase
from model_updates.evaluation import SliceResult, View
from model_updates.measurement import measure_views


def slice_moves(
    workspace: Workspace, language: str, domain: str, before: str, after: str, *, view: str = "own"
) -> SliceMoves:
    """Looks a slice's captions up under two releases' versions, in one view: own, mixed or memory.

    Raises:
        UnknownRelease: there is no such release.
        UsageProblem: there is no such slice, or no such view.
        VersionDamaged: a version cannot be opened any more.
    """
    first, second = (workspace.releases.release(name).require_kept() for name in (before, after))
    if view not in set(View):
        raise UsageProblem(f"There is no view {view[:40]!r}. Views: {', '.join(View)}.")
    key = SliceKey(language, domain)
    known = [*first.manifest.languages, *second.manifest.languages]
    every = Yardstick(workspace, second).old([language] if language in known else [], views=[View(view)])
    held_out = next((one for one in every if one.key == key and one.captions), None)
    if held_out is None:
        raise UsageProblem(
            phrase(
                "There are no held-out captions of {language}/{domain} that measure {release} today. "
                "Its chunk may have been withdrawn; `GET /v1/quality` lists what there is.",
                language=language[:35],
                domain=domain[:64],
                release=second.id,
            )
        )
    generation = workspace.open_generation(second.generation)
    sides = [
        side_of(
            workspace, workspace.open_searcher(one.version), one.manifest.languages, [held_out], generation
        )
        for one in (first, second)
    ]
    was, now = (measure_views(side, [held_out], workspace.load_image, workspace.features) for side in sides)
    moved = list(changes(held_out, was, now))
    lost = sorted((one for one in moved if one.times > 0), key=_furthest)
    won = sorted((one for one in moved if one.times < 0), key=_furthest)
    return SliceMoves(
        slice=str(key),
        view=view,
        before=first.id,
        after=second.id,
        captions=len(held_out.captions),
        found_before=_found(was[held_out.measured]),
        found_after=_found(now[held_out.measured]),
        lost=tuple(grown(MovedCaption, one) for one in described(workspace, first_each(lost), sides[1])),
        won=tuple(grown(MovedCaption, one) for one in described(workspace, first_each(won), sides[1])),
    )


def _found(result: SliceResult) -> int:
    return int((result.text_ranks < DEPTH).sum())


def _furthest(change: CaptionMove) -> tuple[float, tuple[str, str]]:
    return -abs(change.times), change.caption
