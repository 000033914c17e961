"""The parts of queues that need no store: its protocol, where it is, what is carried."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest

from operators.queues import resp
from operators.queues.pumping import ELEMENT_BYTES, Given, Most, give, take
from operators.queues.resp import Address, Answer, Connection, Refused, StoreLost, Word, address


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("redis://here", Address("here")),
        ("valkey://here:1/2", Address("here", 1, database=2)),
        ("redis://:a@here", Address("here", password="a")),
        ("rediss://u%40:p%2Fq@[::1]:7/", Address("::1", 7, "", "u@", "p/q", 0, True)),
        ("valkeys://u@here", Address("here", user="u", is_encrypted=True)),
    ],
)
def test_a_url_says_where_a_store_is_and_who_asks(url: str, found: Address) -> None:
    """Names and passwords may have any character, spelt as URLs have it."""
    assert address(url) == found


@pytest.mark.parametrize(
    "url",
    [
        *("", "here", "http://here", "redis://", "redis://:secret@", "redis://a:secret@b:x"),
        *("redis://a:secret@b/one", "redis://b/-1", "redis://b/123456", "redis://b?c=d"),
        *("redis://b#c", "redis://a:secret@[b"),
    ],
)
def test_what_is_no_url_of_a_store_is_told_without_its_password(url: str) -> None:
    """It would stand in a log."""
    with pytest.raises(ValueError, match="no URL of a store") as told:
        address(url)

    assert "secret" not in str(told.value)


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, *answers: bytes) -> Iterator[Connection]:
    """Be a store that says this, whatever it is asked, and then ends."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(resp, "_connected", lambda _place, _seconds: ours)
    connection = Connection(Address())
    theirs.sendall(b"".join(answers))
    theirs.shutdown(socket.SHUT_WR)
    try:
        yield connection
    finally:
        connection.close()
        theirs.close()


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"+OK\r\n", b"OK"),
        (b":-5\r\n", -5),
        (b"$-1\r\n", None),
        (b"*-1\r\n", None),
        (b"$0\r\n\r\n", b""),
        (b"$4\r\na\r\nb\r\n", b"a\r\nb"),
        (b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", [b"a", [1]]),
    ],
)
def test_answers_are_read_as_they_are_spelt(
    monkeypatch: pytest.MonkeyPatch, said: bytes, answer: Answer
) -> None:
    """Each kind that a store has."""
    with answering(monkeypatch, said) as store:
        assert store.call("ANY") == answer


