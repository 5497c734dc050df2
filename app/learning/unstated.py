"""Pictures of which nobody said what they are: those unlike all that was learned open a domain of their own.

Else they would lie in the domain that everything unstated shares, and be taught as if they were its own. A chunk is
judged as a whole, since what comes together mostly belongs together: it opens a domain where a third of its pictures
lie outside of every domain that is known here, as the router tells (`model_updates.parts.router`). Pictures like those
of a domain that was opened earlier join it. A person gives it a name, or puts it into another (`name_domain`).
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import count

from app.desk.errors import UsageProblem
from app.desk.probes import DOMAIN as PROBES
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.yardstick import own_trusted
from ingest.checks import DEFAULT_DOMAIN, normalise_domain
from ingest.errors import BadRow
from ingest.findings import Finding, Outcome
from ingest.sentence import phrase
from model_updates.features import trunk_features
from model_updates.gaussians import FEWEST_PICTURES, MOST_PICTURES, fit
from model_updates.routes import BASE
from model_updates.search_encoder import Rows

OPENED = "opened_domain"
MOST = (
    1 / 3
)  # of a chunk's pictures; of photographs like those that were learned no draw reaches .2 (docs/log.md)
_NAME = "domain-{number}"


def open_domain(workspace: Workspace, record: ReleaseRecord, chunk: str) -> Finding | None:
    """Moves a chunk's new pictures of no stated domain to one of their own where many look like nothing known.

    Those of trusted chunks stay: what was learned of them was learned of where they lie. Returns what was done, None
    where all stay.
    """
    catalog, trusted = workspace.catalog, own_trusted(workspace, record)
    new = catalog.images(catalog.ids_where(chunks=[chunk], domains=[DEFAULT_DOMAIN]))
    brought = {image_id for image_id, one in new.items() if one.chunk_id == chunk}
    theirs = sorted(brought - catalog.ids_where(chunks=trusted, domains=[DEFAULT_DOMAIN]))
    learned = {one for other in trusted for one in catalog.chunk(other).domains}
    if len(theirs) < FEWEST_PICTURES or not learned:
        return None
    shares = _shares(workspace, record, theirs, learned)
    unlearned = {name: share for name, share in shares.items() if name not in learned}
    name = max(unlearned, key=unlearned.__getitem__, default=BASE)
    if unlearned.get(name, 0.0) <= MOST:
        return None
    share = f"{unlearned[name]:.0%}"
    if name != BASE:
        said = phrase(
            "{share} of these pictures look like those of {domain}, and lie there with them.",
            share=share,
            domain=name,
        )
    else:
        taken = catalog.domains()
        name = next(one for n in count(2) if (one := _NAME.format(number=n)) not in taken)
        said = phrase(
            "{share} of these pictures look like nothing that was learned, so all are a domain of their own: {domain}. "
            "`perennial domain {domain} NAME` names it, or puts it into another.",
            share=share,
            domain=name,
        )
    catalog.set_domain(theirs, name)
    return Finding(OPENED, Outcome.ACCEPT, said, {"share": round(max(unlearned.values()), 3), "domain": name})


def _shares(
    workspace: Workspace, record: ReleaseRecord, theirs: Sequence[str], learned: Collection[str]
) -> dict[str, float]:
    """Returns the share of pictures that look like each domain that is known here, `BASE` for those like none."""
    catalog, encoder = workspace.catalog, workspace.open_searcher(record.version)

    def features(ids: Sequence[str]) -> Rows:
        return trunk_features(encoder, ids, workspace.load_image, workspace.features)

    points = {}
    for name in catalog.domains():
        ids = sorted(catalog.ids_where(domains=[name]) - set(theirs))
        if len(ids) >= FEWEST_PICTURES and (name in learned or name not in {PROBES, DEFAULT_DOMAIN}):
            points[name] = features(ids[:: max(1, len(ids) // MOST_PICTURES)][:MOST_PICTURES])
    router = fit(points, points)
    guessed = [] if router is None else router.guess(features(theirs))
    return {name: found / len(guessed) for name, found in Counter(guessed).items()}


def name_domain(workspace: Workspace, domain: str, to: str) -> tuple[int, str]:
    """Gives a domain that nothing was learned of another name, or puts its pictures into a domain that there is.

    Returns how many pictures moved, and the name as it is kept.

    Raises:
        UsageProblem: there is no such domain, something was learned of it, or the name cannot be one.
    """
    catalog = workspace.catalog
    try:
        name = normalise_domain(to)
    except BadRow as error:
        raise UsageProblem(error.sentence) from error
    there = {one: pictures for one, pictures in catalog.domains().items() if one != PROBES}
    if domain not in there or name == PROBES:
        asked = domain if domain not in there else name
        raise UsageProblem(
            phrase(
                "No domain is called {domain}; there are {names}.",
                domain=asked,
                names=", ".join(sorted(there)),
            )
        )
    _, record = going_live.live_release(workspace)
    learned = {one for chunk in own_trusted(workspace, record) for one in catalog.chunk(chunk).domains}
    if domain in learned:
        raise UsageProblem(
            phrase(
                "Something was learned of {domain}, under this name; only domains that nothing was learned of can be "
                "named anew.",
                domain=domain,
            )
        )
    return catalog.set_domain(catalog.ids_where(domains=[domain]), name), name
