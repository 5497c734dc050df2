"""The story of an examination: what is looked at, in the order in which one thing rests on another.

Nothing is changed. A part that cannot even be opened is a diagnosis like any other, and the rest is looked at all the
same.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from app.desk.errors import AppError
from app.desk.health import Diagnosis, Examination, Level
from app.desk.jobs import counted
from app.doctor import files, published, stores
from app.home.folder import Home
from app.home.settings import Settings
from app.home.store import ReleaseStore
from app.home.workspace import Workspace
from app.learning.outcomes import Tell, say_nothing
from index.errors import IndexingError
from ingest.catalog import if_only_for_reading
from ingest.errors import IngestError, MayNotWrite
from ingest.sentence import phrase
from model_updates.errors import ModelUpdateError

_KNOWN = (AppError, IngestError, IndexingError, ModelUpdateError, OSError)
_LOOKS = 9 + len(published.LIVE_CHECKS)
Look = Callable[[], Iterable[Diagnosis]]


def examine(settings: Settings, *, every_byte: bool = True, progress: Tell = say_nothing) -> Examination:
    """Looks at a whole home; with `every_byte` reads all files and pictures for their checksums, else their sizes.

    Raises:
        NoHome, NewerFormat: there is nothing to look at.
    """
    home = Home.open(settings.home)
    releases = ReleaseStore(home)
    found: list[Diagnosis] = []
    looked = itertools.count()

    def look(name: str, looking: Look) -> None:
        progress(counted("doctor", name, next(looked), _LOOKS))
        found.extend(_safely(name, looking))

    look("installation", files.installation)
    look("commits", partial(published.commits, releases))
    look("checksums", partial(published.checksums, releases, every_byte=every_byte))
    try:
        workspace = if_only_for_reading(partial(Workspace.open, settings))
    except _KNOWN as error:
        restore = phrase("Restore the home from a backup; what is live is not touched by this.")
        advice = "" if isinstance(error, MayNotWrite) else restore
        found.append(
            Diagnosis(
                "stores",
                Level.ERROR,
                phrase("Catalog or stores cannot be opened. {error}", error=error),
                advice,
            )
        )
    else:
        with workspace:
            look("catalog", partial(stores.catalog, workspace))
            look("pictures", partial(stores.pictures, workspace, every_byte=every_byte))
            look("bucket", partial(stores.bucket, workspace))
            look("features", partial(stores.features, workspace))
            for name, live_check in published.LIVE_CHECKS.items():
                look(name, partial(live_check, workspace))
            look("orphan files", partial(files.orphans, workspace))
    look("disk", partial(files.disk, home))
    return Examination(tuple(found))


def _safely(name: str, looking: Look) -> Iterator[Diagnosis]:
    try:
        yield from looking()
    except _KNOWN as error:
        yield Diagnosis(name, Level.ERROR, phrase("It could not be looked at: {why}", why=error))
