"""Pinned queries: does a candidate still answer them with the pinned picture?"""

import numpy as np
from numpy.typing import NDArray

from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.routes import stated_routes
from index.generation import Generation
from ingest.records import Pin
from model_updates.features import image_features
from model_updates.routes import BASE
from model_updates.search_encoder import SearchEncoder, unit


def canaries(
    workspace: Workspace, candidate: SearchEncoder, live: ReleaseRecord, chunk: str
) -> list[tuple[str, bool]]:
    """Returns each pinned query that live answers with the pinned picture, and whether the candidate does too.

    Pins that live itself no longer keeps, because better pictures came, say nothing about the candidate. With a
    changed image tower the live gallery's vectors say nothing; the pins are then looked up among the pinned
    pictures, those of the `chunk` that is taught, and the held-out ones, which the measurement has embedded already.
    """
    pins = workspace.catalog.pins()
    records = workspace.catalog.images({pin.image_id for pin in pins})
    pins = [pin for pin in pins if pin.image_id in records and not records[pin.image_id].withdrawn]
    if not pins:
        return []
    generation: Generation = workspace.open_generation(live.generation)
    before = workspace.open_encoder(live.version)
    routes = stated_routes(workspace, candidate, generation.ids) if candidate.image_routes else {}
    changed = any(generation.routes.get(i, BASE) != routes.get(i, BASE) for i in routes)
    made_by = {route: candidate.image_fingerprint(route) for route in generation.fingerprints}
    if generation.fingerprints == made_by and not changed:
        ids = list(generation.ids)
        old = new = generation.vectors(ids)
    else:
        tests = [i for domain in workspace.catalog.domains() for i in workspace.catalog.test_images(domain)]
        shown = workspace.catalog.ids_where(chunks=[chunk]) | set(tests)
        ids = list(
            dict.fromkeys([*(pin.image_id for pin in pins), *(i for i in generation.ids if i in shown)])
        )
        old, new = (
            unit(
                image_features(
                    encoder,
                    ids,
                    workspace.load_image,
                    workspace.features,
                    routes=stated_routes(workspace, encoder, ids),
                )
            )
            for encoder in (before, candidate)
        )

    def keeps(encoder: SearchEncoder, vectors: NDArray[np.float32], pin: Pin) -> bool:
        query = encoder.encode_texts([pin.query], pin.language)[0]
        return ids[int((vectors @ query).argmax())] == pin.image_id

    return [(pin.query, keeps(candidate, new, pin)) for pin in pins if keeps(before, old, pin)]
