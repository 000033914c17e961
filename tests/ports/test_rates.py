"""What processes tell each other of rates, in memory and in Postgres."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from memory.rates import Exchange, MemoryRates
from waiting import until

from servioticy.errors import Rejected
from servioticy.ports.rates import LetIn, Rates
from servioticy.storage.database import Database
from servioticy.storage.rates import CHANNEL, MOST_AT_ONCE, PostgresRates
from servioticy.storage.roles import Role

Another = Callable[[], tuple[Rates, Callable[[], None]]]
"""Makes that of one more process, and what kills it."""


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.real)])
def another(request: pytest.FixtureRequest) -> Iterator[Another]:
    databases: list[Database] = []
    exchange = Exchange()

    def make() -> tuple[Rates, Callable[[], None]]:
        if request.param == "memory":
            one = MemoryRates(exchange)
            return one, one.die
        role = Role.DELIVERY if databases else Role.API
        database = Database(request.getfixturevalue("dsn"), role=role, durable=False)
        databases.append(database)
        return PostgresRates(database), database.close

    yield make
    for each in databases:
        each.close()


def some(rates: Rates) -> list[list[LetIn]]:
    """What comes, once something does."""
    found: list[list[LetIn]] = []

    def has_come() -> bool:
        found.extend(rates.heard(1.0) or ())
        return bool(found)

    until(has_come)
    return found


def test_who_comes_is_heard_and_counted(another: Another) -> None:
    (one, _), (two, _) = another(), another()
    assert one.heard(0) is None
    assert one.processes() == 1

    assert two.heard(0) is None

    assert some(one) == [[]]
    assert one.processes() == two.processes() == 2
    assert one.heard(0) == two.heard(0) == []


def test_what_is_told_is_heard_by_all_others(another: Another) -> None:
    processes = [another()[0] for _ in range(3)]
    for each in processes:
        each.heard(0)
    one, two, three = processes
    some(one), some(two)
    told = [LetIn(2**62, (0.25, 0.000001)), LetIn(2, (-1.5, 1e12))]

    one.tell(told)

    assert some(two) == [told]
    assert some(three) == [told]
    assert one.heard(0) in ([], [[]]), "not one's own, and at most that another has come"


def test_much_is_told_at_once(another: Another) -> None:
    (one, _), (two, _) = another(), another()
    one.heard(0), two.heard(0)
    told = [LetIn(2**62 + number, (1e12 + 0.5, 1e12)) for number in range(3 * MOST_AT_ONCE + 1)]

    one.tell(told)

    found: list[LetIn] = []
    while len(found) < len(told):
        found += [each for let_in in some(two) for each in let_in]
    assert found == told


def test_who_is_killed_is_counted_no_more(another: Another) -> None:
    (one, _), (two, kill) = another(), another()
    one.heard(0), two.heard(0)
    assert one.processes() == 2

    kill()

    until(lambda: one.processes() == 1)
    assert two.heard(0) is None, "it comes anew"
    assert one.processes() == 2


@pytest.mark.real
@pytest.mark.parametrize(
    "said", ["", "x", "[]", "{}", '{"from":1}', '{"from":"a","let_in":[["x",1,1]]}', "1"]
)
def test_what_is_not_understood_is_left_out(dsn: str, said: str) -> None:
    """Of another release, perhaps."""
    database = Database(dsn, role=Role.API)
    rates = PostgresRates(database)
    assert rates.heard(0) is None
    for text in (said, '{"from":"a","let_in":[[1,500000,0]]}'):
        database.rows(f"SELECT pg_notify('{CHANNEL}', %(said)s)", {"said": text})

    assert some(rates) == [[LetIn(1, (0.5, 0.0))]]
    database.close()


def test_who_leaves_hears_nothing_of_what_was_told_before(another: Another) -> None:
    (one, _), (two, _) = another(), another()
    one.heard(0), two.heard(0)
    one.tell([LetIn(1, (0.5, 0.0))])

    two.leave()

    until(lambda: one.processes() == 1)
    assert two.heard(0) is None
    assert two.heard(0) == []
    one.tell([LetIn(2, (0.5, 0.0))])
    assert some(two) == [[LetIn(2, (0.5, 0.0))]]


@pytest.mark.real
def test_nothing_is_told_where_others_need_the_room(dsn: str) -> None:
    """A program that listens and is stopped holds the queue; tokens that end have to be told."""
    database = Database(dsn, role=Role.API)
    rates = PostgresRates(database, most_waiting=0.0)
    assert rates.heard(0) is None

    with pytest.raises(Rejected, match="has not read for long"):
        rates.tell([LetIn(1, (0.5, 0.0))])

    assert rates.heard(0) == []
    database.close()
