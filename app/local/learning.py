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
        from app.jobs import requests
        from app.learning.fitting import require_fit

        request = self._request(asked)
        require_fit(self.workspace, request)
        return self._expected(requests.update_job(self.workspace, request))

    def require_update(self, asked: StartUpdate) -> None:
        from app.jobs import worker

        if asked.strategy is not None:
            from model_updates.options import options_of
            from model_updates.strategies import strategy_named

            options_of(strategy_named(asked.strategy), asked.options)
        worker.refuse_second_update(self.installed)

    def forecast(self, asked: StartUpdate) -> Forecast:
        from app.learning import fitting, lessons
        from app.learning.forecast import forecast
        from model_updates.strategies import strategy_named

        request = self._request(asked)
        fitting.require_training_pair(self.workspace, self.catalog.chunk(request.chunk))
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
        return [self.job_told(one) for one in self.catalog.jobs(limit=_MOST_JOBS)]

    def job(self, job: str) -> JobRecord:
        return self.job_told(self.catalog.job(job))

    def job_verdict(self, job: str) -> Judged:
        from app.learning.judged import judged_job

        return judged_job(self.catalog, self.store, job)

    def job_log(self, job: str, lines: int = 200) -> list[str]:
        from app.home import logs
        from app.jobs import worker

        found = self.catalog.job(job)
        return logs.last_lines(worker.log_file(self.installed, found.id), lines)

    def cancel(self, job: str) -> JobRecord:
        from app.jobs import worker

        return worker.cancel(self.installed, job)

    def resume(self, job: str) -> JobRecord:
        from app.jobs import worker

        return self._expected(worker.resume(self.installed, job))

    def follow(self, job: str, on_change: OnJob) -> JobRecord:
        from app.jobs import worker

        self.close()  # what was opened here would lie in memory beside the job
        return worker.follow(self.installed, job, on_change)

    def leave(self, job: str) -> str:
        self.cancel(job)
        return f"Stopped {job}. `perennial update --resume {job}` goes on from its last checkpoint."
