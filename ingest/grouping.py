"""Which split the pictures of an upload get: one for all pictures of one thing.

A group is what the upload states. What is known comes first, then what the upload says, then the hash: a
picture that the catalog has keeps its split for good; a group that has a known picture is in that one's
split; else in the first split that the upload states for one of its pictures; else in the hash's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ingest.pair import ImageId, Split
from ingest.splits import assign_split


@dataclass(frozen=True, slots=True)
class Claim:
    """What an upload and the catalog say of one picture.

    Attributes:
        image_id: the picture.
        known: its split in the catalog, None for a new one.
        stated: the split that the upload states first, if any.
        group: the group that the upload states first, if any.
    """

    image_id: ImageId
    known: Split | None = None
    stated: Split | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """Where a picture belongs. `because` goes on from "but": what holds it in its split."""

    split: Split
    group: str | None
    cluster: str | None
    because: str


def cluster_of(group: str) -> str:
    """Returns the name that the pictures of a stated group share."""
    return f"group:{group}"


def settle_splits(
    claims: Iterable[Claim], known_groups: Mapping[str, tuple[str, Split]]
) -> dict[ImageId, Settled]:
    """Settles the split and the group of every picture.

    Args:
        claims: in the upload's order.
        known_groups: by group name, `(cluster, split)` of those the catalog has.

    Returns:
        One entry per picture. A picture that is known in another split than its group stays out of it.
    """
    claims = list(claims)
    splits: dict[str, tuple[Split, str]] = {
        name: (split, f"its group {name[:40]!r} is in {split.value} for good")
        for name, (_, split) in known_groups.items()
    }
    for claim in sorted(claims, key=_first_known_then_stated):
        if claim.group is not None and claim.group not in splits:
            splits[claim.group] = _of_group(claim, claim.group)
    return {claim.image_id: _settled(claim, splits, known_groups) for claim in claims}


def _first_known_then_stated(claim: Claim) -> tuple[bool, bool, bool]:
    # Of several known pictures a held-out one decides: nothing of its group is trained on from now on.
    return (claim.known is not Split.TEST, claim.known is None, claim.stated is None)


def _of_group(claim: Claim, group: str) -> tuple[Split, str]:
    name = f"its group {group[:40]!r}"
    if claim.known is not None:
        return claim.known, f"{name} is in {claim.known.value} for good"
    if claim.stated is not None:
        return claim.stated, f"{name} is in {claim.stated.value}, as another of its rows says"
    split = assign_split(claim.image_id, group=group)
    return split, f"{name} is in {split.value}"


def _settled(
    claim: Claim,
    splits: Mapping[str, tuple[Split, str]],
    known_groups: Mapping[str, tuple[str, Split]],
) -> Settled:
    split, because = claim.known, ""
    if split is not None:
        because = f"this picture is in {split.value} for good"
    group = claim.group
    if group is not None:
        of_group, why = splits[group]
        if split is None:
            split, because = of_group, why
        if split is of_group:
            cluster = known_groups[group][0] if group in known_groups else cluster_of(group)
            return Settled(split, group, cluster, because)
    if split is None:
        split = claim.stated or assign_split(claim.image_id)
        because = f"an earlier row has it in {split.value}"
    return Settled(split, None, None, because)
