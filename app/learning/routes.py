"""Which route each picture of the gallery takes: decided once, and stored with the picture in the generation.

A picture whose domain was stated takes its domain's route where the encoder has one, else the base route. One whose
domain nobody stated is asked about once, when it comes into the gallery under an encoder that can guess; after that it
keeps its route, so that no update moves the vector of a picture it does not teach. A picture of a domain that nobody
taught keeps what was decided for it (`app.learning.untaught`).
"""

from collections.abc import Mapping, Sequence

from app.home.workspace import Workspace
from app.learning.bulk import Bulk
from index.generation import Generation
from ingest.checks import DEFAULT_DOMAIN
from model_updates.features import trunk_features
from model_updates.routes import BASE
from model_updates.search_encoder import SearchEncoder


def picture_routes(
    workspace: Workspace,
    encoder: SearchEncoder,
    domains: Mapping[str, str],
    previous: Generation | None,
    bulk: Bulk | None = None,
) -> dict[str, str]:
    """Returns the route of each picture that does not take the base route; `domains` has the domain of each.

    Pictures of `previous`, the generation before, keep the route that was guessed for them. `bulk` embeds those
    that it is guessed for, where they are many.
    """
    if not encoder.image_routes:
        return {}
    ids = list(domains)
    routes = {image_id: encoder.image_route(domain) for image_id, domain in domains.items()}
    nobody_said = dict.fromkeys(i for i in ids if domains[i] == DEFAULT_DOMAIN)
    placed: set[str] = set()
    if previous is not None:
        placed, before = set(previous.among(list(nobody_said))), previous.routes_of(ids)
        kept = [i for i in ids if i in before and (routes[i] == BASE or i in nobody_said)]
        routes |= {image_id: before[image_id] for image_id in kept}
    new = [image_id for image_id in nobody_said if image_id not in placed]
    if new and encoder.can_guess_routes:
        if bulk is not None:
            bulk.fill(new)
        progress = None if bulk is None else bulk.progress
        trunk = trunk_features(encoder, new, workspace.load_image, workspace.features, progress=progress)
        guessed = encoder.guess_routes(trunk)
        routes |= {image_id: route for image_id, route in zip(new, guessed, strict=True) if route != BASE}
    return {image_id: route for image_id, route in routes.items() if route != BASE}


def stated_routes(workspace: Workspace, encoder: SearchEncoder, ids: Sequence[str]) -> dict[str, str]:
    """Returns the routes of pictures by their domains alone, as slices are measured; base routes left out."""
    if not encoder.image_routes:
        return {}
    domains = workspace.catalog.domains_of(ids)
    routes = {image_id: encoder.image_route(domains[image_id]) for image_id in ids}
    return {image_id: route for image_id, route in routes.items() if route != BASE}
