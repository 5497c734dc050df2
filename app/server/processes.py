"""The further processes of a server: started, dealt connections in turn, and started again where one has died.

They answer searches and what else needs nothing of the first process (`further.py`). Connections are dealt by the
first one, since whichever process accepts for itself takes several at once while others have none.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import uvicorn
from prometheus_client.multiprocess import mark_process_dead

from app.home import cores
from app.home.settings import Settings
from app.server.handing import READY, HandedServer, hand, listen

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 2.0  # before one that died is started again, and before an accept that failed
_PATIENCE_SECONDS = 20.0  # until one that does not end is killed


class FurtherProcesses:
    """All processes of a server but the first, as the first sees them."""

    def __init__(
        self, settings: Settings, server: HandedServer, listener: socket.socket, forwarded: uvicorn.Config
    ) -> None:
        """Prepares; `begin` starts them.

        Args:
            settings: how many, and what they are told.
            server: of the first process.
            listener: the address that is served.
            forwarded: how the first process answers what they forward.
        """
        self._settings, self._server = settings, server
        self._listener, self._forwarded = listener, forwarded
        self._ready: list[socket.socket] = []  # channels of those that answer
        self._channels: set[socket.socket] = set()
        self._turn = 0
        self._ending = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep, args=(number,), name=f"process-{number}", daemon=True)
            for number in range(2, settings.processes + 1)
        ]

    def begin(self) -> None:
        """Takes connections from now on, and starts the processes; called in the loop."""
        self._forwarded.load()
        self._listener.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._dealing = self._loop.create_task(self._deal())
        for thread in self._threads:
            thread.start()

    async def end(self) -> None:
        """Takes no more connections, tells the processes to end, and waits for them."""
        self._ending.set()
        self._dealing.cancel()
        for channel in list(self._channels):
            self._forget(channel)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    async def _deal(self) -> None:
        while True:
            try:
                connection, _ = await self._loop.sock_accept(self._listener)
            except OSError as error:  # no file is left to open, for example
                logger.warning("a connection could not be accepted: %s", error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._turn = (self._turn + 1) % (1 + len(self._ready))
            try:
                if self._turn:
                    hand(self._ready[self._turn - 1], connection)
                    continue
            except OSError as error:
                logger.info("a process takes no connection: %s", error)
            self._server.take(connection)

    def _keep(self, number: int) -> None:
        """Has one process run until the end."""
        while not self._ending.is_set():
            try:
                why = f"ended with {self._run(number)}"
            except OSError as error:  # no memory or descriptor was left for it
                why = f"could not be started: {error}"
            if not self._ending.is_set():
                logger.warning("process %d of the server %s; it is started again", number, why)
                self._ending.wait(_PAUSE_SECONDS)

    def _run(self, number: int) -> int:
        """Starts a process, and returns its exit code when it has ended."""
        ours, theirs = socket.socketpair()
        with theirs:
            ours.sendall(self._settings.model_dump_json().encode() + b"\n")
            process = _started(self._settings, theirs)
        self._loop.call_soon_threadsafe(self._meet, ours)
        logger.info("process %d of the server is %d", number, process.pid)
        code = self._waited_for(process)
        mark_process_dead(process.pid)  # type: ignore[no-untyped-call]
        return code

    def _waited_for(self, process: subprocess.Popen[bytes]) -> int:
        while True:
            try:
                return process.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                if self._ending.is_set():
                    process.kill()

    def _meet(self, channel: socket.socket) -> None:
        self._channels.add(channel)
        if self._ending.is_set():
            self._forget(channel)
            return

        def hear(said: bytes, connection: socket.socket | None) -> None:
            if not said:
                self._forget(channel)
            elif said == READY:
                self._ready.append(channel)
            elif connection is not None:  # else there was no descriptor left for it
                self._server.take(connection, self._forwarded)

        listen(channel, hear)

    def _forget(self, channel: socket.socket) -> None:
        self._loop.remove_reader(channel)
        self._channels.discard(channel)
        if channel in self._ready:
            self._ready.remove(channel)
        channel.close()


def _started(settings: Settings, channel: socket.socket) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).resolve().parents[2])
    search_path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    # -P: a folder named `app` in the working directory must not be taken for ours.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "app.server.further", str(channel.fileno())],
        stdin=subprocess.DEVNULL,
        pass_fds=[channel.fileno()],
        start_new_session=True,  # Ctrl-C ends the first process, and that one the others
        env=cores.environment(settings.threads) | {"PYTHONPATH": search_path},
    )
