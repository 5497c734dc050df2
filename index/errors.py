"""What can go wrong when looking for vectors.

IndexingError
├── VectorError            an array is not rows of finite numbers that can be made unit length
│   └── DimensionMismatch  two sides disagree about the number of columns
├── ResultCountError       fewer than one result was asked for
├── UnknownFactory         FAISS does not know the factory string, or it needs more vectors
├── UnknownIds             an id is not in this generation, or ids are unfit to be stored
├── FingerprintMismatch    vectors of one image tower meet a generation of another
├── GenerationDamaged      a generation folder fails its checksums, or is not a generation
├── GenerationTooNew       a later version of the program wrote a generation folder
├── VectorsRefused         an engine cannot keep vectors
├── VectorsUnreachable     an engine that keeps vectors does not answer
└── IndexMoved             an engine keeps these vectors no more
"""

from ingest.sentence import phrase


class IndexingError(Exception):
    """Base of every error this package raises on purpose."""


class VectorError(IndexingError):
    """An array is not rows of finite numbers that can be made unit length."""


class DimensionMismatch(VectorError):
    """Two sides disagree about the number of columns."""


class ResultCountError(IndexingError):
    """Fewer than one result was asked for."""


class UnknownFactory(IndexingError):
    """FAISS does not know the factory string, or it needs more vectors than there are."""


class UnknownIds(IndexingError):
    """An id is not in this generation, or ids are unfit to be stored."""


class FingerprintMismatch(IndexingError):
    """Vectors of one image tower meet a generation of another."""


class GenerationDamaged(IndexingError):
    """A generation folder fails its checksums, or is not a generation."""


class GenerationTooNew(IndexingError):
    """A later version of the program wrote a generation folder; nothing is wrong with it."""


class VectorsRefused(IndexingError):
    """An engine cannot keep vectors."""


class VectorsUnreachable(IndexingError):
    """An engine that keeps vectors does not answer; what is asked of the files goes on."""


class IndexMoved(IndexingError):
    """An engine keeps these vectors no more; who asks again is answered from where they are now."""

    def __init__(self) -> None:
        super().__init__(
            phrase(
                "The index was carried to another place, and is not opened there yet; ask again in a moment."
            )
        )
