"""The balancer of `servioticy cluster`: who gets the next connection, and who none any more."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from command.cluster import forwarding
from command.cluster.forwarding import FALL, Service
from servioticy.embedded import tcp_ports as ports


class Program:
    """Tells its name to whoever asks, and whether it is well; keeps connections open."""

    def __init__(self, name: str) -> None:
        self.name, self.is_well, self.port = name, True, ports.free()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                if line.startswith(b"GET /health "):
                    status = b"200 OK" if self.is_well else b"503 Away"
                    writer.write(b"HTTP/1.1 " + status + b"\r\n\r\n")
                elif line == b"who\n":
                    writer.write(f"{self.name}\n".encode())
        except ConnectionError:
            pass
        finally:
            writer.close()


Test = Callable[[Service, list[Program], int], Awaitable[None]]


def run(test: Test) -> None:
    async def running() -> None:
        programs = [Program("one"), Program("two")]
        servers = [
            await asyncio.start_server(each.serve, "127.0.0.1", each.port) for each in programs
        ]
        service = Service("/health", [("127.0.0.1", each.port) for each in programs])
        await check(service)
        listener = socket.create_server(("127.0.0.1", 0))
        accepting = asyncio.create_task(service.accept(listener))
        async with asyncio.timeout(60):
            await test(service, programs, listener.getsockname()[1])
        accepting.cancel()
        for each in servers:
            each.close()
        listener.close()

    asyncio.run(running())


async def check(service: Service) -> None:
    for each in service._servers:
        await each.check("/health")


async def is_ended(reader: asyncio.StreamReader) -> bool:
    """Whether the connection is over, however it is told."""
    try:
        return not await reader.read()
    except ConnectionError:
        return True


async def asked(port: int) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"who\n")
    return (await reader.readline()).decode().strip(), reader, writer


def test_connections_go_to_all_in_turn() -> None:
    async def test(_service: Service, _programs: list[Program], port: int) -> None:
        found = [await asked(port) for _ in range(4)]
        for _, _, writer in found:
            writer.close()

        assert [name for name, _, _ in found] == ["one", "two", "one", "two"]

    run(test)


def test_one_that_is_not_well_gets_nobody_and_whoever_is_there_is_cut_off() -> None:
    async def test(service: Service, programs: list[Program], port: int) -> None:
        _, reader, kept = await asked(port)
        programs[0].is_well = False
        for _ in range(FALL - 1):
            await check(service)
        name, _, other = await asked(port)
        assert name == "two"

        await check(service)
        assert await is_ended(reader)
        assert [(await asked(port))[0] for _ in range(3)] == ["two"] * 3

        programs[0].is_well = True
        await check(service)
        assert {(await asked(port))[0] for _ in range(2)} == {"one", "two"}
        kept.close()
        other.close()

    run(test)


def test_one_that_does_not_answer_is_passed_over_before_anybody_has_noticed() -> None:
    async def test(service: Service, _programs: list[Program], port: int) -> None:
        gone = ports.free()
        service._servers[0].port = gone

        assert [(await asked(port))[0] for _ in range(2)] == ["two", "two"]

    run(test)


def test_where_nobody_is_well_connections_end() -> None:
    async def test(service: Service, programs: list[Program], port: int) -> None:
        for each in programs:
            each.is_well = False
        for _ in range(FALL):
            await check(service)

        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await is_ended(reader)
        writer.close()

    run(test)


def test_no_more_are_handed_on_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "MOST", 2)

    async def test(_service: Service, _programs: list[Program], port: int) -> None:
        first, second = await asked(port), await asked(port)
        third = asyncio.create_task(asked(port))
        done, _ = await asyncio.wait({third}, timeout=0.3)
        assert not done

        first[2].close()
        assert (await third)[0] in ("one", "two")
        second[2].close()

    run(test)
