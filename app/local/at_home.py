"""The desk of an opened home, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from app.desk.troubles import saying_what_is_missing
from app.local.learning import Learning
from app.local.opinions import OpinionsKept
from app.local.pictures import Pictures
from app.local.releases import Releases
from app.local.searching import Searching
from app.local.tables import Tables
from app.local.upkeep import Upkeep

if TYPE_CHECKING:
    from app.desk.desk import Desk


AnyDesk = TypeVar("AnyDesk", bound=type)


def _says_what_is_missing(desk: AnyDesk) -> AnyDesk:
    """Makes every operation that meets a missing package say how to install it.

    Searching, serving and taking in need none of those that learning is done with, and may be installed without.
    """
    for name in {name for part in desk.__mro__[:-1] for name in vars(part)}:
        work = getattr(desk, name)
        if not name.startswith("_") and callable(work):
            setattr(desk, name, saying_what_is_missing()(work))
    return desk


@_says_what_is_missing
class AtHome(Searching, Pictures, OpinionsKept, Learning, Releases, Tables, Upkeep):
    """Every operation of `app.desk.desk.Desk`, on a home; what each does is said there."""


if TYPE_CHECKING:

    def _is_a_desk(desk: AtHome) -> Desk:
        return desk
