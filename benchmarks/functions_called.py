"""A receiver of a workflow's callbacks that takes a while over each, in a process of its own.

`python -m benchmarks.functions_called SECONDS` tells its port in a line, and answers until its
input ends: so it ends with whoever has begun it.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

ANSWER = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"


@contextmanager
def receiving(seconds: float) -> Iterator[str]:
    """One that takes so long for each request, by its URL."""
    command = [sys.executable, "-P", "-m", "benchmarks.functions_called", str(seconds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("a process has the pipes that were asked for")
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
        finally:
            process.stdin.close()
            process.wait()


async def _answer(seconds: float) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(seconds)
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_answer(float(sys.argv[1])))
