"""Which domains of a chunk the live encoder knows already: measured, not remembered.

What a base encoder was trained on is in no catalog, and a chunk that taught a language on some pictures taught nothing
about how they look. So it is asked: do captions in a known language find their pictures?
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.releases.store import ReleaseRecord
from app.workspace import Workspace
from ingest.pair import BASE_LANGUAGE
from model_updates.encoder import Encoder, unit
from model_updates.features import image_features, text_features
from model_updates.pairs import TrainingPair

SAMPLE = 300
TOP_SHARE = 0.01  # a picture is found among so many of the sample
KNOWN_FROM = 0.9  # of the sample's captions


def known_domains(
    workspace: Workspace, release: ReleaseRecord, pairs: Sequence[TrainingPair]
) -> frozenset[str]:
    """Returns the domains of some pairs that a release's encoder knows.

    One that has an adapter is known. Of any other, up to 300 pictures with a caption in a learned language are looked
    up by it among themselves; the domain is known when 90 % of them are among the best 1 %. A domain without such a
    caption is not known.

    Args:
        workspace: opened for writing, since features are cached.
        release: what is live.
        pairs: training pairs of a chunk, with English beside them where there is any.
    """
    encoder = workspace.open_encoder(release.version)
    learned = set(release.manifest.languages)
    by_domain: dict[str, dict[str, tuple[str, str]]] = {}
    for pair in pairs:
        own = by_domain.setdefault(pair.domain, {})
        if pair.language in learned:
            own.setdefault(pair.image_id, (pair.text, pair.language))
        elif pair.english is not None:
            own.setdefault(pair.image_id, (pair.english, BASE_LANGUAGE))
    return frozenset(
        domain
        for domain, captions in by_domain.items()
        if domain in encoder.image_routes or found_share(workspace, encoder, captions) >= KNOWN_FROM
    )


def found_share(workspace: Workspace, encoder: Encoder, captions: dict[str, tuple[str, str]]) -> float:
    """Returns the share of captions that find their picture among the best of a sample on the base route.

    Args:
        workspace: decodes pictures and keeps features.
        encoder: asked.
        captions: text and language of each picture, by its id.
    """
    ids = sorted(captions)[:: max(1, len(captions) // SAMPLE)][:SAMPLE]
    if len(ids) < 2:
        return 0.0
    pictures = unit(image_features(encoder, ids, workspace.load_image, workspace.features))
    texts = np.empty_like(pictures)
    for language in sorted({captions[image_id][1] for image_id in ids}):
        rows = [n for n, image_id in enumerate(ids) if captions[image_id][1] == language]
        said = [captions[ids[n]][0] for n in rows]
        texts[rows] = unit(text_features(encoder, said, language, workspace.features))
    similarities = texts @ pictures.T
    own = np.diagonal(similarities)[:, None]
    same = np.asarray([[captions[a][0] == captions[b][0] for b in ids] for a in ids])
    better = ((similarities >= own) & ~same).sum(axis=1)
    return float((better < max(1, round(TOP_SHARE * len(ids)))).mean())
