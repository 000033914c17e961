"""One caller keeps no other from threads, waiting places or bytes."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import Any

import pytest
from edge_builders import PAGE, REQUEST, SECONDS, Serving, Told, everything
from memory import MemoryPlatform
from waiting import until

from api.edge.edge import LARGE_THREADS, LONG_THREADS
from ingest.updates import LARGE_BYTES
from servioticy.http_heads import parse


def test_one_caller_cannot_keep_another_from_a_thread(
    serve: Callable[..., Serving], app: Told
) -> None:
    serving = serve()
    serving.introduce("greedy", "other")
    blocked = [serving.send("/block", "greedy") for _ in range(8)]
    until(lambda: app.inside.count("greedy") == 3)

    assert serving.ask("/hello", "other").read() == b"hello"
    assert app.inside.count("greedy") == 3
    app.gate.set()
    assert [each.getresponse().read() for each in blocked] == [b"block"] * 8


def test_searches_of_everybody_take_no_thread_of_other_reads(
    serve: Callable[..., Serving], app: Told
) -> None:
    """They are at most as many as have threads of their own, and others wait for those."""
    serving = serve(api_read_threads=1)
    serving.introduce("a", "b", "c")
    app.blocks.add("search")
    blocked = [serving.send("/so/streams/s/search", who, "POST") for who in "ab" for _ in range(8)]
    until(lambda: len(app.inside) >= LONG_THREADS and serving.edge._pools["long"]._new == 12)

    assert serving.ask("/hello", "c").read() == b"hello"
    app.gate.set()
    assert [each.getresponse().status for each in blocked] == [200] * 16


def test_large_documents_of_everybody_take_no_thread_of_small_ones(
    serve: Callable[..., Serving], app: Told
) -> None:
    """Looking at the code of one may take ten seconds, where others have the processor."""
    serving = serve(api_change_threads=1, max_body_bytes=LARGE_BYTES)
    serving.introduce("a", "b", "c", "d", "e")
    app.inside.clear()
    app.blocks.add("large")
    blocked = [serving.connection() for _ in range(2 * LARGE_THREADS)]
    for number, each in enumerate(blocked):
        each.request("PUT", "/large", b"x" * LARGE_BYTES, {"Authorization": "abcd"[number // 2]})
    until(lambda: len(app.inside) >= LARGE_THREADS)

    assert serving.ask("/small", "e", "PUT").read() == b"small"
    assert sorted(app.inside) == ["a", "b", "c", "d", "e"]  # one of each
    app.gate.set()
    assert [each.getresponse().status for each in blocked] == [200] * 2 * LARGE_THREADS


def test_tokens_that_are_made_up_share_one_share(serve: Callable[..., Serving], app: Told) -> None:
    """Else every one of them would be a caller of its own."""
    serving = serve()
    serving.introduce("known")
    app.inside.clear()
    blocked = [serving.send("/block", f"made-up-{n}") for n in range(8)]
    until(lambda: len(app.inside) == 2)

    assert serving.ask("/hello", "known").read() == b"hello"
    assert len(app.inside) == 3
    app.gate.set()
    for each in blocked:
        each.getresponse()


def test_a_revoked_token_takes_nothing_from_its_tenant(
    serve: Callable[..., Serving], app: Told
) -> None:
    """From the first request on that it is refused for, it is one of those made up."""
    serving = serve()
    serving.introduce("tenant")
    head = b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: tenant"
    share = serving.edge.who(parse(head), "here")
    app.revoked.add("tenant")
    assert serving.ask("/hello", "tenant").status == 403
    until(lambda: not len(serving.edge._tokens))

    assert share != serving.edge.who(parse(head), "here") == serving.edge.stranger("here")


def test_a_caller_who_has_too_much_waiting_is_told_so(
    serve: Callable[..., Serving], app: Told
) -> None:
    serving = serve(api_queue_of_one=2)
    serving.introduce("a")
    blocked = [serving.send("/block") for _ in range(4)]
    until(lambda: serving.edge._pools["reads"]._new == 2)
    refused = serving.ask("/hello")

    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    app.gate.set()
    assert [each.getresponse().status for each in blocked] == [200] * 4


def test_claims_that_wait_are_in_nobodys_way(serve: Callable[..., Serving], app: Told) -> None:
    """A fleet that comes at once: the queue of changes is not theirs, and the next are told."""
    serving = serve(api_claim_threads=1, api_claim_queue=2)
    app.blocks.add("claims")
    blocked = [serving.send("/claims", "", "POST") for _ in range(3)]
    until(lambda: serving.edge._pools["claims"]._new == 2)

    refused = serving.ask("/claims", "", "POST")

    assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
    assert serving.ask("/", "a", "POST").status == 200
    app.gate.set()
    assert [each.getresponse().status for each in blocked] == [200] * 3


def test_a_request_does_not_wait_for_a_thread_for_ever(
    serve: Callable[..., Serving], app: Told
) -> None:
    serving = serve(api_queue_seconds=0.3)
    serving.introduce("a")
    blocked = [serving.send("/block") for _ in range(2)]
    until(lambda: app.inside.count("a") == 3)

    assert serving.ask("/hello").status == 503
    app.gate.set()
    assert [each.getresponse().status for each in blocked] == [200, 200]


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/o/streams/s"), ("POST", "/"), ("DELETE", "/o/streams/s"), ("PUT", "/o")],
)
def test_reads_do_not_keep_writes_and_changes_from_their_threads(
    method: str, path: str, serve: Callable[..., Serving], app: Told
) -> None:
    serving = serve()
    blocked = [serving.send("/block", token) for token in "aabbaabb"]
    until(lambda: len(app.inside) >= 2)

    assert serving.ask(path, "a", method).status == 200
    app.gate.set()
    for each in blocked:
        each.getresponse()


def test_reads_that_wait_hold_no_thread(
    serve: Callable[..., Serving], platform: MemoryPlatform, app: Told
) -> None:
    """More of them than there are threads, and a read that need not wait is answered."""
    platform.state.log[0].append(b"not stored yet")
    serving = serve(read_wait_seconds=SECONDS / 2, api_read_threads=1, api_queue_of_one=20)
    waiting = [serving.send("/waits") for _ in range(20)]
    until(lambda: app.inside.count("a") == 20)

    assert serving.ask("/hello").read() == b"hello"
    platform.partition_store(lambda _: ()).begin(0)
    platform.state.progress[0].next_offset = 1
    answers = [each.getresponse() for each in waiting]
    assert [each.read() for each in answers] == [b"waits"] * 20
    assert not any(each.headers["X-Servioticy-Behind"] for each in answers)


@pytest.mark.parametrize(("in_all", "of_one", "status"), [(9, 3, 429), (3, 9, 503)])
def test_only_so_many_reads_wait_for_the_pipeline(
    in_all: int,
    of_one: int,
    status: int,
    serve: Callable[..., Serving],
    platform: MemoryPlatform,
    app: Told,
) -> None:
    """The next one is refused, and is taken when they have been answered."""
    platform.state.log[0].append(b"not stored yet")
    serving = serve(
        read_wait_seconds=SECONDS, api_waiting_reads=in_all, api_waiting_reads_of_one=of_one
    )
    waiting = [serving.send("/waits") for _ in range(3)]
    until(lambda: serving.edge._waiting_reads._all == 3)

    refused = serving.ask("/waits")
    assert (refused.status, refused.headers["Retry-After"]) == (status, "1")
    assert serving.ask("/hello").status == 200
    platform.partition_store(lambda _: ()).begin(0)
    platform.state.progress[0].next_offset = 1
    assert [each.getresponse().status for each in waiting] == [200] * 3
    assert serving.ask("/waits").status == 200
    assert not serving.edge._waiting_reads._all


def test_waiting_reads_of_one_tenant_keep_no_other_from_waiting(
    serve: Callable[..., Serving], platform: MemoryPlatform
) -> None:
    """Whoever its requests were taken for before it was known whose they are."""
    platform.state.log[0].append(b"not stored yet")
    serving = serve(read_wait_seconds=0.5, api_waiting_reads_of_one=2)
    waiting = [serving.send("/waits", "greedy") for _ in range(2)]
    until(lambda: serving.edge._waiting_reads._all == 2)

    assert serving.ask("/waits", "other").headers["X-Servioticy-Behind"] == "1"
    assert [each.getresponse().status for each in waiting] == [200] * 2


def test_a_read_that_has_waited_long_enough_says_how_much_is_missing(
    serve: Callable[..., Serving], platform: MemoryPlatform
) -> None:
    platform.state.log[0] += [b"not", b"stored"]

    answer = serve(read_wait_seconds=0.1).ask("/waits")

    assert (answer.read(), answer.headers["X-Servioticy-Behind"]) == (b"waits", "2")


@pytest.mark.parametrize("partition", [0, 1])
def test_a_read_of_two_partitions_waits_for_both(
    partition: int, serve: Callable[..., Serving], platform: MemoryPlatform
) -> None:
    """It is answered once, and what one of them lacks is told."""
    platform.state.log[partition].append(b"not stored")
    serving = serve(read_wait_seconds=0.1)

    answer = serving.ask("/waits-for-two")

    assert (answer.read(), answer.headers["X-Servioticy-Behind"]) == (b"waits-for-two", "1")
    assert serving.ask("/hello").read() == b"hello"


def test_an_answer_does_not_break_off_because_others_have_the_threads(
    serve: Callable[..., Serving], app: Told
) -> None:
    """Its status is sent: all that a late turn could make of it is half an answer."""
    serving = serve(api_read_threads=1, api_queue_seconds=0.3)
    reader = serving.connect(receive_buffer=4_096)
    reader.sendall(b"GET /pages HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    until(lambda: app.pages > 0)
    blocked = serving.send("/block", "b")
    until(lambda: "b" in app.inside)
    content = b""
    while not any(job.begun for own in _waiting(serving) for job in own):
        content += reader.recv(4_096)
    refused = serving.ask("/hello", "c")

    assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
    app.gate.set()
    assert blocked.getresponse().status == 200
    content += everything(reader)
    assert content.endswith(b"\r\n0\r\n\r\n")
    assert content.count(b"x" * 100) == 1_000 * len(PAGE) // 100


def test_answers_that_wait_for_their_next_page_keep_nobody_out(
    serve: Callable[..., Serving], app: Told
) -> None:
    """However many of them a tenant has: not from the queue, and not from a connection."""
    serving = serve(api_read_threads=1, api_queue=2, api_connections=4)
    serving.introduce("other")
    readers = [serving.connect(receive_buffer=4_096) for _ in range(3)]
    for each in readers:
        each.sendall(b"GET /pages HTTP/1.1\r\nHost: x\r\n\r\n")
        assert each.recv(9) == b"HTTP/1.1 "
    blocked = serving.send("/block", "b")
    until(lambda: "b" in app.inside)
    while sum(job.begun for own in _waiting(serving) for job in own) < 3:
        for each in select.select(readers, [], [], 0.01)[0]:
            each.recv(4_096)
    waiting = serving.send("/hello", "other")

    until(lambda: any(not job.begun for own in _waiting(serving) for job in own))
    app.gate.set()
    assert waiting.getresponse().read() == b"hello"
    assert blocked.getresponse().read() == b"block"


def _waiting(serving: Serving) -> list[Any]:
    return list(serving.edge._pools["reads"]._waiting.values())


def test_bytes_held_for_one_caller_are_bounded(serve: Callable[..., Serving]) -> None:
    """Of 2,000 bytes a caller may hold 500: the second half body is one too many."""
    serving = serve(api_held_bytes=2_000)
    first, second = serving.connect(), serving.connect()
    for client in (first, second):
        client.sendall(REQUEST + b"Content-Length: 900\r\n\r\n" + b"x" * 400)
    refused = second if second.recv(9, socket.MSG_PEEK) else first

    assert everything(refused).startswith(b"HTTP/1.1 429 ")
