"""A candidate in the shadow: it is asked a share of the live queries, and nobody sees its answers.

Sums by language say how far they lie from the live ones.
A server does the asking (`app.server.shadowing`); here is what people say and read. What was asked is kept nowhere.
"""

from collections.abc import Iterable, Sequence

from app.desk.errors import UsageProblem
from app.desk.opinions import FEWEST, ShadowLine, ShadowReport
from app.feedback.votes import wilson
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from ingest.sentence import joined, phrase
from ingest.shadows import SUMS, ShadowCount, ShadowRecord


def start(workspace: Workspace, release: str, *, share: float | None = None, by: str) -> ShadowRecord:
    """Puts a release into the shadow of what is live; servers of this home ask it from then on.

    `share` of the live queries is above 0 and up to 1; the setting `shadow_share` when not given.

    Raises:
        UnknownRelease: there is none.
        UsageProblem: it answers as what is live, another one is there, or the share is none.
    """
    wanted = workspace.settings.shadow_share if share is None else share
    if not 0 < wanted <= 1:
        raise UsageProblem(
            f"The share is {wanted:g}; it is of the live queries, above 0 and up to 1. 0.2 is one in five."
        )
    record = workspace.releases.release(release).require_kept()
    commit = workspace.releases.current()
    if commit is None:
        raise UsageProblem(phrase("Nothing is live, so there are no queries to ask a release in the shadow."))
    live = workspace.releases.release(commit.release)
    if live.version == record.version:
        if live.id == record.id:
            same = phrase("{release} is live: it would answer the same.", release=record.id)
        else:
            same = phrase(
                "{release} has the encoder of {live}, which is live: it would answer the same.",
                release=record.id,
                live=live.id,
            )
        raise UsageProblem(joined((same, phrase("Name a candidate."))))
    active(workspace)  # ends one that has gone live
    started = workspace.catalog.shadows.start(record.id, share=wanted, by=by)
    if started is None:
        there = workspace.catalog.shadows.active()
        name = there.release if there else "Another release"
        raise UsageProblem(
            phrase(
                "{release} is in the shadow already, and one at a time is kept in memory. Stop it "
                "first: `perennial shadow {release} --stop`, or on the Releases page.",
                release=name,
            )
        )
    return started


def stop(workspace: Workspace, release: str, *, by: str, why: str = "") -> None:
    """Ends the shadow of a release; what it has shown is kept.

    Raises:
        UnknownRelease: there is none.
        UsageProblem: it is in none.
    """
    record = workspace.releases.release(release)
    if not workspace.catalog.shadows.stop(record.id, by=by, why=why):
        there = workspace.catalog.shadows.active()
        if there is None:
            raise UsageProblem(phrase("{release} is not in the shadow. No release is.", release=record.id))
        raise UsageProblem(
            phrase("{release} is not in the shadow. {other} is.", release=record.id, other=there.release)
        )


def active(workspace: Workspace) -> ShadowRecord | None:
    """Returns the shadow that goes on, if there is one; ends that of a release which has gone live."""
    found = workspace.catalog.shadows.active()
    if found is None:
        return None
    commit = workspace.releases.standing().commit
    record = workspace.releases.readable(found.release)
    live = workspace.releases.readable(commit.release) if commit is not None else None
    if record is not None and live is not None and record.version == live.version:
        workspace.catalog.shadows.stop(
            found.release, by=commit.by if commit else "", why=phrase("it went live")
        )
        return None
    return found


def report(workspace: Workspace, release: str) -> ShadowReport:
    """Returns what the shadow of a release has shown beside what is live, or else beside the newest version before.

    Raises:
        UnknownRelease: there is none.
    """
    record = workspace.releases.release(release)
    going_on = active(workspace)
    shadows = [one for one in workspace.catalog.shadows.all() if one.release == record.id]
    last = shadows[0] if shadows else None
    against, counts = _against(workspace, workspace.catalog.shadows.counts(record.id))
    total = line_of("all", counts)
    lines = [line for one in counts if (line := line_of(one.language, [one])) is not None]
    return ShadowReport(
        release=record.id,
        against=against,
        is_active=going_on is not None and going_on.release == record.id,
        share=last.share if last else 0.0,
        started=last.started if last else "",
        by=last.by if last else "",
        stopped=last.stopped if last else "",
        stopped_by=last.stopped_by if last else "",
        why=last.why if last else "",
        dropped=sum(one.dropped for one in shadows),
        is_enough=total is not None and total.queries >= FEWEST,
        total=total,
        languages=tuple(sorted(lines, key=lambda line: (-line.queries, line.language))),
    )


def line_of(language: str, counts: Sequence[ShadowCount]) -> ShadowLine | None:
    """Returns the means of sums; None where nothing was asked."""
    sums = {name: sum(getattr(one, name) for one in counts) for name in SUMS}
    queries, refused = int(sums["queries"]), int(sums["refused"])
    if not queries:
        return ShadowLine(language, 0, refused) if refused else None
    low, high = wilson(sums["overlap"], queries)
    same = wilson(sums["same_first"], queries)
    return ShadowLine(
        language=language,
        queries=queries,
        refused=refused,
        overlap=100 * sums["overlap"] / queries,
        low=100 * low,
        high=100 * high,
        same_first=100 * sums["same_first"] / queries,
        same_first_low=100 * same[0],
        same_first_high=100 * same[1],
        moved=sums["moved"] / queries,
        stronger=int(sums["stronger"]),
        weaker=int(sums["weaker"]),
        seconds=sums["seconds"] / queries,
        seconds_live=sums["seconds_live"] / queries,
    )


def how_far(live: Sequence[str], other: Sequence[str]) -> tuple[float, bool, float]:
    """Returns how far two lists of hits lie apart: the share in common, whether the first is the same, places moved."""
    places = {image_id: place for place, image_id in enumerate(live)}
    apart = [abs(place - places[image_id]) for place, image_id in enumerate(other) if image_id in places]
    if not live and not other:
        return 1.0, True, 0.0
    overlap = len(apart) / max(1, min(len(live), len(other)))
    return overlap, live[:1] == other[:1], sum(apart) / len(apart) if apart else 0.0


def _against(workspace: Workspace, counts: Sequence[ShadowCount]) -> tuple[str, list[ShadowCount]]:
    """Returns the live release that a report is about, and the sums beside its version.

    What is live now, where it was asked; else the newest version that was.
    """
    versions = {one.against for one in counts}
    releases = workspace.releases.releases()
    commit = workspace.releases.standing().commit
    names = [commit.release] if commit is not None else []
    version = _newest(versions, [record for record in releases if record.id in names])
    version = version or _newest(versions, releases)
    name = next((record.id for record in reversed(releases) if record.version == version), "")
    return name, [one for one in counts if one.against == version]


def _newest(versions: Iterable[str], releases: Sequence[ReleaseRecord]) -> str:
    known = set(versions)
    return next((record.version for record in reversed(releases) if record.version in known), "")
