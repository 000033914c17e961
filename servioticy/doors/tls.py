"""One connection by TLS: to the socket it is a protocol, to what is inside a transport.

Not asyncio's own, which keeps 256 KiB for each connection, and works on whatever strangers send at
once: here every step of a handshake is a turn of the porch, and what has come is passed on a few
records at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

RECORD_BYTES = 16_384
"""The largest there is."""
RECORDS_AT_ONCE = 16
"""Then it is others' turn: a record may hold a single byte."""
PART_PAUSE_SECONDS = 0.005
"""So long the rest of a record is waited for, where the one part that came before was none either:
whoever sends single bytes costs us two hundred events a second."""


HANDSHAKE = b"\x16\x03"
"""The first two bytes of whoever speaks TLS."""


def speaks_tls(first: bytes) -> bool:
    """Tell whether these bytes, perhaps none yet, are the first of somebody who speaks TLS."""
    return HANDSHAKE.startswith(first[:2])


class Porch(Protocol):
    """Gives turns to those who have not been let in."""

    def turn(self, owner: str, who: TlsConnection, work: Callable[[], None], /) -> bool:
        """Do it now, or in its turn; tell whether it is done."""


class TlsConnection(asyncio.Transport, asyncio.Protocol):
    """Shakes hands, then makes what is inside, and passes plain text on."""

    def __init__(
        self,
        context: ssl.SSLContext,
        make: Callable[[], asyncio.BaseProtocol],
        porch: Porch,
        shaken: Callable[[TlsConnection], object],
        refusal: bytes = b"",
    ) -> None:
        """`make` makes what is inside. `shaken` is called once: when hands are, or it is lost.
        `refusal` is the answer to who does not begin to shake hands, in plain text.
        """
        super().__init__()
        self._context = context
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._make: Callable[[], asyncio.BaseProtocol] | None = make
        self._porch = porch
        self._shaken: Callable[[TlsConnection], object] | None = shaken
        self._refusal = refusal
        self._has_spoken = False
        self._inside: Any = None
        self._raw = cast("asyncio.Transport", None)
        self._address = ""
        self._has_come = self._is_cut = False
        """before the socket was ours"""
        self._awaits_turn = self._awaits_pump = False
        self._paused = False
        """what is inside wants nothing now"""
        self._ended = False
        """the client has told that it sends no more, or we that we do not"""
        self._parts = 0
        """times in a row that what came was no whole record"""

    # To the socket ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come; it says hello first."""
        self._raw = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self._address = peer[0] if peer else ""
        self._has_come = True
        if self._is_cut:
            self._raw.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell what is inside, and hold nobody: what a connection was made of goes with it."""
        inside, self._inside = self._inside, None
        self._make = None
        self._end_handshake()
        if inside is not None:
            inside.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have come: of a handshake they wait for a turn."""
        if not self._has_spoken:
            self._has_spoken = True
            if not speaks_tls(data):
                self._raw.write(self._refusal)
                self._raw.close()
                return
        self._incoming.write(data)
        if self._make is None:
            self._pump()
        elif not self._awaits_turn:
            self._awaits_turn = not self._porch.turn(self._address, self, self._shake)
            if self._awaits_turn:
                self._raw.pause_reading()

    def eof_received(self) -> bool | None:
        """The client sends no more, and has perhaps not said goodbye."""
        return self._end_inside()

    def pause_writing(self) -> None:
        """More waits to be sent than may."""
        if self._inside is not None:
            self._inside.pause_writing()

    def resume_writing(self) -> None:
        """It is sent."""
        if self._inside is not None:
            self._inside.resume_writing()

    # The handshake ------------------------------------------------------------------

    def _shake(self) -> None:
        """Take the next step, in a turn of strangers."""
        self._awaits_turn = False
        if self._raw.is_closing() or self._make is None:
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            self._raw.resume_reading()
            return
        except ssl.SSLError:
            self._flush()  # it says why
            self._raw.close()
            return
        make, self._make = self._make, None
        self._flush()
        self._end_handshake()
        self._inside = make()
        self._inside.connection_made(self)
        self._pump()

    def _end_handshake(self) -> None:
        shaken, self._shaken = self._shaken, None
        if shaken is not None:
            shaken(self)

    # What comes ---------------------------------------------------------------------

    def _pump(self) -> None:
        """Pass on what has come, as far as it is wanted, and not too much at once."""
        self._awaits_pump = False
        found = 0
        while found < RECORDS_AT_ONCE:
            if self._paused or self._ended or self._raw.is_closing():
                return
            try:
                if not self._pass_on():
                    self._end_by_goodbye()
                    return
            except ssl.SSLWantReadError:
                self._flush()  # keys may have been changed
                self._await_more(found)
                return
            except ssl.SSLError:
                self._raw.abort()
                return
            found += 1
        self._raw.pause_reading()
        self._pump_soon()

    def _pass_on(self) -> int:
        """Pass on a record; 0: the client has said goodbye. Raises SSLError."""
        inside = self._inside
        with contextlib.suppress(ssl.SSLZeroReturnError):
            if isinstance(inside, asyncio.BufferedProtocol):
                buffer = memoryview(inside.get_buffer(RECORD_BYTES))
                size = cast("int", self._tls.read(len(buffer), cast("bytearray", buffer)))
                if size:
                    inside.buffer_updated(size)
                return size
            data = self._tls.read(RECORD_BYTES)
            if data:
                inside.data_received(data)
            return len(data)
        return 0

    def _await_more(self, found: int) -> None:
        self._parts = 0 if found else self._parts + 1
        if self._parts > 1:
            self._raw.pause_reading()
            asyncio.get_running_loop().call_later(PART_PAUSE_SECONDS, self._read_on)
        else:
            self._raw.resume_reading()

    def _read_on(self) -> None:
        if not (self._paused or self._raw.is_closing()):
            self._raw.resume_reading()

    def _pump_soon(self) -> None:
        if not self._awaits_pump:
            self._awaits_pump = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _end_by_goodbye(self) -> None:
        if not self._end_inside():
            self.close()

    def _end_inside(self) -> bool | None:
        """Tell what is inside that no more comes; whether it still has something to send."""
        if self._ended or self._inside is None:
            return False
        self._ended = True
        return cast("bool | None", self._inside.eof_received())

    # To what is inside --------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the connection; `sslcontext` tells that it is by TLS."""
        own = {"sslcontext": self._context, "ssl_object": self._tls}
        return own[name] if name in own else self._raw.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Pass on to another one from now on."""
        self._inside = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return what is inside."""
        return cast("asyncio.BaseProtocol", self._inside)

    def is_closing(self) -> bool:
        """Tell whether it is closed, or soon."""
        return self._raw.is_closing()

    def is_reading(self) -> bool:
        """Tell whether what comes is wanted."""
        return not self._paused and not self._raw.is_closing()

    def pause_reading(self) -> None:
        """Pass nothing on; what the client sends waits where it is."""
        self._paused = True
        if not self._raw.is_closing():
            self._raw.pause_reading()

    def resume_reading(self) -> None:
        """Pass on again, but not from within this call."""
        if self._paused:
            self._paused = False
            self._pump_soon()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send; what the client does not take at once waits."""
        if self._raw.is_closing():
            return
        view = memoryview(data).cast("B")
        try:
            while view:
                view = view[self._tls.write(view) :]
        except ssl.SSLError:
            self._raw.abort()
            return
        self._flush()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send all of them."""
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait, as they go over the wire."""
        return self._raw.get_write_buffer_size()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return from where on what is inside is asked to wait."""
        return self._raw.get_write_buffer_limits()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ask it to wait from there on."""
        self._raw.set_write_buffer_limits(high, low)

    def can_write_eof(self) -> bool:
        """Tell that we may end first, as without TLS."""
        return self._raw.can_write_eof()

    def write_eof(self) -> None:
        """Say goodbye; what the client still sends is thrown away."""
        self._say_goodbye()
        self._raw.write_eof()

    def close(self) -> None:
        """Say goodbye, and close when all is sent."""
        if not self._raw.is_closing():
            self._say_goodbye()
            self._raw.close()

    def abort(self) -> None:
        """Cut the connection."""
        self._is_cut = True
        if self._has_come:
            self._raw.abort()

    def _say_goodbye(self) -> None:
        self._ended = True
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()  # it would wait for the client's, and nobody does
        self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._raw.is_closing():
            self._raw.write(self._outgoing.read())
