"""The two pages: searching for everybody, teaching for admins. Separately mounted, so that roles are routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gradio as gr
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, RedirectResponse, Response
from gradio.routes import App
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware

from app.demo.guide import Guide, guide_for
from app.desk.troubles import INVALID, invalid_sentence
from app.server.guard import MOST_QUERY_BYTES, refusal
from app.server.security import Passwords, ProxySignIn
from app.server.serving import Serving
from app.ui.access import Access, Shown, Visit, admin_name, searcher_name
from app.ui.client_api import add_client_api
from app.ui.compare import add_compare_tab
from app.ui.data import add_data_tab
from app.ui.demo import add_guide_tab
from app.ui.events import AT_ONCE
from app.ui.feedback import add_feedback_tab
from app.ui.parts import text
from app.ui.quality import add_quality_tab
from app.ui.releases import add_releases_tab
from app.ui.sample import sample
from app.ui.search import add_search_tab
from app.ui.search_answers import add_answers
from app.ui.system import add_system_tab
from app.ui.theme import STYLE_SHEET, perennial_theme
from app.ui.update import add_update_tab
from app.ui.wording import degraded_lines
from app.ui.words import TRANSLATIONS, label, translate

# Files that people chose on a screen are copied to the inbox at once; what Gradio keeps of them may go.
_CLEAN_EVERY_SECONDS, _KEEP_SECONDS = 600, 3600
_MOST_WAITING = 64
_LOOK_SECONDS = 0.05  # what it takes on Windows
_ASSETS = {
    "": ("pages.js", "search.js", "viewer.js", "coming.js", "drawing.js", "search.css")
    + ("dropping.js", "sending.js", "uploading.js", "dropping.css"),
    "/admin": ("pages.js",),
}
"""What each page brings of ours, relative to it, so that it is found below any prefix of a proxy."""
_HEAD = {
    "": '<link rel="stylesheet" href="assets/dropping.css"><link rel="stylesheet" href="assets/search.css">'
    '<script type="module" src="assets/search.js"></script>',
    "/admin": '<link rel="stylesheet" href="../assets/dropping.css">'
    '<script type="module" src="../assets/uploading.js"></script>',
}

_NAME = "# Perennial"

_AS_THEY_ARE = (
    *DEFAULT_EXCLUDED_CONTENT_TYPES,
    "image/*",
    "text/csv",
    "application/json",
    "application/octet-stream",
)
NameOf = Callable[[Request], str | None]


def mount_pages(app: FastAPI, serving: Serving, passwords: Passwords | None) -> None:
    """Mounts the admin page at /admin and the search page at /."""
    app.add_api_route("/admin", _to_admin, include_in_schema=False)
    # The description of a page is 200 kB of text; answers of REST, mostly asked for on the same machine, stay quick.
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5, exclude_content_types=_AS_THEY_ARE)
    add_answers(app)
    app.add_api_route("/assets/sample.zip", _sample, include_in_schema=False)
    for page, names in _ASSETS.items():
        for name in names:
            file = Path(__file__).with_name(name)
            app.add_api_route(f"{page}/assets/{name}", _sender(file), include_in_schema=False)
    # Built inside a loop: outside of one Gradio makes a new loop for each lock and never closes it.
    asyncio.run(_mount_both(app, serving, passwords))


async def _mount_both(app: FastAPI, serving: Serving, passwords: Passwords | None) -> None:
    limit = serving.settings.max_upload_bytes
    access = Access(serving, passwords, ProxySignIn.of(serving.settings))
    # On the way to the application that is mounted Gradio makes three that nobody asks, and each takes a third as long
    # as a page.
    with patch.object(App, "create_app", _no_app):
        admin = _queued(admin_page(serving, access))
        searched = _queued(search_page(serving, access, guide_for(serving, passwords)))
    _mount(app, admin, "/admin", admin_name, limit)
    # The page at / takes every path that is left, so it comes last.
    _mount(app, searched, "/", searcher_name, MOST_QUERY_BYTES)


def _no_app(_blocks: gr.Blocks, **_: object) -> None:
    """Stands in for what makes an application, which a page has once it is mounted."""


def _sender(file: Path) -> Callable[[], FileResponse]:
    return lambda: FileResponse(file)


def _sample() -> Response:
    """Sends drawn pictures with captions, for who wants to try the search and has none at hand."""
    return Response(
        sample(), media_type="application/zip", headers={"Cache-Control": "private, max-age=3600"}
    )


def _to_admin(request: Request) -> RedirectResponse:
    """Adds the slash without which the page at / would answer."""
    return RedirectResponse(f"{request.scope.get('root_path', '')}/admin/")


def search_page(serving: Serving, access: Access, guide: Guide | None = None) -> gr.Blocks:
    """Builds the page with Search and Compare; in a demo's home the guide comes first."""
    blocks = _blocks("Perennial")
    with blocks:
        _masthead(blocks, access, label("[Teach it →](/admin/)"))
        with gr.Tabs(elem_classes="tabs"):
            if guide is not None:
                with gr.Tab(label("Guide"), id="guide"):
                    add_guide_tab(blocks, guide)
            with gr.Tab(label("Search"), id="search"):
                add_search_tab(blocks, access, serving.settings)
            with gr.Tab(label("Compare"), id="compare") as tab:
                add_compare_tab(access, serving.settings, tab)
        add_client_api(serving)
        translate(blocks)
    return blocks


