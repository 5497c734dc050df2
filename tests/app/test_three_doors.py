"""The catalogue of bad inputs through every door: the command line, REST and the page say the same of the same file.

The page is asked as its script asks it: the file goes to `/v1/chunks`, and the functions of the Upload step, which a
button and a timer call, say what became of it. `make test` tries one of each way to be refused, skipped or taken,
`make soak` all of them.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import httpx
import langcodes
import pytest
from starlette.routing import Mount
from typer.testing import CliRunner

from app.commands import cli
from app.home.settings import Settings
from tests.app.server.served import Served, make_home, served
from tests.ingest.readers.bad_files import Maker, zipped
from tests.ingest.readers.catalogue import ACCEPTED, AS_SENT, REFUSED, SKIPPED

BY_LIMITS = re.compile(r"1[12] ")
"""Of those that are refused, the ones that only small limits refuse."""
FEW = re.compile(r"1 |3 |5 traversal names$|19 bad|23 file|25 html|26 |29 |42 cap|43 lone|47 ")
CASES: list[tuple[str, Maker, str]] = [
    *((name, make, words) for name, make, _, words in REFUSED if not BY_LIMITS.match(name)),
    *(
        (name, make, words) for name, make, _, words in SKIPPED if name != "6 folder symlink"
    ),  # a browser follows it
    *((name, make, note) for name, make, _, note in ACCEPTED),
    *AS_SENT,
]
WHOLE = {one[0] for one in REFUSED} | {"11 too many entries", "16 Parquet bomb", "gzip bomb"}
TAGS = [tag for tag in map("".join, product(ascii_lowercase, repeat=2)) if langcodes.tag_is_valid(tag)]
"""A language for each: most bring the same good picture along, which would be known already otherwise."""
BESIDE_NOTHING = "A table alone has no pictures"
"""What is said of a table that was sent to a server by itself; it is not read further."""


@dataclass
class Said:
    """What one door says of an upload: that it is refused and why, or what is said of its rows and of it."""

    is_refused: bool
    text: str


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(make_home(tmp_path_factory.mktemp("home")), with_pages=True) as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return make_home(tmp_path_factory.mktemp("own"))


def plain(text: str) -> str:
    """What a person reads, of Markdown and HTML."""
    read = html.unescape(re.sub(r"<[^>]*>", " ", text))
    return unicodedata.normalize("NFC", re.sub(r"\\(?=[^a-zA-Z0-9\s])", "", read))


def by_command_line(home: Settings, source: Path, folder: Path, language: str) -> Said:
    report = folder / "report.csv"
    done = CliRunner().invoke(
        cli.app,
        ["add", str(source), "--home", str(home.home), "--language", language, "--report", str(report)],
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "Traceback" not in done.output
    rows = report.read_text(encoding="utf-8-sig") if report.exists() else ""
    return Said(done.exit_code not in (0, 4), plain(f"{' '.join(done.output.split())} {rows}"))


def _sent(client: httpx.Client, source: Path, folder: Path, language: str) -> dict[str, Any]:
    """Sends a file; a folder goes as a zip, as a browser sends it."""
    if source.is_dir():
        members = {
            str(one.relative_to(source)): one.read_bytes()
            for one in sorted(source.rglob("*"))
            if one.is_file()
        }
        (folder / "sent").mkdir()
        source = zipped({name: data for name, data in members.items()})(folder / "sent")
    answer = client.post(
        "/v1/chunks", files={"file": (source.name, source.read_bytes())}, data={"language": language}
    )
    return dict(answer.json() | {"status": answer.status_code})


def by_rest(server: Served, source: Path, folder: Path, language: str) -> tuple[Said, str]:
    """Also returns the job, or else why there is none, as the page's script hears of it."""
    with server.client() as client:
        sent = _sent(client, source, folder, language)
        if sent["status"] != 202:
            assert set(sent) == {"error", "code", "status"}
            return Said(True, sent["error"]), f"none {sent['error']}"
        job = server.ended(sent["job"]["id"])
        if job.state != "succeeded":
            assert job.state == "failed"
            return Said(True, job.error or ""), job.id
        report = job.result["report"]
        rows = client.get(f"/v1/chunks/{report['chunk_id']}/report.csv").content.decode("utf-8-sig")
    return Said(False, plain(f"{rows} {report['notes']}")), job.id


def functions(server: Served) -> Callable[[str], int]:
    page = next(one.app for one in server.app.routes if isinstance(one, Mount) and one.path == "/admin")
    known = {str(one.api_name): number for number, one in page.get_blocks().fns.items()}  # type: ignore[attr-defined]
    return known.__getitem__


def by_page(server: Served, job: str) -> Said:
    """Has the page shown a job that its script has started."""
    of = functions(server)
    with server.client() as client:

        def call(name: str, *values: Any) -> str:
            asked = {
                "fn_index": of(name),
                "data": [*values],
                "session_hash": f"door-{job}",
                "event_data": None,
            }
            answer = client.post("/admin/gradio_api/run/predict", json=asked)
            assert answer.status_code == 200, answer.text
            return (
                json.dumps(answer.json()["data"], ensure_ascii=False)
                .encode()
                .decode("unicode_escape", "replace")
            )

        first = call("_sent", job)
        if job.startswith("none"):
            return Said(True, plain(first))
        second = call("_watch", None)
    return Said("report-summary" not in second and "## " not in second, plain(second))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("name", "make", "words", "language"),
    [
        pytest.param(*case, tag, id=case[0], marks=[] if FEW.match(case[0]) else pytest.mark.slow)
        for case, tag in zip(CASES, TAGS, strict=False)
    ],
)
def test_every_door_says_the_same(
    server: Served, home: Settings, tmp_path: Path, name: str, make: Maker, words: str, language: str
) -> None:
    source = make(tmp_path)
    is_refused = any(name == one[0] for one in REFUSED) or name in {
        "11 too many entries",
        "16 Parquet bomb",
        "gzip bomb",
    }
    before = sorted(tmp_path.rglob("*"))
    here = by_command_line(home, source, tmp_path, language)
    there, job = by_rest(server, source, tmp_path, language)
    shown = by_page(server, job)
    for door, said in (("the command line", here), ("REST", there), ("the page", shown)):
        assert said.is_refused is is_refused, f"{door}: {said.text[:600]}"
        is_unread = said.text != here.text and BESIDE_NOTHING in said.text
        assert is_unread or plain(words) in said.text, f"{door}: {said.text[:600]}"
    left = {one.name for one in tmp_path.rglob("*")} - {one.name for one in before}
    assert left <= {"report.csv", "sent", "upload.zip"}
    with server.client() as client:
        assert client.post("/v1/search", json={"text": "a red boat", "k": 1}).status_code == 200
