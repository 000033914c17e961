"""Queues between the platform and programs: who may touch them, and what they survive."""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from certificates import certified
from operator_folders import PROGRAM, answers, fetched, node_of, question, until, write

from command import doctor
from operators.links import Links, Pairs
from operators.queues import link
from operators.queues.link import MOST_BYTES, QueueLink, Queues, prefix
from operators.queues.probe import probed
from operators.queues.resp import (
    SOCKET_NAME,
    Address,
    Connection,
    Refused,
    StoreLost,
    address,
)
from operators.queues.server import Server
from servioticy.errors import Unavailable
from servioticy.settings import Settings, changed

COUNT = """
import time
from pathlib import Path
from servioticy_operator import serve
def count(event, state):
    state.put("count", state.get("count", 0) + 1)
    while event.value("value") and not Path("go").exists():
        time.sleep(0.01)
    return {"count": state.get("count")}
serve(count)
"""


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A store, in a folder whose path is longer than a socket's may be."""
    long = tmp_path_factory.mktemp("store") / ("long" * 30)
    long.mkdir()
    server = Server(lambda: long, 8 * MOST_BYTES)
    try:
        yield server
    finally:
        server.close()


def test_a_store_that_is_killed_loses_nothing(tmp_path: Path, store: Server) -> None:
    """What is unanswered is asked again of a process begun anew, by a store begun anew; nobody is
    to blame, however often it comes to that."""
    queues = Queues(store.address, lambda: None)
    folder = write(tmp_path / "a", COUNT)
    killed: set[int | None] = set()
    with node_of({PROGRAM: folder}, tmp_path, links=queues) as node:
        first = answers(node, [question(0)])[b"q0"]
        for number in range(1, 4):
            assert node.ask(question(number, state=first.state))
            until(lambda: node.running()[0].state == "serving" and store.pid not in killed)
            assert store.pid is not None
            killed.add(store.pid)
            os.kill(store.pid, signal.SIGKILL)
        (folder / "go").touch()
        found = fetched(node, 3)
        restarts = node.running()[0].restarts
    queues.close()

    assert [each.error for each in found.values()] == [""] * 3
    assert [each.outputs[0].channels for each in found.values()] == [b'{"count":2}'] * 3
    assert restarts == 3


