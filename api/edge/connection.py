"""One client's connection: request after request, each whole before anybody works on it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import socket
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, cast

from api.edge.calls import Answer, NotStoredYet, Request
from api.edge.framing import Body, TooMuch
from api.edge.heads import LARGEST_HEAD, Head, Malformed, parse
from api.edge.pools import Busy

if TYPE_CHECKING:
    from api.edge.edge import Edge

log = logging.getLogger("api")

LEAST_READ = 32_768
"""Bytes of an answer that a client has to take in the time for sending, or what is left."""

MOST_AHEAD = 65_536
"""Bytes a client may send before its last request is answered; then we stop reading."""


class State(Enum):
    """What happens next on a connection."""

    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    SEND = auto()
    CLOSE = auto()
    """The answer is sent; what the client still sends is thrown away, for a moment."""


@dataclass(frozen=True, slots=True)
class Sent:
    """An answer that its thread has sent, but perhaps for the rest."""

    answer: Answer
    rest: bytes
    keeps_alive: bool
    has_more: Callable[[], bool]
    """whether the client has sent on, or ended, since"""
    at: float
    """when it was sent: the loop may hear of it later"""

    @property
    def caller(self) -> int | None:
        """The tenant who asked."""
        return self.answer.caller

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left to do for the event loop."""
        whole = not self.rest and self.keeps_alive and self.answer.pages is None
        return whole and not self.has_more()


