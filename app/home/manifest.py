"""What a release's maker wrote down about it: one record, from which everybody reads.

Its folder keeps it as `manifest.json`. A field that an older Perennial did not write takes its default; what a newer
one adds is ignored, so that a home may go back to an older program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from app.desk.releases import SliceSummary
from ingest.sentence import from_stored


@dataclass(frozen=True)
class ReleaseManifest:
    """A version, a generation, and what is known about the two together.

    Attributes:
        version: id of its version.
        generation: id of its generation.
        languages: learned, in the order of learning.
        chunks: taught, in the order of teaching.
        strategy: that trained the version; None for the base encoder.
        options: of the strategy.
        seed: of the update.
        mode: none, delta or full: how the gallery got its vectors.
        images_embedded: pictures that went through the image tower for it.
        integrity: figures of the integrity gate.
        parent: id of the release it was made from.
        judged_against: number of the commit that was live when the gate judged it.
        gate: the gate report as plain values; None when it passed through no gate.
        training: the training report as plain values.
        slices: what was measured.
        created: ISO 8601, UTC.
        version_sha256: of the version's manifest; written by publishing.
        generation_sha256: of the generation's manifest; written by publishing.
        files: size and sha256 of the files beside the manifest, by name; written by publishing.
    """

    version: str
    generation: str
    languages: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()
    strategy: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    mode: str | None = None
    images_embedded: int | None = None
    integrity: Mapping[str, float] = field(default_factory=dict)
    parent: str | None = None
    judged_against: int | None = None
    gate: Mapping[str, Any] | None = None
    training: Mapping[str, Any] | None = None
    slices: tuple[SliceSummary, ...] = ()
    created: str | None = None
    version_sha256: str = ""
    generation_sha256: str = ""
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def verdict(self) -> str | None:
        """The gate's verdict, if it passed through one."""
        return None if self.gate is None else str(self.gate.get("verdict"))

    def successor(self, parent: str, **changes: Any) -> ReleaseManifest:
        """Returns the manifest of a release made from this one.

        Args:
            parent: this one's id.
            **changes: what differs; everything else is kept, except what belongs to one publishing alone.
        """
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
