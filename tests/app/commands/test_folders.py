"""Claims about `open` and `watch`: a folder is enough."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.commands.running import document, run
from tests.ingest.material import folder_of, picture

pytestmark = pytest.mark.usefixtures("starts_at_once")


@contextmanager
def _running(
    *arguments: object, program: Sequence[str] = ("-m", "perennial")
) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-u", *program, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        watchdog = threading.Timer(240, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def _line(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"It ended without {pattern!r}: {said}")


def _folder_job(client: httpx.Client) -> Any:
    """The job that looks at the folder; the server has just begun to watch it."""
    for _ in range(300):
        for job in client.get("/v1/jobs").json()["jobs"]:
            if job["kind"] == "folder":
                return job
        time.sleep(0.2)
    raise AssertionError("nobody looks at the folder")


def test_open_serves_a_folder_and_follows_it(home: Path, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    with _running("open", folder, "--no-browser", "--port", 0, "--home", home) as process:
        url = _line(process, r"ready after .*: pages on (\S+)/ ")[1]
        with httpx.Client(base_url=url, timeout=60) as client:
            looked = _folder_job(client)
            with client.stream("GET", f"/v1/jobs/{looked['id']}/events") as events:
                assert any('"succeeded"' in line for line in events.iter_lines())
            hits = client.post("/v1/search", json={"text": "a boat", "k": 50}).json()["hits"]
        assert str(folder / "a.png") in {one["place"] for hit in hits for one in hit["sources"]}
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) in (0, 130)


def test_watch_says_a_line_for_each_batch(home: Path, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    with _running("watch", folder, "--home", home) as process:
        _line(process, "Watching .*photos")
        _line(process, "photos: new pictures: 1")
        (folder / "broken.png").write_bytes(b"nothing")
        _line(process, "photos: not usable: 1")
        (folder / "b.png").write_bytes(picture(2))
        _line(process, "photos: new pictures: 1 · not usable: 1")
        process.send_signal(signal.SIGINT)
        _line(process, "No longer watching")
        assert process.wait(timeout=60) == 0
    assert document("add", folder, home=home)["unchanged"] == 2


def test_watch_looks_again_after_what_failed(home: Path, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    (staging := home / "staging").rename(tmp_path / "away")
    staging.touch()  # so nothing can be published
    program = (
        "from ingest import watching; watching._FIRST_PAUSE_SECONDS = 1; from perennial import main; main()"
    )
    with _running("watch", folder, "--home", home, program=["-c", program]) as process:
        _line(process, r"photos: .*staging.* It is looked at again in 1 s\.")
        _line(process, r"photos: .*staging.* It is looked at again in 2 s\.")
        staging.unlink()
        (tmp_path / "away").rename(staging)
        _line(process, "photos: nothing new")
        process.send_signal(signal.SIGINT)
        _line(process, "No longer watching")
        assert process.wait(timeout=60) == 0
    assert document("search", "a boat", home=home)["hits"]


def test_what_is_no_folder_is_refused(home: Path, tmp_path: Path) -> None:
    for verb in ("open", "watch"):
        result = run(verb, tmp_path / "nothing", home=home)
        assert result.exit_code == 2
        assert "is no folder" in result.output
