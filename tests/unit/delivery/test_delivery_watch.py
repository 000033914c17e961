"""A socket that moves, however slowly, and one that does not."""

from __future__ import annotations

from typing import Any, cast

import pytest

from delivery.backlog import Backlog
from delivery.handshake import Admission
from delivery.watch import MAX_UNREAD_BYTES, STALL_SECONDS, Watch
from servioticy.domain.model import LastUpdate, StreamRef


class Connection:
    """Its transport, too: what is written waits until it is taken."""

    def __init__(self) -> None:
        self.unread = 0
        self.cut = False

    @property
    def transport(self) -> Connection:
        return self

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.cut = True


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Connection:
    def write(connections: list[Connection], document: bytes, **_: Any) -> None:
        for each in connections:
            each.unread += len(document)

    monkeypatch.setattr("delivery.watch.broadcast", write)
    return Connection()


@pytest.fixture
def watching(connection: Connection) -> Watch:
    admission = Admission(StreamRef("pump", "flow"), 1, None, 1, False, 7)
    return Watch(cast(Any, connection), admission, Backlog(10**9))


def offer(watching: Watch, size: int) -> None:
    watching.offer(LastUpdate(1, b"x" * size), 1)


def test_one_that_takes_a_byte_now_and_then_stays(watching: Watch, connection: Connection) -> None:
    offer(watching, 1000)
    for step in range(100):
        watching.look_after(step * (STALL_SECONDS - 1))
        connection.unread -= 1

    assert not connection.cut


def test_one_that_is_given_more_than_it_takes_but_takes_stays(
    watching: Watch, connection: Connection
) -> None:
    """What waits for it grows; it is the other limit that ends that."""
    for step in range(100):
        offer(watching, 10)
        connection.unread -= 1
        watching.look_after(step * STALL_SECONDS)

    assert not connection.cut


def test_one_that_takes_nothing_is_cut_in_time_and_not_before(
    watching: Watch, connection: Connection
) -> None:
    for now in (0.0, 1.0, STALL_SECONDS - 0.5):
        offer(watching, 10)
        watching.look_after(now)
    assert not connection.cut

    watching.look_after(STALL_SECONDS)

    assert connection.cut


def test_one_that_is_given_nothing_may_be_silent_for_ever(
    watching: Watch, connection: Connection
) -> None:
    for step in range(100):
        watching.look_after(step * STALL_SECONDS)

    assert not connection.cut


def test_exactly_so_much_may_wait_and_not_a_byte_more(
    watching: Watch, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons: list[str] = []
    monkeypatch.setattr(watching, "close", reasons.append)
    offer(watching, MAX_UNREAD_BYTES)
    offer(watching, 1)
    assert not reasons

    offer(watching, 1)

    assert len(reasons) == 1
    assert connection.unread == MAX_UNREAD_BYTES + 1


def test_what_waits_for_it_is_weighed(watching: Watch, connection: Connection) -> None:
    offer(watching, 100)
    offer(watching, 50)
    connection.unread -= 30

    assert watching.weight() == 120
