"""Assigns the pictures of an upload to splits; all pictures of one thing go to the same one.

A group is what the upload states, joined by what is found: pictures that are near-copies of one another. What
is known comes first, then what the upload says, then the hash: a picture that the catalog has keeps its split
for good; a group with a known picture or a copy of one is in that one's split; else in one that the upload
states for one of its pictures; else in the hash's. Where these disagree, held out comes before validation and
validation before training, so that nothing is ever trained on beside a held-out copy of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ingest.pair import ImageId, Split
from ingest.sentence import phrase
from ingest.splits import assign_split, hash_key

_STRICTEST = (Split.TEST, Split.VALIDATION, Split.TRAIN)


@dataclass(frozen=True, slots=True)
class Anchor:
    """Something the catalog has that decides for what belongs to it: the name of its cluster, and its split.

    `what` names it in a sentence.
    """

    cluster: str
    split: Split
    what: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """What an upload and the catalog say of one picture."""

    image_id: ImageId  # the picture
    known: Anchor | None = None  # what the catalog has of it, None for a new one
    stated: Split | None = None  # the split that the upload states first, if any
    group: str | None = None  # the group that the upload states first, if any
    copies: tuple[Anchor, ...] = ()  # the known pictures that a new one is a near-copy of


@dataclass(frozen=True, slots=True)
class Settled:
    """Where a picture belongs."""

    split: Split  # its split
    group: str | None  # the stated group it is in
    cluster: str | None  # one name for the pictures of one thing; None for one that is alone
    because: str  # what holds it in its split, as it goes on from "The upload says train, but"
    copied: bool = False  # it is new, and a near-copy of a known picture or of another one of the upload
    copy_of: tuple[Anchor, ...] = ()  # the known pictures it is a near-copy of
    hashed: str | None = None  # what was hashed, when nothing else decided its split


def cluster_of(group: str) -> str:
    """Returns the name that the pictures of a stated group share."""
    return f"group:{group}"


def settle_splits(
    claims: Iterable[Claim], known_groups: Mapping[str, Anchor], same: Sequence[tuple[ImageId, ImageId]] = ()
) -> dict[ImageId, Settled]:
    """Settles the split and the group of every picture.

    `known_groups` are the stated groups that the catalog has, by name; `same` are pairs of new pictures that are near-
    copies of one another. A picture that is known in another split than its group stays out of it.
    """
    copied = {image_id for pair in same for image_id in pair}
    settled: dict[ImageId, Settled] = {}
    for together in _together(list(claims), same):
        stated = [claim.group for claim in together if claim.group]
        anchors = [known_groups[group] for group in stated if group in known_groups]
        anchors += [claim.known for claim in together if claim.known is not None]
        anchors += [anchor for claim in together for anchor in claim.copies]
        place = _place(together, anchors)
        for claim in together:
            settled[claim.image_id] = _settled(claim, place, known_groups, claim.image_id in copied)
    return settled


def _together(claims: list[Claim], same: Sequence[tuple[ImageId, ImageId]]) -> list[list[Claim]]:
    """Returns the claims of each thing: pictures that a stated group or a copy joins."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            leader[name] = name = leader[leader[name]]
        return name

    for claim in claims:
        if claim.group is not None:
            leader[find(claim.image_id)] = find(cluster_of(claim.group))
    for one, other in same:
        leader[find(one)] = find(other)
    found: dict[str, list[Claim]] = {}
    for claim in claims:
        found.setdefault(find(claim.image_id), []).append(claim)
    return list(found.values())


def _place(together: Sequence[Claim], anchors: Sequence[Anchor]) -> Settled:
    """Returns where all new pictures of one thing belong."""
    groups = [claim.group for claim in together if claim.group is not None]
    stated = [claim.stated for claim in together if claim.stated is not None]
    first = min(claim.image_id for claim in together)
    hashed = None
    if anchors:
        split = _strictest([anchor.split for anchor in anchors])
    elif stated:
        split = _strictest(stated)
    else:
        split = assign_split(first, group=groups[0] if groups else None)
        hashed = hash_key(first, groups[0] if groups else None)
    named = [anchor.cluster for anchor in anchors if anchor.split is split]
    named += [cluster_of(group) for group in groups]
    named += [first] if len(together) > 1 else []
    return Settled(split, None, named[0] if named else None, "", hashed=hashed)


def _settled(claim: Claim, place: Settled, known_groups: Mapping[str, Anchor], copied: bool) -> Settled:
    split = place.split.value
    if claim.known is not None:
        because = phrase("this picture is in {split} for good", split=claim.known.split.value)
        if claim.known.split is not place.split:
            return Settled(claim.known.split, None, claim.known.cluster, because)
        return replace(place, group=claim.group, because=because)
    deciding = [anchor for anchor in claim.copies if anchor.split is place.split]
    if deciding:
        because = phrase(
            "it is a copy of {what}, which is in {split} for good", what=deciding[0].what, split=split
        )
    elif claim.group is not None and claim.group in known_groups:
        because = phrase(
            "its group {group} is in {split} for good", group=f"{claim.group[:40]!r}", split=split
        )
    elif claim.group is not None:
        because = phrase(
            "its group {group} is in {split}, as another of its rows says",
            group=f"{claim.group[:40]!r}",
            split=split,
        )
    elif copied:
        because = phrase("it is a copy of another picture of the upload, which is in {split}", split=split)
    else:
        because = phrase("an earlier row has it in {split}", split=split)
    return replace(
        place, group=claim.group, because=because, copied=copied or bool(claim.copies), copy_of=claim.copies
    )


def _strictest(splits: Sequence[Split]) -> Split:
    return next(split for split in _STRICTEST if split in splits)
