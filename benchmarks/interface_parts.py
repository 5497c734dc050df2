"""What `interface.py` measures: the first load, a search on the page beside REST, and paging."""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import gradio
import httpx
from playwright.sync_api import Page, Playwright, Response

CHROMIUM = "/usr/bin/chromium"
GRADIO = Path(gradio.__file__).parent / "templates" / "frontend"  # what it serves of its own
SHOWN = 60  # pictures that the page asks for at once
HITS = 24  # a page of an answer over REST
RESTING_MS = 15.0  # of the processor in .3 s; a server looks now and then whether another release went live
START_SECONDS, STOP_SECONDS = 600, 120  # a large home on a busy machine
# Resolves with the milliseconds from the next Enter to the moment in which the pictures are others.
WATCH = """() => { window.drawn = new Promise((resolve) => {
  const all = () => [...document.querySelectorAll("#results > .tile:not(.blank) img")].map((one) => one.src).join();
  const before = all();
  let pressed = 0;
  const note = (event) => { if (event.key === "Enter") pressed = performance.now(); };
  document.addEventListener("keydown", note, {once: true, capture: true});
  const look = new MutationObserver(() => { const now = all(); if (pressed && now && now !== before) {
    look.disconnect(); resolve(performance.now() - pressed); } });
  look.observe(document.body, {subtree: true, childList: true, attributes: true, attributeFilter: ["src"]});
}); }"""
OVER_REST = """async (body) => { const start = performance.now();
  const headers = {"Content-Type": "application/json"};
  const said = await fetch("/v1/search", {method: "POST", headers, body: JSON.stringify(body)});
  await said.json(); return performance.now() - start; }"""


@dataclass(frozen=True)
class Server:
    """A running server: its address and process."""

    url: str
    process: int

    def cpu_ms(self) -> float:
        """Milliseconds of processor time that it has used, which the system counts in hundredths of a second."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Taken:
    """What each of some requests took, in milliseconds: on the clock, and of the server's processor time."""

    clock: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def note(self, clock: float, cpu: float) -> None:
        """Notes one request."""
        self.clock.append(clock)
        self.cpu.append(cpu)

    def of(self, which: slice) -> tuple[float, float]:
        """Median on the clock, and mean of processor time: its hundredths of a second are too coarse for a median."""
        return statistics.median(self.clock[which]), statistics.fmean(self.cpu[which])


@dataclass(frozen=True)
class Load:
    """A page's first load: paths, and bytes as they came over the line, of Gradio's own files and of all others."""

    gradios: dict[str, int]
    ours: dict[str, int]


@contextmanager
def running(home: Path) -> Iterator[Server]:
    """Serves a home in a process of its own, whose processor time is nobody else's."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "perennial", "serve", "--home", str(home), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_for(url, server)
            yield Server(url, server.pid)
        finally:
            _stop(server)


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        raise


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if server.poll() is not None:
            raise RuntimeError(f"The server ended with {server.returncode} before it was ready.")
        with suppress(httpx.HTTPError):
            if httpx.get(f"{url}/readyz", timeout=5).is_success:
                return
        time.sleep(0.5)
    raise RuntimeError(f"The server was not ready after {START_SECONDS} s.")


@contextmanager
def opened(playwright: Playwright) -> Iterator[Page]:
    """A page of a new browser, which has cached nothing."""
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(180_000)
    yield page
    browser.close()


def first_load(page: Page, url: str, ready: str) -> Load:
    """Opens a page that this browser has not seen, and says what came.

    Args:
        page: of a new browser.
        url: to open.
        ready: selector of what stands there when the page can be used.
    """
    seen: list[Response] = []

    def note(response: Response) -> None:
        seen.append(response)

    page.on("response", note)
    page.goto(url)
    page.wait_for_selector(ready)
    page.wait_for_timeout(3000)  # what it asks for afterwards
    page.remove_listener("response", note)
    load = Load({}, {})
    for response in seen:
        path = urlsplit(response.url).path
        if path.endswith(("/queue/data", "/heartbeat")) or "/heartbeat/" in path:  # streams without an end
            continue
        size = response.request.sizes()["responseBodySize"]
        (load.gradios if _is_gradios(path) else load.ours)[path] = size
    return load


def _is_gradios(path: str) -> bool:
    inside = path.removeprefix("/admin").lstrip("/")
    return (GRADIO / inside).is_file() or inside.startswith(("static/", "svelte/"))


def paging(server: Server, pages: int) -> Taken:
    """What each page of one answer took, the first to the deepest; the gallery must have that many."""
    taken, cursor = Taken(), ""
    with httpx.Client(base_url=server.url, timeout=120) as client:
        client.post("/v1/search", json={"text": "warm", "k": HITS})
        _rest(server)
        for _ in range(pages):
            body = {"text": "three red boats at sunset", "k": HITS, "cursor": cursor}
            cpu, started = server.cpu_ms(), time.perf_counter()
            answer = client.post("/v1/search", json=body).raise_for_status().json()
            taken.note(1000 * (time.perf_counter() - started), server.cpu_ms() - cpu)
            cursor = answer["next"]
            if not cursor:
                raise RuntimeError(f"The answer ended after {len(taken.clock)} of {pages} pages.")
    return taken


def _rest(server: Server) -> None:
    """Waits until a server does nothing: after its first answer it measures what hits are worth."""
    for _ in range(100):
        before = server.cpu_ms()
        time.sleep(0.3)
        if server.cpu_ms() - before < RESTING_MS:
            return
    raise RuntimeError("The server has not come to rest in half a minute.")


def searches(page: Page, server: Server, queries: Sequence[str]) -> tuple[Taken, Taken]:
    """What each query took over REST, and from Enter to the new pictures on the page that is open, by turns."""
    rest, drawn = Taken(), Taken()
    for number, query in enumerate(queries):
        if number % 2:
            _over_rest(page, server, query, rest)
        _on_the_page(page, server, query, drawn)
        if not number % 2:
            _over_rest(page, server, query, rest)
    return rest, drawn


def _over_rest(page: Page, server: Server, query: str, taken: Taken) -> None:
    cpu = server.cpu_ms()
    clock = page.evaluate(OVER_REST, {"text": query, "k": SHOWN})
    taken.note(clock, server.cpu_ms() - cpu)


def _on_the_page(page: Page, server: Server, query: str, taken: Taken) -> None:
    page.fill("#query input[type=search]", query)
    page.wait_for_timeout(300)  # a person has stopped typing
    page.evaluate(WATCH)
    cpu = server.cpu_ms()
    page.keyboard.press("Enter")
    clock: Any = page.evaluate("() => window.drawn")
    taken.note(clock, server.cpu_ms() - cpu)
    page.wait_for_timeout(800)  # thumbnails arrive
