"""Accepts, holds or rejects each pair, with a reason code and a sentence."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ingest.captions import UNDETERMINED, normalise_caption, normalise_language
from ingest.errors import BadItem, BadRow, UnknownLanguage
from ingest.limits import Limits
from ingest.pair import ImageId, Split
from ingest.readers.container import Row
from ingest.report import ReportRow
from ingest.splits import assign_split, parse_split

DEFAULT_DOMAIN = "general"

NO_CAPTION = "It has no caption: it joins the gallery, and nothing is learned from it."


@dataclass(frozen=True, slots=True)
class Place:
    """Where an image belongs; settled once and for all by the first accepted upload."""

    domain: str
    split: Split


@dataclass(frozen=True, slots=True)
class Accepted:
    """A pair that passed, with the report row it may still lose to a check over the whole upload."""

    image_id: ImageId
    language: str
    text: str
    where: str
    sentence: str = ""


class Judge:
    """Judges the rows of one upload, one picture at a time, and remembers what it settled.

    Args:
        language: fills rows that state none.
        domain: fills rows that state none; canonical.
        limits: bounds of captions.
    """

    def __init__(self, *, language: str | None, domain: str | None, limits: Limits) -> None:
        self._language = language
        self._domain = domain
        self._limits = limits
        self._settled: dict[ImageId, Place] = {}
        self._first_seen: dict[tuple[ImageId, str, str], str] = {}

    def place_of(self, image_id: ImageId) -> Place:
        """Returns where an accepted image of this upload belongs."""
        return self._settled[image_id]

    def judge(
        self, image_id: ImageId, rows: Sequence[Row], known: Place | None
    ) -> list[Accepted | ReportRow]:
        """Judges all rows of one picture.

        Args:
            image_id: the picture.
            rows: what the upload says about it.
            known: where the catalog already has it.

        Returns:
            One entry per row: an `Accepted`, or the report row that says why not.
        """
        place = self._settled.get(image_id) or known or self._stated_place(image_id, rows)
        judged: list[Accepted | ReportRow] = []
        for row in rows:
            try:
                entry = self._judge_row(image_id, row, place)
            except BadItem as error:
                entry = ReportRow(row.where, "rejected", error.code, error.sentence)
            except UnknownLanguage as error:
                entry = ReportRow(row.where, "rejected", "language_unknown", str(error))
            if isinstance(entry, Accepted):
                self._settled[image_id] = place
            judged.append(entry)
        return judged

    def judge_uncaptioned(self, image_id: ImageId, where: str, known: Place | None) -> ReportRow:
        """Judges a picture that the upload says nothing about."""
        place = self._settled.get(image_id) or known
        if place is None:
            place = Place(self._domain or DEFAULT_DOMAIN, assign_split(image_id))
        elif self._domain is not None and self._domain != place.domain:
            return _domain_conflict(where, self._domain, place)
        self._settled[image_id] = place
        return ReportRow(where, "accepted", "no_caption", NO_CAPTION)

    def _judge_row(self, image_id: ImageId, row: Row, place: Place) -> Accepted | ReportRow:
        caption = normalise_caption(row.caption or "", self._limits)
        language = normalise_language(row.language or "")
        if language == UNDETERMINED:
            language = self._language or UNDETERMINED
        domain = normalise_domain(row.domain) if row.domain else self._domain
        split = parse_split(row.split) if row.split else None
        if language == UNDETERMINED:
            sentence = "Its language is not given: add --language TAG or a language column."
            return ReportRow(row.where, "held", "language_missing", sentence)
        if domain is not None and domain != place.domain:
            return _domain_conflict(row.where, domain, place)
        if split is not None and split != place.split:
            sentence = f"The upload says {split.value}, but this picture is in {place.split.value} for good."
            return ReportRow(row.where, "held", "split_conflict", sentence)
        key = (image_id, language, caption.text)
        first = self._first_seen.setdefault(key, row.where)
        if first != row.where:
            sentence = f"The same picture and caption as {first}: counted once."
            return ReportRow(row.where, "accepted", "duplicate", sentence)
        return Accepted(*key, row.where, _sentence(caption.notes))

    def _stated_place(self, image_id: ImageId, rows: Sequence[Row]) -> Place:
        domain = next(filter(None, map(_valid_domain, rows)), None) or self._domain or DEFAULT_DOMAIN
        split = next(filter(None, map(_valid_split, rows)), None)
        group = next((row.group for row in rows if row.group), None)
        return Place(domain, split or assign_split(image_id, group=group))


def normalise_domain(name: str) -> str:
    """Returns a domain's canonical name: lower case, words joined by hyphens.

    Raises:
        BadRow: characters other than letters, digits, `-`, `_`, `.`, or longer than 64.
    """
    folded = unicodedata.normalize("NFC", name).strip().lower()
    joined = re.sub(r"\s+", "-", folded)
    if not re.fullmatch(r"[^\W_][\w.-]{0,63}", joined):
        raise BadRow(
            "domain_invalid", f"{name[:40]!r} is no domain name: use letters, digits, '-', '_' and '.'."
        )
    return joined


def repeated_captions(pairs: Sequence[Accepted], limits: Limits) -> set[tuple[str, str]]:
    """Returns `(language, text)` of captions that stand on suspiciously many different pictures."""
    images_of = Counter((pair.language, pair.text) for pair in pairs)  # pairs are unique by image already
    total = len({pair.image_id for pair in pairs})
    threshold = max(limits.repeated_caption_images, limits.repeated_caption_share * total)
    return {caption for caption, count in images_of.items() if count > threshold}


def _valid_domain(row: Row) -> str | None:
    try:
        return normalise_domain(row.domain) if row.domain else None
    except BadRow:
        return None


def _valid_split(row: Row) -> Split | None:
    try:
        return parse_split(row.split) if row.split else None
    except BadRow:
        return None


def _domain_conflict(where: str, domain: str, place: Place) -> ReportRow:
    sentence = f"The upload says domain {domain}, but this picture is in {place.domain} for good."
    return ReportRow(where, "held", "domain_conflict", sentence)


def _sentence(notes: Sequence[str]) -> str:
    return "; ".join(notes).capitalize() + "." if notes else ""
