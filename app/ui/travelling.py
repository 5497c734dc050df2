"""A release carried to another home and back, on the Releases tab: export to a file, import from one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from app.desk.releases import SUFFIX
from app.ui import update_words
from app.ui.access import Access, Shown, Visit
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.wording import escaped, refusal
from app.ui.words import ENGLISH, Words
from app.words.messages import size
from ingest.records import FINAL_STATES, JobRecord
from ingest.sentence import phrase

_POLL_SECONDS = 1.0
_INTRO = phrase(
    "One file with weights and a manifest. The other home embeds its own pictures, and nothing goes live there "
    "until somebody promotes it. Send the checksum separately: it proves that the file is the one you sent."
)


class Travelling:
    """The components, and what happens on them."""

    def __init__(self, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self.access = access
        self.job = gr.State("")
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        with gr.Accordion("Export or import a release", open=False):
            gr.Markdown(_INTRO)
            with gr.Row(elem_classes="beside"):
                self.export = gr.Button("Export selected", interactive=False, elem_id="export")
                self.fetch = gr.Button("Download it", visible=False, elem_id="fetch-export")
            self.exported = text("exported", "status")
            with gr.Row():
                self.file = gr.File(
                    label="An exported release", file_types=[SUFFIX], height=140, elem_id="package"
                )
                self.sha256 = gr.Textbox(
                    label="Checksum from the sender",
                    placeholder="64 characters; without it, the file is trusted as it is",
                    max_length=80,
                    elem_id="package-sha256",
                )
            self.take = gr.Button("Import it", elem_id="take-package")
            self.taken = text("package-said", "status")

    def connect(self, chosen: gr.State, rows: list[Any], listed: Callable[[Visit], Shown]) -> None:
        """Connects the buttons.

        Args:
            chosen: the id of the selected release.
            rows: the components that list the releases.
            listed: returns what they list now.
        """
        self._listed = listed
        of_admin, running = self.access.of_admin, [self.job, self.timer, self.take, self.taken]
        export = of_admin(self._export, self.exported, {self.fetch: gr.update(visible=False)})
        self.export.click(export, [chosen], [self.exported, self.fetch], **AT_ONCE)
        take = of_admin(self._take, self.taken, {self.job: "", self.timer: gr.update(active=False)})
        self.take.click(take, [self.file, self.sha256], running, **AT_ONCE)
        watch = of_admin(self._watch, self.taken, self._over)
        self.timer.tick(watch, [self.job], [*running[1:], *rows], show_progress="hidden", **AT_ONCE)

    @property
    def _over(self) -> Shown:
        """What the buttons show when nothing is being taken in."""
        return {self.timer: gr.update(active=False), self.take: gr.update(interactive=True)}

    def _export(self, visit: Visit, release: str) -> Shown:
        if not release:
            return {self.exported: visit.say("Select a release first."), self.fetch: gr.update(visible=False)}
        made = visit.desk.packed(release)
        said = visit.say(
            "{release} is packed ({size}). Checksum: `{checksum}`",
            release=escaped(made.release),
            size=size(made.bytes),
            checksum=made.sha256,
        )
        fetch = gr.update(visible=True, link=f"/v1/releases/{made.release}/package")
        return {self.exported: said, self.fetch: fetch}

    def _take(self, visit: Visit, file: str | None, sha256: str) -> Shown:
        if not file:
            return {self.taken: visit.say("Choose a file first.")}
        job = visit.desk.start_import(Path(file), sha256)
        return {
            self.job: job.id,
            self.timer: gr.update(active=True),
            self.take: gr.update(interactive=False),
            self.taken: update_words.progress_view(job.state, job.progress, visit.say),
        }

    def _watch(self, visit: Visit, job_id: str) -> Shown:
        job = visit.desk.job(job_id)
        if job.state not in FINAL_STATES and job.state != "interrupted":
            return {self.taken: update_words.progress_view(job.state, job.progress, visit.say)}
        if job.state != "succeeded":
            return {**self._over, self.taken: refusal(job.error or job.state, visit.say)}
        return {**self._over, self.taken: came_line(job, visit.say), **self._listed(visit)}


def came_line(job: JobRecord, say: Words = ENGLISH) -> str:
    """Says what an import brought, and how sure it is to be what was sent."""
    came = job.result
    proof = (
        phrase("Its checksum is right.")
        if came["verified"]
        else phrase("No checksum was given; its parts match its manifest.")
    )
    return say(
        "{origin} was imported as **{release}** and is not live; {count} pictures were embedded. {proof}",
        origin=escaped(came["origin"]),
        release=escaped(came["release"]),
        count=came["images_embedded"],
        proof=proof,
    )
