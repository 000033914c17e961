"""What processes tell each other of their clients, in memory and in Postgres."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from memory.peers import Company, MemoryPeers
from waiting import until

from servioticy.errors import Rejected
from servioticy.ports.peers import COME, Peers, Row, Told
from servioticy.storage.database import Database
from servioticy.storage.peers import CHANNEL, MOST_AT_ONCE, PostgresPeers
from servioticy.storage.roles import Role


class One(NamedTuple):
    """One process, its number, and what kills it."""

    peers: Peers
    process: int
    kill: Callable[[], None]


Another = Callable[[], One]


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.real)])
def another(request: pytest.FixtureRequest) -> Iterator[Another]:
    databases: list[Database] = []
    company, numbers = Company(), itertools.count(1)

    def make() -> One:
        if request.param == "memory":
            one = MemoryPeers(company, next(numbers))
            return One(one, one.process, one.die)
        dsn = request.getfixturevalue("dsn")
        database = Database(dsn, role=Role.DELIVERY, durable=False)
        databases.append(database)
        real = PostgresPeers(database)
        return One(real, real.process, database.close)

    yield make
    for each in databases:
        each.close()


def some(peers: Peers) -> list[Told]:
    """What comes, once something does."""
    found: list[Told] = []

    def has_come() -> bool:
        found.extend(peers.heard(1.0) or ())
        return bool(found)

    until(has_come)
    return found


def test_who_comes_is_heard_and_known(another: Another) -> None:
    one, two = another(), another()
    assert one.peers.heard(0) is None
    assert one.peers.others() == frozenset()

    assert two.peers.heard(0) is None

    (told,) = some(one.peers)
    assert (told.process, told.kind, told.rows) == (two.process, COME, [])
    assert one.peers.others() == {two.process} and two.peers.others() == {one.process}
    assert one.peers.heard(0) == two.peers.heard(0) == []


def test_what_is_told_is_heard_by_all_others_in_order(another: Another) -> None:
    """And whoever tells after having heard has the larger fence."""
    one, two, three = (another() for _ in range(3))
    for each in (one, two, three):
        each.peers.heard(0)
    some(one.peers), some(two.peers)
    rows: list[Row] = [("a", 2**62), ("ä", -1)]

    first = one.peers.tell("names", rows)
    heard = some(two.peers)
    second = two.peers.tell("places", [("b", 1)])

    assert heard == [Told(one.process, first, "names", rows)]
    assert some(one.peers)[-1] == Told(two.process, second, "places", [("b", 1)])
    assert second > first
    assert next(each.fence for each in three.peers.heard(0) or some(three.peers)) == first


def test_much_is_told_at_once(another: Another) -> None:
    one, two = another(), another()
    one.peers.heard(0), two.peers.heard(0)
    rows: list[Row] = [("f" * 32, 2**63 + each) for each in range(3 * MOST_AT_ONCE + 1)]

    one.peers.tell("names", rows)

    heard: list[Row] = []

    def all_came() -> bool:
        heard.extend(row for told in two.peers.heard(1.0) or () for row in told.rows)
        return len(heard) >= len(rows)

    until(all_came)
    assert heard == rows


def test_who_is_killed_is_missed_and_may_come_again(another: Another) -> None:
    one, two = another(), another()
    one.peers.heard(0), two.peers.heard(0)
    some(one.peers)

    two.kill()

    until(lambda: one.peers.others() == frozenset())
    assert two.peers.heard(0) is None
    assert some(one.peers)[0].kind == COME
    assert one.peers.others() == {two.process}


@pytest.mark.real
def test_what_is_no_message_of_ours_is_passed_over(dsn: str) -> None:
    database = Database(dsn, role=Role.DELIVERY)
    peers = PostgresPeers(database)
    while peers.heard(0) is None:
        continue
    for text in ("", "7", "x {}", '7 {"from":1}', '7 {"from":1,"kind":"k","rows":[1]}', "7 []"):
        database.rows(
            "SELECT pg_notify(%(channel)s, %(text)s)", {"channel": CHANNEL, "text": text}
        )
    database.rows(
        "SELECT pg_notify(%(channel)s, %(text)s)",
        {"channel": CHANNEL, "text": '7 {"from":1,"kind":"k","rows":[["a",1]]}'},
    )

    assert some(peers) == [Told(1, 7, "k", [("a", 1)])]
    database.close()


@pytest.mark.real
def test_nothing_is_told_where_nobody_reads(dsn: str) -> None:
    """The queue of notifications is one of all: that tokens have ended is told there, too."""
    database = Database(dsn, role=Role.DELIVERY)
    peers = PostgresPeers(database, most_waiting=0.0)
    with pytest.raises(Rejected):
        peers.tell("names", [("a", 1)])
    database.close()
