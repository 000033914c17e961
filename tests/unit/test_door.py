"""Who connects is taken in at once, and made a connection of by address in turn."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from servioticy.doors import door as doors
from servioticy.doors.door import AT_ONCE, ROOM_AT_ONCE, Door, Glance
from servioticy.doors.porch import MOST_WAITING

ENTERING = 0.001
SECONDS = 10.0
MOST = 2_000


class Loop:
    """A loop whose time goes as the test lets it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: list[tuple[float, Callable[[], object]]] = []
        self.reads: dict[Any, Callable[[], object]] = {}

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object], /) -> None:
        self.calls.append((self.now + delay, callback))

    def add_reader(self, listener: Any, callback: Callable[[], object], /) -> None:
        self.reads[listener] = callback

    def remove_reader(self, listener: Any, /) -> None:
        self.reads.pop(listener, None)

    def run(self, seconds: float) -> None:
        """Let time go on; listeners are ready whenever they are asked."""
        until = self.now + seconds
        while True:
            self._read()
            due = [each for each in self.calls if each[0] <= until]
            if not due:
                break
            at, callback = min(due, key=lambda each: each[0])
            self.calls.remove((at, callback))
            self.now = max(self.now, at)
            callback()
        self.now = until

    def _read(self) -> None:
        """Pass after pass, as long as somebody waits in Linux and may be taken in."""
        while any(each.queue or each.error for each in self.reads):
            for each in list(self.reads.values()):
                each()


class Client:
    """The side of a connection that was accepted, and what its client has sent."""

    def __init__(self, said: bytes = b"", address: str = "192.0.2.1") -> None:
        self.said, self.address = said, address
        self.told = b""
        self.is_closed = False

    def setblocking(self, _blocks: bool) -> None:
        pass

    def recv(self, _size: int, flags: int = 0) -> bytes:
        if not self.said:
            raise BlockingIOError
        return self.said

    def send(self, content: bytes) -> int:
        self.told += content
        return len(content)

    def shutdown(self, _how: int) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Listener:
    """What Linux has of those who have connected."""

    def __init__(self) -> None:
        self.queue: list[Client] = []
        self.error: OSError | None = None

    def setblocking(self, _blocks: bool) -> None:
        pass

    def accept(self) -> tuple[Client, tuple[str, int]]:
        if self.error is not None:
            raise self.error
        if not self.queue:
            raise BlockingIOError
        client = self.queue.pop(0)
        return client, (client.address, 1)


