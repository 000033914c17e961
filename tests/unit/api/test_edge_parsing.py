"""Heads and bodies are taken to the letter, however they arrive."""

from __future__ import annotations

import pytest

from api.edge.framing import Body, TooMuch
from servioticy.http_heads import MAX_HEADERS, Malformed, parse

HOST = b"\r\nHost: x"


def test_a_head_says_who_asks_for_what() -> None:
    head = parse(
        b"PUT /a%2Fb%20c%c3%a9/s?x=%20+ HTTP/1.1\r\nHost: x\r\nAuthorization:  t \r\n"
        b"content-length: 12\r\nX-A: 1\r\nX-A: 2"
    )

    assert (head.method, head.path, head.query) == ("PUT", "/a/b c\xc3\xa9/s", "x=%20+")
    assert head.headers["HTTP_AUTHORIZATION"] == "t"
    assert head.headers["HTTP_X_A"] == "1,2"
    assert (head.length, head.chunked, head.keeps_alive) == (12, False, True)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (b"GET http://h/abs?q HTTP/1.1", "/abs"),
        (b"GET http://h HTTP/1.1", "/"),
        (b"OPTIONS * HTTP/1.1", "/"),
        (b"GET //[/x HTTP/1.1", "//[/x"),
    ],
)
def test_every_form_of_address_becomes_a_path(line: bytes, path: str) -> None:
    assert parse(line + HOST).path == path


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"GET / HTTP/1.1\r\nHost: x", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close", False),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: x, Close", False),
        (b"GET / HTTP/1.0", False),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive", True),
    ],
)
def test_a_connection_stays_where_the_client_wants_it(head: bytes, keeps: bool) -> None:
    assert parse(head).keeps_alive is keeps


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET /", 400),
        (b"GET / HTTP/2.0" + HOST, 400),
        (b"GET  / HTTP/1.1" + HOST, 400),
        (b"GET /a b HTTP/1.1" + HOST, 400),
        (b"GET /\0 HTTP/1.1" + HOST, 400),
        (b"GET x HTTP/1.1" + HOST, 400),
        (b"GET ftp://x/ HTTP/1.1" + HOST, 400),
        (b"GET / HTTP/1.1", 400),
        (b"GET / HTTP/1.1" + HOST + HOST, 400),
        (b"GET / HTTP/1.1" + HOST + b"\r\nAuthorization: a\r\nAuthorization: b", 400),
        (b"GET / HTTP/1.1" + HOST + b"\r\n folded", 400),
        (b"GET / HTTP/1.1" + HOST + b"\r\nName : x", 400),
        (b"GET / HTTP/1.1" + HOST + b"\r\nX: a\nY: b", 400),
        (b"GET / HTTP/1.1" + HOST + b"\r\nX: a\rY: b", 400),
        (b"GET / HTTP/1.1" + HOST + b"\r\nX: \0", 400),
        (b"PUT / HTTP/1.1" + HOST + b"\r\nContent-Length: -1", 400),
        (b"PUT / HTTP/1.1" + HOST + b"\r\nContent-Length: +1", 400),
        (b"PUT / HTTP/1.1" + HOST + b"\r\nContent-Length: 1\r\nContent-Length: 1", 400),
        (b"PUT / HTTP/1.1" + HOST + b"\r\nContent-Length: " + b"9" * 19, 400),
        (b"PUT / HTTP/1.1" + HOST + b"\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", 400),
        (b"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked", 400),
        (b"PUT / HTTP/1.1" + HOST + b"\r\nTransfer-Encoding: gzip, chunked", 501),
        (b"GET / HTTP/1.1" + HOST + b"\r\nX: 1" * MAX_HEADERS, 431),
    ],
)
def test_what_is_odd_is_refused(head: bytes, status: int) -> None:
    """Two servers that guess differently where a request ends can be played against each other."""
    with pytest.raises(Malformed) as refused:
        parse(head)

    assert refused.value.status == status


def test_as_many_headers_as_allowed_are_read() -> None:
    assert parse(b"GET / HTTP/1.1" + HOST + b"\r\nX: 1" * (MAX_HEADERS - 1))


def test_a_header_with_an_underscore_is_not_taken_for_another() -> None:
    head = parse(b"GET / HTTP/1.1" + HOST + b"\r\nIf_Match: x")

    assert "HTTP_IF_MATCH" not in head.headers


def body_of(head: bytes, *arriving: bytes, largest: int = 10) -> tuple[bytes, bytes, bool]:
    """What becomes of a body that arrives so: its content, what is left over, is it whole."""
    body = Body(parse(b"PUT / HTTP/1.1" + HOST + b"\r\n" + head), largest)
    arrived, whole = bytearray(), False
    for some in arriving:
        arrived += some
        whole = body.take(arrived)
    return bytes(body.content), bytes(arrived), whole


def test_a_body_ends_after_its_length() -> None:
    assert body_of(b"Content-Length: 5", b"ab", b"cde", b"GET") == (b"abcde", b"GET", True)
    assert body_of(b"Content-Length: 5", b"abcd") == (b"abcd", b"", False)


@pytest.mark.parametrize("step", [1, 2, 3, 100])
def test_a_body_ends_after_its_last_chunk(step: int) -> None:
    """Whatever the pieces it comes in."""
    sent = b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nA: b\r\n\r\nGET"
    pieces = [sent[at : at + step] for at in range(0, len(sent), step)]

    content, left, whole = body_of(b"Transfer-Encoding: chunked", *pieces)

    assert (content, left, whole) == (b"abcde", b"GET", True)


@pytest.mark.parametrize(
    "sent",
    [b"x\r\n", b"-1\r\n", b"3\r\nabcd\r\n", b"\r\n", b" 3\r\n", b"3" * 2000, b"1" * 9 + b"\r\n"],
)
def test_malformed_chunks_are_refused(sent: bytes) -> None:
    with pytest.raises(Malformed):
        body_of(b"Transfer-Encoding: chunked", sent)


def test_the_largest_body_is_taken_and_one_byte_more_is_not() -> None:
    assert body_of(b"Content-Length: 10", b"x" * 10)[2]
    assert body_of(b"Transfer-Encoding: chunked", b"9\r\n", b"x" * 9, b"\r\n1\r\nx\r\n0\r\n\r\n")[
        2
    ]
    with pytest.raises(TooMuch):
        body_of(b"Content-Length: 11")
    with pytest.raises(TooMuch):
        body_of(b"Transfer-Encoding: chunked", b"9\r\n", b"x" * 9, b"\r\n2\r\n")
