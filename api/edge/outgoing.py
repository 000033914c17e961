"""What leaves on a connection: one answer after the other, as fast as the client takes it."""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from api.edge.calls import Answer, Sent
from api.edge.client import NOBODY, Client
from api.edge.edge import Edge
from api.edge.pools import Busy, Holding
from api.http.while_allowed import NoLongerAllowed
from servioticy.http_heads import Head

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger("api")

MIN_READ = 32_768
"""Bytes of an answer that a client has to take in the time for sending, or what is left."""


class Outgoing:
    """Sends answers. Everything but `reply` happens in the event loop."""

    def __init__(self, edge: Edge, client: Client, connected: socket.socket) -> None:
        self._edge = edge
        self._client = client
        # As long as this is open the socket is: a thread that still writes after the
        # connection is lost can never reach the one that would get its number next.
        self._out = cast("io.RawIOBase", connected.makefile("wb", buffering=0))
        self._lent = False
        self._in_cipher = False
        """only the loop can write"""
        self._transport = cast("asyncio.Transport", None)
        self._held = Holding(edge.budget)
        self._unsent = 0
        self._chunked = False
        self._pages: Iterator[bytes] | None = None
        self._pool = "reads"
        self._making_page = False

    def opened(self, transport: asyncio.Transport) -> None:
        """The connection is there."""
        self._transport = transport
        self._in_cipher = transport.get_extra_info("sslcontext") is not None
        transport.set_write_buffer_limits(high=0)

    def lost(self) -> None:
        """The connection is gone, whatever was to be sent."""
        self._held.give_back()
        self._drop_pages()
        if not self._lent:
            self._end()

    # An answer --------------------------------------------------------------------------

    def lend(self) -> None:
        """A thread may `reply` from now on."""
        self._lent = True

    def take_back(self) -> None:
        """The thread has ended; the loop writes again."""
        self._lent = False
        if self._client.gone:
            self._end()

    def _end(self) -> None:
        """Hold neither the socket nor the client: each would stay until garbage is looked for,
        and nobody is served while that is done.
        """
        self._out.close()
        self._client = NOBODY

    def reply(self, head: Head, result: Any) -> Any:
        """Send an answer from the thread that made it, as far as the client takes it now.

        Nobody else writes meanwhile: the loop does not while an answer is awaited.
        """
        if not isinstance(result, Answer) or self._in_cipher:
            return result
        if self._transport.get_write_buffer_size():
            return result
        keeps_alive = self._may_keep(head, result)
        content = self._composed(head, result, keeps_alive)
        sent = None
        with contextlib.suppress(OSError, ValueError):  # gone: the loop will notice, too
            sent = self._out.write(content)
        rest, now = content[sent or 0 :], time.monotonic()
        return Sent(result, rest, keeps_alive, self._client.has_more, now)

    def send(self, head: Head | None, answer: Answer) -> None:
        """Send an answer; the connection is told when all of it is sent."""
        keeps_alive = self._may_keep(head, answer)
        self._begin(head, answer, keeps_alive)
        self._write(self._composed(head, answer, keeps_alive))

    def send_rest(self, head: Head | None, sent: Sent) -> None:
        """Send what the client did not take at once of a thread's reply."""
        self._begin(head, sent.answer, sent.keeps_alive)
        self._write(sent.rest)

    def discard(self, result: Any) -> None:
        """Nobody is there any more for what came of a request."""
        answer = result.answer if isinstance(result, Sent) else result
        if isinstance(answer, Answer) and answer.pages is not None:
            _close(answer.pages)

    def _begin(self, head: Head | None, answer: Answer, keeps_alive: bool) -> None:
        self._pages, self._pool = answer.pages, answer.pool
        self._chunked = head is not None and not head.http_1_0
        self._client.keeps_alive = self._client.keeps_alive and keeps_alive

    def _may_keep(self, head: Head | None, answer: Answer) -> bool:
        """Tell whether the connection stays. Without chunks only its end can end an answer."""
        without_chunks = head is not None and head.http_1_0 and answer.pages is not None
        return self._client.keeps_alive and not self._edge.stopping and not without_chunks

    def _composed(self, head: Head | None, answer: Answer, keeps_alive: bool) -> bytes:
        lines = _lines(answer, self._edge.date())
        if answer.pages is not None and not (head is not None and head.http_1_0):
            lines.append("Transfer-Encoding: chunked")
        if not keeps_alive:
            lines.append("Connection: close")
        elif head is not None and head.http_1_0:
            lines.append("Connection: keep-alive")
        body = b"" if head is not None and head.method == "HEAD" else answer.body
        return _joined(lines, body)

    # Its bytes --------------------------------------------------------------------------

    def _write(self, content: bytes) -> None:
        """Write; what the client does not take at once is counted as held for it."""
        if content:
            self._transport.write(content)
        self._unsent = 0 if self._client.gone else self._transport.get_write_buffer_size()
        if not self._unsent:
            self.written()
            return
        try:
            self._held.become(self._client.who, self._unsent)
        except Busy:
            self._client.abort()
            return
        self._edge.sending.begin(self._client)

    def written(self) -> None:
        """All that was written is sent: go on with the next page, if there is one."""
        self._held.give_back()
        self._edge.sending.end(self._client)
        if self._client.gone or self._transport.is_closing():
            return
        if self._pages is None:
            self._client.answer_sent()
        else:
            self._making_page = True
            self._edge.make_page(self._client, self._pages, self._pool)

    def is_late(self) -> None:
        """Hardly anything was read for a while: close. More was: go on."""
        unsent = self._transport.get_write_buffer_size()
        if unsent <= self._unsent - MIN_READ:
            self._unsent = unsent
            self._edge.sending.begin(self._client)
        else:
            self._client.abort()

    def page_made(self, result: Any) -> None:
        """The next page of the answer; None after the last."""
        self._making_page = False
        if self._client.gone:
            self._drop_pages()
        elif isinstance(result, bytes):
            if self._chunked:
                result = b"%x\r\n%b\r\n" % (len(result), result)
            self._write(result)
        elif result is None:
            self._drop_pages()
            self._write(b"0\r\n\r\n" if self._chunked else b"")
        else:
            # Half of the answer is out: only a broken connection can say that it is not all.
            level = logging.INFO if isinstance(result, NoLongerAllowed) else logging.ERROR
            log.log(level, "answer_broken_off", extra={"reason": repr(result)})
            self._client.break_off()

    def _drop_pages(self) -> None:
        if self._pages is not None and not self._making_page:
            _close(self._pages)
            self._pages = None


def last_answer(answer: Answer, date: str) -> bytes:
    """Return a whole answer as it is sent to somebody whose connection ends with it."""
    return _joined([*_lines(answer, date), "Connection: close"], answer.body)


def _lines(answer: Answer, date: str) -> list[str]:
    named = (f"{name}: {value}" for name, value in answer.headers)
    return [f"HTTP/1.1 {answer.status}", f"Date: {date}", *named]


def _joined(lines: list[str], body: bytes) -> bytes:
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


def _close(pages: Iterator[bytes]) -> None:
    close = getattr(pages, "close", None)
    if close is not None:
        close()
