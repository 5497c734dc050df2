"""What two releases differ in: what they know and learned from, how they read and see, their pictures, their recall."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from app.releases.manifest import SliceSummary
from app.releases.store import ReleaseRecord
from app.workspace import Workspace
from model_updates.encoder import Encoder
from model_updates.inserts import BASE
from model_updates.recalls import TEXT_RECALLS


@dataclass(frozen=True)
class Change:
    """What the second of two has and the first has not, and the other way round."""

    added: tuple[str, ...]
    gone: tuple[str, ...]

    @classmethod
    def between(cls, a: Collection[str], b: Collection[str]) -> Change:
        """Compares two collections, each in its order."""
        return cls(tuple(one for one in b if one not in a), tuple(one for one in a if one not in b))


@dataclass(frozen=True)
class SliceChange:
    """Recall on a slice in percent: the mean of R@1, R@5 and R@10 by text, measured when each release was made."""

    slice: str
    view: str
    a: float | None
    b: float | None


@dataclass(frozen=True)
class Difference:
    """What two releases differ in.

    Attributes:
        a: id of the first.
        b: id of the second.
        same_version: whether they share the encoder.
        languages: learned.
        chunks: taught.
        texts_changed: languages of both that are read differently; what is not here is read the same to the bit.
        texts_same: languages of both that are read the same.
        pictures_changed: domains that are seen differently; "" stands for all that have no adapter of their own.
        pictures: counts: in a, in b, in both.
        strategies: that trained them last.
        slices: recall on every slice that either measured.
    """

    a: str
    b: str
    same_version: bool
    languages: Change
    chunks: Change
    texts_changed: tuple[str, ...]
    texts_same: tuple[str, ...]
    pictures_changed: tuple[str, ...]
    pictures: tuple[int, int, int]
    strategies: tuple[str, str]
    slices: tuple[SliceChange, ...]


def difference_between(workspace: Workspace, a: str, b: str) -> Difference:
    """Returns what release `b` has that `a` has not, and the other way round.

    Raises:
        UnknownRelease, ReleaseDamaged: one of them is not there, or cannot be read.
    """
    first, second = (workspace.releases.release(name) for name in (a, b))
    texts, pictures = _read_differently(workspace, first, second)
    shared = [tag for tag in second.manifest.languages if tag in first.manifest.languages]
    held = [set(workspace.open_generation(one.generation).ids) for one in (first, second)]
    return Difference(
        a=first.id,
        b=second.id,
        same_version=first.version == second.version,
        languages=Change.between(first.manifest.languages, second.manifest.languages),
        chunks=Change.between(first.manifest.chunks, second.manifest.chunks),
        texts_changed=tuple(tag for tag in shared if tag in texts),
        texts_same=tuple(tag for tag in shared if tag not in texts),
        pictures_changed=pictures,
        pictures=(len(held[0]), len(held[1]), len(held[0] & held[1])),
        strategies=(first.manifest.strategy or "base", second.manifest.strategy or "base"),
        slices=_slices(first.manifest.slices, second.manifest.slices),
    )


def _read_differently(
    workspace: Workspace, first: ReleaseRecord, second: ReleaseRecord
) -> tuple[set[str], tuple[str, ...]]:
    """Returns languages whose texts, and domains whose pictures, get other vectors."""
    if first.version == second.version:
        return set(), ()
    a, b = (workspace.open_encoder(one.version) for one in (first, second))
    shared = set(first.manifest.languages) & set(second.manifest.languages)
    texts = {tag for tag in shared if a.text_fingerprint(tag) != b.text_fingerprint(tag)}
    domains = sorted({*a.image_routes, *b.image_routes})
    seen = {domain: _sees(a, domain) != _sees(b, domain) for domain in domains}
    rest = [""] if a.image_fingerprint(BASE) != b.image_fingerprint(BASE) else []
    return texts, (*rest, *(domain for domain, differs in seen.items() if differs))


def _sees(encoder: Encoder, domain: str) -> str:
    return encoder.image_fingerprint(encoder.image_route(domain))


def _slices(a: Collection[SliceSummary], b: Collection[SliceSummary]) -> tuple[SliceChange, ...]:
    first, second = ({(one.language, one.domain, one.view): _mean(one) for one in own} for own in (a, b))
    return tuple(
        SliceChange(f"{language}/{domain}", view, first.get(key), second.get(key))
        for key in sorted(first.keys() | second.keys())
        for language, domain, view in [key]
    )


def _mean(one: SliceSummary) -> float:
    return sum(one.recalls[name] for name in TEXT_RECALLS) / len(TEXT_RECALLS)
