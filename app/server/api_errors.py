"""From what went wrong to what a caller is told: a status, a stable code and the error's own sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from app.desk import errors as app_errors
from app.feedback.votes import UnknownCanary, UnknownFeedback
from app.server.known_fields import UnknownField
from app.server.places import TooBusy
from app.server.security import NotAllowed
from index import errors as index_errors
from ingest import errors as ingest_errors
from model_updates import errors as learning_errors

# The first match decides; what is listed nowhere is a request that cannot be carried out as it stands (400).
_STATUS: tuple[tuple[int, tuple[type[Exception], ...]], ...] = (
    (403, (NotAllowed,)),
    (
        404,
        (
            app_errors.UnknownRelease,
            UnknownCanary,
            UnknownFeedback,
            ingest_errors.UnknownChunk,
            ingest_errors.UnknownJob,
            ingest_errors.UnknownImage,
        ),
    ),
    (409, (app_errors.ChunkHeld, app_errors.UpdateRunning, app_errors.ParentMoved)),
    (
        422,
        (
            UnknownField,
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
            TooBusy,
            app_errors.NoRelease,
            app_errors.CaptionsNotReady,
            app_errors.NoHome,
            ingest_errors.CatalogMissing,
            ingest_errors.StoreMissing,
        ),
    ),
    (507, (app_errors.NoSpace, ingest_errors.StoreFull, ingest_errors.CatalogFull)),
    (
        500,
        (
            app_errors.ReleaseDamaged,
            app_errors.CommitUnconfirmed,
            ingest_errors.StoreError,
            ingest_errors.CatalogError,
            learning_errors.VersionDamaged,
            learning_errors.TrainingDiverged,
            index_errors.GenerationDamaged,
            index_errors.FingerprintMismatch,
        ),
    ),
)
_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


class ErrorOut(BaseModel):
    """What every refusal says; `code` is stable, the sentence is for people."""

    error: str
    code: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a caller is told about an error."""

    status: int
    code: str
    sentence: str


def trouble_of(error: Exception) -> Trouble:
    """Returns what to tell the caller about one of `OWN_ERRORS`."""
    status = next((status for status, kinds in _STATUS if isinstance(error, kinds)), 400)
    code = getattr(error, "code", None) or _WORD_START.sub("_", type(error).__name__).lower()
    return Trouble(status, str(code), str(error))


def sentence_of(problem: Any) -> str:
    """Returns one problem that pydantic found as a sentence."""
    where = ".".join(str(part) for part in problem["loc"] if part not in {"body", "query", "path"})
    if problem["type"] == "extra_forbidden":
        return f"There is no field {where!r}."
    return f"{where or 'The request'}: {str(problem['msg']).rstrip('.')}."
