"""What came into a gallery since its index was made, and which routes its pictures take.

Where nothing changed by which routes were decided, those of pictures that the index has are as they were: only what
came is looked at, so adding costs what it brings, however large the gallery is.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from app.home.workspace import Workspace
from app.learning.bulk import Bulk
from app.learning.routes import picture_routes
from app.learning.untaught import Learned, untaught_of, untaught_routes
from index.generation import Generation
from index.kinds import Chosen
from model_updates.routes import BASE, loudness
from model_updates.search_encoder import SearchEncoder


class Planned(NamedTuple):
    """What a generation is to be, beside the one before."""

    ids: Sequence[str]  # that it is to hold: all, or those that came
    gone: list[str]  # that it is to lose
    routes: dict[str, str]  # of those of the ids that do not take the base route
    used: dict[str, str]  # fingerprints of what makes vectors, by route
    rests_on: dict[str, Any]  # by what routes were decided; kept with the generation


class Planner:
    """Looks at a gallery under an encoder; pictures that nobody taught stand aside of what is `known`."""

    def __init__(
        self,
        workspace: Workspace,
        encoder: SearchEncoder,
        known: Learned | None,
        bulk: Bulk,
    ) -> None:
        self._workspace, self._encoder, self._known, self._bulk = workspace, encoder, known, bulk

    def whole(self, previous: Generation | None) -> Planned:
        """Returns what a generation of the whole gallery is."""
        domains = self._workspace.catalog.gallery_domains()
        gone = [] if previous is None else sorted(set(previous.ids).difference(domains))
        routes = picture_routes(self._workspace, self._encoder, domains, previous, self._bulk)
        if self._known is not None:
            routes |= untaught_routes(self._workspace, self._encoder, domains, routes, self._known)
        rests_on = self._rests_on(Counter(domains.values()))
        return Planned(list(domains), gone, routes, self._used(routes), rests_on)

    def since(self, previous: Generation, choice: Chosen) -> Planned | None:
        """Returns what came since a generation was made, and what it has to lose, without going through the gallery.

        Those that came last are looked at until no more are lacking than were counted. None where that does not tell:
        where something else is to make vectors or decides about routes, where most are new, and where there are, or
        come, pictures that nobody taught: how they are found depends on all.
        """
        if any(self._encoder.image_fingerprint(one) != made for one, made in previous.fingerprints.items()):
            return None
        if not self._encoder.image_routes and previous.fingerprints.keys() != {BASE}:
            return None
        catalog = self._workspace.catalog
        size, gone = catalog.gallery_size(), previous.among(catalog.outside_gallery())
        if gone and any(loudness(one)[1] < 1 for one in previous.fingerprints):
            return None
        lacking = size - (len(previous) - len(gone))
        if previous.choice.kind != choice.kind or not 0 <= 2 * lacking <= size:
            return None
        new = self._newest(previous, lacking)
        if len(new) != lacking:
            return None
        domains = catalog.domains_of(new)
        routes = picture_routes(self._workspace, self._encoder, domains, previous, self._bulk)
        counts: Counter[str] = Counter(self.said_by(previous).get("domains"))
        counts.update(domains.values())
        counts.subtract(catalog.domains_of(gone).values())
        rests_on = self._rests_on(+counts)
        if self._encoder.image_routes and not self._holds(previous, rests_on, domains, routes):
            return None
        return Planned(new, gone, routes, previous.fingerprints | self._used(routes), rests_on)

    @staticmethod
    def said_by(generation: Generation) -> dict[str, Any]:
        """Returns by what the routes of a generation were decided; nothing of one from before that was kept."""
        said = generation.manifest.get("rests_on")
        return said if isinstance(said, dict) else {}

    @staticmethod
    def all_routes(previous: Generation | None, routes: Mapping[str, str]) -> dict[str, str]:
        """Returns the routes of what a generation has and of what comes."""
        return {**(previous.routes if previous is not None else {}), **routes}

    def _newest(self, previous: Generation, lacking: int) -> list[str]:
        new: list[str] = []
        with closing(self._workspace.catalog.newest()) as parts:
            for part in parts:
                held = set(previous.among(part))
                new += [one for one in part if one not in held]
                if len(new) >= lacking and part[-1] in held:
                    break
        return new[::-1]

    def _used(self, routes: Mapping[str, str]) -> dict[str, str]:
        return {one: self._encoder.image_fingerprint(one) for one in sorted({BASE, *routes.values()})}

    def _rests_on(self, domains: Counter[str]) -> dict[str, Any]:
        known = self._known
        said = known and (sorted(known.chunks), sorted(known.languages))
        by = hashlib.sha256(repr((self._encoder.image_routes, said)).encode()).hexdigest()
        return {"by": by, "domains": dict(sorted(domains.items())) if self._encoder.image_routes else {}}

    def _holds(
        self,
        previous: Generation,
        rests_on: Mapping[str, Any],
        came: Mapping[str, str],
        routes: Mapping[str, str],
    ) -> bool:
        """Whether the routes that pictures have are those that they would be given again.

        No picture has another domain than when they were decided, as the number of each tells; and none that nobody
        taught came.
        """
        if self.said_by(previous).get("by") != rests_on["by"]:
            return False
        if self._workspace.catalog.gallery_domain_counts() != rests_on["domains"]:
            return False
        return not (self._known and untaught_of(self._workspace, self._encoder, came, routes, self._known))
