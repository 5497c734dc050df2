"""Learning on a home: updates, what they will take, and the jobs that do the work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.desk.errors import UsageProblem
from app.desk.jobs import Forecast, StartUpdate, UpdateRequest
from app.desk.verdicts import Judged
from app.local.opened import Opened
from ingest.records import JobRecord

if TYPE_CHECKING:
    from app.desk.desk import OnJob

_MOST_JOBS = 200


class Learning(Opened):
    """What learns from chunks, and looks after jobs."""

    def update(self, asked: StartUpdate) -> JobRecord:
        """Starts learning from a chunk and returns the job."""
        from app.jobs import requests
        from app.learning.fitting import require_fit

        request = self._request(asked)
        require_fit(self.workspace, request)
        return self._expected(requests.update_job(self.workspace, request))

    def require_update(self, asked: StartUpdate) -> None:
        """Refuses what an update could not do later, before its chunk is taken in.

        Raises:
            UnknownStrategy, BadStrategyOption: there is no such strategy, or option of it.
            UpdateRunning: another update is queued or running.
        """
        from app.jobs import worker

        if asked.strategy is not None:
            from model_updates.options import options_of
            from model_updates.strategies import strategy_named

            options_of(strategy_named(asked.strategy), asked.options)
        worker.refuse_second_update(self.installed)

    def forecast(self, asked: StartUpdate) -> Forecast:
        """Says which strategy would teach a chunk and why, whether it fits, and what it would take."""
        from app.learning import fitting, lessons
        from app.learning.forecast import forecast
        from model_updates.strategies import strategy_named

        request = self._request(asked)
        recommended, why = lessons.choose_strategy(self.workspace, request.chunk)
        found = forecast(self.workspace, request)
        chunk = self.catalog.chunk(request.chunk)
        misfit = fitting.misfit(self.workspace, chunk, strategy_named(found.strategy)())
        return replace(found, recommended=recommended, why=why, misfit=misfit)

    def _request(self, asked: StartUpdate) -> UpdateRequest:
        if asked.strategy is None and asked.options:
            raise UsageProblem("Options belong to a strategy; name the strategy too.")
        chunk = self.catalog.chunk(asked.chunk).id
        return UpdateRequest(**asked.model_dump() | {"chunk": chunk}, by=self.by)

    def jobs(self) -> list[JobRecord]:
        """Lists the latest jobs, newest first."""
        return self.catalog.jobs(limit=_MOST_JOBS)

    def job(self, job: str) -> JobRecord:
        """Returns a job with its progress and result."""
        return self.catalog.job(job)

    def job_verdict(self, job: str) -> Judged:
        """Returns the gate's whole report of an update, also of a rejected one; without one before it was judged."""
        from app.learning.judged import judged_job

        return judged_job(self.catalog, job)

    def job_log(self, job: str, lines: int = 200) -> list[str]:
        """Returns the last lines that a job's process wrote; none once its folder has been removed."""
        from app.home import logs
        from app.jobs import worker

        found = self.catalog.job(job)
        return logs.last_lines(worker.log_file(self.installed, found.id), lines)

    def cancel(self, job: str) -> JobRecord:
        """Stops a job; nothing live changes."""
        from app.jobs import worker

        return worker.cancel(self.installed, job)

    def resume(self, job: str) -> JobRecord:
        """Goes on with a job that was interrupted, cancelled or failed, from its last checkpoint."""
        from app.jobs import worker

        return self._expected(worker.resume(self.installed, job))

    def follow(self, job: str, on_change: OnJob) -> JobRecord:
        """Runs a job in a process of its own, if nobody does, and waits for it to end."""
        from app.jobs import worker

        self.close()  # what was opened here would lie in memory beside the job
        return worker.follow(self.installed, job, on_change)

    def leave(self, job: str) -> str:
        """Stops a job whose follower goes away: on a home it is theirs."""
        self.cancel(job)
        return f"Stopped {job}. `python -m app update --resume {job}` goes on from its last checkpoint."
