"""What the statistics on a chunk mean, in sentences that a person can act on, with the pairs that show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ingest.findings import Example, Figure, Finding, Outcome
from ingest.pair import SliceKey, Split
from ingest.sentence import Sentence, joined, phrase, template
from model_updates.trust.declared_language import DeclaredLanguage
from model_updates.trust.evidence import ENCODER, WORDS, UploadedPairs
from model_updates.trust.exchanged import Exchange
from model_updates.trust.matching import FEWEST, REFERENCE, Impression, Matching
from model_updates.trust.mismatch import Mismatch
from model_updates.trust.other_language import OtherLanguage
from model_updates.trust.repetition import Repetition

EXAMPLES = 12
MIXTURE, TOO_MIXED = "mixed_languages", 0.2  # of the captions
LANGUAGE, MATCH, SHIFT, EXCHANGE = "declared_language", "captions_match", "row_shift", "exchanged_words"
REPETITION, HELD_OUT, KNOWN, OVERLAP = "repetition", "held_out_copies", "known_pictures", "overlap"
TRAINING, MEASURING = phrase("training part"), phrase("held-out part")
_WORST_FIRST = (Outcome.REJECT, Outcome.HOLD, Outcome.UNKNOWN, Outcome.ACCEPT)
_TOLD_BY = {
    WORDS: phrase("by captions of the same pictures that nobody has objected to"),
    ENCODER: phrase("by the live encoder, which knows the language"),
    REFERENCE: phrase("beside trusted pairs of the same domain"),
    "": phrase("by what the pictures look like"),
}
_MOVED_DOWN = template(
    "{slice}: captions look moved by {rows} down from pair {first} (“{caption}”) to pair {last} of {pairs}: what "
    "stands {rows} further down fits far better (by {certainty} deviations). Move these captions back and upload the "
    "chunk again."
)
_MOVED_UP = template(
    "{slice}: captions look moved by {rows} up from pair {first} (“{caption}”) to pair {last} of {pairs}: what "
    "stands {rows} further up fits far better (by {certainty} deviations). Move these captions back and upload the "
    "chunk again."
)


@dataclass(frozen=True)
class ChunkSlice:
    """One language and domain of a chunk, with what is known of it."""

    key: SliceKey  # language and domain
    pairs: UploadedPairs  # in the order of the upload
    splits: Sequence[Split]  # (n,) of the pictures
    # trusted pairs of the same domain; None when there are none
    reference: UploadedPairs | None = field(default=None, repr=False)

    @property
    def parts(self) -> dict[str, NDArray[np.intp]]:
        """Positions of what is trained on (validation pictures among them) and of what is held out."""
        held = np.asarray([split is Split.TEST for split in self.splits])
        return {TRAINING: np.flatnonzero(~held), MEASURING: np.flatnonzero(held)}

    def example(self, at: int, why: str) -> Example:
        """Returns one pair as an example."""
        return Example(self.pairs.images[at], self.key.language, self.pairs.texts[at], why)


def match_findings(one: ChunkSlice, seen: Matching, check: str = MATCH) -> list[Finding]:
    """Returns what the agreement of captions and pictures means: a finding on rows, and one on single pairs."""
    if seen.found is Impression.FEW or seen.mismatch is None or seen.shift is None:
        size = len(one.pairs)
        sentence = phrase(
            "{slice}: {pairs} pairs are too few to say whether the captions belong to their "
            "pictures; {fewest} would do. Look at them yourself.",
            slice=one.key,
            pairs=size,
            fewest=FEWEST,
        )
        return [Finding(check, Outcome.UNKNOWN, sentence, {"pairs": size})]
    if seen.found is Impression.MOVED:
        return [_moved(one, seen)]
    shift = seen.shift
    order = Finding(
        SHIFT,
        Outcome.ACCEPT,
        phrase("{slice}: no other order of the rows fits better than the uploaded one.", slice=one.key),
        {"tie": round(seen.tie, 2), "certainty": round(shift.certainty, 2)},
    )
    return [_matched(one, seen, check), order]


def _moved(one: ChunkSlice, seen: Matching) -> Finding:
    shift, pairs = seen.shift, one.pairs
    assert shift is not None  # noqa: S101 - the caller looked
    rows = phrase("one row") if abs(shift.rows) == 1 else phrase("{count} rows", count=abs(shift.rows))
    is_down = shift.rows > 0
    way = phrase("further down") if is_down else phrase("further up")
    sentence = phrase(
        _MOVED_DOWN if is_down else _MOVED_UP,
        slice=one.key,
        rows=rows,
        first=shift.first + 1,
        caption=pairs.texts[shift.first],
        last=shift.last + 1,
        pairs=len(pairs),
        certainty=f"{shift.certainty:.0f}",
    )
    fitting = {at: at + shift.rows for at in range(shift.first, shift.last + 1)}
    examples = [
        one.example(at, phrase("{rows} {way} stands “{text}”.", rows=rows, way=way, text=pairs.texts[other]))
        for at, other in fitting.items()
        if 0 <= other < len(pairs)
    ]
    figures: dict[str, Figure] = {
        "rows": shift.rows,
        "first_pair": shift.first + 1,
        "last_pair": shift.last + 1,
        "pairs": len(pairs),
        "certainty": round(shift.certainty, 2),
    }
    return Finding(SHIFT, Outcome.HOLD, sentence, figures, tuple(examples[:EXAMPLES]))


def _matched(one: ChunkSlice, seen: Matching, check: str) -> Finding:
    judged = seen.mismatch
    assert judged is not None  # noqa: S101 - the caller looked
    figures = _match_figures(one, seen, judged)
    about = phrase(
        "about {share} ({low} to {high})",
        share=f"{judged.share:.0%}",
        low=f"{judged.low:.0%}",
        high=f"{judged.high:.0%}",
    )
    told = _TOLD_BY[seen.why_told]
    if seen.found is Impression.UNRELATED:
        sentence = phrase(
            "{slice}: nothing ties the captions to their pictures: they fit no better than "
            "captions of other pictures do, judged {told}. They look shuffled, or belong "
            "elsewhere. Check the table against them.",
            slice=one.key,
            told=told,
        )
        return Finding(check, Outcome.HOLD, sentence, figures, _doubtful(one, seen))
    if seen.found is Impression.UNTOLD:
        sentence = phrase(
            "{slice}: not judged. A caption outscores those of other pictures in {power} of all cases, judged {told}, "
            "which is too little to say how many belong to other pictures (50 % is chance). Captions in a known "
            "language beside them would tell. These captions speak for no others, and the gate judges what is learned "
            "from them.",
            slice=one.key,
            power=f"{seen.power:.0%}",
            told=told,
        )
        return Finding(check, Outcome.UNKNOWN, sentence, figures)
    if seen.found is Impression.MISMATCHED:
        sentence = phrase(
            "{slice}: {about} of the captions do not fit their pictures{where}, judged {told}; clean chunks stay below "
            "{limit}. {count} pairs are doubtful, the worst are shown: correct them, or upload the chunk again with "
            "its captions in place.",
            slice=one.key,
            about=about,
            where=_worst_part(seen),
            told=told,
            limit=f"{seen.too_many:.0%}",
            count=len(judged.doubtful),
        )
        return Finding(check, Outcome.HOLD, sentence, figures, _doubtful(one, seen))
    sentence = _fitting(one, seen, told, about, doubtful=len(judged.doubtful))
    return Finding(check, Outcome.ACCEPT, sentence, figures, _doubtful(one, seen))


def _match_figures(one: ChunkSlice, seen: Matching, judged: Mismatch) -> dict[str, Figure]:
    figures: dict[str, Figure] = {
        "pairs": len(one.pairs),
        "mismatched_share": round(judged.share, 3),
        "low": round(judged.low, 3),
        "high": round(judged.high, 3),
        "too_many_from": round(seen.too_many, 3),
        "told_by": seen.why_told or "nothing",
        "power": round(seen.power, 3),
        "doubtful": len(judged.doubtful),
    }
    for name, (share, _, _) in (seen.by_part or {}).items():
        figures[f"{name.replace(' ', '_').replace('-', '_')}_share"] = round(share, 3)
    return figures


def _fitting(one: ChunkSlice, seen: Matching, told: Sentence, about: Sentence, *, doubtful: int) -> Sentence:
    said = [
        phrase(
            "{slice}: the captions fit their pictures, judged {told}; at most {about} do not.",
            slice=one.key,
            told=told,
            about=about,
        )
    ]
    if doubtful:
        said.append(phrase("{count} doubtful pairs are listed.", count=doubtful))
    said += [
        phrase(
            "In the {part} they seem to fit less (about {share} do not), which says nothing: the live encoder knows "
            "the other part by heart.",
            part=name,
            share=f"{(seen.by_part or {})[name][0]:.0%}",
        )
        for name in seen.unread
    ]
    return joined(said)


def _worst_part(seen: Matching) -> str:
    parts = seen.by_part or {}
    worst = max(parts, key=lambda name: parts[name][0], default="")
    if len(parts) < 2 or parts[worst][0] < 2 * min(share for share, _, _ in parts.values()):
        return ""
    return phrase(" (about {share} in the {part})", share=f"{parts[worst][0]:.0%}", part=worst)


def _doubtful(one: ChunkSlice, seen: Matching) -> tuple[Example, ...]:
    judged = seen.mismatch
    if judged is None:
        return ()
    return tuple(
        one.example(
            int(at),
            phrase("Belongs to another picture with a chance of {share}.", share=f"{judged.doubt[at]:.0%}"),
        )
        for at in judged.doubtful[:EXAMPLES]
    )


def language_finding(
    one: ChunkSlice, asked: Sequence[int], seen: DeclaredLanguage | None, rival: str | None
) -> Finding:
    """Returns what the captions' language means. `rival` is a learned language whose profile fits better."""
    tag = one.key.language
    if seen is None:
        sentence = phrase(
            "{slice}: {captions} different captions with letters are too few to say whether they are in {tag}.",
            slice=one.key,
            captions=len(asked),
            tag=tag,
        )
        return Finding(LANGUAGE, Outcome.UNKNOWN, sentence, {"captions": len(asked)})
    figures: dict[str, Figure] = {
        "captions": len(asked),
        "declared": tag,
        "confidence_declared": round(seen.declared_confidence, 3),
        "confidence_other": round(seen.confidence, 3),
    }
    looks = seen.looks or rival
    if looks is None:
        sentence = phrase(
            "{slice}: the captions do not look like another language than {tag}.", slice=one.key, tag=tag
        )
        if not seen.knows:
            unknown = phrase(
                "No detector here knows {tag}: only other languages could be ruled out.", tag=tag
            )
            sentence = joined((sentence, unknown))
        return Finding(LANGUAGE, Outcome.ACCEPT, sentence, figures)
    figures["looks"] = looks
    sentence = phrase(
        "{slice}: most captions look like {looks} and not like {tag} (mean confidence {a} "
        "against {b}). Correct the language of the upload, or say why {tag} is right.",
        slice=one.key,
        looks=looks,
        tag=tag,
        a=f"{seen.confidence:.2f}",
        b=f"{seen.declared_confidence:.2f}",
    )
    examples = tuple(
        one.example(asked[int(at)], phrase("looks like {language}", language=looks))
        for at in seen.captions[:EXAMPLES]
    )
    return Finding(LANGUAGE, Outcome.HOLD, sentence, figures, examples)


