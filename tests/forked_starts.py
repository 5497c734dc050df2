"""A Python that starts at once: forked from one that has loaded the libraries which take seconds, and nothing of ours.

Most of what a cold start of a server or of a job costs is torch, open_clip and Gradio. What a forked process runs is
what a cold one runs, from its first line of our code on: it has its own arguments, environment, folder, files and
signals, and ends as it would. `forked_starts` gives a program to stand in for `sys.executable`.

    forked_starts.py run SOCKET ...      in the place of `python ...`: a small process that stands for the forked one
    forked_starts.py load SOCKET PYTHON  the one that is forked; it ends when its standard input does
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

COLD = sys.executable
"""For what is asked of a process that has loaded nothing yet."""

_LOADED = ("faiss", "fastapi", "gradio", "onnxruntime", "open_clip", "sqlalchemy", "torch", "uvicorn")
_PASSED_ON = (signal.SIGINT, signal.SIGTERM)
_MOST_FILES = 64


@contextmanager
def forked_starts(folder: Path) -> Iterator[Path]:
    """Yields a program that takes what `python` takes; where processes cannot be followed, that is Python itself."""
    if not hasattr(os, "pidfd_open"):
        yield Path(sys.executable)
        return
    program, address = folder / "python", folder / "starts"
    words = map(shlex.quote, [sys.executable, "-IS", __file__, "run", str(address)])
    program.write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))  # who comes before all is loaded waits here
        listener.listen(64)
        number = listener.fileno()
        command = [sys.executable, __file__, "load", str(number), str(program)]
        loaded = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[number], start_new_session=True)
    with loaded:
        yield program


def _run(address: str, words: list[str]) -> None:
    """Has a process forked with the files, the folder and the environment of this one, and ends as that ends."""
    start = next((n for n, word in enumerate(words) if word not in {"-u", "-P"}), len(words))
    if words[start : start + 1] not in (["-c"], ["-m"]):
        os.execv(sys.executable, [sys.executable, *words])
    files = [int(one.name) for one in Path("/proc/self/fd").iterdir()]
    files = [one for one in files if one < 3 or _is_passed(one)]
    asked = {
        "flags": words[:start],
        "words": words[start:],
        "files": files,
        "folder": str(Path.cwd()),
        "environment": dict(os.environ),
        "leads": os.getsid(0) == os.getpid(),
    }
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(address)
        said = json.dumps(asked).encode()
        socket.send_fds(asking, [len(said).to_bytes(4, "big")], files)
        asking.sendall(said)
        for one in _PASSED_ON:
            signal.signal(one, lambda number, _: asking.sendall(bytes([number])))
        status = int.from_bytes(asking.recv(4), "big", signed=True)
    if status < 0:
        if -status in _PASSED_ON:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _is_passed(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:  # it was open while the list was read
        return False


def _load(listener: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Returns in each process that is to run something; the one that they are forked from ends here."""
    for name in _LOADED:
        importlib.import_module(name)
    gc.freeze()
    while True:
        heard = select.select([listener.fileno(), 0], [], [], 1)[0]
        if 0 in heard:
            os._exit(0)
        if listener.fileno() in heard:
            asking = listener.accept()[0]
            if not os.fork():
                listener.close()
                return _followed(asking)
            asking.close()
        while _ended():
            pass


def _ended() -> bool:
    """Lets one process go that has ended, so that its time counts."""
    try:
        return bool(os.waitpid(-1, os.WNOHANG)[0])
    except ChildProcessError:
        return False


def _followed(asking: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Returns in a process that is followed by this one, which passes signals on to it and says how it ended."""
    length, files, *_ = socket.recv_fds(asking, 4, _MOST_FILES)
    if not length:  # who asked was ended first
        os._exit(0)
    with asking.makefile("rb") as said:
        asked: dict[str, Any] = json.loads(said.read(int.from_bytes(length, "big")))
    process = os.fork()
    if not process:
        asking.close()
        return asked, files
    for one in files:
        os.close(one)
    end = os.pidfd_open(process)
    while True:
        heard = select.select([asking.fileno(), end], [], [])[0]
        if end in heard:
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            with suppress(OSError):  # nobody waits for it
                asking.sendall(status.to_bytes(4, "big", signed=True))
            os._exit(0)
        numbers = asking.recv(16)
        for number in numbers or [signal.SIGKILL]:
            os.kill(process, number)
        if not numbers:
            os.waitpid(process, 0)
            os._exit(0)


def _become(asked: dict[str, Any], files: list[int], program: str) -> None:
    """Takes over files, folder and environment, and what Python makes of them when it starts."""
    above = max([*files, *asked["files"]]) + 1
    for n, one in enumerate(files):
        os.dup2(one, above + n)
        os.close(one)
    for n, number in enumerate(asked["files"]):
        os.dup2(above + n, number, inheritable=True)
        os.close(above + n)
    if asked["leads"]:
        os.setsid()
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    is_unbuffered = "-u" in asked["flags"] or bool(os.environ.get("PYTHONUNBUFFERED"))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(  # type: ignore[union-attr]
            line_buffering=stream is sys.stderr or stream.isatty(), write_through=is_unbuffered
        )
    sys.executable = program
    search_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    here = [] if "-P" in asked["flags"] else [""]
    sys.path[:] = [*here, *filter(None, search_path), *sys.path]
    gc.unfreeze()


def _start(words: list[str]) -> None:
    """Runs code or a module in the place of this one, and ends with it.

    What libraries made of C++ would wait for their threads, which are none of a forked process.
    """
    status: object = 0
    try:
        _started(words)
    except SystemExit as leaving:
        status = leaving.code
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 - Python, too, prints whatever it is and ends
        traceback.print_exc()
        status = 1
    if not isinstance(status, int | None):
        sys.stderr.write(f"{status}\n")
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit((status or 0) & 255)


def _started(words: list[str]) -> None:
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *words[2:]]
        main = sys.modules["__main__"] = type(sys)("__main__")
        exec(compile(words[1], "<string>", "exec"), main.__dict__)


def _main(kind: str, place: str, *words: str) -> None:
    if kind == "run":
        _run(place, list(words))
    # What of this folder or of the working directory is named as a library is none.
    before = os.environ.pop("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [one for one in sys.path[1:] if one not in before]
    asked, files = _load(socket.socket(fileno=int(place)))
    _become(asked, files, words[0])
    _start(asked["words"])


if __name__ == "__main__":
    _main(*sys.argv[1:])
