"""Which domains of a chunk the live encoder knows already: measured, not remembered.

What a base encoder was trained on is in no catalog, and a chunk that taught a language on some pictures taught nothing
about how they look. So it is asked: do captions in a known language find their pictures?
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.yardstick import usable_chunks
from ingest.pair import BASE_LANGUAGE
from model_updates.features import FeatureCache, image_features, text_features
from model_updates.pairs import TrainingPair
from model_updates.search_encoder import SearchEncoder, unit

Caption = tuple[str, str]
"""Text and language."""

SAMPLE = 300
TOP_SHARE = 0.01  # a picture is found among so many of the sample
KNOWN_FROM = 0.9  # of the sample's captions


def known_domains(
    workspace: Workspace, release: ReleaseRecord, pairs: Sequence[TrainingPair]
) -> frozenset[str]:
    """Returns the domains of some training pairs that a release's encoder knows; see `domains_known_to`."""
    encoder = workspace.open_searcher(release.version)
    return domains_known_to(workspace, encoder, release.manifest.languages, pairs, workspace.features)


def domains_known_to(
    workspace: Workspace,
    encoder: SearchEncoder,
    languages: Collection[str],
    pairs: Sequence[TrainingPair],
    cache: FeatureCache,
) -> frozenset[str]:
    """Returns the domains of some pairs that an encoder knows.

    One that has an adapter is known. Of any other, up to 300 pictures are looked up among themselves by every caption
    they have in a learned language, of this chunk or in English of any; the domain is known when 90 % of them are among
    the best 1 % for one of theirs. A domain without such captions is not known.
    """
    learned = set(languages)
    by_domain: dict[str, dict[str, set[Caption]]] = {}
    for pair in pairs:
        said = by_domain.setdefault(pair.domain, {}).setdefault(pair.image_id, set())
        if pair.language in learned:
            said.add((pair.text, pair.language))
    return frozenset(
        domain
        for domain, captions in by_domain.items()
        if domain in encoder.image_routes or found_share(workspace, encoder, captions, cache) >= KNOWN_FROM
    )


def found_share(
    workspace: Workspace,
    encoder: SearchEncoder,
    captions: Mapping[str, Collection[Caption]],
    cache: FeatureCache,
) -> float:
    """Returns the share of pictures that one of their captions finds among the best of a sample, on the base route.

    `captions` are of each picture, by its id.
    """
    ids = sorted(captions)[:: max(1, len(captions) // SAMPLE)][:SAMPLE]
    english = workspace.catalog.captions_in(BASE_LANGUAGE, set(ids), chunks=usable_chunks(workspace))
    asked = [
        (n, text, language)
        for n, image_id in enumerate(ids)
        for text, language in sorted(
            {*captions[image_id], *((t, BASE_LANGUAGE) for t in english.get(image_id, []))}
        )
    ]
    if len(ids) < 2 or not asked:
        return 0.0
    pictures = unit(image_features(encoder, ids, workspace.load_image, cache))
    found: set[int] = set()
    for language in sorted({language for _, _, language in asked}):
        own = np.asarray([n for n, _, tag in asked if tag == language])
        texts = [text for _, text, tag in asked if tag == language]
        cosines = unit(text_features(encoder, texts, language, cache)) @ pictures.T
        better = (cosines > cosines[np.arange(len(own)), own][:, None]).sum(axis=1)
        found |= set(own[better < max(1, round(TOP_SHARE * len(ids)))].tolist())
    return len(found) / len(ids)
