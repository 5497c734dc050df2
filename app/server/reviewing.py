"""Looking through what people said, for REST and for the Feedback tab: canaries and the proposed chunk."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.desk.errors import UsageProblem
from app.desk.opinions import Proposal, ProposedPair
from app.feedback import votes as feedback
from app.feedback.asked import language_of
from app.feedback.proposal import chosen_pairs, propose, write_proposal
from app.language.detection import UNDETERMINED
from app.query.snapshot import AUTO
from app.server.serving import Serving
from ingest.intake import IntakeOptions
from ingest.records import JobRecord, Pin
from ingest.sentence import phrase


def proposal(serving: Serving) -> Proposal:
    """Returns the pairs that could be taught of what people said.

    Raises:
        NoRelease: nothing is live that could tell languages.
    """
    snapshot = serving.snapshot()
    return propose(serving.workspace, lambda text: language_of(text, snapshot))


def take_proposal(serving: Serving, ids: Collection[str] | None, *, by: str) -> JobRecord:
    """Takes the pairs of these ids, or all, in as a chunk that is held until somebody accepts it.

    Raises:
        UsageProblem: a pair is not proposed, or none is left.
    """
    pairs = chosen_pairs(proposal(serving), ids)
    file = _written(serving, pairs)
    made = "1 query" if len(pairs) == 1 else phrase("{count} queries", count=len(pairs))
    why = f"Made of {made} that people judged; {by} looked through. Accept it to let it teach."
    return serving.work.take_in(file, IntakeOptions(), name=file_name(), by=by, is_held=True, held_why=why)


def proposal_file(serving: Serving, ids: Collection[str] | None) -> Path:
    """Writes the pairs of these ids, or all, as a zip to look at, which its reader removes.

    Raises:
        UsageProblem: a pair is not proposed, or none is left.
    """
    return _written(serving, chosen_pairs(proposal(serving), ids))


def file_name() -> str:
    """Returns what to call a proposal that is made today."""
    return f"feedback-{datetime.now(UTC):%Y-%m-%d}.zip"


def _written(serving: Serving, pairs: Sequence[ProposedPair]) -> Path:
    file = serving.workspace.home.inbox / f"{uuid.uuid4().hex}.zip"
    try:
        return write_proposal(serving.workspace, pairs, file)
    except OSError:
        file.unlink(missing_ok=True)
        raise


def pin(serving: Serving, number: int, *, image_id: str = "", language: str = "") -> Pin:
    """Makes what somebody said a canary; a language that nobody stated is the one that the live release reads.

    Raises:
        UnknownFeedback, UnknownImage: there is none.
        UsageProblem: the picture or the language is not known.
    """
    said = feedback.feedback_of(serving.workspace, number)
    if not language and said.language.split(" ")[0] == AUTO:
        language = language_of(said.query, serving.snapshot())
        if language == UNDETERMINED:
            raise UsageProblem(
                phrase(
                    "Nobody can tell in which language {query} is. Name the language.",
                    query=f"{said.query[:60]!r}",
                )
            )
    return feedback.pin(serving.workspace, number, image_id=image_id, language=language)
