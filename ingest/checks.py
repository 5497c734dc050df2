"""Accepts, holds or rejects each pair, with a reason code and a sentence."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ingest.captions import REGAINED, UNDETERMINED, normalise_caption, normalise_language
from ingest.errors import BadItem, BadRow, UnknownLanguage
from ingest.grouping import Settled
from ingest.limits import Limits
from ingest.pair import ImageId, Split
from ingest.readers.container import Row
from ingest.report import ReportRow
from ingest.sentence import phrase
from ingest.splits import parse_split

DEFAULT_DOMAIN = "general"
GROUP_CHARACTERS = 200

NO_CAPTION = "It has no caption: it joins the gallery, and nothing is learned from it."


@dataclass(frozen=True, slots=True)
class Accepted:
    """A pair that passed, with what it states and the report row it may still lose to a check over the upload."""

    image_id: ImageId
    language: str
    text: str
    where: str
    sentence: str = ""
    split: Split | None = None
    group: str | None = None


class Judge:
    """Judges the rows of one upload, one picture at a time, and remembers what it settled.

    What a row does not state is filled with `language` and `domain`, which are canonical.
    """

    def __init__(self, *, language: str | None, domain: str | None, limits: Limits) -> None:
        self._language = language
        self._domain = domain
        self._limits = limits
        self._domains: dict[ImageId, str] = {}
        self._first_seen: dict[tuple[ImageId, str, str], str] = {}
        self.regained: list[str] = []  # captions that had been read in a wrong encoding, as they are now

    def domain_of(self, image_id: ImageId) -> str:
        """Returns the domain of an accepted image of this upload."""
        return self._domains[image_id]

    def judge(self, image_id: ImageId, rows: Sequence[Row], known: str | None) -> list[Accepted | ReportRow]:
        """Returns for each row of one picture an `Accepted`, or the report row that says why not.

        `known` is the domain in which the catalog already has it.
        """
        domain = self._domains.get(image_id) or known or self._stated_domain(rows)
        judged: list[Accepted | ReportRow] = []
        for row in rows:
            try:
                entry = self._judge_row(image_id, row, domain)
            except BadItem as error:
                entry = ReportRow(row.where, "rejected", error.code, error.sentence)
            except UnknownLanguage as error:
                entry = ReportRow(row.where, "rejected", "language_unknown", str(error))
            if isinstance(entry, Accepted):
                self._domains[image_id] = domain
            judged.append(entry)
        return judged

    def judge_uncaptioned(self, image_id: ImageId, where: str, known: str | None) -> ReportRow:
        """Judges a picture that the upload says nothing about."""
        domain = self._domains.get(image_id) or known
        if domain is None:
            domain = self._domain or DEFAULT_DOMAIN
        elif self._domain is not None and self._domain != domain:
            return _domain_conflict(where, self._domain, domain)
        self._domains[image_id] = domain
        return ReportRow(where, "accepted", "no_caption", NO_CAPTION)

    def _judge_row(self, image_id: ImageId, row: Row, settled: str) -> Accepted | ReportRow:
        caption = normalise_caption(row.caption or "", self._limits)
        language = normalise_language(row.language or "")
        if language == UNDETERMINED:
            language = self._language or UNDETERMINED
        domain = normalise_domain(row.domain) if row.domain else self._domain
        split = parse_split(row.split) if row.split else None
        group = normalise_group(row.group) if row.group else None
        if language == UNDETERMINED:
            sentence = phrase(
                "Its language is not given and does not show: add --language TAG or a language column."
            )
            return ReportRow(row.where, "held", "language_missing", sentence)
        if domain is not None and domain != settled:
            return _domain_conflict(row.where, domain, settled)
        key = (image_id, language, caption.text)
        first = self._first_seen.setdefault(key, row.where)
        if first != row.where:
            sentence = phrase("The same picture and caption as {first}: counted once.", first=first)
            return ReportRow(row.where, "accepted", "duplicate", sentence)
        if REGAINED in caption.notes:
            self.regained.append(caption.text)
        return Accepted(*key, row.where, _sentence(caption.notes), split, group)

    def _stated_domain(self, rows: Sequence[Row]) -> str:
        return next(filter(None, map(_valid_domain, rows)), None) or self._domain or DEFAULT_DOMAIN


def judge_split(pair: Accepted, place: Settled) -> ReportRow:
    """Judges a pair by where its picture belongs: held when the upload says otherwise.

    A copy of a held-out picture is taken as held out whatever the upload says, so that it is not trained on.
    """
    is_surprising = place.copy_of or pair.split not in (None, place.split)
    if place.copied and place.split is Split.TEST and is_surprising:
        sentence = f"{place.because.capitalize()}: it is not trained on."
        return ReportRow(pair.where, "accepted", "copy_of_held_out", sentence)
    if pair.split is not None and pair.split is not place.split:
        sentence = phrase("The upload says {split}, but {why}.", split=pair.split.value, why=place.because)
        return ReportRow(pair.where, "held", "split_conflict", sentence)
    if place.copy_of:
        sentence = " ".join(filter(None, (pair.sentence, f"It is a copy of {place.copy_of[0].what}.")))
        return ReportRow(pair.where, "accepted", "copy_of_known", sentence)
    return ReportRow(pair.where, "accepted", sentence=pair.sentence)


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


def normalise_group(name: str) -> str | None:
    """Returns a stated group's name, composed and without spaces around it; None for an empty one.

    Raises:
        BadRow: longer than 200 characters.
    """
    stripped = unicodedata.normalize("NFC", name).strip()
    if len(stripped) > GROUP_CHARACTERS:
        raise BadRow(
            "group_too_long",
            f"The group {stripped[:40]!r}… has {len(stripped)} characters; use at most {GROUP_CHARACTERS}.",
        )
    return stripped or None


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


def _domain_conflict(where: str, domain: str, settled: str) -> ReportRow:
    sentence = phrase(
        "The upload says domain {domain}, but this picture is in {settled} for good.",
        domain=domain,
        settled=settled,
    )
    return ReportRow(where, "held", "domain_conflict", sentence)


def _sentence(notes: Sequence[str]) -> str:
    return "; ".join(notes).capitalize() + "." if notes else ""
