"""What two releases differ in: what they know and learned from, how they read and see, their pictures, their recall."""

from collections.abc import Collection

from app.desk.probes import shown_slices
from app.desk.releases import Change, Difference, SliceChange
from app.desk.slices import SliceSummary
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from model_updates.recalls import mean_text_recall
from model_updates.routes import BASE
from model_updates.search_encoder import SearchEncoder


def difference_between(workspace: Workspace, a: str, b: str) -> Difference:
    """Returns what release `b` has that `a` has not, and the other way round.

    Raises:
        UnknownRelease, ReleaseDamaged: one of them is not there, or cannot be read.
    """
    first, second = (workspace.releases.release(name).require_kept() for name in (a, b))
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
    a, b = (workspace.open_searcher(one.version) for one in (first, second))
    shared = set(first.manifest.languages) & set(second.manifest.languages)
    texts = {tag for tag in shared if a.text_fingerprint(tag) != b.text_fingerprint(tag)}
    domains = sorted({*a.image_routes, *b.image_routes})
    seen = {domain: _sees(a, domain) != _sees(b, domain) for domain in domains}
    rest = [""] if a.image_fingerprint(BASE) != b.image_fingerprint(BASE) else []
    return texts, (*rest, *(domain for domain, differs in seen.items() if differs))


def _sees(encoder: SearchEncoder, domain: str) -> str:
    return encoder.image_fingerprint(encoder.image_route(domain))


def _slices(a: Collection[SliceSummary], b: Collection[SliceSummary]) -> tuple[SliceChange, ...]:
    first, second = (
        {(one.language, one.domain, one.view): mean_text_recall(one.recalls) for one in shown_slices(own)}
        for own in (a, b)
    )
    return tuple(
        SliceChange(f"{language}/{domain}", view, first.get(key), second.get(key))
        for key in sorted(first.keys() | second.keys())
        for language, domain, view in [key]
    )
