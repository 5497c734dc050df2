"""Pictures of a domain that nobody taught: how they are found, so that they take no place from what is known.

What an encoder makes of pictures unlike all it was taught is nearly noise, and noise stands before right answers. So
such pictures read the head of the taught domain that they are nearest to, and quietly: with a share of their likeness
to every text. The share is measured before they go live. Captions on file look for their own pictures without the
untaught ones and with them; the largest share holds by which no slice, at the upper bound of its loss, loses more than
the gate lets new pictures take. It is measured again when such pictures come, when pictures go, and when something was
learned. All untaught domains have one share, so that it does not matter which of them came first. Languages without
captions are stood for by English as a second text tower alone reads it, where there is one: that is how they are read
(docs/log.md has what else was tried).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.sampling import sampled
from app.learning.yardstick import own_trusted
from index.generation import Generation
from ingest.checks import DEFAULT_DOMAIN
from ingest.findings import Figure, Finding, Outcome
from ingest.pair import Pair, SliceKey, Split
from ingest.sentence import joined, phrase
from model_updates.features import image_features, text_features, trunk_features
from model_updates.gate.comparison import measured_drop
from model_updates.gate.examined import FEWEST_OLD, MOST_DISPLACED, ONE_SIDED
from model_updates.recalls import RECALL_DEPTHS
from model_updates.routes import BASE, loudness, quiet
from model_updates.search_encoder import Rows, SearchEncoder, unit

UNTAUGHT = "untaught_pictures"
SHARES = (0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
"""The largest loses next to nothing where captions on file are too few, or too well learned, to show what is lost."""
MOST_CAPTIONS = 1_000  # of a slice
MOST_PICTURES = 5_000  # taught ones, among which captions look for theirs
MOST_UNTAUGHT = 10_000  # that are measured; of more, each stands for several
MOST_ASKED = 2_000  # of a domain, which route they are nearest to
_BLOCK = 256  # captions whose similarities are held at once


@dataclass(frozen=True)
class Learned:
    """What may not be pushed aside."""

    chunks: frozenset[str]  # ids of the chunks that were learned
    languages: Collection[str]  # that were learned


def known_to(workspace: Workspace, record: ReleaseRecord) -> Learned:
    """Returns what a release has learned of a person's own."""
    return Learned(own_trusted(workspace, record), record.manifest.languages)


def untaught_routes(
    workspace: Workspace,
    encoder: SearchEncoder,
    domains: Mapping[str, str],
    routes: Mapping[str, str],
    known: Learned,
) -> dict[str, str]:
    """Returns the routes of the gallery's pictures that nobody taught.

    `domains` has the domain of each picture; `routes` are those of all others that do not take the base route. None
    where the encoder cannot be quiet.
    """
    untaught = untaught_of(workspace, encoder, domains, routes, known)
    if not untaught:
        return {}
    nearest = _nearest(workspace, encoder, untaught)
    some = sampled(nearest, MOST_UNTAUGHT)
    rows = image_features(encoder, some, workspace.load_image, workspace.features, routes=nearest)
    taught = [image_id for image_id in domains if image_id not in nearest]
    losses = _losses(workspace, encoder, taught, routes, unit(rows), known, each=len(nearest) / len(some))
    share = next(
        (one for one, lost in zip(SHARES, losses, strict=True) if lost <= MOST_DISPLACED), SHARES[-1]
    )
    return {image_id: quiet(route, share) for image_id, route in nearest.items()}


def untaught_of(
    workspace: Workspace,
    encoder: SearchEncoder,
    domains: Mapping[str, str],
    routes: Mapping[str, str],
    known: Learned,
) -> dict[str, list[str]]:
    """Returns the pictures of each domain that no learned chunk is of; those that look like a taught one are not.

    None where the encoder cannot be quiet.
    """
    if not encoder.can_be_quiet or not encoder.image_routes:
        return {}
    taught = {one for chunk in known.chunks for one in workspace.catalog.chunk(chunk).domains}
    taught.update(encoder.image_routes)
    found: dict[str, list[str]] = {}
    for image_id, domain in domains.items() if taught else ():
        is_guessed = domain == DEFAULT_DOMAIN and routes.get(image_id, BASE) in encoder.image_routes
        if domain not in taught and not is_guessed:
            found.setdefault(domain, []).append(image_id)
    return found


