"""What is secret is written nowhere: a protected server is used in all ways, well and badly, and then everything that
it has written, said and shown is read."""

from __future__ import annotations

import base64
import io
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from app.server.security import password_line
from tests.app.server.served import make_home
from tests.ingest.material import picture, zip_of
from tests.ingest.readers.bad_files import record

pytestmark = pytest.mark.usefixtures("starts_at_once")

SECRETS = {
    "the password": "umbrella-of-the-owner",
    "a wrong password": "guess-of-a-stranger",
    "a cookie": "crumb-of-a-cookie",
    "a token in a header": "token-of-a-bearer",
    "what the proxy proves itself with": "proof-of-a-proxy",
    "the password of another server": "key-to-elsewhere",
    "a password in an address": "pass-in-an-address",
    "a field that nothing here has": "value-of-a-field",
    "a field of an address that nothing here has": "value-in-a-query",
}
ACCOUNT = ("ada", SECRETS["the password"])


def needles() -> dict[bytes, str]:
    """Each secret as it is, and as it goes over the line."""
    found = {}
    for name, secret in SECRETS.items():
        found[secret.encode()] = name
        for user in ("ada", "eve"):
            found[base64.b64encode(f"{user}:{secret}".encode()).rstrip(b"=")[:-1]] = name
    return found


def leaks(text: bytes, where: object) -> list[str]:
    return [f"{name} in {where}" for needle, name in needles().items() if needle in text]


class Written:
    """A server in processes of its own, and whatever it has shown so far."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.process, self.found = process, list[str]()
        self.http = httpx.Client(
            base_url=url,
            timeout=60,
            cookies={"access-token": SECRETS["a cookie"]},
            headers={"X-Proxy-Proof": SECRETS["what the proxy proves itself with"]},
        )

    def ask(
        self, method: str, path: str, *, of: tuple[str, str] | None = ACCOUNT, **how: object
    ) -> httpx.Response:
        answer = self.http.request(method, path, auth=of, **how)  # type: ignore[arg-type]
        self.found += leaks(answer.content, f"the answer to {method} {path}")
        self.found += leaks(repr(answer.headers.raw).encode(), f"the headers of {method} {path}")
        return answer

    def look_at_processes(self) -> None:
        here = psutil.Process(self.process.pid)
        for one in [here, *here.children(recursive=True)]:
            try:
                self.found += leaks("\0".join([one.name(), *one.cmdline()]).encode(), one.cmdline()[:4])
            except psutil.NoSuchProcess:
                continue

    def done(self, answer: httpx.Response) -> None:
        """Waits for a job, and looks at its processes meanwhile."""
        assert answer.status_code == 202, answer.text
        said = answer.json()
        job = said.get("job", said)["id"]
        deadline = time.monotonic() + 120
        while self.ask("GET", f"/v1/jobs/{job}").json()["state"] in {"queued", "running"}:
            assert time.monotonic() < deadline
            self.look_at_processes()
            time.sleep(0.05)
        self.ask("GET", f"/v1/jobs/{job}/log")


@contextmanager
def running(folder: Path) -> Iterator[tuple[Written, Path, Path]]:
    """Two processes that log all they can."""
    home, accounts, said = make_home(folder).home, folder / "accounts", folder / "said"
    accounts.write_text(password_line("ada", "admin", ACCOUNT[1]) + "\n", encoding="utf-8")
    accounts.chmod(0o600)
    told = {
        **{"PASSWORD_FILE": str(accounts), "POLL_SECONDS": "0.1", "LOG_LEVEL": "DEBUG", "ALLOW_FETCH": "1"},
        **{"SERVER_PASSWORD": SECRETS["the password of another server"], "NICENESS": "0"},
    }
    command = [
        sys.executable,
        "-u",
        "-m",
        "perennial",
        "serve",
        "--home",
        str(home),
        "--port",
        "0",
        "--processes",
        "2",
    ]
    environment = os.environ | {f"PERENNIAL_{name}": value for name, value in told.items()}
    with (
        said.open("w") as errors,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split("starting on ")[1].split()[0]
            assert "is ready" in process.stdout.readline()
            yield Written(url, process), home, said
        finally:
            process.terminate()
            process.wait(30)


def test_what_is_secret_is_in_no_file_no_answer_and_no_command_line(tmp_path: Path) -> None:
    with running(tmp_path) as (server, home, said):
        _use(server, tmp_path)
        server.http.close()
    for path in [said, *home.rglob("*")]:
        if path.is_file() and not path.is_symlink():
            server.found += leaks(path.read_bytes(), path.relative_to(tmp_path))
    assert server.found == []
    assert (home / "perennial.log").stat().st_size > 1000


def _use(server: Written, folder: Path) -> None:
    stranger = ("eve", SECRETS["a wrong password"])
    bearer = {"Authorization": f"Bearer {SECRETS['a token in a header']}"}
    field, query = (
        SECRETS["a field that nothing here has"],
        SECRETS["a field of an address that nothing here has"],
    )
    for path in ("/", "/admin/", "/v1/status", "/metrics", "/docs"):
        for of in (ACCOUNT, stranger, None):
            server.ask("GET", path, of=of)
        server.ask("GET", path, of=None, headers=bearer)
    for path in (
        "/v1/search",
        "/v1/feedback",
        "/v1/updates",
        "/gradio_api/run/predict",
        "/pictures",
        "/knn-service",
    ):
        server.ask("POST", path, json={"text": "a boat", "password": field})
        server.ask("POST", path, content=f'{{"password": "{field}"'.encode())
    server.ask("GET", f"/v1/releases?token={query}")
    server.ask("GET", "/v1/log?lines=5000")
    server.ask("GET", "/v1/settings")
    signed_in = f"http://ada:{SECRETS['a password in an address']}@127.0.0.1/boat.png"
    lines = [record(), record(signed_in), record(f"ftp{signed_in[4:]}")]
    upload = zip_of(folder / "upload.zip", {"good.png": picture(1), "t.jsonl": "\n".join(lines)}).read_bytes()
    server.done(server.ask("POST", "/v1/chunks", files={"file": ("u.zip", upload)}, data={"fetch": "true"}))
    for chunk in server.ask("GET", "/v1/chunks").json()["chunks"]:
        server.ask("GET", f"/v1/chunks/{chunk['id']}")
        server.ask("GET", f"/v1/chunks/{chunk['id']}/report.csv")
    server.done(server.ask("POST", "/v1/doctor", json={"every_byte": False}))
    package = server.ask("GET", "/v1/releases/r1/package").content
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        for name in archive.namelist():
            server.found += leaks(archive.read(name), f"{name} of the package")
    server.done(server.ask("POST", "/v1/packages", files={"file": ("r1.perennial", package)}))
    server.ask("GET", "/metrics")
    server.look_at_processes()
