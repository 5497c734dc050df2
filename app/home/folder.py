"""Where everything of one installation lies: one folder to back up."""

from __future__ import annotations

import hashlib
import os
import shlex
import socket
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from app import DISTRIBUTION
from app.desk.errors import HomeDamaged, NewerFormat, NoHome, UsageProblem
from app.home import durable, engines
from app.home.settings import Settings, load_settings
from ingest.sentence import phrase

if TYPE_CHECKING:
    from ingest.blobs import BlobStore
    from ingest.catalog import Catalog

FORMAT = 1
SOCKETS = "server-*.sock"
_ANSWERED_BY = ("default_k", "device", "max_query_characters", "second_tower")


@dataclass(frozen=True, slots=True)
class Home:
    """The paths below one home folder."""

    root: Path  # the folder itself

    @classmethod
    def create(cls, root: Path) -> Home:
        """Makes a home in a missing or empty folder, or opens the one that is there; nothing existing is changed.

        Raises:
            UsageProblem: The folder holds other things.
            NewerFormat: It is the home of a newer Perennial.
        """
        home = cls(root)
        if home.format_file.exists():
            return cls.open(root)
        strangers = sorted(path.name for path in root.iterdir()) if root.is_dir() else []
        if root.exists() and not root.is_dir():
            raise UsageProblem(f"{root} is a file; a home needs a folder. Choose another place.")
        own = {folder.name for folder in home._folders} | {durable.temporary(home.format_file).name}
        own |= {engines.FILE, home.catalog_lock.name} if engines.read(root).home else set()
        strangers = [name for name in strangers if name not in own]
        if strangers:
            raise UsageProblem(
                f"{root} is not empty (it holds {strangers[0]!r}) and is no Perennial home. "
                "Choose an empty or a new folder."
            )
        for folder in home._folders:
            folder.mkdir(parents=True, exist_ok=True)
        # Last, so that a half-made home is no home and making it again completes it.
        durable.replace_file(home.format_file, f"{FORMAT}\n".encode())
        durable.FileSystem().fsync_dir(root.absolute().parent)
        return home

    @classmethod
    def open(cls, root: Path) -> Home:
        """Opens an existing home.

        Raises:
            NoHome: There is none here, or its FORMAT file is unreadable.
            NewerFormat: A newer Perennial wrote it.
        """
        home = cls(root)
        try:
            text = home.format_file.read_text(encoding="ascii").strip()
        except (FileNotFoundError, NotADirectoryError) as error:
            how = "home join" if (root / engines.FILE).exists() else "init"
            raise NoHome(
                f"There is no home at {root} yet. Run `perennial {how}{home_option(root)}`."
            ) from error
        except UnicodeDecodeError:
            text = "?"
        if not text.isdecimal():
            raise NoHome(
                f"The FORMAT file of {root} holds no number; it is damaged or not ours. "
                f"If this is a Perennial home, write {FORMAT} into it."
            )
        if int(text) > FORMAT:
            raise NewerFormat(
                f"{root} has format {text}; this program knows formats up to {FORMAT}. "
                "Use the newer Perennial that wrote it."
            )
        shared = home._folders if (root / engines.FILE).exists() else ()  # what one of these lacks is fetched
        for folder in (home.inbox, home.staging, *shared):  # a copy may have left out what was empty
            with suppress(OSError):
                folder.mkdir(exist_ok=True)
        return home

    def require_stores(self) -> Home:
        """Refuses a home that has releases but lost its catalog or its pictures; opening would make empty ones.

        A catalog without tables is lost, too.

        The feature store may be missing: what it keeps is computed again.

        Raises:
            HomeDamaged: The sentence names what has gone.
        """
        if any(folder.is_dir() and any(folder.iterdir()) for folder in (self.commits, self.releases)):
            is_here = self.catalog_place == self.catalog
            has_pictures = self.objects_address is None
            for path in (*[self.catalog] * is_here, *[self.blobs / "data.mdb"] * has_pictures):
                if not path.exists():
                    raise HomeDamaged(
                        f"{path} has gone, although this home has releases. Restore it from a backup; "
                        "nothing was changed."
                    )
            if is_here and self.has_empty_catalog():
                raise HomeDamaged(
                    phrase(
                        "The catalog {file} is empty, although this home has releases. `perennial repair` puts its "
                        "copy in its place.",
                        file=self.catalog,
                    )
                )
        return self

    def has_empty_catalog(self) -> bool:
        """Whether the catalog's file holds no tables, nor a journal that may have them.

        SQLite is asked: to close a file of one's own on it would give up the locks of everything that this process has
        open there, and the next process to leave would take a server's journal along.
        """
        journal = self.catalog.with_name(f"{self.catalog.name}-wal")
        if journal.exists() and journal.stat().st_size:
            return False
        if not self.catalog.stat().st_size:
            return True
        try:
            with closing(sqlite3.connect(f"{self.catalog.resolve().as_uri()}?mode=ro", uri=True)) as opened:
                return not opened.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.Error:  # whoever opens it says why
            return False

    @property
    def format_file(self) -> Path:
        """Holds the schema number."""
        return self.root / "FORMAT"

    @property
    def catalog(self) -> Path:
        """The SQLite file that holds the catalog, unless that lies in a database."""
        return self.root / "catalog.sqlite"

    @property
    def catalog_place(self) -> Path | str:
        """Where the catalog lies: in this file, or in the database at this address.

        Raises:
            HomeDamaged: `engines.toml` says something that cannot be used.
        """
        return engines.read(self.root).catalog or self.catalog

    @property
    def commits_place(self) -> Path | str:
        """Where the commits lie: in this folder, or in the database at this address.

        Raises:
            HomeDamaged: `engines.toml` says something that cannot be used.
        """
        return self.catalog_place if engines.read(self.root).commits else self.commits

    @property
    def objects_address(self) -> str | None:
        """The address of the bucket that holds pictures and published folders; None where they lie in the home alone.

        Raises:
            HomeDamaged: `engines.toml` says something that cannot be used.
        """
        return engines.read(self.root).objects

    @property
    def identity(self) -> str:
        """What a database knows this home by, in lines: where it lies, and which folder of the disk it is.

        One of them stays as it is where a home is renamed on its disk, or seen at another path; a copy has neither.
        A home that machines share is known by what they call it.
        """
        shared = engines.read(self.root).home
        return self.identity_of(shared) if shared else self.own_identity

    @property
    def own_identity(self) -> str:
        """What a database knows a home by that no other machine shares."""
        facts = self.root.stat()
        place = os.fsencode(self.root.resolve()).decode(errors="replace").replace("\n", " ")
        return f"{place}\n{facts.st_dev}:{facts.st_ino}"

    @staticmethod
    def identity_of(shared: str) -> str:
        """What a database knows a home by that machines share, by what they call it."""
        return f"shared:{shared}"

    def open_catalog(self, *, read_only: bool = False) -> Catalog:
        """Opens the catalog where it lies, for this home.

        Raises:
            HomeDamaged: `engines.toml` says something that cannot be used.
            CatalogError: it cannot be opened (see `Catalog.open`), or it is that of another home.
        """
        from ingest.catalog import Catalog  # who asks a server needs none

        return Catalog.open(self.catalog_place, read_only=read_only, owner=self.identity)

    def open_blobs(self, catalog: Catalog, *, read_only: bool = False) -> BlobStore:
        """Opens the pictures where they lie; what lies in a bucket is found by the rows of the home's opened catalog.

        Raises:
            HomeDamaged: `engines.toml` says something that cannot be used.
            StoreError: they cannot be opened (see `ingest.storage.Store.open`).
        """
        from ingest.blobs import BlobStore

        address = self.objects_address
        if address is None:
            from ingest.storage import Store

            return BlobStore(Store.open(self.blobs, read_only=read_only))
        from ingest.objects import Objects
        from ingest.packs import Packs

        return BlobStore(Packs(Objects(address), catalog.packs))

    @property
    def catalog_copy(self) -> Path:
        """A copy of it, as it was after some piece of work."""
        return self.root / "catalog-copy.sqlite"

    @property
    def catalog_lock(self) -> Path:
        """Shared by who has the home open; whoever replaces the catalog has it alone."""
        return self.root / ".catalog.lock"

    @property
    def blobs(self) -> Path:
        """The LMDB folder of image bytes and thumbnails."""
        return self.root / "blobs.lmdb"

    @property
    def features(self) -> Path:
        """The LMDB folder of cached features; its name is that of the first homes."""
        return self.root / "vectors.lmdb"

    @property
    def inbox(self) -> Path:
        """Uploads on their way to a job."""
        return self.root / "inbox"

    @property
    def captions(self) -> Path:
        """Holds the caption generations; made when one is first asked for, and made again when it is lost."""
        return self.root / "captions"

    @property
    def staging(self) -> Path:
        """Work in progress, one folder per job."""
        return self.root / "staging"

    @property
    def versions(self) -> Path:
        """Published versions."""
        return self.root / "versions"

    @property
    def graphs(self) -> Path:
        """Graphs of versions that were published without; made again when they are lost."""
        return self.root / "graphs"

    @property
    def generations(self) -> Path:
        """Published generations."""
        return self.root / "generations"

    @property
    def releases(self) -> Path:
        """Published releases."""
        return self.root / "releases"

    @property
    def commits(self) -> Path:
        """Which release is live since when."""
        return self.root / "commits"

    @property
    def pruned(self) -> Path:
        """Which releases gave their encoder and index up; made with the first."""
        return self.root / "pruned"

    @property
    def damaged(self) -> Path:
        """What was found damaged; made with the first."""
        return self.root / "damaged"

    @property
    def commits_lock(self) -> Path:
        """Held while it is decided what is live, or that a release cannot be any more."""
        return self.root / "commits.lock"

    @property
    def lock(self) -> Path:
        """The updater lock."""
        return self.root / "updater.lock"

    def socket(self, settings: Settings) -> Path:
        """Where a server of the home answers this Perennial: under another name where it would answer otherwise."""
        facts = (metadata.version(DISTRIBUTION), *(getattr(settings, name) for name in _ANSWERED_BY))
        return self.root / SOCKETS.replace("*", hashlib.sha256(repr(facts).encode()).hexdigest()[:8])

    def is_answered(self) -> bool:
        """Whether a server runs on the home in this moment, as far as it has a socket there."""
        return any(map(is_answered, self.root.glob(SOCKETS)))

    @property
    def _folders(self) -> tuple[Path, ...]:
        return (self.inbox, self.staging, self.versions, self.generations, self.releases, self.commits)


def is_answered(place: Path) -> bool:
    """Whether somebody listens at a socket; a process that was killed leaves a file behind at which nobody answers."""
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(str(place))
        except OSError:
            return False
    return True


def home_option(root: Path) -> str:
    """Returns what a command needs behind it to work on this home: nothing, or ` --home` and the place."""
    return "" if root == load_settings().home else f" --home {shlex.quote(str(root))}"
