"""What a release's maker wrote down about it: one record, from which everybody reads.

Its folder keeps it as `manifest.json`. A field that an older Perennial did not write takes its default; what a newer
one adds is ignored, so that a home may go back to an older program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from app.desk.slices import SliceSummary
from ingest.sentence import from_stored


@dataclass(frozen=True)
class ReleaseManifest:
    """A version, a generation, and what is known about the two together."""

    version: str  # id of its version
    generation: str  # id of its generation
    languages: tuple[str, ...] = ()  # learned, in the order of learning
    chunks: tuple[str, ...] = ()  # taught, in the order of teaching
    strategy: str | None = None  # that trained the version; None for the base encoder
    options: Mapping[str, Any] = field(default_factory=dict)  # of the strategy
    seed: int | None = None  # of the update
    mode: str | None = None  # none, delta or full: how the gallery got its vectors
    images_embedded: int | None = None  # pictures that went through the image tower for it
    integrity: Mapping[str, float] = field(default_factory=dict)  # figures of the integrity gate
    parent: str | None = None  # id of the release it was made from
    judged_against: int | None = None  # number of the commit that was live when the gate judged it
    # the gate report as plain values; None when it passed through no gate
    gate: Mapping[str, Any] | None = None
    training: Mapping[str, Any] | None = None  # the training report as plain values
    slices: tuple[SliceSummary, ...] = ()  # what was measured
    created: str | None = None  # ISO 8601, UTC
    version_sha256: str = ""  # of the version's manifest; written by publishing
    generation_sha256: str = ""  # of the generation's manifest; written by publishing
    # size and sha256 of the files beside the manifest, by name; written by publishing
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def verdict(self) -> str | None:
        """The gate's verdict, if it passed through one."""
        return None if self.gate is None else str(self.gate.get("verdict"))

    def successor(self, parent: str, **changes: Any) -> ReleaseManifest:
        """Returns the manifest of a release made from this one; what belongs to one publishing alone is not kept."""
        kept = replace(
            self, parent=parent, judged_against=None, version_sha256="", generation_sha256="", files={}
        )
        return replace(kept, **changes)

    def to_json(self) -> dict[str, Any]:
        """Returns the manifest as plain values, sentences among them."""
        return asdict(self) | {"slices": [summary.to_json() for summary in self.slices]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ReleaseManifest:
        """Reads what `to_json` wrote, or an older Perennial.

        Raises:
            KeyError, TypeError: it is no release's manifest.
        """
        known = {f.name: from_stored(data[f.name]) for f in fields(cls) if f.name in data}
        lists = {name: tuple(known.get(name) or ()) for name in ("languages", "chunks")}
        slices = tuple(SliceSummary.from_json(entry) for entry in known.get("slices") or ())
        return cls(**known | lists | {"slices": slices})
