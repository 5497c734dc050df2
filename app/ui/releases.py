"""The Releases tab: lineage, gate reports, going live and going back."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.serving import OWN_ERRORS, Serving
from app.ui import wording
from app.ui.access import Access

_ID_COLUMN = 1


def add_releases_tab(blocks: gr.Blocks, serving: Serving, access: Access, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    table = gr.Dataframe(
        headers=wording.RELEASE_HEADERS,
        label="All releases, newest first",
        interactive=False,
        wrap=False,
        elem_id="releases",
    )
    chosen = gr.State("")
    said = gr.Markdown(
        "Select a release to see its gate report.", elem_classes="status", elem_id="releases-said"
    )
    with gr.Row(elem_classes="beside"):
        why = gr.Textbox(
            label="Reason",
            placeholder="Kept in the history with your name",
            max_length=500,
            scale=4,
            elem_id="why",
        )
        promote = gr.Button(
            "Promote selected", variant="primary", interactive=False, scale=2, elem_id="promote"
        )
        back = gr.Button("Roll back", scale=2, elem_id="roll-back")
    with gr.Column(visible=False) as report:
        verdict = gr.Markdown(latex_delimiters=[], elem_classes="verdict", elem_id="release-verdict")
        slices = gr.Dataframe(
            headers=wording.GATE_HEADERS, label="Per slice", interactive=False, wrap=True, visible=False
        )
    with gr.Accordion("History: what was live since when, and why", open=False):
        history = gr.Dataframe(
            headers=wording.HISTORY_HEADERS, show_label=False, interactive=False, wrap=True, elem_id="history"
        )

    def rows() -> tuple[Any, Any]:
        return (
            wording.release_rows(serving.releases(), serving.live_id()),
            wording.history_rows(serving.workspace.releases.history()),
        )

    def refresh(request: gr.Request) -> tuple[Any, Any]:
        try:
            access.admin(request)
            return rows()
        except OWN_ERRORS:
            return [], []

    def select(values: list[list[str]], request: gr.Request, event: gr.SelectData) -> tuple[Any, ...]:
        row = event.index[0] if isinstance(event.index, (list, tuple)) else event.index
        try:
            access.admin(request)
            record = serving.workspace.releases.release(str(values[row][_ID_COLUMN]))
        except OWN_ERRORS as error:
            return "", wording.escaped(error), gr.Button(), gr.Column(visible=False), "", gr.Dataframe()
        gate = record.manifest.get("gate")
        text, lines = wording.gate_view(gate if isinstance(gate, dict) else None)
        is_live = record.id == serving.live_id()
        line = f"Selected: **{record.id}**" + (" (live)" if is_live else "")
        return (
            record.id,
            line,
            gr.Button(interactive=not is_live),
            gr.Column(visible=True),
            text,
            gr.Dataframe(value=lines, visible=bool(lines)),
        )

    def go_live(release: str, reason: str, request: gr.Request) -> tuple[Any, ...]:
        try:
            account = access.admin(request)
            record = serving.workspace.releases.release(release)
            # Whoever presses the button has the report in view: that is the review the gate asks for.
            commit = serving.promote(
                record.id, why=reason, by=account.name, force=wording.verdict_of(record) == "review"
            )
        except OWN_ERRORS as error:
            return f"**{wording.escaped(error)}**", gr.Button(), gr.Textbox(), *rows()
        line = f"**{commit.release} is live** (commit {commit.number})."
        return line, gr.Button(interactive=False), gr.Textbox(value=""), *rows()

    def go_back(reason: str, request: gr.Request) -> tuple[Any, ...]:
        try:
            commit = serving.roll_back(why=reason, by=access.admin(request).name)
        except OWN_ERRORS as error:
            return f"**{wording.escaped(error)}**", gr.Button(), gr.Textbox(), *rows()
        line = f"**Back to {commit.release}** (commit {commit.number})."
        return line, gr.Button(), gr.Textbox(value=""), *rows()

    after = [said, promote, why, table, history]
    private: dict[str, Any] = {"api_visibility": "private", "concurrency_id": "admin", "concurrency_limit": 1}
    table.select(select, [table], [chosen, said, promote, report, verdict, slices], **private)
    promote.click(go_live, [chosen, why], after, **private)
    back.click(go_back, [why], after, **private)
    gr.on([blocks.load, tab.select], refresh, None, [table, history], show_progress="hidden", **private)
