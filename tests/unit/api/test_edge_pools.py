"""Nobody has more than a share, and turns go around."""

from __future__ import annotations

import math

import pytest

from api.edge.deadlines import Deadlines
from api.edge.framing import TooMuch
from api.edge.incoming import REMEMBERED_HEAD, Incoming
from api.edge.kinds import kind
from api.edge.pools import Budget, Busy, Holding, Job, Pool
from operators.archives import MAX_ARCHIVE_BYTES
from servioticy.http_heads import Head, parse


class Bench:
    """A pool whose jobs end when the test says so."""

    def __init__(self, threads: int = 4, longest: int = 100, longest_of_one: int = 10) -> None:
        self.running: list[Job] = []
        self.told: list[object] = []
        self.pool = Pool(self.running.append, threads, 0.5, longest, longest_of_one)

    def submit(
        self, who: str, since: float = 0.0, wanted: bool = True, begun: bool = False
    ) -> Job:
        job = Job(who, lambda: None, self.told.append, lambda: wanted, since, begun)
        self.pool.submit(job)
        return job

    def end(self, who: str) -> None:
        job = next(each for each in self.running if each.who == who)
        self.running.remove(job)
        self.pool.finished(job)

    def callers(self) -> list[object]:
        return [each.who for each in self.running]


def test_a_caller_holds_no_more_than_a_share_of_the_threads() -> None:
    bench = Bench(threads=4)
    for _ in range(5):
        bench.submit("a")
    bench.submit("b")

    assert bench.callers() == ["a", "a", "b"]
    bench.end("a")
    assert bench.callers() == ["a", "b", "a"]


def test_callers_take_turns() -> None:
    """However many one of them has waiting."""
    bench = Bench(threads=2)
    for who in ("a", "x", "b", "b", "b", "c", "d"):
        bench.submit(who)

    order = []
    for _ in range(4):
        bench.end(str(bench.callers()[0]))
        order.append(bench.callers()[-1])

    assert order == ["b", "c", "d", "b"]


def test_a_queue_is_bounded_for_one_and_for_all() -> None:
    bench = Bench(threads=2, longest=3, longest_of_one=2)
    for who in ("a", "b", "a", "a"):
        bench.submit(who)
    with pytest.raises(Busy) as own:
        bench.submit("a")
    bench.submit("b")
    with pytest.raises(Busy) as everybody:
        bench.submit("c")

    assert (own.value.status, everybody.value.status) == (429, 503)


def test_what_has_begun_is_not_turned_away() -> None:
    """A read that has waited, the next page of an answer half sent."""
    bench = Bench(threads=2, longest=1, longest_of_one=1)
    bench.submit("a")
    bench.submit("a")

    bench.submit("a", begun=True)

    bench.end("a")
    bench.end("a")
    assert bench.callers() == ["a"]


def test_what_has_begun_keeps_nobody_out() -> None:
    """Else a tenant that reads long streams would fill the queue for all."""
    bench = Bench(threads=2, longest=1)
    for _ in range(4):
        bench.submit("a", begun=True)

    bench.submit("b")
    bench.submit("b")
    with pytest.raises(Busy) as everybody:
        bench.submit("c")

    assert everybody.value.status == 503
    bench.end("b")
    bench.submit("c")


def test_work_that_nobody_wants_any_more_is_not_done() -> None:
    bench = Bench(threads=2)
    bench.submit("a")
    bench.submit("a", wanted=False)
    wanted = bench.submit("a")

    bench.end("a")

    assert bench.running == [wanted]
    assert bench.told == [None]


def test_who_has_waited_too_long_is_taken_out() -> None:
    bench = Bench(threads=2)
    bench.submit("a")
    old, young = bench.submit("a", since=1.0), bench.submit("a", since=2.0)

    page = bench.submit("a", since=math.inf)

    assert bench.pool.expired(2.0) == [old]
    assert bench.pool.expired(99.0) == [young]
    bench.end("a")
    assert bench.running == [page]
    assert not bench.pool.is_awaited()


def test_bytes_are_held_up_to_a_share_and_up_to_all() -> None:
    budget = Budget(10, 5)
    budget.take("a", 5)
    with pytest.raises(Busy) as own:
        budget.take("a", 1)
    budget.take("b", 5)
    with pytest.raises(Busy) as everybody:
        budget.take("c", 1)
    budget.give("a", 5)
    budget.take("c", 5)

    assert (own.value.status, everybody.value.status) == (429, 503)


def test_a_connection_holds_for_one_caller_at_a_time() -> None:
    """Before its head is there, nobody knows for whom."""
    budget = Budget(10, 6)
    holding = Holding(budget)
    holding.become("stranger", 6)
    with pytest.raises(Busy):
        holding.become("stranger", 7)
    holding.become("tenant", 4)
    budget.take("stranger", 6)
    with pytest.raises(Busy):
        holding.become("stranger", 1)
    holding.shrink(5)

    assert dict(budget._held) == {"tenant": 4, "stranger": 6}
    holding.give_back()
    holding.give_back()
    assert dict(budget._held) == {"stranger": 6}


