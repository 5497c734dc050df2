"""What went wrong, as callers are told: a sentence, a stable code, a status of HTTP, an exit code of a command."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from app import DISTRIBUTION
from app.desk.errors import (
    AppError,
    CaptionsNotReady,
    ChunkHeld,
    ClusterUnusable,
    CommitUnconfirmed,
    NoHome,
    NoMemory,
    NoRelease,
    NoSpace,
    NotAllowed,
    NothingBefore,
    ParentMoved,
    ReleaseDamaged,
    ReleasePruned,
    TooBusy,
    UnknownCanary,
    UnknownFeedback,
    UnknownRelease,
    UpdateRunning,
    UsageProblem,
)
from app.desk.fields import UNKNOWN
from index import errors as index_errors
from index.errors import IndexingError
from ingest import errors as ingest_errors
from ingest.errors import IngestError
from ingest.sentence import Sentence, joined, phrase
from model_updates import errors as learning_errors
from model_updates.errors import ModelUpdateError, NeedsLearning

INVALID = "invalid_request"
_Request = TypeVar("_Request", bound=BaseModel)
OWN_ERRORS: tuple[type[Exception], ...] = (AppError, IngestError, ModelUpdateError, IndexingError)
"""The bases of everything that our packages raise on purpose."""

# The first match decides; what is listed nowhere is a request that cannot be carried out as it stands (400).
_STATUS: tuple[tuple[int, tuple[type[Exception], ...]], ...] = (
    (403, (NotAllowed,)),
    (
        404,
        (
            UnknownRelease,
            UnknownCanary,
            UnknownFeedback,
            ingest_errors.UnknownChunk,
            ingest_errors.UnknownJob,
            ingest_errors.UnknownImage,
        ),
    ),
    (410, (ReleasePruned,)),
    (409, (ChunkHeld, UpdateRunning, ParentMoved, NothingBefore)),
    (
        422,
        (
            ingest_errors.BadUpload,
            ingest_errors.BadItem,
            ingest_errors.UnknownLanguage,
            ingest_errors.BadOption,
            learning_errors.UnknownStrategy,
            learning_errors.BadStrategyOption,
            learning_errors.StrategyMisfit,
            learning_errors.ForeignTokenizer,
            learning_errors.NothingToLearn,
        ),
    ),
    (
        503,
        (
            ClusterUnusable,
            TooBusy,
            NoRelease,
            CaptionsNotReady,
            NoHome,
            ingest_errors.DecoderBusy,
            ingest_errors.CatalogMissing,
            ingest_errors.CatalogHeld,
            ingest_errors.CatalogMoved,
            ingest_errors.CatalogUnreachable,
            ingest_errors.LeaseHeld,
            ingest_errors.LeaseLost,
            ingest_errors.ObjectsUnreachable,
            ingest_errors.StoreMissing,
            index_errors.IndexMoved,
            index_errors.VectorsUnreachable,
            index_errors.VectorsRefused,
        ),
    ),
    (501, (NeedsLearning,)),
    (507, (NoMemory, NoSpace, ingest_errors.StoreFull, ingest_errors.CatalogFull)),
    (
        500,
        (
            ReleaseDamaged,
            CommitUnconfirmed,
            ingest_errors.StoreError,
            ingest_errors.CatalogError,
            learning_errors.VersionDamaged,
            learning_errors.TrainingDiverged,
            index_errors.GenerationDamaged,
            index_errors.GenerationTooNew,
            index_errors.FingerprintMismatch,
        ),
    ),
)
# What the extra `learn` installs: it trains, and opens encoders that no graphs stand for.
LEARNING = frozenset(
    {"emoji", "onnx", "onnxscript", "open_clip", "peft", "pyarrow", "scipy", "stopwordsiso", "timm", "torch"}
    | {"torchvision", "transformers"}
)
# Asked for wrongly, rather than failed; an `AppError` says that itself.
_USAGE = (
    ingest_errors.BadOption,
    ingest_errors.UnknownLanguage,
    learning_errors.UnknownStrategy,
    learning_errors.BadStrategyOption,
    learning_errors.StrategyMisfit,
    learning_errors.ForeignTokenizer,
    learning_errors.UnknownModel,
    NeedsLearning,
)
_OURS = frozenset({"app", "index", "ingest", "model_updates", "perennial"})
_FULL = (errno.ENOSPC, errno.EDQUOT)
# Of a request to a server; what follows is the field.
_NO_OBJECT = frozenset({"model_attributes_type", "model_type", "dict_type"})  # as pydantic calls it
_PLACES = (("body",), ("query",), ("path",))
_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Trouble:
    """What callers are told about an error."""

    sentence: str  # what was asked, what was found, what to do
    code: str  # stable name of the reason
    status: int  # of HTTP
    exit_code: int  # of a command

    def answered(self) -> dict[str, Any]:
        """Returns it as the fields of an answer that says of each of several things what became of it."""
        return {"status": self.status, "error": self.sentence, "code": self.code}


def trouble_of(error: Exception) -> Trouble:
    """Returns what to tell about one of `OWN_ERRORS`."""
    status = next((status for status, kinds in _STATUS if isinstance(error, kinds)), 400)
    code = str(getattr(error, "code", None) or _code(type(error)))
    if isinstance(error, AppError):
        return Trouble(error.message, code, status, error.exit_code)
    return Trouble(_as_sentence(str(error)), code, status, _exit_code(type(error)))


def passes(error: Exception) -> bool:
    """Whether one of `OWN_ERRORS` is over when what it waits for is back, such as a database."""
    return trouble_of(error).status == HTTPStatus.SERVICE_UNAVAILABLE


def explain(error: Exception) -> Trouble | None:
    """Returns what to tell about anything that was raised; None of an error that nobody foresaw."""
    if isinstance(error, OWN_ERRORS):
        return trouble_of(error)
    if isinstance(error, ModuleNotFoundError) and (needed := needs_learning(error)) is not None:
        return trouble_of(needed)
    if _is_foreign(error):
        said = phrase(
            "A library that this needs cannot be loaded here ({why}). It is missing, damaged, or not made for this "
            "processor. To install all of them again: {command}",
            why=" ".join(str(error).split())[:300].rstrip("."),
            command=f"pip install --force-reinstall {DISTRIBUTION}",
        )
        return Trouble(said, "library_unusable", 500, 1)
    if isinstance(error, OSError) and error.errno in _FULL:
        sentence = "The disk is full; nothing live has changed. Free some space and try again."
        return Trouble(sentence, "no_space", 507, 1)
    if isinstance(error, OSError) and error.filename is not None and _may_only_read(error):
        return trouble_of(ingest_errors.MayNotWrite(error.filename))
    if isinstance(error, OSError) and error.filename is not None:
        return Trouble(f"{error.filename}: {error.strerror or error}.", "system_error", 500, 1)
    return None


def _may_only_read(error: OSError) -> bool:
    """Whether what was to be written may be read, or lies where nothing new may be written."""
    if error.errno not in (errno.EACCES, errno.EPERM):
        return error.errno == errno.EROFS
    path = Path(os.fsdecode(error.filename))
    place = path if os.path.lexists(path) else path.parent
    return os.access(place, os.R_OK) and not os.access(place, os.W_OK)


def _is_foreign(error: Exception) -> bool:
    """Whether it is a library of somebody else's that cannot be loaded."""
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0] not in _OURS
    return isinstance(error, RuntimeError) and "baseline optimizations" in str(
        error
    )  # numpy's, of a processor