def mixture_finding(one: ChunkSlice, seen: OtherLanguage) -> Finding:
    """Returns which captions to declare anew because they read as another language than the rest."""
    rows = np.flatnonzero(seen.rows)
    sentence = phrase(
        "{slice}: {count} of {pairs} captions read as {looks} and not as {tag}. Give them that language, or take them "
        "out. What is learned is judged without them.",
        slice=one.key,
        count=len(rows),
        pairs=len(one.pairs),
        looks=seen.language,
        tag=one.key.language,
    )
    figures: dict[str, Figure] = {
        "looks": seen.language,
        "captions": len(rows),
        "pairs": len(one.pairs),
        "surely": round(seen.share, 3),
        "too_many_from": TOO_MIXED,
    }
    reads = phrase("reads as {language}", language=seen.language)
    shown = tuple(one.example(int(at), reads) for at in rows[:EXAMPLES])
    outcome = Outcome.HOLD if seen.share >= TOO_MIXED else Outcome.ACCEPT
    return Finding(MIXTURE, outcome, sentence, figures, shown)


def repetition_findings(one: ChunkSlice, seen: Repetition) -> list[Finding]:
    """Returns what repeated captions and near-copies mean."""
    figures: dict[str, Figure] = {
        "pictures": seen.pictures,
        "things": seen.things,
        "captions": seen.captions,
        "commonest_share": round(seen.caption_share, 3),
    }
    if seen.one_caption:
        sentence = phrase(
            "{slice}: one caption, “{caption}”, stands on {share} of the pictures, and "
            "there are {captions} different ones in all. Give each picture a caption that tells "
            "it from others.",
            slice=one.key,
            caption=seen.caption,
            share=f"{seen.caption_share:.0%}",
            captions=seen.captions,
        )
        at = [n for n, text in enumerate(one.pairs.texts) if text.casefold().strip() == seen.caption]
        shown = tuple(one.example(n, phrase("the same caption")) for n in at[:EXAMPLES])
        repeated = Finding(REPETITION, Outcome.HOLD, sentence, figures, shown)
    else:
        sentence = phrase(
            "{slice}: {captions} different captions on {pictures} pictures of {things} things.",
            slice=one.key,
            captions=seen.captions,
            pictures=seen.pictures,
            things=seen.things,
        )
        repeated = Finding(REPETITION, Outcome.ACCEPT, sentence, figures)
    counted: dict[str, Figure] = {"held_out_pictures": seen.held_out, "held_out_things": seen.held_out_things}
    if seen.few_things:
        sentence = phrase(
            "{slice}: the {held_out} held-out pictures are near copies of {held_out_things} "
            "things, so they measure next to nothing. Hold out pictures of different things, or "
            "leave the split to us.",
            slice=one.key,
            held_out=seen.held_out,
            held_out_things=seen.held_out_things,
        )
        held = [n for n in one.parts[MEASURING].tolist()][:EXAMPLES]
        shown = tuple(one.example(n, phrase("one of the near copies")) for n in held)
        return [repeated, Finding(HELD_OUT, Outcome.HOLD, sentence, counted, shown)]
    sentence = phrase(
        "{slice}: {held_out} held-out pictures of {held_out_things} different things.",
        slice=one.key,
        held_out=seen.held_out,
        held_out_things=seen.held_out_things,
    )
    return [repeated, Finding(HELD_OUT, Outcome.ACCEPT, sentence, counted)]