def admin_page(serving: Serving, access: Access) -> gr.Blocks:
    """Builds the page with Update, Releases, Quality, Feedback, Data and System."""
    blocks = _blocks("Perennial · teaching")
    with blocks:
        _masthead(blocks, access, label("[← Search](/)"), of_admin=True)
        with gr.Tabs(elem_classes="tabs"):
            with gr.Tab(label("Update"), id="update"):
                add_update_tab(blocks, access)
            with gr.Tab(label("Releases"), id="releases") as tab:
                add_releases_tab(blocks, access, tab, serving.settings.shadow_share)
            with gr.Tab("Quality", id="quality") as tab:
                add_quality_tab(access, tab)
            with gr.Tab("Feedback", id="feedback") as tab:
                add_feedback_tab(access, tab)
            with gr.Tab("Data", id="data") as tab:
                add_data_tab(access, tab)
            with gr.Tab("System", id="system") as tab:
                add_system_tab(access, tab)
        translate(blocks)
    return blocks


def _blocks(title: str) -> gr.Blocks:
    return gr.Blocks(
        title=title,
        analytics_enabled=False,
        fill_width=True,
        delete_cache=(_CLEAN_EVERY_SECONDS, _KEEP_SECONDS),
    )


def _masthead(blocks: gr.Blocks, access: Access, elsewhere: object, *, of_admin: bool = False) -> None:
    """Draws the top of a page; below it stands what is not as it should be, where something is."""
    with gr.Row(elem_classes="masthead"):
        with gr.Column(scale=5, min_width=240):
            gr.Markdown(_NAME)
        with gr.Column(scale=1, min_width=140):
            gr.Markdown(str(elsewhere), elem_classes="elsewhere")
    banner = text("degraded", "notice", visible=False)

    def look(visit: Visit) -> Shown:
        said = degraded_lines(visit.desk.degraded(), visit.say)
        return {banner: gr.update(value=said, visible=bool(said))}

    asked = access.of_admin if of_admin else access.of_anyone
    blocks.load(asked(look, banner), None, [banner], show_progress="hidden", **AT_ONCE)


async def _invalid(_request: Request, error: RequestValidationError) -> Response:
    return refusal(422, INVALID, invalid_sentence(error.errors()))


def _queued(blocks: gr.Blocks) -> gr.Blocks:
    blocks.queue(max_size=_MOST_WAITING, default_concurrency_limit=4)
    # Gradio looks a thousand times a second whether something waits, which takes 2 % of a core for each page at rest.
    blocks._queue.sleep_when_free = blocks._queue.progress_update_sleep_when_free = _LOOK_SECONDS
    return blocks


def _mount(app: FastAPI, blocks: gr.Blocks, path: str, name_of: NameOf, limit_bytes: int) -> None:
    gr.mount_gradio_app(
        app,
        blocks,
        path=path,
        auth_dependency=name_of,
        max_file_size=limit_bytes,
        show_error=False,
        ssr_mode=False,
        mcp_server=False,
        enable_monitoring=False,
        run_history=False,
        pwa=False,
        footer_links=[],
        i18n=TRANSLATIONS,
        theme=perennial_theme(),
        head=f'<script src="assets/pages.js" defer></script>{_HEAD[path.rstrip("/")]}',
        css_paths=[STYLE_SHEET],
    )
    # Its own answer repeats all that was sent.
    mounted: Any = app.routes[-1]
    blocks.app = mounted.app  # of which Gradio asks where it checks or remembers what an event is given
    mounted.app.add_exception_handler(RequestValidationError, _invalid)
    # Gradio refuses files that nobody uploaded, on pages that it launched itself. One that is mounted would read any
    # picture of the machine that a program names in the place of a dropped one.
    blocks.has_launched = True