def test_who_began_first_is_late_first() -> None:
    now = [0.0]
    deadlines: Deadlines[str] = Deadlines(10.0, lambda: now[0])
    for now[0], one in ((0.0, "a"), (1.0, "b"), (2.0, "c")):
        deadlines.begin(one)
    deadlines.begin("a")
    deadlines.end("c")

    now[0] = 10.999
    assert (deadlines.oldest(), deadlines.late()) == ("b", [])
    now[0] = 11.0
    assert deadlines.late() == ["b"]
    now[0] = 99.0
    assert deadlines.late() == ["a"]


@pytest.mark.parametrize(
    ("method", "path", "pool"),
    [
        ("PUT", "/so/streams/s", "updates"),
        ("PUT", "/so/streams/s/", "updates"),
        ("POST", "/so/streams/s/updates", "batches"),
        ("POST", "/updates/", "batches"),
        ("GET", "/so/streams/s/updates", "reads"),
        ("POST", "/lastUpdates", "reads"),
        ("GET", "/so/streams/s/search", "long"),
        ("POST", "/so/streams/s/search/", "long"),
        ("GET", "/so/streams/s/aggregates", "long"),
        ("GET", "/so/streams/s/export", "long"),
        ("POST", "/so/streams/s/export", "changes"),
        ("GET", "/so/streams/export", "reads"),
        ("PUT", "/so", "changes"),
        ("POST", "/", "changes"),
        ("POST", "/claims", "claims"),
        ("POST", "/claims/", "claims"),
        ("PUT", "/claims", "changes"),
        ("POST", "/so/claim-codes", "changes"),
        ("POST", "/console/devices/so/check", "long"),
        ("POST", "/console/devices/so/try", "long"),
        ("POST", "/console/devices/so/document", "changes"),
        ("POST", "/so/check", "changes"),
    ],
)
def test_each_request_has_its_pool(method: str, path: str, pool: str) -> None:
    """A batch takes the time of thousands of updates: it does not keep their threads."""
    assert kind(method, path) == pool


@pytest.mark.parametrize(("size", "pool"), [(16_383, "updates"), (16_384, "batches")])
def test_a_large_update_takes_the_threads_of_batches(size: int, pool: str) -> None:
    """It waits for the log as they do."""
    assert kind("PUT", "/so/streams/s", size) == pool
    assert kind("GET", "/so/streams/s", size) == "reads"


@pytest.mark.parametrize(("size", "pool"), [(16_383, "changes"), (16_384, "large")])
@pytest.mark.parametrize("path", ["/so", "/console/api/so", "/operators/a"])
def test_a_large_document_keeps_the_threads_of_no_small_one(
    size: int, pool: str, path: str
) -> None:
    """To look at its code may take seconds."""
    assert kind("PUT", path, size) == pool


@pytest.mark.parametrize("path", ["/operators/a", "/console/api/operators/a"])
def test_programs_may_be_larger_than_other_bodies(path: str) -> None:
    """Whether a shell pushes them or a page of the console."""
    for method, size, is_taken in (
        ("PUT", MAX_ARCHIVE_BYTES, True),
        ("PUT", MAX_ARCHIVE_BYTES + 1, False),
        ("POST", 1_001, False),
    ):
        text = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}"
        head, incoming = parse(text.encode()), Incoming(1_000)
        if is_taken:
            incoming.begin_body(head)
        else:
            with pytest.raises(TooMuch):
                incoming.begin_body(head)


def _arrives(incoming: Incoming, head: bytes, size: int = 0) -> tuple[Head, bytes | None]:
    incoming.add(memoryview(head + b"x" * size))
    found = incoming.take_head()
    assert found is not None
    incoming.begin_body(found)
    return found, incoming.take_body()


def test_what_a_head_says_is_remembered_until_another_comes() -> None:
    """A device sends the same again and again; what is other in any way is read."""
    incoming = Incoming(1_000)
    lines = "PUT /so/streams/s HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n"
    three, four = lines.format(3).encode(), lines.format(4).encode()

    first = _arrives(incoming, three, 3)
    again = _arrives(incoming, three, 3)
    other = _arrives(incoming, four, 4)

    assert again[0] is first[0]
    assert (first[1], again[1], other[1]) == (b"xxx", b"xxx", b"xxxx")
    assert (first[0].length, other[0].length) == (3, 4)
    incoming.clear()
    assert _arrives(incoming, four, 4)[0] is not other[0], "of who has gone nothing is kept"


@pytest.mark.parametrize("beyond", [0, 1])
def test_of_a_long_head_nothing_is_remembered(beyond: int) -> None:
    incoming = Incoming(1_000)
    begin = b"GET / HTTP/1.1\r\nHost: h\r\nX-Y: "
    head = begin + b"z" * (REMEMBERED_HEAD + beyond - len(begin)) + b"\r\n\r\n"

    found = [_arrives(incoming, head)[0] for _ in range(2)]

    assert found[0] == found[1]
    assert (found[0] is found[1]) is (beyond == 0)
