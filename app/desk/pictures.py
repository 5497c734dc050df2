"""Single pictures: what is known of one, what is to be added, what became of each of several."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from pydantic import Field, model_validator

from app.desk.fields import Strict
from app.desk.hits import Addressed, HitCaption, Name, Picture, SeenAt
from app.desk.operation import SentFile
from ingest.records import JobRecord

MOST_ITEMS = 64


class PictureSide(IntEnum):
    """How many pixels the longer side of a thumbnail has; a smaller picture stays as it is."""

    SMALL = 256
    MEDIUM = 400
    LARGE = 640


@dataclass(frozen=True)
class TakenOut:
    """A picture that somebody took out; times are ISO 8601 in UTC."""

    id: str
    since: str
    by: str
    why: str


@dataclass(frozen=True)
class Item(Addressed):
    """A picture with all its captions; `chunk` is the upload that brought it first.

    One that was taken out has `withheld` and no captions, and is there for admins alone.
    """

    id: str
    domain: str
    split: str
    chunk: str
    width: int
    height: int
    format: str
    in_gallery: bool
    captions: tuple[HitCaption, ...]
    withheld: TakenOut | None = None
    taken: str = ""  # when, by its camera: ISO 8601; empty where that is not known
    camera: str = ""  # maker and model
    sources: tuple[SeenAt, ...] = ()  # where it was seen, for those who may know (the setting `places_for`)
    latitude: float | None = None  # where it was taken, in degrees, for the same
    longitude: float | None = None


class Original(SentFile):
    """A picture's file as it was taken in, under the name under which it was first seen."""


class NewItem(Strict):
    """One picture to add: a file in base64, and captions by language; `caption` is one in `language`."""

    image: Picture
    caption: Annotated[str, Field(max_length=2000)] = ""
    language: Annotated[str, Field(max_length=40)] = ""
    captions: dict[Name, list[Annotated[str, Field(max_length=2000)]]] = Field(
        default_factory=dict, max_length=200
    )

    @model_validator(mode="after")
    def _stated(self) -> NewItem:
        if self.caption and self.language and self.language in self.captions:
            raise ValueError("a language is either in `captions` or that of `caption`")
        return self


@dataclass(frozen=True)
class ItemResult:
    """What became of one picture, in the order they were sent; `changed` unless all was so before."""

    status: int = 200
    id: str = ""
    changed: bool = False
    error: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class ItemResults:
    """A status for each picture, and the job that follows; None where nothing follows."""

    results: tuple[ItemResult, ...]
    job: JobRecord | None = None


@dataclass(frozen=True)
class OneThing:
    """Pictures of one thing: near-copies of one another, or stated to be so by an upload. They count once."""

    id: str
    images: tuple[str, ...]


@dataclass(frozen=True)
class Things:
    """Things with several pictures, the ones with most first; `total` counts all of them."""

    total: int
    things: tuple[OneThing, ...]
