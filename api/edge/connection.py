"""One client's connection: request after request, each whole before anybody works on it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
import time
from collections.abc import Hashable
from enum import Enum, auto
from typing import Any, cast

from api.edge.calls import Answer, NotStoredYet, Request, Sent
from api.edge.edge import PAUSE_SECONDS, Edge
from api.edge.framing import TooMuch
from api.edge.incoming import Incoming
from api.edge.outgoing import Outgoing
from api.edge.pools import Busy, Holding
from servioticy.http_heads import Head, Malformed

log = logging.getLogger("api")

MAX_DRAINED = 4 * 1024 * 1024
"""Thrown away at most of what a refused client still sends, so that our answer reaches it."""
_WITHOUT_THE_REST = struct.pack("ii", 1, 0)
"""Linger for no time: what is not sent is forgotten, and the client's connection is reset."""


class State(Enum):
    """What happens next on a connection."""

    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    SEND = auto()
    CLOSE = auto()
    """The answer is sent; what the client still sends is thrown away, for a moment."""


class Connection(asyncio.BufferedProtocol):
    """Which state a connection is in, and whether it is read from. For the event loop only."""

    def __init__(self, edge: Edge, client: socket.socket) -> None:
        self._edge = edge
        self._transport = cast("asyncio.Transport", None)
        self._state = State.HEAD
        self._incoming = Incoming(edge.largest_body)
        self._outgoing = Outgoing(edge, self, client)
        self._held = Holding(edge.budget)
        self._head: Head | None = None
        self._body_bytes = 0
        """of the request that is being worked on"""
        self._whole_at: float | None = None
        """when the request was there as a whole (monotonic)"""
        self._reading = True
        self._let_in = False
        """the last token that it has shown was good: what it sends has turns of its own"""
        self._awaits_turn = False
        self._drained = 0
        """bytes thrown away since it was refused"""
        self._overfull = False
        """there was no room for what the client has sent ahead"""
        self._ended = False
        """the client sends no more"""
        self.keeps_alive = True
        self.gone = False
        self.remote = ""
        self.who: Hashable = None
        """whose share the request takes"""

    # From asyncio ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        self._transport = cast("asyncio.Transport", transport)
        self._outgoing.opened(self._transport)
        peer = transport.get_extra_info("peername")
        self.remote = peer[0] if peer else ""
        self.who = self._edge.stranger(self.remote)
        self._edge.connected(self)

    def connection_lost(self, _error: Exception | None) -> None:
        """The client has gone, or we have closed."""
        self.gone = True
        self._edge.disconnected(self)
        self._held.give_back()
        self._incoming.clear()
        self._outgoing.lost()

    def eof_received(self) -> bool:
        """Note that the client sends no more; it may still read the answer under way."""
        self.keeps_alive = False
        self._ended = True
        self._edge.collect()
        return self._state in (State.ANSWER, State.SEND)

    def get_buffer(self, _size_hint: int) -> memoryview:
        """Return where to put what comes next; it is taken out at once."""
        return self._edge.buffer[: self._incoming.room()]

    def buffer_updated(self, size: int) -> None:
        """So much has come."""
        if self._state is State.CLOSE:
            self._drain(size)
            return
        self._incoming.add(self._edge.buffer[:size])
        self._edge.collect()
        self._ask_for_turn()

    def resume_writing(self) -> None:
        """All that was written is sent."""
        if self._state is State.SEND:
            self._outgoing.written()

    # The edge ----------------------------------------------------------------------

    def is_there(self) -> bool:
        """Tell whether the client has not gone."""
        return not self.gone

    def listens(self) -> bool:
        """Tell whether the client seems to wait for its answer. For any thread.

        One that has gone is known by the end of what it sends: few end that and read on.
        """
        return not self.gone and not self._ended

    def is_under_way(self) -> bool:
        """Tell whether a client waits for an answer."""
        return self._state in (State.BODY, State.ANSWER, State.SEND)

    def has_more(self) -> bool:
        """Tell whether the client has sent on, or ended, since its request. For any thread."""
        return not self._incoming.is_empty() or not self.keeps_alive

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self._transport.abort()

    def break_off(self) -> None:
        """Close at once, and send nothing more of what is written: not Linux either."""
        own = self._transport.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _WITHOUT_THE_REST)
        self._transport.abort()

    def body_is_late(self) -> None:
        """The whole body was not there in time."""
        self._refuse(408)

    def sending_is_late(self) -> None:
        """Little of an answer was taken in the time for it."""
        self._outgoing.is_late()

    # Reading -----------------------------------------------------------------------

    def _drain(self, size: int) -> None:
        """Nobody will use it: so nobody reads what it says, and there is an end to it."""
        self._drained += size
        if self._drained > MAX_DRAINED:
            self._transport.abort()
        else:
            self._ask_for_turn()

    def _ask_for_turn(self) -> None:
        """Look at what has come: now, or where strangers have taken their part, in its turn."""
        if self._awaits_turn:
            return
        if self._let_in or self._shows_good_token():
            self._read()
        elif not self._edge.porch.turn(self._turns_of(), self, self._take_turn):
            self._await_turn()

    def _shows_good_token(self) -> bool:
        """Tell whether what has come first of a request names a tenant: it need not wait, then.

        Looked for once in a request, and not far: a stranger's bytes are not worth more.
        """
        token = self._incoming.first_token() if self._state is State.HEAD else ""
        return bool(token) and self._edge.is_known(self._edge.share(token, self.remote))

    def _turns_of(self) -> Hashable:
        """With whom it takes turns, from one address.

        Heads with heads: who comes with a short request does not wait for long ones.
        """
        return self.remote, self._state

    def _await_turn(self) -> None:
        """Read nothing meanwhile: what is sent on waits where it is."""
        self._awaits_turn = True
        self._listen()

    def _take_turn(self) -> None:
        self._awaits_turn = False
        if not self.gone:
            self._read()

    def _ask_for_another(self) -> None:
        """There is more than one turn takes: it is others' turn before."""
        self._await_turn()
        if self._let_in:
            asyncio.get_running_loop().call_soon(self._take_turn)
        else:
            self._edge.porch.wait(self._turns_of(), self, self._take_turn)

    def _read(self) -> None:
        try:
            if self._state is State.HEAD:
                self._take_head()
            elif self._state is State.BODY:
                self._take_body()
            self._hold()
        except Malformed as error:
            self._refuse(error.status, str(error))
        except TooMuch:
            self._refuse(413)
        except Busy as error:
            self._no_room(error)
        if self._state is State.BODY and self._incoming.has_more:
            self._ask_for_another()
        else:
            self._listen()

    def _take_head(self) -> None:
        head = self._incoming.take_head()
        if head is None:
            return
        self._head = head
        self.keeps_alive = self.keeps_alive and head.keeps_alive
        self._edge.idle.end(self)
        self.who = self._edge.who(head, self.remote)
        self._let_in = self._edge.is_known(self.who)
        if not head.length and not head.chunked:
            self._hand_over(b"")
            return
        self._state = State.BODY
        self._incoming.begin_body(head)
        if head.expects and self._incoming.is_empty():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not self._take_body():
            self._edge.bodies.begin(self)

    def _take_body(self) -> bool:
        """Tell whether the body is whole now, and handed over."""
        body = self._incoming.take_body()
        if body is None:
            return False
        self._body_bytes = len(body)
        self._hold()
        self._edge.bodies.end(self)
        self._hand_over(body)
        return True

    def _hold(self) -> None:
        """Count what the client has sent and we keep. Raises Busy where there is no room."""
        self._held.become(self.who, self._incoming.size() + self._body_bytes)

    def _no_room(self, error: Busy) -> None:
        """Whoever has sent ahead has to send that again, on another connection."""
        if self._state in (State.HEAD, State.BODY):
            self._refuse(error.status)
        else:
            self.keeps_alive = False
            self._overfull = True
            self._incoming.clear()

    def _listen(self) -> None:
        """Read, unless the client has sent ahead: then read on when it is answered.

        Only then, as who reads notices that a client has gone, and most send nothing ahead.
        """
        is_answered = self._state not in (State.ANSWER, State.SEND)
        wanted = is_answered or (self._incoming.is_empty() and not self._overfull)
        wanted = wanted and not self._awaits_turn
        if wanted is not self._reading:
            self._reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    # Answering ---------------------------------------------------------------------

    def _hand_over(self, body: bytes) -> None:
        self._state = State.ANSWER
        if self._head is None:
            raise RuntimeError("a request without a head")
        self._whole_at = time.monotonic()
        try:
            self._edge.submit(self, Request(self._head, body, self.remote, self.listens))
        except Busy as error:
            self._turn_away(error)

    def begins(self) -> None:
        """A thread will work on the request, and reply."""
        self._outgoing.lend()

    def reply(self, head: Head, result: Any) -> Any:
        """Send an answer from the thread that made it."""
        return self._outgoing.reply(head, result)

    def answered(self, request: Request, result: Any) -> None:
        """What came of a request, or of its first part where it has to wait."""
        self._outgoing.take_back()
        if isinstance(result, Answer | Sent):
            self._let_in = result.caller is not None
        if self.gone:
            self._outgoing.discard(result)
        elif isinstance(result, Sent):
            self._begin_sending(result.answer, result.at)
            self._outgoing.send_rest(self._head, result)
        elif isinstance(result, NotStoredYet):
            self._wait(request, result)
        elif isinstance(result, Answer):
            self._send(result)
        elif isinstance(result, Busy):
            self._send(self._edge.refusal(result.status))
        else:
            log.error("request_failed", exc_info=result)
            self._send(self._edge.refusal(500))

    def page_made(self, result: Any) -> None:
        """The next page of the answer, None after the last, or why there is none."""
        self._outgoing.page_made(result)

    def answer_sent(self) -> None:
        """The client has all of its answer."""
        if self.keeps_alive:
            self._begin_anew()
        else:
            self._close_slowly()

    def _wait(self, request: Request, not_yet: NotStoredYet) -> None:
        try:
            self._edge.wait(self, request, not_yet)
        except Busy as error:
            self._turn_away(error)

    def _turn_away(self, error: Busy) -> None:
        """Refuse what a client asks beyond its share, but not at once: it would ask again."""
        answer = self._edge.refusal(error.status, exceeded=error.exceeded)
        if error.status == 429:
            asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._refused, answer)
        else:
            self._send(answer)

    def _refused(self, answer: Answer) -> None:
        if not self.gone:
            self._send(answer)

    def _refuse(self, status: int, message: str = "") -> None:
        """Answer a request that is not whole, and close: where the next begins is not known."""
        self.keeps_alive = False
        self._incoming.clear()
        self._send(self._edge.refusal(status, message))

    def _send(self, answer: Answer) -> None:
        self._begin_sending(answer, time.monotonic())
        self._outgoing.send(self._head, answer)

    def _begin_sending(self, answer: Answer, at: float) -> None:
        method = self._head.method if self._head is not None else ""
        seconds = None if self._whole_at is None else at - self._whole_at
        self._edge.metrics.answered(method, answer.route, answer.status[:3], seconds)
        self._edge.leave(self)
        self._state = State.SEND
        self._body_bytes = 0
        self._held.shrink(self._incoming.size())

    def _begin_anew(self) -> None:
        self._state = State.HEAD
        self._head = self._whole_at = None
        self.who = self._edge.stranger(self.remote)
        self._edge.idle.begin(self)
        if self._incoming.is_empty():
            self._listen()
        else:
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self.gone and self._state is State.HEAD:
            self._ask_for_turn()

    def _close_slowly(self) -> None:
        """Closed at once, the rest of its request would make the kernel take our answer back."""
        self._state = State.CLOSE
        self._incoming.clear()
        if not self._transport.can_write_eof():
            self._transport.close()
            return
        with contextlib.suppress(OSError):
            self._transport.write_eof()
        self._listen()
        self._edge.closing.begin(self)
