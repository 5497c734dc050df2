"""What of a home is not as it should be while the rest goes on: what, since when, and what mends it."""

from app.desk.health import Degraded
from app.home.damage import CATALOG
from app.home.folder import Home
from app.home.indexed import index_status
from app.home.store import ReleaseStore, Standing
from ingest.sentence import joined, phrase

MEND = "perennial repair"


def degraded(
    home: Home, releases: ReleaseStore, gallery: int, found_now: int | None = None
) -> tuple[Degraded, ...]:
    """Looks at the commits and at what was noted; no file of a release is read whole for it.

    `gallery` is how many pictures there are, and `found_now` how many of them a search finds, where that is known.
    """
    standing = releases.standing()
    found = []
    if standing.skipped:
        what = _in_its_place(home, releases, standing, gallery, found_now)
        found.append(Degraded("release", what, standing.skipped[0].since, MEND))
    catalog = releases.damage.mark(CATALOG)
    if catalog is not None:
        found.append(Degraded(CATALOG, catalog.why, catalog.since, MEND))
    return tuple(found)


def _in_its_place(
    home: Home, releases: ReleaseStore, standing: Standing, gallery: int, found_now: int | None
) -> str:
    said, commit = standing.skipped[0], standing.commit
    if commit is None:
        return joined([phrase("No release can be served."), said.why])
    record = releases.release(commit.release)
    parts = [
        phrase(
            "Commit {number} is damaged, and {release} answers in its place.",
            number=said.number,
            release=record.id,
        ),
        said.why,
    ]
    if found_now is None:
        found_now = index_status(record, home.generations / record.generation).pictures
    lacking = gallery - found_now
    if lacking > 0:
        parts.append(phrase("{count} pictures that came later are not found until then.", count=lacking))
    return joined(parts)
