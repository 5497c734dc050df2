"""Naming the domain of a chunk that nobody taught yet: one that was opened by itself, or one with a wrong name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from app.desk.chunks import Chunk
from app.ui.access import Access, Shown, Visit
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.wording import refusal
from ingest.sentence import joined, phrase


class DomainName:
    """The domain, its new name, the button, and what happens on it; hidden where something was learned of the chunk."""

    def __init__(self, access: Access) -> None:
        self.access = access
        with gr.Group(visible=False, elem_id="domain-name") as self.group:
            self.domain = gr.Dropdown([], label="Domain of its pictures", elem_id="domain-old")
            self.name = gr.Textbox(
                label="New name of this domain",
                info="All pictures of the domain take it. The name of another domain puts them there.",
                placeholder="ink-drawings",
                max_length=64,
                elem_id="domain-new",
            )
        self.button = gr.Button("Name the domain", visible=False, elem_id="domain-rename")
        self.said = text("domain-said", "status")

    @property
    def components(self) -> list[Any]:
        """What `shown` fills."""
        return [self.group, self.domain, self.name, self.button, self.said]

    def shown(self, chunk: Chunk, said: str = "") -> Shown:
        """Returns what is shown for a chunk, and of the last naming."""
        names = sorted(chunk.domains)
        can_be = bool(names) and not chunk.learned and chunk.standing != "withdrawn"
        return {
            self.group: gr.update(visible=can_be),
            self.domain: gr.update(choices=names, value=names[0] if names else None),
            self.name: "",
            self.button: gr.update(visible=can_be),
            self.said: said,
        }

    def connect(self, chunk: gr.State, around: list[Any], about: Callable[[Visit, Chunk], Shown]) -> None:
        """Connects the button; `chunk` is the id of what is shown, `about` what the components `around` show of it."""

        def rename(visit: Visit, chunk_id: str, domain: str, name: str) -> Shown:
            named = visit.desk.name_domain(domain, name)
            following = phrase("Job {job} makes search find them by it.", job=named.job.id)
            record = visit.desk.chunk(chunk_id)
            said = refusal(joined((named.sentence, following)), visit.say)
            return {**self.shown(record, said), **about(visit, record)}

        asked = [chunk, self.domain, self.name]
        self.button.click(
            self.access.of_admin(rename, self.said), asked, [*self.components, *around], **AT_ONCE
        )