@pytest.mark.parametrize(
    "said",
    [
        *(b"", b"+OK", b"?\r\n", b":x\r\n", b"$9\r\nshort\r\n", b"$-2\r\n", b"*-2\r\n"),
        b"$%d\r\n" % (resp.MAX_TEXT + 1),
        b"*%d\r\n" % (resp.MAX_MEMBERS + 1),
        b"*1\r\n" * 6,
        b"+" + b"x" * resp.MAX_LINE + b"\r\n",
    ],
)
def test_who_sends_what_is_no_answer_is_lost(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """And whatever it says it will send is bounded before it is read."""
    with answering(monkeypatch, said) as store, pytest.raises(StoreLost):
        store.call("ANY")


def test_an_error_among_answers_is_told_when_all_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """So what is asked next has its own answer."""
    with answering(monkeypatch, b"+OK\r\n", b"-NOPERM no\r\n", b":1\r\n", b":2\r\n") as store:
        with pytest.raises(Refused, match="NOPERM no"):
            store.calls([("A",), ("B",), ("C",)])
        assert store.call("D") == 2


class _Store:
    """Takes note of what is appended, and has what is given."""

    def __init__(self, elements: Sequence[bytes | None] = ()) -> None:
        self.appended: list[bytes] = []
        self._elements = list(elements)

    def calls(self, commands: Sequence[Sequence[Word]]) -> list[Answer]:
        """Append one."""
        (push, queue, body), (expire, same, _) = commands
        assert (push, expire, queue) == ("RPUSH", "PEXPIRE", same)
        assert isinstance(body, bytes)
        self.appended.append(body)
        return [1, 1]

    def call(self, *_words: Word, seconds: float) -> Answer:
        """Return the next one; None stands for a wait in which nothing came."""
        found = self._elements.pop(0)
        return None if found is None else [b"queue", found]


def given(content: bytes, most: Most) -> list[bytes]:
    """What is appended when this comes."""
    store = _Store()
    give(io.BytesIO(content), cast(Connection, store), "queue", most, Given(most))
    return store.appended


def frame(body: bytes) -> bytes:
    """Return a frame."""
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("cut", range(1, 6))
def test_frames_are_appended_until_no_more_come(cut: int) -> None:
    """One that is cut off is none: its side has ended."""
    content = frame(b"a") + frame(b"bb")

    assert given(content, Most(5, None)) == [b"a", b"bb", b""]
    assert given(content[:-cut], Most(5, None)) == [b"a", b""]


def test_a_frame_at_its_bound_is_carried_and_one_above_is_not() -> None:
    """What is appended in its place is no frame: the platform judges who sent it."""
    assert given(frame(b"x" * 5), Most(5, None)) == [b"x" * 5, b""]
    assert given(frame(b"x" * 6) + frame(b"a"), Most(5, None)) == [b"a frame of more than 5 bytes"]


def test_what_is_unread_is_bounded() -> None:
    """Who answers without an end fills nobody's memory, however small its frames are."""
    room = 3 * (ELEMENT_BYTES + 1)

    assert given(frame(b"a") * 3, Most(5, room)) == [b"a"] * 3 + [b""]
    flood = given(frame(b"a") * 1000, Most(5, room))
    assert flood == [b"a"] * 3 + [b"more than %d bytes to one frame" % room]


def test_who_is_given_something_may_give_as_much_again() -> None:
    """The bound is of what answers one frame."""
    most = Most(5, 2 * ELEMENT_BYTES)
    counted = Given(most)

    assert not counted.is_too_much(b"")
    assert not counted.is_too_much(b"")
    assert counted.is_too_much(b"")
    counted.reset()
    assert not counted.is_too_much(b"")


def test_elements_are_sent_on_as_frames_until_their_side_has_ended() -> None:
    """Through waits in which nothing comes."""
    ours, theirs = socket.socketpair()
    store = _Store([b"a", None, b"bb", b"", b"never"])
    looks: list[Any] = []

    def look() -> bool:
        looks.append(None)
        return False

    take(cast(Connection, store), "queue", theirs, look, Given(Most(5, None)))
    theirs.close()

    assert ours.recv(100) == frame(b"a") + frame(b"bb")
    assert len(looks) == 4
    ours.close()


def test_who_does_not_listen_is_not_carried_to() -> None:
    """And what waits is not taken when it is over."""
    ours, theirs = socket.socketpair()
    ours.close()
    with pytest.raises(OSError, match=r"pipe|reset"):
        take(
            cast(Connection, _Store([b"a" * 9] * 99)),
            "queue",
            theirs,
            lambda: False,
            Given(Most(9, None)),
        )
    store = _Store([b"a", b"b"])
    take(cast(Connection, store), "queue", theirs, lambda: True, Given(Most(9, None)))
    theirs.close()

    assert store._elements == [b"b"]


def test_who_waits_for_an_answer_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A blocking read would hold up who ends."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(resp, "_connected", lambda _place, _seconds: ours)
    store = Connection(Address())
    failed: list[StoreLost] = []

    def ask() -> None:
        try:
            store.call("BLPOP", "queue", 0, seconds=600)
        except StoreLost as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    theirs.recv(1)
    store.interrupt()
    thread.join()
    store.close()
    theirs.close()

    assert len(failed) == 1
