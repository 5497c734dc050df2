"""A chunk proposed by what people said: a query and the picture that somebody found right for it are a pair.

Nothing learns from it by itself. A person looks the pairs through, and the chunk that is made of those that stay is
taken in like any upload: checked, and held until it is accepted.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from app.desk.errors import UsageProblem
from app.desk.hits import AUTO
from app.desk.opinions import Proposal, ProposedPair
from app.home.workspace import Workspace
from app.language.detection import UNDETERMINED
from app.query.grammar import as_text
from ingest.captions import normalise_caption
from ingest.errors import BadCaption
from ingest.feedback import FeedbackRecord
from ingest.records import ImageRecord
from ingest.upload_zip import write_upload

COLUMNS = ("image", "caption", "language", "domain")
_ID_SHOWN = 24

Read = Callable[[str], str]
"""Which language a query is in, as search reads it; `und` where nobody can tell."""


def propose(workspace: Workspace, read: Read) -> Proposal:
    """Returns the pairs that thumbs up and canaries make; `read` tells the language of queries asked without one."""
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    unusable = 0
    for image_id, query, language, ups, downs in _judged(workspace):
        text = _plain(query)
        spoken = (read(text) if language == AUTO else language) if text else UNDETERMINED
        if spoken == UNDETERMINED:
            unusable += 1
            continue
        key = (image_id, spoken, text)
        was = found.get(key, (0, 0))
        found[key] = was[0] + ups, was[1] + downs
    return _sorted_out(workspace, found, unusable)


def chosen_pairs(proposal: Proposal, ids: Collection[str] | None) -> list[ProposedPair]:
    """Returns the pairs of these ids, or all.

    Raises:
        UsageProblem: one is not proposed, or none is left.
    """
    known = {pair.id for pair in proposal.pairs}
    strange = sorted(set(ids or ()) - known)
    if strange:
        raise UsageProblem(
            f"Pair {strange[0][:40]!r} is not proposed (any more). Look at the proposal again; it has {len(known)}."
        )
    pairs = [pair for pair in proposal.pairs if ids is None or pair.id in ids]
    if not pairs:
        raise UsageProblem(
            "No pair is left to make a chunk of. Thumbs up on pictures that fit a query make pairs."
        )
    return pairs


def write_proposal(workspace: Workspace, pairs: Sequence[ProposedPair], file: Path) -> Path:
    """Writes pairs as a zip that can be taken in: their pictures, as they were uploaded, and a table of captions."""
    records = workspace.catalog.images({pair.image_id for pair in pairs})
    rows = [(_name(records[pair.image_id]), pair.text, pair.language, pair.domain) for pair in pairs]
    ids = dict.fromkeys(pair.image_id for pair in pairs)
    pictures = ((_name(records[image_id]), workspace.blobs.original(image_id)) for image_id in ids)
    write_upload(file, COLUMNS, rows, pictures)
    return file


def _judged(workspace: Workspace) -> Iterable[tuple[str, str, str, int, int]]:
    """Yields picture, query, language, thumbs up and thumbs down of everything that somebody found right."""
    judged: dict[tuple[str, str, str], list[FeedbackRecord]] = {}
    for record in workspace.catalog.feedback.all():
        if record.image_id:
            language = record.language.split(" ")[0]
            judged.setdefault((record.image_id, record.query, language), []).append(record)
    for (image_id, query, language), records in judged.items():
        ups = {record.by for record in records if record.verdict == "up"}
        if ups:
            yield image_id, query, language, len(ups), len({r.by for r in records if r.verdict == "down"})
    thumbed = {(image_id, query) for image_id, query, _ in judged}
    for pin in workspace.catalog.pins():
        if (pin.image_id, pin.query) not in thumbed:
            yield pin.image_id, pin.query, pin.language, 0, 0


def _sorted_out(
    workspace: Workspace, found: dict[tuple[str, str, str], tuple[int, int]], unusable: int
) -> Proposal:
    records = workspace.catalog.images({image_id for image_id, _, _ in found})
    languages = {language for _, language, _ in found}
    captions = {tag: workspace.catalog.captions_in(tag, list(records)) for tag in languages}
    pairs, known, disputed = [], 0, 0
    for (image_id, language, text), (ups, downs) in found.items():
        record = records.get(image_id)
        if record is None or record.withdrawn:
            unusable += 1
        elif text in captions[language].get(image_id, ()):
            known += 1
        elif downs and downs >= ups:
            disputed += 1
        else:
            pairs.append(
                ProposedPair(
                    _id(image_id, language, text),
                    image_id,
                    text,
                    language,
                    record.domain,
                    record.split.value,
                    ups,
                    downs,
                )
            )
    pairs.sort(key=lambda pair: (pair.down - pair.up, pair.language, pair.text, pair.image_id))
    return Proposal(tuple(pairs), known, disputed, unusable)


def _plain(query: str) -> str:
    """The text of a query that is one text, as a caption is kept; "" of any other."""
    try:
        return normalise_caption(as_text(query) or "").text
    except BadCaption:
        return ""


def _name(record: ImageRecord) -> str:
    return f"images/{record.id[:_ID_SHOWN]}.{record.format.lower()}"


def _id(image_id: str, language: str, text: str) -> str:
    return hashlib.sha256("\n".join((image_id, language, text)).encode()).hexdigest()[:16]
