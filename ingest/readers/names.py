"""The names of files in an upload: of pictures, as tables write them, and as reports show them."""

import posixpath
import re
import unicodedata
from collections.abc import Iterable

RAW_SUFFIXES = frozenset(
    (".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dcr", ".dng", ".erf", ".fff", ".iiq", ".kdc", ".mef", ".mos")
    + (".mrw", ".nef", ".nrw", ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2", ".srf", ".srw", ".x3f")
)
READ_SUFFIXES = RAW_SUFFIXES.union(
    (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib", ".tif")
    + (".tiff", ".heic", ".heics", ".heif", ".heifs", ".hif", ".avif", ".avifs", ".jxl")
)
"""What pictures are called that can be read."""
# The others cannot be read, but to leave them out without a word would look like a loss.
PICTURE_SUFFIXES = READ_SUFFIXES.union((".svg", ".pdf", ".eps", ".psd", ".jp2", ".ico"))
VIDEO_SUFFIXES = frozenset(
    (".mp4", ".m4v", ".mov", ".mkv", ".avi", ".webm", ".3gp", ".3g2", ".mts", ".m2ts", ".mpg", ".mpeg")
    + (".wmv", ".flv", ".ogv")
)
# Archives that no reader opens.
FOREIGN_ARCHIVES = frozenset((".bz2", ".xz", ".zst", ".7z", ".rar"))
_SYSTEM_NAMES = frozenset(
    ("__macosx", ".ds_store", "thumbs.db", "desktop.ini", "@eadir", "#recycle", "$recycle.bin")
)
_NAME_SHOWN = 120
_SIGNED_IN = re.compile(r"(?<=://)[^/\s]*@")  # the name and the password in an address


class NameIndex:
    """Finds files by the names people write: composed or decomposed letters, with folders or without any.

    `within` is the shard that holds the files, with which their names begin.
    """

    def __init__(self, names: Iterable[str] = (), within: str | None = None) -> None:
        self._within = "" if within is None else f"{within}/"
        self._by_name: dict[str, set[str]] = {}
        self._by_last: dict[str, set[str]] = {}
        for name in names:
            composed = unicodedata.normalize("NFC", name)
            self._by_name.setdefault(composed, set()).add(name)
            self._by_last.setdefault(posixpath.basename(composed), set()).add(name)

    def find(self, name: str) -> str | None:
        """Returns the file of this name, or the only one whose name differs in form alone.

        A name without a folder is that of the only file called so, wherever it lies; in another folder than the one
        that is named lies another picture.
        """
        composed = unicodedata.normalize("NFC", name)
        alike = self._by_name.get(composed, set())
        if not alike and "/" not in composed.removeprefix(self._within):
            alike = self._by_last.get(posixpath.basename(composed), set())
        return name if name in alike else next(iter(alike)) if len(alike) == 1 else None

    def above(self, name: str) -> list[str]:
        """Returns what the names of files have before this one, such as `data/` where it lies in that folder."""
        composed = unicodedata.normalize("NFC", name)
        alike = self._by_last.get(posixpath.basename(composed), set())
        forms = (unicodedata.normalize("NFC", file) for file in alike)
        return [form.removesuffix(composed) for form in forms if form.endswith(f"/{composed}")]


def label_of(raw_name: str, within: str | None = None) -> tuple[str, bool]:
    """Returns a member's name as a harmless relative label, and whether it had to be changed.

    Nothing is ever written under this name; it only ties captions to pictures and appears in reports. `within` is the
    name of the shard that holds the member, with which the label then begins.
    """
    name = raw_name.split("\0")[0].replace("\\", "/")
    name = re.sub(r"^[A-Za-z]:", "", name)
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    label = "/".join(parts)[-255:]
    is_changed = label != raw_name.removeprefix("./").rstrip("/")
    return (label if within is None else f"{within}/{label}"), is_changed


def shown(name: str) -> str:
    """Returns a name fit for a report: printable, of bounded length, and without the password of an address."""
    name = _SIGNED_IN.sub("…@", name)
    printable = (
        name
        if name.isprintable()
        else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    )
    return printable if len(printable) <= _NAME_SHOWN else "…" + printable[1 - _NAME_SHOWN :]


def is_address(name: str) -> bool:
    """Returns whether a table means a picture on the web; no file of a container can be called so."""
    return name.lower().startswith(("http://", "https://"))


def suffix_of(name: str) -> str:
    """Returns the last suffix in lower case, with its dot."""
    return posixpath.splitext(name)[1].lower()


def stem_of(name: str) -> str:
    """Returns the name without its last suffix, folders included."""
    return posixpath.splitext(name)[0]


def is_system_file(name: str) -> bool:
    """Returns whether a file was left by an operating system and is nobody's picture."""
    parts = name.lower().split("/")
    return any(part in _SYSTEM_NAMES for part in parts) or parts[-1].startswith("._")


def text_of(name: str) -> str:
    """Returns a name as SQLite takes it: bytes that are no text become question marks."""
    return name.encode("utf-8", "replace").decode()