def needs_learning(error: ModuleNotFoundError) -> NeedsLearning | None:
    """Returns what to say where a package of the extra `learn` is missing; None of any other package."""
    name = (error.name or "").partition(".")[0]
    if name not in LEARNING:
        return None
    return NeedsLearning(
        phrase(
            "This needs the packages for learning, and {name} is not installed here. To install them: {command}",
            name=name,
            command=f"pip install '{DISTRIBUTION}[learn]'",
        )
    )


@contextmanager
def saying_what_is_missing() -> Iterator[None]:
    """Surrounds, or decorates, what learning is done with where it may not be installed.

    Raises:
        NeedsLearning: a package is missing; the sentence says how to install it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        needed = needs_learning(error)
        if needed is None:
            raise
        raise needed from error


def request_of(kind: type[_Request], **fields: object) -> _Request:
    """Returns what a person has filled in as a request.

    Raises:
        UsageProblem: a field has no value that it can have.
    """
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise UsageProblem(invalid_sentence(error.errors())) from error


def invalid_sentence(problems: Iterable[Any]) -> Sentence:
    """Returns the first problems that pydantic found as sentences, fields that there are not before all others."""
    ordered = sorted(problems, key=lambda problem: problem["type"] != UNKNOWN)
    return joined(_invalid(problem) for problem in ordered[:3])


def _invalid(problem: Any) -> str:
    place = problem["loc"][1:] if problem["loc"][:1] in _PLACES else problem["loc"]
    where = ".".join(map(str, place))
    if problem["type"] == UNKNOWN:
        return f"{where}: {problem['msg']}" if where else str(problem["msg"])
    if not where and problem["type"] in _NO_OBJECT:
        return "The body is no JSON object; send one, with the header `Content-Type: application/json`."
    raised = str(problem.get("ctx", {}).get("error", ""))
    if isinstance(raised, Sentence):
        return joined((f"{where}:", raised))
    return f"{where or 'The request'}: {str(problem['msg']).rstrip('.')}."


def exit_code_of(code: str, status: int) -> int:
    """Returns the exit code of a command that a server refused: the one that the same error has on a home."""
    for base in OWN_ERRORS:
        for kind in _every(base):
            if _code(kind) == code:
                return _exit_code(kind)
    if code == INVALID:
        return UsageProblem.default_exit_code
    # What only a server says: it starts, ends, or waits for a change to arrive. What an upload is refused for is 1.
    return TooBusy.default_exit_code if status == HTTPStatus.SERVICE_UNAVAILABLE else 1


def _exit_code(kind: type[Exception]) -> int:
    if issubclass(kind, AppError):
        return kind.default_exit_code
    return 2 if issubclass(kind, _USAGE) else 1


def _every(kind: type[Exception]) -> Iterable[type[Exception]]:
    for one in kind.__subclasses__():
        yield one
        yield from _every(one)


def _code(kind: type[Exception]) -> str:
    return _WORD_START.sub("_", kind.__name__).lower()


def _as_sentence(text: str) -> str:
    """Starts with a capital and ends with a stop."""
    text = text if isinstance(text, Sentence) else text.strip() or "It failed and did not say why"
    if text[0].isupper() and text[-1] in ".!?":
        return text
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")
