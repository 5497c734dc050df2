"""What the parts of one upload yield together, and the report of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ingest.catalog import Catalog
from ingest.checks import Accepted
from ingest.grouping import Settled
from ingest.harvest import Harvest, slices_of
from ingest.held_out import held_out, too_few_note
from ingest.pair import BASE_LANGUAGE, ImageId, SliceKey, Split
from ingest.plan import IntakePlan
from ingest.records import NewImage, Recorded
from ingest.report import IntakeReport, ReportRow, copies_note, rescan_notes, withheld_note


@dataclass
class Tally:
    """Everything that was taken in so far."""

    chunk_id: str = ""  # empty until a part has it
    name: str = ""
    recorded: Recorded = field(default_factory=lambda: Recorded(0, 0, known_chunk=False))  # of all parts
    images: dict[ImageId, NewImage] = field(default_factory=dict)
    pairs: list[Accepted] = field(default_factory=list)
    rows: list[ReportRow] = field(default_factory=list)
    settled: dict[ImageId, Settled] = field(default_factory=dict)
    copies: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def add(self, harvest: Harvest) -> None:
        """Counts what one part yields."""
        self.images |= harvest.images
        self.pairs += harvest.pairs
        self.rows += harvest.rows
        self.settled |= harvest.settled
        self.copies.update(harvest.copies())
        self.notes += [note for note in harvest.notes if note not in self.notes]

    def with_part(self, part: Recorded, *, is_first: bool) -> Recorded:
        """Returns what recording all parts changed; the first one says whether the chunk was known."""
        so_far = self.recorded
        return Recorded(
            so_far.new_images + part.new_images,
            so_far.new_pairs + part.new_pairs,
            known_chunk=part.known_chunk if is_first else so_far.known_chunk,
            returned=part.returned if is_first else so_far.returned,
            withheld=so_far.withheld + part.withheld,
        )

    def report(
        self,
        catalog: Catalog,
        plan: IntakePlan,
        recorded: Recorded,
        *,
        unchanged: int = 0,
        moved: int = 0,
        gone: int = 0,
        forgotten: int = 0,
    ) -> IntakeReport:
        """Returns the report of all that was counted."""
        outcomes = Counter(row.outcome for row in self.rows)
        held_out_counts = {
            key: len(held_out(self.settled, ids))
            for key, ids in sorted(slices_of(self.pairs, self.images).items())
        }
        copies = dict(self.copies) or {"in_upload": 0, "of_known": 0, "of_held_out": 0}
        found = (
            copies_note(copies),
            too_few_note(held_out_counts),
            *rescan_notes(unchanged, moved, gone, forgotten),
        )
        return IntakeReport(
            chunk_id=self.chunk_id,
            name=self.name,
            new_pairs=recorded.new_pairs,
            known_pairs=len(self.pairs) - recorded.new_pairs,
            new_images=recorded.new_images,
            held=outcomes["held"],
            rejected=outcomes["rejected"],
            per_slice=self._per_slice(),
            english_share=_english_share(catalog, self.pairs),
            notes=(*self._known(recorded), *plan.notes, *self.notes, *filter(None, found)),
            rows=tuple(self.rows),
            held_out={str(key): count for key, count in held_out_counts.items()},
            copies=copies,
            unchanged=unchanged,
            moved=moved,
            gone=gone,
            forgotten=forgotten,
            detected=plan.detected,
        )

    def _known(self, recorded: Recorded) -> list[str]:
        known = (
            [f"already have chunk {self.chunk_id}: {recorded.new_pairs} new"] if recorded.known_chunk else []
        )
        if recorded.returned:
            known = [f"chunk {self.chunk_id} was withdrawn; it is taken in again, as new, and searched again"]
        if recorded.withheld:
            known.append(withheld_note(recorded.withheld))
        return known

    def _per_slice(self) -> dict[str, dict[str, int]]:
        counts: dict[SliceKey, Counter[Split]] = {}
        for pair in self.pairs:
            image = self.images[pair.image_id]
            counts.setdefault(SliceKey(pair.language, image.domain), Counter())[image.split] += 1
        return {str(key): {split.value: counts[key][split] for split in Split} for key in sorted(counts)}


def _english_share(catalog: Catalog, pairs: Sequence[Accepted]) -> float | None:
    foreign = [pair.image_id for pair in pairs if pair.language != BASE_LANGUAGE]
    if not foreign:
        return None
    english = {pair.image_id for pair in pairs if pair.language == BASE_LANGUAGE}
    english |= catalog.captions_in(BASE_LANGUAGE, set(foreign)).keys()
    return sum(image_id in english for image_id in foreign) / len(foreign)