def _nearest(
    workspace: Workspace, encoder: SearchEncoder, untaught: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Returns for each picture the route that most of its domain is nearest to, as some of them tell."""
    found: dict[str, str] = {}
    for ids in untaught.values():
        some = sampled(ids, MOST_ASKED)
        trunk = trunk_features(encoder, some, workspace.load_image, workspace.features)
        names, counts = np.unique(encoder.nearest_routes(trunk), return_counts=True)
        found |= dict.fromkeys(ids, str(names[counts.argmax()]))
    return found


def _losses(
    workspace: Workspace,
    encoder: SearchEncoder,
    taught: Sequence[str],
    routes: Mapping[str, str],
    untaught: Rows,
    known: Learned,
    each: float,
) -> list[float]:
    """Returns for each share the points that the slice which loses most may lose, at its upper bound.

    Each row of `untaught` stands for so many pictures.
    """
    asked = list(_asked(workspace, known, set(taught)))
    looked_for = {pair.image_id for _, pairs in asked for pair in pairs}
    others = [image_id for image_id in taught if image_id not in looked_for]
    shown = [*sorted(looked_for), *sampled(others, MOST_PICTURES - len(looked_for))]
    place = {image_id: n for n, image_id in enumerate(shown)}
    load, cache = workspace.load_image, workspace.features
    pictures = unit(image_features(encoder, shown, load, cache, routes=routes))
    worst = [0.0] * len(SHARES)
    groups = workspace.catalog.groups(looked_for)
    for key, pairs in asked:
        own = np.asarray([place[pair.image_id] for pair in pairs])
        things = [groups[pair.image_id] for pair in pairs]
        texts = text_features(encoder, [pair.text for pair in pairs], key.language, cache)
        for queries in _readings(encoder, texts, key.language):
            before, ahead = _ranks(queries, own, pictures, untaught)
            lost = [_lost(before, before + each * more, things) for more in ahead]
            worst = [max(pair) for pair in zip(worst, lost, strict=True)]
    return worst


def _asked(
    workspace: Workspace, known: Learned, shown: Collection[str]
) -> Iterator[tuple[SliceKey, list[Pair]]]:
    """Yields the captions of each learned slice: those that nothing trained on, and where those are few, all."""
    found: dict[SliceKey, list[Pair]] = {}
    for pair in workspace.catalog.pairs(chunks=known.chunks):
        if pair.language in known.languages and pair.image_id in shown:
            found.setdefault(SliceKey(pair.language, pair.domain), []).append(pair)
    for key, pairs in sorted(found.items()):
        held = [pair for pair in pairs if pair.split is not Split.TRAIN]
        chosen = held if len({pair.image_id for pair in held}) >= FEWEST_OLD else pairs
        texts = {f"{pair.image_id} {pair.text}": pair for pair in chosen}
        yield key, [texts[name] for name in sampled(texts, MOST_CAPTIONS)]


def _readings(encoder: SearchEncoder, texts: Rows, language: str) -> Iterator[Rows]:
    """Yields the unit vectors of texts, and those that a second tower alone would give them."""
    yield unit(texts)
    rest = texts.copy()
    rest[:, : encoder.tower_dim] = 0
    if encoder.second is not None and encoder.tower_reads(language) and np.abs(rest).any(axis=1).all():
        yield unit(rest)


def _ranks(
    queries: Rows, own: NDArray[np.int64], pictures: Rows, untaught: Rows
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the rank of each query's own picture among the taught, and how many untaught are ahead at each share."""
    before = np.zeros(len(own), dtype=np.int64)
    ahead = np.zeros((len(SHARES), len(own)), dtype=np.int64)
    for start in range(0, len(own), _BLOCK):
        rows = slice(start, start + _BLOCK)
        scores = queries[rows] @ pictures.T
        mine = scores[np.arange(len(scores)), own[rows]][:, None]
        before[rows] = (scores > mine).sum(axis=1)
        against = queries[rows] @ untaught.T
        for n, share in enumerate(SHARES):
            ahead[n, rows] = (share * against > mine).sum(axis=1)
    return before, ahead


def _lost(before: NDArray[np.int64], after: NDArray[np.float64], things: Sequence[str]) -> float:
    """Returns the points of R@1, 5 and 10 that may be lost, at the upper bound; 0 where no caption lost its place."""
    first, then = (np.mean([ranks < depth for depth in RECALL_DEPTHS], axis=0) for ranks in (before, after))
    drop = measured_drop(first, then, things)
    return drop.points + ONE_SIDED * drop.error if drop.points > 0 else 0.0


def untaught_finding(workspace: Workspace, chunk: str, generation: Generation) -> Finding | None:
    """Says of each domain of a chunk that nobody taught how its pictures are found; None where there is none."""
    records = workspace.catalog.images(workspace.catalog.ids_where(chunks=[chunk]))
    found: dict[str, tuple[str, float]] = {}
    for image_id, record in sorted(records.items()):
        name, share = loudness(generation.routes.get(image_id, BASE))
        if name not in {BASE, record.domain} and (share < 1 or record.domain != DEFAULT_DOMAIN):
            found[record.domain] = name, share
    if not found:
        return None
    said = [
        phrase(
            "Pictures of {domain} look like nothing that was learned. Words find them by what was learned of {nearest} "
            "and count {share}, so that no other picture loses its place. Teach them with an update, and they count in "
            "full.",
            domain=domain,
            nearest=nearest,
            share=f"{share:.0%}",
        )
        for domain, (nearest, share) in sorted(found.items())
    ]
    figures: dict[str, Figure] = {domain: share for domain, (_, share) in sorted(found.items())}
    return Finding(UNTAUGHT, Outcome.ACCEPT, joined(said), figures)
