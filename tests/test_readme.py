"""The README's commands, run as they are printed, one after another, on pictures that are made for them."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from app.commands import cli
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk

pytestmark = pytest.mark.usefixtures("starts_at_once")

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
# Installing has its own tests, and so has the demo; `bench` trains for minutes.
ELSEWHERE = ("make demo", "make install", ".venv/bin/perennial demo", "perennial bench")
PICTURES = 40
_REVIEW = 4
_ACTIVATE = ". .venv/bin/activate"


def _blocks() -> list[str]:
    return [block for block in BLOCKS if not any(command in block for command in ELSEWHERE)]


def test_every_block_is_run_here_or_elsewhere() -> None:
    left = [block for block in BLOCKS if block not in _blocks()]
    assert len(_blocks()) >= 4
    assert all(any(block.count(command) for block in left) for command in ELSEWHERE)


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def place(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new user's folder: photos/, tables of captions in three languages, and a picture of a dog."""
    drawn = list(scenes.all_scenes())[::60][:PICTURES]
    write_chunk(
        tmp_path / "all.zip",
        scenes=[(one, "flat", n) for n, one in enumerate(drawn)],
        languages=["en", "de", "hi"],
    )
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("captions.csv").decode())))
        (tmp_path / "photos").mkdir()
        for name in {row["image"] for row in rows}:
            (tmp_path / "photos" / Path(name).name).write_bytes(archive.read(name))
        (tmp_path / "dog.jpg").write_bytes(archive.read(rows[0]["image"]))
    for file, language in (("photos-de", "de"), ("captions-en", "en"), ("captions-hi", "hi")):
        with (tmp_path / f"{file}.csv").open("w", encoding="utf-8", newline="") as table:
            out = csv.writer(table)
            out.writerow(["image", "caption"])
            for row in rows:
                if row["language"] == language:
                    out.writerow([f"photos/{Path(row['image']).name}", row["caption"]])
    for name in ("PERENNIAL_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.setenv("PERENNIAL_PORT", str(port))
    monkeypatch.setenv("BROWSER", "true")  # what `open` opens
    # Else copies are taught, by which so small a chunk can go live by itself (`cross_fitting`).
    monkeypatch.setenv("PERENNIAL_GATE__CROSS_FIT", "false")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_the_readme_prints_works(place: Path, port: int) -> None:
    done: set[str] = set()
    for block in _blocks():
        with ExitStack() as until_end_of_block:
            for line in block.replace(":7860", f":{port}").splitlines():
                command, *words = shlex.split(line, comments=True)
                if line.startswith(_ACTIVATE):
                    continue
                assert command == "perennial", line
                done.add(words[0])
                if words[0] in {"serve", "open"}:
                    until_end_of_block.enter_context(_served(words, port))
                    continue
                if words[0] == "replay":  # it has another number where the pictures came in several portions
                    words[1] = json.loads(CliRunner().invoke(cli.app, ["releases", "--json"]).stdout)[0]["id"]
                ended = CliRunner().invoke(cli.app, words)
                if words[0] == "update" and ended.exit_code == _REVIEW:
                    # So few held-out captions show nothing for certain; a person looks and says so.
                    listed = CliRunner().invoke(cli.app, ["releases", "--json"])
                    candidate = json.loads(listed.stdout)[0]["id"]
                    ended = CliRunner().invoke(
                        cli.app, ["promote", candidate, "--force", "--why", "it is few pictures"]
                    )
                assert ended.exit_code == 0, f"{line}\n{ended.output}"
    assert {"open", "add", "search", "serve", "update", "rollback", "withdraw", "export", "replay"} <= done
    assert (place / "ada/.local/share/perennial/FORMAT").is_file()


@contextmanager
def _served(words: list[str], port: int) -> Iterator[None]:
    """Serves until the end of a block, where a person would press Ctrl-C."""
    server = subprocess.Popen([sys.executable, "-m", "perennial", *words])
    try:
        while not _is_ready(port):
            assert server.poll() is None
            time.sleep(0.1)
        yield
        while _is_at_work(port):  # a person looks at the pictures first
            time.sleep(0.1)
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 128 + signal.SIGINT
    finally:
        server.kill()
        server.wait()


def _is_at_work(port: int) -> bool:
    jobs = httpx.get(f"http://127.0.0.1:{port}/v1/jobs", timeout=30).json()["jobs"]
    return any(one["state"] in {"queued", "running"} for one in jobs)


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
