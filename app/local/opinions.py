"""What people say of a home's answers: thumbs, votes, canaries, and the chunk that they propose."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from app.desk.errors import UsageProblem
from app.desk.hits import AUTO
from app.desk.opinions import Opinion, Opinions, Proposal, ProposedPair, Votes
from app.local.chunks import Chunks
from ingest.feedback import FeedbackRecord
from ingest.records import JobRecord, Pin
from ingest.sentence import phrase

if TYPE_CHECKING:
    from app.query.snapshot import Snapshot


class OpinionsKept(Chunks):
    """What keeps what people say, and makes canaries and a chunk of it."""

    def give_feedback(self, said: Opinion) -> FeedbackRecord:
        from app.feedback import votes

        common = {"query": said.query, "language": said.language, "by": self.by}
        if said.image is not None:
            thumb = {"release": str(said.release), "image_id": said.image, "verdict": str(said.verdict)}
            return votes.thumb(self.workspace, **common, **thumb)
        sides = {"a": str(said.a), "b": str(said.b), "choice": str(said.choice)}
        return votes.vote(self.workspace, **common, **sides)

    def feedback(self, limit: int = 1000) -> Opinions:
        from app.feedback.votes import votes

        every = self.catalog.feedback.all()
        return Opinions(tuple(every[:limit]), tuple(votes(every)))

    def votes(self, a: str, b: str) -> Votes:
        from app.feedback.votes import votes_between

        return votes_between(self.workspace, a, b)

    def pin_feedback(self, number: int, image: str = "", language: str = "") -> Pin:
        from app.feedback import votes
        from app.feedback.asked import language_of
        from app.language.detection import UNDETERMINED

        said = votes.feedback_of(self.workspace, number)
        if not language and said.language.split(" ")[0] == AUTO:
            language = language_of(said.query, self.snapshot())
            if language == UNDETERMINED:
                raise UsageProblem(
                    phrase(
                        "Nobody can tell in which language {query} is. Name the language.",
                        query=f"{said.query[:60]!r}",
                    )
                )
        return votes.pin(self.workspace, number, image_id=image, language=language)

    def canaries(self) -> list[Pin]:
        return self.catalog.pins()

    def remove_canary(self, query: str, language: str = "") -> Pin:
        from app.feedback.votes import remove_canary

        return remove_canary(self.workspace, query, language=language, by=self.by)

    def proposal(self) -> Proposal:
        from app.feedback.asked import language_of
        from app.feedback.proposal import propose

        snapshot: Snapshot = self.snapshot()
        return propose(self.workspace, lambda text: language_of(text, snapshot))

    def proposal_file(self, pairs: Collection[str] | None = None) -> bytes:
        file = self._written(self._chosen(pairs))
        try:
            return file.read_bytes()
        finally:
            file.unlink()

    def take_proposal(self, pairs: Collection[str] | None = None) -> JobRecord:
        from ingest.intake import IntakeOptions

        chosen = self._chosen(pairs)
        made = "1 query" if len(chosen) == 1 else phrase("{count} queries", count=len(chosen))
        why = f"Made of {made} that people judged; {self.by} looked through. Accept it to let it teach."
        name = f"feedback-{datetime.now(UTC):%Y-%m-%d}.zip"
        file = self._written(chosen)
        return self.take_in(file, IntakeOptions(), sent_as=name, is_held=True, held_why=why)

    def _chosen(self, pairs: Collection[str] | None) -> list[ProposedPair]:
        from app.feedback.proposal import chosen_pairs

        return chosen_pairs(self.proposal(), None if pairs is None else set(pairs))

    def _written(self, pairs: Sequence[ProposedPair]) -> Path:
        from app.feedback.proposal import write_proposal

        file = self.home.inbox / f"{uuid.uuid4().hex}.zip"
        try:
            return write_proposal(self.workspace, pairs, file)
        except OSError:
            file.unlink(missing_ok=True)
            raise
