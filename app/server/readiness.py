"""Whether a server can answer: a load balancer asks that often, and sends nobody to one whose catalog cannot be asked.

Every search reads the catalog, so a server without it answers nothing useful. The catalog is asked in a thread of its
own, at most once a second, and nobody waits long for it: one that does not answer is no reason to hang as well.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress

from sqlalchemy.exc import SQLAlchemyError

from app.home.workspace import Workspace
from ingest.errors import CatalogDamaged, CatalogError, CatalogUnreachable
from ingest.sentence import phrase

_PATIENCE_SECONDS = 2.0
_RECENT_SECONDS = 1.0


class Readiness:
    """Asks the catalog of a workspace; of one loop."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._asking: asyncio.Future[CatalogError | None] | None = None
        self._answered = 0.0

    async def require(self) -> None:
        """Returns where the catalog answers.

        Raises:
            CatalogError: it cannot be asked, or has not answered in time.
        """
        asking = self._asking
        if asking is None or (asking.done() and time.monotonic() - self._answered > _RECENT_SECONDS):
            asking = self._asking = self._asked()
        await asyncio.wait([asking], timeout=_PATIENCE_SECONDS)
        if not asking.done():
            raise CatalogUnreachable(
                phrase("The catalog has not answered for {seconds} seconds.", seconds=int(_PATIENCE_SECONDS))
            )
        if (error := asking.result()) is not None:
            raise error.with_traceback(None)

    def _asked(self) -> asyncio.Future[CatalogError | None]:
        """Asks in a thread that no end of the process waits for."""
        loop = asyncio.get_running_loop()
        asking: asyncio.Future[CatalogError | None] = loop.create_future()

        def ask() -> None:
            answer = self._ask()
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(tell, answer)

        def tell(answer: CatalogError | None) -> None:
            if not asking.done():
                asking.set_result(answer)

        threading.Thread(target=ask, name="readiness", daemon=True).start()
        return asking

    def _ask(self) -> CatalogError | None:
        try:
            self._workspace.catalog.withheld.ids()
        except CatalogDamaged:  # a file that may be read in parts: it is told as degraded
            return None
        except CatalogError as error:
            return error
        except SQLAlchemyError as error:
            return CatalogUnreachable(phrase("The catalog cannot be asked ({why}).", why=_why(error)))
        finally:
            self._answered = time.monotonic()
        return None


def _why(error: SQLAlchemyError) -> str:
    return " ".join(str(getattr(error, "orig", None) or error).split()).rstrip(".")
