"""Between the door and a house, where a port speaks TLS: hands are shaken here, and nothing else.

Who is here has shown no token yet. So each step of a handshake is a turn of the small part of the
loop that all strangers share, there are so many here at most, and nobody stays for long.
"""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any, Protocol

from servioticy.doors.certificate import Certificate
from servioticy.doors.door import Door, Glance, House
from servioticy.doors.porch import Porch
from servioticy.doors.tls import TlsConnection, speaks_tls

HANDSHAKE_SECONDS = 10.0
_TOLD = b"This port speaks TLS: begin with https:// or wss://"
PLAIN_HTTP = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_TOLD), _TOLD)
)
"""What a port of HTTP answers to whoever speaks plain text."""


class Inside(House, Protocol):
    """A house that can also be behind a vestibule."""

    def protocol(self, client: socket.socket) -> asyncio.BaseProtocol:
        """Return what takes the connection of this socket."""


class Vestibule:
    """Keeps to the protocol `House`. All methods belong to the event loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        inside: Inside,
        certificate: Certificate,
        porch: Porch,
        most: int,
        refusal: bytes,
    ) -> None:
        """So many shake hands at `most`. `refusal` is the answer, in plain text, to plain text."""
        self._inside = inside
        self._certificate = certificate
        self._porch = porch
        self._most = most
        self._refusal = refusal
        self._loop = loop
        self._shaking: dict[TlsConnection, asyncio.TimerHandle] = {}
        """Those whose hands we shake, the longest first."""
        self._arriving: set[asyncio.Task[Any]] = set()
        """The loop itself keeps no hold on its tasks."""

    def __len__(self) -> int:
        """Return how many have not been let in yet."""
        return len(self._shaking)

    def glance(self, first: bytes, _address: str) -> Glance:
        """Nobody is known before hands are shaken: what follows is in cipher."""
        return Glance.STRANGER if speaks_tls(first) else Glance.NONSENSE

    def refuse(self, _first: bytes) -> bytes:
        """Return what everybody gets who speaks plain text here."""
        return self._refusal

    def enter(self, client: socket.socket) -> None:
        """Begin to shake hands."""
        made = TlsConnection(
            self._certificate.context,
            lambda: self._inside.protocol(client),
            self._porch,
            self._let_in,
            self._refusal,
        )
        self._shaking[made] = self._loop.call_later(HANDSHAKE_SECONDS, made.abort)
        if len(self._shaking) > self._most:
            self.make_room()
        task = self._loop.create_task(self._loop.connect_accepted_socket(lambda: made, client))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    def make_room(self) -> None:
        """Close whoever has shaken hands for longest, or somebody inside."""
        if self._shaking:
            self._let_in(longest := next(iter(self._shaking)))
            longest.abort()
        else:
            self._inside.make_room()

    def close(self) -> None:
        """Let everybody here go."""
        while self._shaking:
            self.make_room()

    def _let_in(self, who: TlsConnection) -> None:
        timer = self._shaking.pop(who, None)
        if timer is not None:
            timer.cancel()


class SecureDoor(Door):
    """A door with a vestibule behind it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        inside: Inside,
        most: int,
        certificate: Certificate,
        refusal: bytes,
    ) -> None:
        """So many wait at `most`, and as many shake hands."""
        porch = Porch(loop, time.thread_time)
        self.vestibule = Vestibule(loop, inside, certificate, porch, most, refusal)
        super().__init__(loop, self.vestibule, most, porch=porch)

    def close(self) -> None:
        """Let in nobody any more, not those whose hands we shake either."""
        super().close()
        self.vestibule.close()


def door(
    loop: asyncio.AbstractEventLoop,
    inside: Inside,
    most: int,
    certificate: Certificate | None,
    refusal: bytes,
) -> Door:
    """Return a door for this loop; with a certificate all who come have to speak TLS."""
    if certificate is None:
        return Door(loop, inside, most)
    return SecureDoor(loop, inside, most, certificate, refusal)
