"""Judging a chunk before anything is trained on it: what is known of its pairs is gathered here, and asked.

Trusted captions of the same things, the live encoder's features (kept, so that learning does not compute them again),
and trusted pairs of the same domain are laid beside the chunk's own; `model_updates.trust` says what they show, and
`chunk_findings` says it to a person. A chunk with a finding that holds it teaches nothing until somebody accepts it;
its pictures are searchable all the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.desk.jobs import counted
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning import chunk_findings as say
from app.learning import going_live
from app.learning.caption_languages import confidences, in_another_language, profile_fits, sample_of
from app.learning.chunk_findings import ChunkSlice, merged
from app.learning.chunk_novelty import novelty_findings
from app.learning.outcomes import Tell
from app.learning.routes import stated_routes
from app.learning.untaught import untaught_finding
from app.learning.yardstick import trusted_chunks
from ingest.findings import Finding, Outcome, findings_in, holds
from ingest.pair import BASE_LANGUAGE, Pair, SliceKey, Split
from ingest.sentence import phrase
from ingest.standing import WITHDRAWN
from model_updates.features import image_features, text_features, trunk_features
from model_updates.language_profiles import LanguageProfile, letters_of
from model_updates.search_encoder import SearchEncoder, unit
from model_updates.trust.declared_language import better_profile, declared_language
from model_updates.trust.evidence import UploadedPairs
from model_updates.trust.exchanged import exchanged
from model_updates.trust.matching import FEWEST, Impression, matching
from model_updates.trust.repetition import repetition

REFERENCE = 1_500  # trusted pairs of a domain that are heard beside a chunk's
LOOKED_AT = 1_500  # pairs among which exchanged words are looked for
CHECKED_BY = "checks"


def check_chunk(
    workspace: Workspace,
    chunk_id: str,
    *,
    release: ReleaseRecord | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> tuple[Finding, ...]:
    """Returns what every check says of a chunk, one finding each.

    `release` is whose encoder and trusted chunks are asked; the live one when None. `progress` is told (slices judged,
    slices).

    Raises:
        UnknownChunk, NoRelease: there is none.
    """
    record = release or going_live.live_release(workspace)[1]
    chunk = workspace.catalog.chunk(chunk_id)
    gathered = _Gathered(workspace, record, workspace.open_searcher(record.version), chunk.id)
    found: list[Finding] = []
    own_english: dict[str, str] = {}
    slices = gathered.slices()
    for number, key in enumerate(sorted(slices, key=lambda key: (key.language != BASE_LANGUAGE, key))):
        progress(number, len(slices))
        one = gathered.slice(key, slices[key], own_english)
        judged = judge(one, gathered.encoder.profiles)
        if key.language == BASE_LANGUAGE and _is_clean(judged):
            own_english.update(zip(one.pairs.images, one.pairs.texts, strict=True))
        found += judged
    reasons = chunk.report.get("reasons", {})
    overlap = say.overlap_finding(chunk.report.get("copies", {}), int(reasons.get("split_conflict", 0)))
    novel = novelty_findings(workspace, chunk, gathered.encoder)
    live = workspace.open_generation(record.generation)
    untaught = untaught_finding(workspace, chunk.id, live)
    return merged([*found, *filter(None, (overlap, untaught)), *novel])


def judge_chunk(workspace: Workspace, chunk_id: str, tell: Tell, opened: Finding | None = None) -> None:
    """Makes the checks of a chunk and keeps what they find, with what `opened` says of its domain.

    Raises:
        As `check_chunk`.
    """
    judging = phrase("judging the captions before anything is learned from them")
    found = check_chunk(
        workspace, chunk_id, progress=lambda done, total: tell(counted("check", judging, done, total))
    )
    keep_findings(workspace, chunk_id, (*found, *([opened] if opened else [])))


def keep_findings(workspace: Workspace, chunk_id: str, findings: Sequence[Finding]) -> None:
    """Holds a chunk when one of the findings says so, and writes them into its report.

    In this order, for a chunk with findings counts as judged: whoever is stopped in between judges it again.
    """
    chunk = workspace.catalog.chunk(chunk_id)
    if holds(findings) and chunk.standing in {"new", "rejected"}:
        against = [f.sentence for f in findings if f.outcome in (Outcome.HOLD, Outcome.REJECT)]
        workspace.catalog.set_standing(chunk.id, "held", by=CHECKED_BY, why=" ".join(against))
    workspace.catalog.set_findings(chunk.id, findings)


def check_again(workspace: Workspace, chunk_id: str) -> tuple[Finding, ...]:
    """Judges a chunk whose pairs a person changed; one that only its checks held may teach when they find it clean now.

    What a person said of the chunk stays.

    Raises:
        UnknownChunk, NoRelease: there is none.
    """
    chunk = workspace.catalog.chunk(chunk_id)
    if chunk.standing == WITHDRAWN or not chunk.report.get("findings"):
        return ()  # nothing of it counts; or it comes from a time without checks
    findings = check_chunk(workspace, chunk.id)
    keep_findings(workspace, chunk.id, findings)
    if not holds(findings) and (chunk.standing, chunk.standing_by) == ("held", CHECKED_BY):
        why = "Its pairs were decided one by one; the checks were run again and hold nothing against it."
        workspace.catalog.set_standing(chunk.id, "new", by=CHECKED_BY, why=why)
    return findings


def judge(one: ChunkSlice, profiles: Mapping[str, LanguageProfile]) -> list[Finding]:
    """Runs every check on one language and domain of a chunk."""
    findings = [*judge_languages(one, profiles), *judge_repetition(one)]
    if any(finding.check == say.REPETITION and finding.outcome is Outcome.HOLD for finding in findings):
        return findings  # whose caption it is cannot be told when all have the same
    return findings + judge_match(one)


def judge_language(one: ChunkSlice, profiles: Mapping[str, LanguageProfile]) -> Finding:
    """Asks whether the captions are in the language of the upload."""
    tag, asked = one.key.language, sample_of(one.pairs.texts)
    texts = [one.pairs.texts[at] for at in asked]
    letters = [len(letters_of(text)) for text in texts]
    seen = declared_language(tag, confidences(texts, tag), letters) if texts else None
    # lingua has the first word on what it knows; profiles of names are a weaker witness.
    rival = None if seen is None or seen.knows else better_profile(tag, profile_fits(texts, profiles))
    return say.language_finding(one, asked, seen, rival)


def judge_languages(one: ChunkSlice, profiles: Mapping[str, LanguageProfile]) -> list[Finding]:
    """Asks whether the captions are in the language of the upload, most of them and each of them."""
    most = judge_language(one, profiles)
    if most.outcome is Outcome.HOLD:
        return [most]  # what the rest reads as is no longer the question
    seen = in_another_language(one.pairs.texts, one.key.language, profiles)
    return [most] if seen is None else [most, say.mixture_finding(one, seen)]


def judge_repetition(one: ChunkSlice) -> list[Finding]:
    """Counts what repeats among captions, pictures and held-out pictures."""
    held = [split is Split.TEST for split in one.splits]
    return say.repetition_findings(one, repetition(one.pairs.texts, one.pairs.images, one.pairs.groups, held))


def judge_match(one: ChunkSlice) -> list[Finding]:
    """Asks whether the captions belong to their pictures."""
    pairs = one.pairs
    answer = matching(pairs, one.parts, reference=one.reference)
    findings = say.match_findings(one, answer)
    if answer.found is not Impression.MOVED and pairs.text_vectors is not None and len(pairs) >= FEWEST:
        findings.append(say.exchange_finding(one, exchanged(*_scores(pairs))))
    if answer.found is not Impression.MOVED:
        findings += _on_known_pictures(one)
    return findings


def _on_known_pictures(one: ChunkSlice) -> list[Finding]:
    """Judges the captions of pictures that have trusted ones by themselves, where they are a small part of a chunk."""
    at = np.flatnonzero([bool(text) for text in one.pairs.beside])
    if len(at) < FEWEST or len(at) >= len(one.pairs) / 2:
        return []
    known = replace(one, pairs=one.pairs.part(at), splits=[one.splits[int(n)] for n in at], reference=None)
    seen = matching(known.pairs, known.parts)
    return [f for f in say.match_findings(known, seen, say.KNOWN) if f.check == say.KNOWN]


def _scores(pairs: UploadedPairs) -> tuple[NDArray[np.float32], list[str]]:
    assert pairs.picture_vectors is not None  # noqa: S101 - they come with the captions' vectors
    assert pairs.text_vectors is not None  # noqa: S101
    some = slice(0, LOOKED_AT)
    scores = unit(pairs.picture_vectors[some]) @ unit(pairs.text_vectors[some]).T
    return np.asarray(scores, dtype=np.float32), list(pairs.texts[some])


def _is_clean(findings: Iterable[Finding]) -> bool:
    """Whether captions were found to fit their pictures, and nothing speaks against them."""
    found = list(findings)
    return not holds(found) and any(f.check == say.MATCH and f.outcome is Outcome.ACCEPT for f in found)


def believed_chunks(workspace: Workspace, release: ReleaseRecord) -> frozenset[str]:
    """Returns the ids of the chunks whose captions may speak for or against others of the same pictures.

    What was learned or accepted is believed, and what was found to fit its pictures; captions that no check could
    judge would let others with the same mistake pass.
    """
    fits = {
        chunk.id
        for chunk in workspace.catalog.chunks()
        if chunk.standing == "accepted"
        or (chunk.standing == "new" and _fits_its_pictures(findings_in(chunk.report)))
    }
    return trusted_chunks(workspace, release) | fits


def _fits_its_pictures(findings: Iterable[Finding]) -> bool:
    matched = [finding.outcome for finding in findings if finding.check == say.MATCH]
    return bool(matched) and all(outcome is Outcome.ACCEPT for outcome in matched)


@dataclass(frozen=True)
class _Gathered:
    """What is known beside a chunk."""

    workspace: Workspace
    release: ReleaseRecord
    encoder: SearchEncoder
    chunk: str
    # captions that may be believed, by language and group
    _said: dict[str, dict[str, str]] = field(default_factory=dict)

    def slices(self) -> dict[SliceKey, list[Pair]]:
        found: dict[SliceKey, list[Pair]] = {}
        for pair in self.workspace.catalog.pairs(chunk=self.chunk):
            found.setdefault(SliceKey(pair.language, pair.domain), []).append(pair)
        return found

    def slice(self, key: SliceKey, pairs: Sequence[Pair], own_english: dict[str, str]) -> ChunkSlice:
        beside = self._beside(key, [pair.image_id for pair in pairs], own_english)
        reference = None if sum(map(bool, beside)) * 2 >= len(pairs) else self._reference(key)
        return ChunkSlice(
            key, self._pair_set(pairs, key.language, beside), [pair.split for pair in pairs], reference
        )

    def _beside(self, key: SliceKey, ids: Sequence[str], own_english: dict[str, str]) -> list[str]:
        """Returns for each picture a caption of the same thing that may be believed: in its language, else English."""
        groups = self.workspace.catalog.groups(set(ids))
        found = dict(own_english) if key.language != BASE_LANGUAGE else {}
        found = {groups[image_id]: text for image_id, text in found.items() if image_id in groups}
        for language in dict.fromkeys((BASE_LANGUAGE, key.language)):
            found.update(self._trusted(language))
        return [found.get(groups[image_id], "") for image_id in ids]

    @cached_property
    def _believed(self) -> frozenset[str]:
        return believed_chunks(self.workspace, self.release) - {self.chunk}

    def _trusted(self, language: str) -> dict[str, str]:
        """Returns a caption of each thing that may be believed, by group; all slices ask for English."""
        if language not in self._said:
            trusted = self.workspace.catalog.pairs(language=language, chunks=self._believed)
            theirs = self.workspace.catalog.groups({pair.image_id for pair in trusted})
            self._said[language] = {theirs[pair.image_id]: pair.text for pair in reversed(trusted)}
        return self._said[language]

    def _reference(self, key: SliceKey) -> UploadedPairs | None:
        """Returns pairs of the domain that may be believed in the same language, or in any when that is new."""
        learned = key.language in self.release.manifest.languages
        pairs = self.workspace.catalog.pairs(domain=key.domain, chunks=self._believed)
        spoken = [pair for pair in pairs if pair.language == key.language]
        if len(spoken) < FEWEST and learned:
            return None
        if len(spoken) < FEWEST:
            tags = [pair.language for pair in pairs]
            commonest = max(set(tags), key=tags.count, default="")
            spoken = [pair for pair in pairs if pair.language == commonest]
        if len(spoken) < FEWEST:
            return None
        spoken = spoken[:: max(1, len(spoken) // REFERENCE)][:REFERENCE]
        return self._pair_set(spoken, key.language if learned else "", [""] * len(spoken))

    def _pair_set(self, pairs: Sequence[Pair], language: str, beside: Sequence[str]) -> UploadedPairs:
        """Returns pairs with features; with vectors of the encoder only when it has learned the language."""
        workspace, encoder = self.workspace, self.encoder
        ids = [pair.image_id for pair in pairs]
        groups = workspace.catalog.groups(set(ids))
        trunk = trunk_features(encoder, ids, workspace.load_image, workspace.features)
        pictures = texts = None
        if language in self.release.manifest.languages:
            routes = stated_routes(workspace, encoder, ids)
            pictures = image_features(encoder, ids, workspace.load_image, workspace.features, routes=routes)
            texts = text_features(encoder, [pair.text for pair in pairs], language, workspace.features)
        return UploadedPairs(
            texts=[pair.text for pair in pairs],
            images=ids,
            groups=[groups[image_id] for image_id in ids],
            beside=beside,
            pictures=trunk,
            picture_vectors=pictures,
            text_vectors=texts,
        )
