"""Releases of a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from app.client.answers import ListedRelease, WentLiveAnswer
from app.client.connection import Connection, address_part, given, record_of, typed
from app.client.errors import ServerAway
from app.desk.errors import UsageProblem
from app.home.package import SUFFIX, checksum
from ingest.records import JobRecord

if TYPE_CHECKING:
    from app.desk.releases import Difference, Node

# A release is read whole, and packed, before the first byte of it comes.
_PACKING = httpx.Timeout(600.0)


class Releasing(Connection):
    """What is live, what could be, and what people said of it."""

    def lineage(self) -> list[Node]:
        """Returns all releases as a drawing lays them out, newest first, each with when it was live and why."""
        from app.home.lineage import node_of

        return [node_of(one) for one in self.get("/v1/lineage")["releases"]]

    def releases(self) -> list[ListedRelease]:
        """Returns all releases, newest first."""
        return [ListedRelease.model_validate(one) for one in self.get("/v1/releases")["releases"]]

    def judged(self, name: str) -> dict[str, Any]:
        """Returns the gate's report on a release or an update's job; `gate` is null where nothing was judged."""
        if name[:1] == "j":
            judged = self.get(f"/v1/jobs/{address_part(name)}/gate")
        else:
            judged = self.get(f"/v1/releases/{address_part(name)}")["judged"]
        for side in ("lost", "won"):
            for moved in (judged["gate"] or {}).get(side, ()):
                # Addresses are for pages; what is left is the report as its makers wrote it.
                for extra in ("thumb_url", "first_thumb_url"):
                    moved.pop(extra, None)
        return dict(judged)

    def difference(self, a: str, b: str) -> Difference:
        """Returns what release `b` has that `a` has not, and the other way round."""
        from app.desk.releases import Difference

        return typed(Difference, self.get(f"/v1/releases/{address_part(a)}/difference/{address_part(b)}"))

    def drift(self, before: str, after: str, *, pairs: int | None = None) -> dict[str, Any]:
        """Returns how far the vectors of two releases have turned, on held-out pairs."""
        return self.get("/v1/drift", before=before, after=after, pairs=pairs)

    def promote(self, release: str, *, why: str = "", force: bool = False) -> WentLiveAnswer:
        """Makes a release live."""
        body = {"why": why, "force": force}
        return WentLiveAnswer.model_validate(self.post(f"/v1/releases/{address_part(release)}/promote", body))

    def roll_back(self, release: str | None = None, *, why: str = "") -> WentLiveAnswer:
        """Goes back to an earlier release; without a name, to the one that was live before."""
        return WentLiveAnswer.model_validate(
            self.post("/v1/rollback", given({"release": release, "why": why}))
        )

    def judge_release(self, release: str, said: str, *, why: str = "") -> dict[str, Any]:
        """Keeps a person's word on a candidate: `rejected`, which needs a reason, or `kept`."""
        route = {"rejected": "reject", "kept": "keep"}[said]
        return self.post(f"/v1/releases/{address_part(release)}/{route}", {"why": why})

    def pin_live(self, *, why: str = "") -> dict[str, Any]:
        """Pins what is live: updates that pass wait until somebody unpins it."""
        return self.post("/v1/pin", {"why": why})

    def unpin_live(self, *, why: str = "") -> dict[str, Any]:
        """Takes the pin away."""
        return self.post("/v1/unpin", {"why": why})

    def shadow(self, release: str) -> dict[str, Any]:
        """Returns what a release has shown when it was asked live queries in the shadow."""
        return self.get(f"/v1/releases/{address_part(release)}/shadow")

    def start_shadow(self, release: str, *, share: float | None = None) -> dict[str, Any]:
        """Has a candidate asked a share of the live queries; nobody sees its answers."""
        return self.post(f"/v1/releases/{address_part(release)}/shadow", given({"share": share}))

    def stop_shadow(self, release: str, *, why: str = "") -> dict[str, Any]:
        """Ends the shadow of a release; what it has shown is kept."""
        return self.post(f"/v1/releases/{address_part(release)}/shadow/stop", {"why": why})

    def save_release(self, release: str, to: Path) -> dict[str, Any]:
        """Writes a release into a file for another home.

        Args:
            release: its id or a unique beginning.
            to: a new file, or a folder that it goes into under its id.

        Returns:
            `release`, `path`, `bytes`, and the checksum `sha256`.

        Raises:
            UsageProblem: the file is there already, or its folder is not.
        """
        name = str(self.get(f"/v1/releases/{address_part(release)}")["id"])
        # It becomes a file's name, and another server may say anything.
        if address_part(name) != name:
            raise ServerAway(f"The server calls a release {name!r}, which is no name of one.")
        to = to / f"{name}{SUFFIX}" if to.is_dir() else to
        if to.exists() or not to.absolute().parent.is_dir():
            what = "is there already" if to.exists() else "lies in no folder that exists"
            raise UsageProblem(f"{to} {what}; name another file with --to.")
        partial = to.with_name(f".{to.name}.part")
        try:
            with self._stream("GET", f"/v1/releases/{name}/package", timeout=_PACKING) as stream:
                sha256 = _received(stream, partial)
            partial.rename(to)
        finally:
            partial.unlink(missing_ok=True)
        return {"release": name, "path": str(to), "bytes": to.stat().st_size, "sha256": sha256}

    def add_release(self, package: Path, *, sha256: str = "") -> JobRecord:
        """Uploads a release of another home and returns the job that takes it in.

        Args:
            package: what `export` wrote.
            sha256: its checksum, as its sender told it.
        """
        with package.open("rb") as opened:
            answer = self._ask(
                "POST", "/v1/packages", data={"sha256": sha256}, files={"file": (package.name, opened)}
            )
        return record_of(JobRecord, answer.json()["job"])


def _received(stream: httpx.Response, file: Path) -> str:
    """Writes a package that comes into a file and returns its checksum.

    Raises:
        ServerAway, PackageDamaged: it is not what the server sent.
    """
    with file.open("wb") as opened:
        for block in stream.iter_bytes():
            opened.write(block)
    sha256 = checksum(file)
    if sha256 != stream.headers.get("X-Perennial-Sha256"):
        raise ServerAway("The release did not arrive as it was sent. Export it again.")
    return sha256