class House:
    """Notes who comes in, each of whom takes its time."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.inside: list[Any] = []
        self.asked_for_room = 0

    def glance(self, first: bytes, _address: str) -> Glance:
        return {b"known": Glance.KNOWN, b"nonsense": Glance.NONSENSE}.get(first, Glance.STRANGER)

    def refuse(self, first: bytes) -> bytes:
        return b"no " + first

    def enter(self, client: Any) -> None:
        self._loop.now += ENTERING
        self.inside.append(client)

    def make_room(self) -> None:
        self.asked_for_room += 1


class Entry:
    def __init__(self) -> None:
        self.loop = Loop()
        self.house, self.listener = House(self.loop), Listener()
        self.door = Door(self.loop, self.house, MOST, self.loop.time)
        self.door.attend([self.listener])  # type: ignore[list-item]


@pytest.fixture
def entry() -> Entry:
    return Entry()


def strangers(count: int, address: str = "192.0.2.1") -> list[Any]:
    return [Client(b"GET / HTTP/1.1", address) for _ in range(count)]


def test_who_is_known_comes_in_before_a_crowd_that_came_before_it(entry: Entry) -> None:
    """A queue of Linux has one order: it may not be the one in which people are served."""
    known = Client(b"known")
    entry.listener.queue = [*strangers(1_000), known]

    entry.loop.run(0.2)

    assert known in entry.house.inside
    assert len(entry.house.inside) < 500


def test_the_next_address_waits_for_one_turn_of_a_crowd_and_not_for_all_of_it(
    entry: Entry,
) -> None:
    other = Client(b"GET / HTTP/1.1", "198.51.100.7")
    entry.listener.queue = [*strangers(900), other]

    entry.loop.run(SECONDS)

    taken_in_before = AT_ONCE * 4
    assert entry.house.inside.index(other) < taken_in_before
    assert len(entry.house.inside) == 901


def test_nobody_waits_in_linux_while_strangers_wait_for_their_turn(entry: Entry) -> None:
    entry.listener.queue = strangers(MOST_WAITING)
    entry.loop.run(1.0)

    assert entry.listener.queue == []
    assert entry.door.taken_in == MOST_WAITING
    assert 0 < len(entry.door) < MOST_WAITING


def test_nothing_is_made_for_what_is_no_request(entry: Entry) -> None:
    nonsense = [Client(b"nonsense") for _ in range(100)]
    entry.listener.queue = list(nonsense)

    entry.loop.run(1.0)

    assert entry.house.inside == []
    assert all(each.is_closed and each.told == b"no nonsense" for each in nonsense)


def test_who_speaks_while_it_waits_is_looked_at_again(entry: Entry) -> None:
    """Nothing has come yet when it is taken in, and its turn comes later."""
    entry.listener.queue = strangers(200)
    late = Client()
    entry.listener.queue.append(late)
    entry.loop.run(0.0)
    late.said = b"nonsense"
    entry.loop.run(SECONDS)

    assert late.told == b"no nonsense"
    assert late not in entry.house.inside


def test_of_too_many_of_one_address_those_go_that_have_waited_longest(entry: Entry) -> None:
    crowd = strangers(3 * MOST_WAITING)
    entry.listener.queue = list(crowd)

    entry.loop.run(SECONDS)

    gone = [each for each in crowd if each.is_closed]
    assert gone
    assert crowd[-1] in entry.house.inside
    assert len(gone) + len(entry.house.inside) == len(crowd)


def test_of_too_many_that_wait_in_all_the_one_goes_that_has_waited_longest(entry: Entry) -> None:
    """Each has an open file, wherever it comes from."""
    crowd = [Client(b"GET", f"192.0.2.{n % 250}") for n in range(2 * MOST)]
    entry.listener.queue = list(crowd)
    most = 0
    for _ in range(100):
        entry.loop.run(0.05)
        most = max(most, len(entry.door))

    assert most == MOST
    gone = sum(each.is_closed for each in crowd)
    assert gone + len(entry.house.inside) + len(entry.door) == len(crowd)
    assert not any(each.is_closed for each in crowd[-MOST:])


def test_where_no_file_is_left_those_who_wait_make_room_as_well(entry: Entry) -> None:
    entry.listener.queue = strangers(500)
    entry.loop.run(0.0)
    waiting = len(entry.door)
    entry.loop.now += 1.0  # all is paid for
    entry.listener.error = OSError(errno.EMFILE, "Too many open files")
    entry.loop._read()

    assert len(entry.door) == waiting - ROOM_AT_ONCE
    assert entry.house.asked_for_room == ROOM_AT_ONCE
    assert entry.loop.reads == {}
    entry.listener.error = None
    entry.loop.run(SECONDS)
    assert len(entry.house.inside) == 500 - ROOM_AT_ONCE


def test_a_door_that_is_closed_lets_go_of_all_who_wait(entry: Entry) -> None:
    crowd = strangers(500)
    entry.listener.queue = list(crowd)
    entry.loop.run(0.0)
    waiting = len(entry.door)

    entry.door.close()
    entry.loop.run(SECONDS)

    assert waiting
    assert sum(each.is_closed for each in crowd) == waiting
    assert len(entry.door) == 0


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        other.settimeout(SECONDS)
        yield one, other


def test_who_is_refused_reads_why(pair: tuple[socket.socket, socket.socket]) -> None:
    """What it has sent is read: with something unread Linux would take the answer back."""
    ours, theirs = pair
    theirs.sendall(b"x" * 10_000)
    doors._tell(ours, b"no")

    assert theirs.recv(10) == b"no"
    assert theirs.recv(10) == b""