def test_who_carries_for_a_program_may_be_killed(
    tmp_path: Path, store: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process of its own it may die alone; the question is asked again."""
    begun: list[int] = []
    begin = link._relay

    def noted(program: socket.socket, said: dict[str, object]) -> Any:
        made = begin(program, said)
        begun.append(made[0].pid)
        return made

    monkeypatch.setattr(link, "_relay", noted)
    queues = Queues(store.address, lambda: None)
    with node_of({PROGRAM: write(tmp_path / "a", COUNT)}, tmp_path, links=queues) as node:
        answers(node, [question(0)])
        os.kill(begun[0], signal.SIGKILL)
        found = answers(node, [question(1, values=[0])])[b"q1"]
    queues.close()

    assert found.error == ""
    assert len(begun) == 2


def test_its_user_may_use_its_own_two_lists_and_nothing_else(
    store: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gets its password reads no other operator's events, and makes no users."""
    told: dict[str, Any] = {}
    begin = link._relay

    def noted(program: socket.socket, said: dict[str, Any]) -> Any:
        told.update(said)
        return begin(program, said)

    monkeypatch.setattr(link, "_relay", noted)
    one, other = QueueLink(store.address()), QueueLink(store.address())
    theirs = dict(told)
    one_asked = f"{one._name}:asked"
    user = Connection(theirs["address"])

    assert user.call("RPUSH", theirs["gives"], b"x") == 1
    for words in (
        ("RPUSH", one_asked, b"x"),
        ("BLPOP", one_asked, 1),
        ("BLPOP", theirs["gives"], 1),
        ("LRANGE", theirs["takes"], 0, -1),
        ("GET", one_asked),
        ("KEYS", "*"),
        ("ACL", "USERS"),
        ("CONFIG", "GET", "*"),
        ("FLUSHALL",),
        ("SUBSCRIBE", "any"),
        ("EVAL", "return 1", 0),
    ):
        with pytest.raises(Refused, match="NOPERM"):
            user.call(*words)
    with pytest.raises(Refused, match="WRONGPASS"):
        Connection(theirs["address"]._replace(password="other"))
    with pytest.raises(Refused, match="NOAUTH"):
        Connection(store.address()._replace(password="")).call("PING")
    for each in (one, other):
        each.theirs.close()
        each.ours.close()
        each.join()
        assert not each.is_alive


def test_users_of_the_dead_are_taken_away(store: Server) -> None:
    """A platform that is killed cannot; those of the living stay, and those of others.

    Of another database nobody can tell here who lives.
    """
    own, elsewhere = prefix(store.address()), prefix(store.address()._replace(database=1))
    asks = Connection(store.address())
    asks.calls(
        [
            ("ACL", "SETUSER", f"{own}dead", "on"),
            ("ACL", "SETUSER", f"{elsewhere}dead", "on"),
            ("ACL", "SETUSER", "somebody", "on"),
            ("SET", f"{own}alive:here", 1),
            ("ACL", "SETUSER", f"{own}alive", "on"),
        ]
    )
    queues = Queues(store.address, lambda: None)
    made = queues.link()
    users = asks.call("ACL", "USERS")
    made.ours.close()
    made.theirs.close()
    queues.close()

    assert isinstance(users, list)
    assert {b"somebody", own.encode() + b"alive"} < set(map(bytes, users))  # type: ignore[arg-type]
    assert own.encode() + b"dead" not in users
    assert sorted(asks.call("ACL", "USERS")) == [  # type: ignore[arg-type, type-var]
        b"default",
        own.encode() + b"alive",
        elsewhere.encode() + b"dead",
        b"somebody",
    ]


def test_what_nobody_touches_goes_by_itself(store: Server) -> None:
    """Of who has died: nothing of ours stays in a store that others use, too."""
    made = QueueLink(store.address())
    asks = Connection(store.address())
    made._relay.send_signal(signal.SIGSTOP)
    made.ours.sendall(b"\0\0\0\2{}" * 2)  # the first is for who waits already
    until(lambda: asks.call("EXISTS", f"{made._name}:asked") == 1)
    left = [asks.call("PTTL", f"{made._name}:{each}") for each in ("asked", "here")]
    made.theirs.close()
    made.ours.close()
    made.join()

    for each in left:
        assert isinstance(each, int)
        assert 0 < each <= link.KEPT_MILLISECONDS


def test_a_store_that_is_not_there_is_waited_for(tmp_path: Path, store: Server) -> None:
    """Nothing is answered with an error, and when it is there again everything is."""
    place: list[Address] = []

    def later() -> Address:
        if not place:
            raise Unavailable("not yet")
        return place[0]

    queues = Queues(later, lambda: None)
    with node_of({PROGRAM: write(tmp_path / "a", COUNT)}, tmp_path, links=queues) as node:
        assert node.ask(question(0))
        until(lambda: bool(node.running()[0].problem))
        assert node.replies(0.0) == []
        place.append(store.address())
        found = fetched(node, 1)
    queues.close()

    assert found[b"q0"].error == ""


def test_a_store_may_be_elsewhere_and_spoken_to_in_secret(tmp_path: Path, store: Server) -> None:
    """By a URL with a password and TLS; one whose certificate nobody vouches for is not used."""
    folder = certified(tmp_path)
    if folder is None:
        pytest.skip("no openssl on this machine")
    local = store.address()
    Connection(local).call("ACL", "SETUSER", "ours", "on", ">se:cr/et", "~*", "+@all")
    with _encrypted(local, folder) as port:
        url = f"rediss://ours:se%3Acr%2Fet@127.0.0.1:{port}/3"
        place = address(url, str(folder / "certificate.pem"))
        queues: Links = Queues(lambda: place, lambda: None)
        with node_of({PROGRAM: write(tmp_path / "a", COUNT)}, tmp_path, links=queues) as node:
            found = answers(node, [question(0)])[b"q0"]
        queues.close()

        assert found.error == ""
        with pytest.raises(StoreLost, match="certificate"):
            Connection(address(url))


def test_a_server_that_cannot_begin_says_so(tmp_path: Path) -> None:
    """And nothing waits for it for ever."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / SOCKET_NAME).mkdir()
    server = Server(lambda: folder, MOST_BYTES)
    with pytest.raises((Unavailable, OSError)):
        server.address()
    server.close()

    assert Pairs().link().lost == ""


def test_doctor_tells_whether_the_store_will_do(store: Server) -> None:
    """Its own, and one that is named: whether that is there, and lets us make users."""
    own = doctor._queues(Settings())
    elsewhere = doctor._queues(changed(Settings(), operators_store="redis://127.0.0.1:1"))
    Connection(store.address()).call(
        "ACL", "SETUSER", "weak", "on", ">word", "~*", "+@all", "-acl"
    )
    weak = store.address()._replace(user="weak", password="word")

    assert own.ok
    assert own.detail.startswith("valkey ")
    assert (elsewhere.ok, "not there" in elsewhere.detail) == (False, True)
    with pytest.raises(Unavailable, match="NOPERM"):
        probed(weak)


@contextmanager
def _encrypted(local: Address, folder: Path) -> Iterator[int]:
    """Put TLS before a store: the port where it is spoken."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    folder_of_store = os.open(local.folder, os.O_PATH)
    begun: queue.Queue[tuple[asyncio.AbstractEventLoop, int]] = queue.Queue()

    async def carry(theirs: asyncio.StreamReader, to_them: asyncio.StreamWriter) -> None:
        path = f"/proc/self/fd/{folder_of_store}/{SOCKET_NAME}"
        ours, to_us = await asyncio.open_unix_connection(path)
        await asyncio.gather(_copy(theirs, to_us), _copy(ours, to_them))

    async def serve() -> None:
        server = await asyncio.start_server(carry, "127.0.0.1", 0, ssl=context)
        begun.put((asyncio.get_running_loop(), server.sockets[0].getsockname()[1]))
        with suppress(asyncio.CancelledError):
            await server.serve_forever()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    loop, port = begun.get()
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(lambda: [each.cancel() for each in asyncio.all_tasks(loop)])
        thread.join()
        os.close(folder_of_store)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while content := await source.read(65536):
            sink.write(content)
            await sink.drain()
    sink.close()
