"""The desk of an opened home, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.local.learning import Learning
from app.local.opinions import OpinionsKept
from app.local.pictures import Pictures
from app.local.releases import Releases
from app.local.searching import Searching
from app.local.tables import Tables
from app.local.upkeep import Upkeep

if TYPE_CHECKING:
    from app.desk.desk import Desk


class AtHome(Searching, Pictures, OpinionsKept, Learning, Releases, Tables, Upkeep):
    """Every operation of `app.desk.desk.Desk`, on a home; what each does is said there."""


if TYPE_CHECKING:

    def _is_a_desk(desk: AtHome) -> Desk:
        return desk
