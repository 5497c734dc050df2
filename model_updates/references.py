"""References: what strategies are measured against although nothing learns, so that no chunk can be taught by them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ReferenceLine:
    """One line to draw beside the strategies."""

    name: str  # what tables call it
    summary: str  # one sentence on what it does and what it shows
    paper: str  # where it comes from
    # what a query must bring beside its text, in a few words; "nothing" for a text alone
    query_needs: str = "nothing"


ZERO_SHOT = ReferenceLine(
    name="zero-shot",
    summary="Learns nothing: every query goes to the encoder as it was before the first update; the lower line.",
    paper="the pretrained encoder, in all five papers",
)
TRANSLATE_TEST = ReferenceLine(
    name="translate-test",
    summary="Learns nothing: the English translation of a query, where one is at hand, goes to the encoder as it was.",
    paper="translate-test CLIP, CLL-CLIP with TEIR (AAAI 2024), Figure 5",
    query_needs="its translation into English",
)

REFERENCES: dict[str, ReferenceLine] = {
    reference.name: reference for reference in (ZERO_SHOT, TRANSLATE_TEST)
}