def overlap_finding(copies: Mapping[str, int], conflicts: int) -> Finding | None:
    """Returns what intake found of pictures that are known already; None when there are none.

    `copies` are counts of near-copies, as the intake report has them; `conflicts` rows that were held because they
    state another split than their picture has.
    """
    held_out, known = copies.get("of_held_out", 0), copies.get("of_known", 0)
    if not held_out and not known and not conflicts:
        return None
    sentence = phrase(
        "{known} new pictures are near copies of known ones, {held_out} of them of held-out "
        "ones: those are held out too, and never trained on. {conflicts} rows stated another "
        "split than their picture has, and were left out.",
        known=known,
        held_out=held_out,
        conflicts=conflicts,
    )
    figures: dict[str, Figure] = {
        "copies_of_known": known,
        "copies_of_held_out": held_out,
        "conflicts": conflicts,
    }
    return Finding(OVERLAP, Outcome.ACCEPT, sentence, figures)


def exchange_finding(one: ChunkSlice, found: Sequence[Exchange]) -> Finding:
    """Returns what exchanged words mean."""
    if not found:
        return Finding(
            EXCHANGE,
            Outcome.ACCEPT,
            phrase("{slice}: no two words look exchanged.", slice=one.key),
            {"couples": 0},
        )
    couples = "; ".join(f"“{couple.one}” and “{couple.other}”" for couple in found[:3])
    number = sum(couple.captions for couple in found)
    sentence = phrase(
        "{slice}: {couples} look exchanged: the live encoder finds the pictures of one by the "
        "captions with the other ({number} captions). Correct them, or say why they are right.",
        slice=one.key,
        couples=couples,
        number=number,
    )
    names = {word for couple in found for word in (couple.one, couple.other)}
    at = [n for n, text in enumerate(one.pairs.texts) if names & set(text.casefold().split())]
    figures: dict[str, Figure] = {
        "couples": len(found),
        "captions": number,
        "words": [f"{c.one} / {c.other}" for c in found],
    }
    shown = tuple(one.example(n, phrase("has an exchanged word")) for n in at[:EXAMPLES])
    return Finding(EXCHANGE, Outcome.HOLD, sentence, figures, shown)


def merged(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Returns one finding of each check: the worst outcome of all slices, the sentences of those that share it."""
    by_check: dict[str, list[Finding]] = {}
    for finding in findings:
        by_check.setdefault(finding.check, []).append(finding)
    return tuple(_worst(found) for found in by_check.values())


def _worst(found: Sequence[Finding]) -> Finding:
    outcome = min((finding.outcome for finding in found), key=_WORST_FIRST.index)
    worst = [finding for finding in found if finding.outcome is outcome]
    if len(worst) == 1:
        return worst[0]
    room = max(1, EXAMPLES // len(worst))
    examples = tuple(example for finding in worst for example in finding.examples[:room])[:EXAMPLES]
    said = [finding.sentence for finding in worst[:4]]
    if len(worst) > 4:
        said.append(phrase("And {count} slices more.", count=len(worst) - 4))
    sentence = joined(said)
    return Finding(worst[0].check, outcome, sentence, worst[0].figures, examples)
