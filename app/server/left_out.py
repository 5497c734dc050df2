"""What REST leaves out of kept reports: pictures that a person took out, for all but admins, who may put them back."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import BaseModel

from app.server.security import Account
from app.server.serving import Serving
from ingest.errors import UnknownImage
from ingest.pair import ImageId

_ID = re.compile("[0-9a-f]{64}")

Model = TypeVar("Model", bound=BaseModel)


def require_shown(image_id: ImageId, serving: Serving, account: Account) -> None:
    """Refuses what is no picture's id, and a picture that somebody took out.

    Raises:
        UnknownImage: it is not spelt as an id is, of which the store knows other spellings; or it was taken out, and
            who asks is no admin.
    """
    if not _ID.fullmatch(image_id):
        raise UnknownImage(f"There is no picture {image_id[:64]!r}.")
    if image_id in serving.withheld and not account.may("admin"):
        raise UnknownImage(f"Picture {image_id[:24]} was taken out.")


def shown(document: dict[str, Any], serving: Serving, account: Account) -> dict[str, Any]:
    """Returns a document without whatever names a picture that was taken out: examples, captions lost and won."""
    if not serving.withheld or account.may("admin"):
        return document
    found: dict[str, Any] = _without(document, serving.withheld)
    return found


def shown_model(answer: Model, serving: Serving, account: Account) -> Model:
    """Returns an answer without whatever names a picture that was taken out."""
    if not serving.withheld or account.may("admin"):
        return answer
    return type(answer).model_validate(_without(answer.model_dump(), serving.withheld))


def _without(value: Any, withheld: frozenset[ImageId]) -> Any:
    if isinstance(value, dict):
        kept = {name: _without(one, withheld) for name, one in value.items()}
        if kept.get("first_image") in withheld:  # the picture that came first in its place
            kept |= {name: None for name in ("first_image", "first_thumb_url") if name in kept}
        return kept
    if isinstance(value, (list, tuple)):
        return [_without(one, withheld) for one in value if not _names(one, withheld)]
    return value


def _names(value: Any, withheld: frozenset[ImageId]) -> bool:
    return isinstance(value, dict) and value.get("image_id") in withheld
