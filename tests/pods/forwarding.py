"""A way from the pods to a server that listens on this machine's loopback interface only."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import TracebackType
from typing import Self

_CHUNK = 65536


class Forwarding:
    """Forwards connections from another address of this machine to its loopback interface.

    Args:
        host: the address that is listened on.
        port: of the server on the loopback interface.
        at: the port that is listened on; 0: a free one.
    """

    def __init__(self, host: str, port: int, *, at: int = 0) -> None:
        self._host = host
        self._target = port
        self._at = at
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(30)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    @property
    def url(self) -> str:
        """``http://host:port``."""
        return f"http://{self._host}:{self.port}"

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, self._host, self._at)

    async def _close(self) -> None:
        self._server.close()
        serving = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # In Python 3.11 the stream's own callback fails on a task that ends cancelled.
        with contextlib.suppress(OSError, asyncio.CancelledError):
            theirs, ours = await asyncio.open_connection("127.0.0.1", self._target)
            await asyncio.gather(_pass_on(reader, ours), _pass_on(theirs, writer))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    writer.close()
