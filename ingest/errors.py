"""What can go wrong while taking pictures and captions in.

IngestError
├── UnknownLanguage        a tag that is not BCP-47; names the nearest one
├── BadOption              an option that cannot be used (domain name, mapping, identifier)
├── BadItem                one thing of an upload cannot be used; the rest goes on
│   ├── BadImage
│   ├── BadCaption
│   └── BadRow
├── BadUpload              the whole upload is refused and nothing is stored
│   └── NoValidPair        it could be read, but nothing in it can be used
├── DecoderBusy            others' pictures are decoded for so long that this one is not waited for
├── MayNotWrite            what is to be written may only be read by who asks, or by anybody
├── UnknownImage           (also a KeyError)
├── CatalogError
│   ├── CatalogMissing     opened read-only before it was made
│   ├── CatalogTooNew      written by a newer Perennial
│   ├── CatalogDamaged     SQLite finds its file damaged
│   ├── CatalogFull        no space left for the catalog
│   ├── CatalogMoved       carried to another place meanwhile
│   ├── CatalogHeld        somebody else writes for longer than is waited
│   ├── LeaseHeld          another machine does what one at a time may do
│   ├── LeaseLost          another machine has taken over what was begun here
│   ├── CatalogUnreachable the database that holds it does not answer
│   │   └── CommitUnknown  and nobody knows yet whether it has a commit
│   ├── UnknownChunk       (also a KeyError)
│   └── UnknownJob         (also a KeyError)
└── StoreError
    ├── StoreMissing       opened read-only before it was made
    ├── StoreDamaged       a checksum, size or page does not match
    │   └── ObjectMissing  not in its bucket
    ├── StoreFull          no space left; names what is free
    ├── StoreMisuse        used after fork, after close, or with a key LMDB cannot hold
    └── ObjectsError       the address of a bucket cannot be used, or what reaches it is not installed
        └── ObjectsUnreachable  a bucket does not answer, or does not let this program in
"""

from __future__ import annotations

from pathlib import Path

from ingest.sentence import phrase

UNREADABLE = "file_unreadable"  # the code of a file that the system does not let be read; it may pass


class IngestError(Exception):
    """Base of every error that ingest raises on purpose; its text is a sentence for the user."""

    def __str__(self) -> str:
        # KeyError would show the repr of the message, quotes included.
        return str(self.args[0]) if self.args else ""


class MayNotWrite(IngestError):
    """What is to be written belongs to another user, or lies on a disk that may only be read; nothing is damaged."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(
            phrase(
                "{file} may not be written here: it belongs to another user, or its disk may only be read. Nothing is "
                "damaged, and nothing was changed. Run this as the user whom the home belongs to.",
                file=path,
            )
        )


class UnknownLanguage(IngestError):
    """A language tag that is not valid BCP-47."""


class BadOption(IngestError):
    """An option given by the user cannot be used as it stands."""


class _Coded(IngestError):
    """An error with a stable reason code beside its sentence."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence

    def __reduce__(self) -> tuple[type[_Coded], tuple[str, str]]:
        # The default would rebuild from the sentence alone and fail in a worker process.
        return type(self), (self.code, self.sentence)


class BadItem(_Coded):
    """One item of an upload is unusable; attributes `code` and `sentence` say why."""


class BadImage(BadItem):
    """A file that is not a usable picture."""


class BadCaption(BadItem):
    """A text that is not a usable caption."""


class BadRow(BadItem):
    """A line of a table that cannot be used."""


class BadUpload(_Coded):
    """The upload as a whole is refused; nothing of it has been stored."""


class NoValidPair(BadUpload):
    """Nothing in the upload can be used; the sentence lists the most frequent reasons."""


class DecoderBusy(IngestError):
    """Others' pictures are being decoded, and have been for as long as this one may wait."""


class UnknownImage(IngestError, KeyError):
    """No image with this id is stored."""


class CatalogError(IngestError):
    """The catalog cannot do what was asked."""


class CatalogMissing(CatalogError):
    """The catalog was opened read-only but does not exist."""


class CatalogTooNew(CatalogError):
    """The catalog was written by a newer release of Perennial."""


class CatalogDamaged(CatalogError):
    """SQLite finds the catalog's file damaged."""


class CatalogFull(CatalogError):
    """The disk has no room for the catalog's next transaction."""


class CatalogMoved(CatalogError):
    """The catalog was carried to another place while this process had it open."""

    def __init__(self) -> None:
        super().__init__(phrase("The catalog lies in another place now; nothing was recorded. Try again."))


class CatalogHeld(CatalogError):
    """Somebody else wrote to the catalog for as long as a writer waits: a large upload, or its way to another place."""

    def __init__(self) -> None:
        super().__init__(
            phrase(
                "The catalog is held by something that writes for long, such as its move to another place. Nothing was "
                "recorded: try again in a few minutes."
            )
        )


class LeaseHeld(CatalogError):
    """Another machine of the home does what one machine at a time may do."""

    def __init__(self, name: str) -> None:
        super().__init__(
            phrase("Another machine of this home is at it ({name}). Wait until it ends.", name=name)
        )


class LeaseLost(CatalogError):
    """Another machine has taken over what was begun here, since this one was not heard of."""

    def __init__(self) -> None:
        super().__init__(
            phrase(
                "Another machine of this home has taken this over, since this one was not heard of for a while. "
                "Nothing was recorded."
            )
        )


class CatalogUnreachable(CatalogError):
    """The database that holds the catalog does not answer, or does not let this user in."""


class CommitUnknown(CatalogUnreachable):
    """The database stopped answering when it was to make a commit durable: it may be there."""


class UnknownChunk(CatalogError, KeyError):
    """No chunk, or more than one, has this id or prefix."""


class UnknownJob(CatalogError, KeyError):
    """No job has this id."""


class StoreError(IngestError):
    """The key-value store cannot do what was asked."""


class StoreMissing(StoreError):
    """The store was opened read-only but does not exist."""


class StoreDamaged(StoreError):
    """Stored bytes do not match their checksum, or the file is cut short."""


class StoreFull(StoreError):
    """The disk has no room for the next record."""


class StoreMisuse(StoreError):
    """The store was used in a way that would corrupt it."""


class ObjectMissing(StoreDamaged):
    """An object that is known to be in a bucket is not there."""


class ObjectsError(StoreError):
    """The address of a bucket cannot be used, or what reaches it is not installed."""


class ObjectsUnreachable(ObjectsError):
    """A bucket does not answer, or does not let this program in."""