class Connection(asyncio.Protocol):
    """Reads requests, sends answers. Everything but `reply` happens in the event loop."""

    def __init__(self, edge: Edge, client: socket.socket) -> None:
        self._edge = edge
        # As long as this is open the socket is: a thread that still writes after the
        # connection is lost can never reach the one that would get its number next.
        self._out = cast("io.RawIOBase", client.makefile("wb", buffering=0))
        self._replying = False
        self._transport = cast("asyncio.Transport", None)
        self._state = State.HEAD
        self._arrived = bytearray()
        self._looked = 0
        """so many of the arrived bytes hold no end of a head"""
        self._head: Head | None = None
        self._body: Body | None = None
        self._who: Hashable = None
        self._held = 0
        """bytes of ours in the edge's budget"""
        self._unsent = 0
        self._pages: Iterator[bytes] | None = None
        self._making_page = False
        self._keeps_alive = True
        self._reading = True
        self._whole_at: float | None = None
        """when the request was there as a whole"""
        self.gone = False
        self.remote = ""

    # From asyncio ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=0)
        peer = transport.get_extra_info("peername")
        self.remote = peer[0] if peer else ""
        self._edge.connected(self)

    def connection_lost(self, _error: Exception | None) -> None:
        """The client has gone, or we have closed."""
        self.gone = True
        self._edge.disconnected(self)
        self._give_back()
        self._drop_pages()
        if not self._replying:
            self._out.close()

    def eof_received(self) -> bool:
        """The client sends no more; it may still read the answer under way."""
        self._keeps_alive = False
        self._edge.collect()
        return self._state in (State.ANSWER, State.SEND)

    def data_received(self, data: bytes) -> None:
        """Something has come."""
        self._arrived += data
        self._edge.collect()
        self._read()

    def resume_writing(self) -> None:
        """All that was written is sent."""
        if self._state is State.SEND:
            self._sent()

    # The edge ----------------------------------------------------------------------

    def is_there(self) -> bool:
        """Whether the client has not gone."""
        return not self.gone

    def is_under_way(self) -> bool:
        """Whether a client waits for an answer."""
        return self._state in (State.BODY, State.ANSWER, State.SEND)

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self._transport.abort()

    def body_is_late(self) -> None:
        """The whole body was not there in time."""
        self._refuse(408)

    def sending_is_late(self) -> None:
        """Hardly anything was read for a while: close. More was: go on."""
        unsent = self._transport.get_write_buffer_size()
        if unsent <= self._unsent - LEAST_READ:
            self._unsent = unsent
            self._edge.sending.begin(self)
        else:
            self.abort()

    # Reading -----------------------------------------------------------------------

    def _read(self) -> None:
        try:
            if self._state is State.HEAD:
                self._take_head()
            elif self._state is State.BODY:
                self._take_body()
            elif self._state is State.CLOSE:
                self._arrived.clear()
            elif len(self._arrived) > MOST_AHEAD and self._reading:
                self._reading = False
                self._transport.pause_reading()
        except Malformed as error:
            self._refuse(error.status, str(error))
        except TooMuch:
            self._refuse(413)
        except Busy as error:
            self._refuse(error.status)

    def _take_head(self) -> None:
        arrived = self._arrived
        while arrived.startswith(b"\r\n"):  # some clients end a body so
            del arrived[:2]
        end = arrived.find(b"\r\n\r\n", max(0, self._looked - 3))
        if end > LARGEST_HEAD or (end < 0 and len(arrived) > LARGEST_HEAD):
            raise Malformed(431, "The head of the request is too long")
        self._looked = len(arrived)
        if end < 0:
            return
        head = self._head = parse(bytes(arrived[:end]))
        del arrived[: end + 4]
        self._looked = 0
        self._keeps_alive = self._keeps_alive and head.keeps_alive
        self._edge.idle.end(self)
        self._who = self._edge.who(head, self.remote)
        if not head.length and not head.chunked:
            self._hand_over(head, b"")
            return
        self._body = Body(head, self._edge.largest_body)
        if 0 < head.length <= len(arrived):
            self._take_body()
            return
        if head.expects and not arrived:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._state = State.BODY
        self._edge.bodies.begin(self)
        self._take_body()

    def _take_body(self) -> None:
        body, head = self._body, self._head
        if body is None or head is None:
            return
        whole = body.take(self._arrived)
        self._hold(len(body.content))
        if whole:
            self._body = None
            self._edge.bodies.end(self)
            self._hand_over(head, bytes(body.content))

    def _hold(self, size: int) -> None:
        if size > self._held:
            self._edge.budget.take(self._who, size - self._held)
            self._held = size

    def _give_back(self) -> None:
        if self._held:
            self._edge.budget.give(self._who, self._held)
            self._held = 0

    # Answering ---------------------------------------------------------------------

    def _hand_over(self, head: Head, body: bytes) -> None:
        self._state = State.ANSWER
        self._whole_at = time.monotonic()
        try:
            self._edge.submit(self, self._who, Request(head, body, self.remote))
            self._replying = True
        except Busy as error:
            self._send(self._edge.refusal(error.status))

    def reply(self, head: Head, result: Any) -> Any:
        """Send an answer from the thread that made it, as far as the client takes it now.

        Nobody else writes meanwhile: the loop does not while an answer is awaited.
        """
        if not isinstance(result, Answer) or self._transport.get_write_buffer_size():
            return result
        keeps_alive = self._may_keep(head, result)
        content = self._composed(head, result, keeps_alive)
        sent = None
        with contextlib.suppress(OSError, ValueError):  # gone: the loop will notice, too
            sent = self._out.write(content)
        return Sent(result, content[sent or 0 :], keeps_alive, self._has_more, time.monotonic())

    def _has_more(self) -> bool:
        return bool(self._arrived) or not self._keeps_alive

    def answered(self, request: Request, result: Any) -> None:
        """What came of a request, or of its first part where it has to wait."""
        self._replying = False
        if self.gone:
            self._out.close()
            answer = result.answer if isinstance(result, Sent) else result
            if isinstance(answer, Answer) and answer.pages is not None:
                _close(answer.pages)
        elif isinstance(result, Sent):
            self._begin_sending(result.answer, result.keeps_alive, result.at)
            self._write(result.rest)
        elif isinstance(result, NotStoredYet):
            self._edge.wait(self, self._who, request, result.awaited)
        elif isinstance(result, Answer):
            self._send(result)
        elif isinstance(result, Busy):
            self._send(self._edge.refusal(result.status))
        else:
            log.error("request_failed", exc_info=result)
            self._send(self._edge.refusal(500))

    def begins_again(self) -> None:
        """A thread will work on the request once more."""
        self._replying = True

    def _refuse(self, status: int, message: str = "") -> None:
        """Answer a request that is not whole, and close: where the next begins is not known."""
        self._keeps_alive = False
        self._body = None
        self._send(self._edge.refusal(status, message))

    def _send(self, answer: Answer) -> None:
        keeps_alive = self._may_keep(self._head, answer)
        self._begin_sending(answer, keeps_alive, time.monotonic())
        self._write(self._composed(self._head, answer, keeps_alive))

    def _begin_sending(self, answer: Answer, keeps_alive: bool, at: float) -> None:
        self._give_back()
        self._edge.leave(self)
        method = self._head.method if self._head is not None else ""
        seconds = None if self._whole_at is None else at - self._whole_at
        self._edge.metrics.answered(method, answer.route, answer.status[:3], seconds)
        self._state = State.SEND
        self._pages = answer.pages
        self._keeps_alive = self._keeps_alive and keeps_alive

    def _may_keep(self, head: Head | None, answer: Answer) -> bool:
        """Whether the connection stays. Without chunks only its end can end an answer."""
        without_chunks = head is not None and head.http_1_0 and answer.pages is not None
        return self._keeps_alive and not self._edge.stopping and not without_chunks

    def _composed(self, head: Head | None, answer: Answer, keeps_alive: bool) -> bytes:
        lines = [f"HTTP/1.1 {answer.status}", f"Date: {self._edge.date()}"]
        lines += [f"{name}: {value}" for name, value in answer.headers]
        if answer.pages is not None and not (head is not None and head.http_1_0):
            lines.append("Transfer-Encoding: chunked")
        if not keeps_alive:
            lines.append("Connection: close")
        elif head is not None and head.http_1_0:
            lines.append("Connection: keep-alive")
        body = b"" if head is not None and head.method == "HEAD" else answer.body
        return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body

    def _write(self, content: bytes) -> None:
        """Write; what the client does not take at once is counted as held for it."""
        if content:
            self._transport.write(content)
        self._unsent = 0 if self.gone else self._transport.get_write_buffer_size()
        if not self._unsent:
            self._sent()
            return
        try:
            self._hold(self._unsent)
        except Busy:
            self.abort()
            return
        self._edge.sending.begin(self)

    def _sent(self) -> None:
        self._give_back()
        self._edge.sending.end(self)
        if self.gone or self._transport.is_closing():
            return
        if self._pages is not None:
            self._making_page = True
            self._edge.make_page(self, self._who, self._pages)
        elif self._keeps_alive:
            self._begin_anew()
        else:
            self._close_slowly()

    def page_made(self, result: Any) -> None:
        """The next page of the answer; None after the last."""
        self._making_page = False
        if self.gone:
            self._drop_pages()
        elif isinstance(result, bytes):
            if self._is_chunked():
                result = b"%x\r\n%b\r\n" % (len(result), result)
            self._write(result)
        elif result is None:
            self._drop_pages()
            if self._is_chunked():
                self._write(b"0\r\n\r\n")
            else:
                self._sent()
        else:
            # Half of the answer is out: only a broken connection can say that it is not all.
            log.error("answer_broken_off", extra={"reason": repr(result)})
            self.abort()

    def _is_chunked(self) -> bool:
        return self._head is not None and not self._head.http_1_0

    def _drop_pages(self) -> None:
        if self._pages is not None and not self._making_page:
            _close(self._pages)
            self._pages = None

    def _begin_anew(self) -> None:
        self._state = State.HEAD
        self._head = self._whole_at = None
        self._edge.idle.begin(self)
        if not self._reading:
            self._reading = True
            self._transport.resume_reading()
        if self._arrived:
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self.gone and self._state is State.HEAD:
            self._read()

    def _close_slowly(self) -> None:
        """Closed at once, the rest of its request would make the kernel take our answer back."""
        self._state = State.CLOSE
        self._arrived.clear()
        if not self._transport.can_write_eof():
            self._transport.close()
            return
        with contextlib.suppress(OSError):
            self._transport.write_eof()
        if not self._reading:
            self._reading = True
            self._transport.resume_reading()
        self._edge.closing.begin(self)


def _close(pages: Iterator[bytes]) -> None:
    close = getattr(pages, "close", None)
    if close is not None:
        close()
