"""Updates over WebSockets: each is one text frame."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from asyncio import Protocol
from collections.abc import Callable
from http import HTTPStatus
from typing import cast
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import orjson
from websockets.asyncio.server import Server, ServerConnection, broadcast, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from delivery.admission.console import NO_CONSOLE, of_session
from delivery.admission.refusals import Refusal
from delivery.admission.requests import Admission, Identity, fields_of, storable, token_of
from delivery.endings import Ending
from delivery.entrance import Entrance
from delivery.hub import Hub
from delivery.transport import CLOSE_SECONDS, WRITE_BUFFER_BYTES, Disconnected
from delivery.transports.doorway import NO_REQUEST, Doorway
from delivery.transports.live import LiveSession
from delivery.transports.live_outlet import Socket
from delivery.transports.websocket_caller import WebSocketCaller, caller_class
from servioticy.domain.console import Place
from servioticy.domain.model import LastUpdate
from servioticy.doors.certificate import Certificate
from servioticy.doors.vestibule import PLAIN_HTTP
from servioticy.http_heads import is_a_beginning

MAX_CLIENT_MESSAGE = 4096
MAX_CLIENT_MESSAGES = 4
HANDSHAKE_SECONDS = 10.0
PING_SECONDS = 20.0

CLOSE_CODES = {
    Ending.FAILED: CloseCode.INTERNAL_ERROR,
    Ending.STOPPING: CloseCode.GOING_AWAY,
    Ending.REVOKED: CloseCode.POLICY_VIOLATION,
    Ending.NOT_READABLE: CloseCode.POLICY_VIOLATION,
}
"""All other endings are TRY_AGAIN_LATER."""

_DEVICE = re.compile(r"/([^/]+)/actuations/live/?")
ACTUATIONS = "actuations"
"""The id of the subscription of a socket that is for a device's actuations alone."""

Live = Callable[[Identity, Socket], LiveSession]

log = logging.getLogger("servioticy.delivery")
_protocol_log = logging.getLogger("delivery.protocol")
# At its lower levels it writes request lines and headers: tokens.
_protocol_log.setLevel(logging.CRITICAL)


class WebSocketTransport:
    """Serves WebSockets, and the health of the process, on one port."""

    def __init__(
        self,
        hub: Hub,
        host: str,
        port: int,
        plain: Callable[[], Protocol],
        live: Live,
        console: Place = NO_CONSOLE,
        certificate: Certificate | None = None,
    ) -> None:
        """`plain` makes what serves those who come to the port, and open no WebSocket.

        `live` makes what serves a socket with many subscriptions; pages of the `console` come
        with a cookie. With a certificate all speak TLS.
        """
        self._hub = hub
        self._live = live
        self._host = host
        self._port = port
        self._plain = plain
        self._console = console
        self._certificate = certificate
        # Weak: a client may go between its admission and its socket.
        self._admissions: WeakKeyDictionary[ServerConnection, Admission] = WeakKeyDictionary()
        self._known: WeakKeyDictionary[ServerConnection, Identity] = WeakKeyDictionary()
        self._devices: WeakKeyDictionary[ServerConnection, str] = WeakKeyDictionary()
        """The Service Objects of those that have come for actuations."""
        self._server: Server | None = None
        self._caller = caller_class(hub.reception.pending, hub.turns)
        self._entrance: Entrance | None = None

    async def start(self) -> None:
        """Listen from now on. Raises OSError where the port is not to be had."""
        self._server = await serve(
            self._serve,
            self._host,
            self._port,
            process_request=self._answer,
            open_timeout=HANDSHAKE_SECONDS,
            close_timeout=CLOSE_SECONDS,
            server_header="api.servIoTicy",
            logger=_protocol_log,
            create_connection=self._caller,
        )
        pending = self._hub.reception.pending
        self._entrance = Entrance(
            pending, self._doorway, _is_nonsense, NO_REQUEST, self._certificate, PLAIN_HTTP
        )
        self._entrance.open(self._server.sockets)

    def _doorway(self) -> Doorway:
        """Return what takes a new connection, and finds out whose it is."""
        return Doorway(self._hub.reception.pending, self._plain, self._websocket)

    def _websocket(self) -> WebSocketCaller:
        """Return what takes a connection that wants to be a WebSocket.

        The library would make it for whoever connects.
        """
        server = cast(Server, self._server)
        # A frame is small and goes to many: compressing it for each costs more than it saves.
        protocol = ServerProtocol(max_size=MAX_CLIENT_MESSAGE, logger=_protocol_log)
        return self._caller(
            protocol,
            server,
            ping_interval=PING_SECONDS,
            ping_timeout=PING_SECONDS,
            close_timeout=CLOSE_SECONDS,
            max_queue=MAX_CLIENT_MESSAGES,
            write_limit=WRITE_BUFFER_BYTES,
        )

    async def stop(self) -> None:
        """Close every socket with 1001, and return when all have gone."""
        if self._entrance is not None:
            self._entrance.close()
        if self._server is not None:
            self._server.close(code=close_code(Ending.STOPPING), reason=Ending.STOPPING.value)
            await self._server.wait_closed()

    async def _serve(self, connection: ServerConnection) -> None:
        known = self._known.pop(connection, None)
        if known is not None:
            await self._serve_live(connection, known)
            return
        admission = self._admissions.pop(connection)
        stream = str(admission.stream)
        log.info("watch_opened", extra={"stream": stream})
        await self._hub.serve(admission, WebSocketConnection(connection))
        log.info("watch_closed", extra={"stream": stream, "code": connection.close_code})

    async def _serve_live(self, connection: ServerConnection, who: Identity) -> None:
        """Do what the client says, until it has gone; what is no text ends it."""
        cast(WebSocketCaller, connection).let_speak()
        socket = WebSocketConnection(connection)
        session = self._live(who, socket)
        stay = self._hub.reception.stays.begin(who, socket.close_soon)
        self._hub.connections += 1
        device = self._devices.pop(connection, None)
        try:
            if device is not None:
                await session.hear(_for_actuations(device))
            async for message in connection:
                if isinstance(message, bytes):
                    await connection.close(CloseCode.UNSUPPORTED_DATA, "say it as text")
                    break
                await session.hear(message)
        except (ConnectionClosed, Disconnected):
            pass
        finally:
            self._hub.connections -= 1
            self._hub.reception.stays.leave(stay)
            await session.end()

    async def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a request before the upgrade; None opens the socket."""
        caller = cast(WebSocketCaller, connection)
        path, _, query = request.path.partition("?")
        token = self._authorization(request.headers)
        if path == "/health":
            response = _health(self._hub.is_ready)
        elif path == "/live":
            found = await self._identified(caller, query, token)
            if not isinstance(found, Refusal):
                self._known[connection] = found
                caller.be_of(found.tenant)
                return None
            response = _refused(found)
        elif device := _DEVICE.fullmatch(path):
            refusal = await self._admit_device(connection, query, token, unquote(device[1]))
            if refusal is None:
                return None
            response = _refused(refusal)
        else:
            answer = await self._hub.reception.decide(caller, request.path, token)
            if isinstance(answer, Admission):
                self._admissions[connection] = answer
                caller.be_of(answer.tenant)
                return None
            response = _refused(answer)
        self._hub.reception.pending.add(caller)
        return response

    def _authorization(self, headers: Headers) -> str:
        """Return who the request says that it is of."""
        said = next(iter(headers.get_all("Authorization")), "")
        cookies, origins = headers.get_all("Cookie"), headers.get_all("Origin")
        return said or of_session(self._console, "; ".join(cookies), origins)

    async def _admit_device(
        self, connection: ServerConnection, query: str, authorization: str, name: str
    ) -> Refusal | None:
        """Let a device in that comes for its actuations, or return why not."""
        found = await self._identified(cast(WebSocketCaller, connection), query, authorization)
        if isinstance(found, Refusal):
            return found
        key = await self._hub.reception.examine_device(found.token, storable(name))
        if isinstance(key, Refusal):
            return key
        self._known[connection], self._devices[connection] = found, key.id
        cast(WebSocketCaller, connection).be_of(found.tenant)
        return None

    async def _identified(
        self, caller: WebSocketCaller, query: str, authorization: str
    ) -> Identity | Refusal:
        fields = fields_of(query)
        token = fields if isinstance(fields, Refusal) else token_of(fields, authorization)
        if isinstance(token, Refusal):
            return token
        return await self._hub.reception.identify(caller, token)


class WebSocketConnection:
    """An open socket as the hub sees it; keeps to the protocol `Connection`."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket

    def write(self, update: LastUpdate) -> None:
        """Write the frame; what the client does not take at once waits in the buffer."""
        broadcast([self._socket], update.document, raise_exceptions=True, text=True)

    async def send(self, update: LastUpdate) -> None:
        """Write the frame, and wait until the buffer has room. Raises Disconnected."""
        await self.send_frame(update.document)

    async def send_frame(self, frame: bytes) -> None:
        """Send a frame of text, and wait until the buffer has room. Raises Disconnected."""
        try:
            await self._socket.send(frame, text=True)
        except ConnectionClosed as error:
            raise Disconnected from error

    def unsent_bytes(self) -> int:
        """Return what waits in the buffer."""
        return self._socket.transport.get_write_buffer_size()

    async def close(self, ending: Ending) -> None:
        """Send a close frame, and wait for the client's."""
        await self._socket.close(close_code(ending), ending.value)

    def close_soon(self, ending: Ending) -> None:
        """Close without waiting, and cut the connection where the client does not let go."""
        loop = asyncio.get_running_loop()
        self._closing = loop.create_task(self.close(ending))
        loop.call_later(CLOSE_SECONDS, self.abort)

    def abort(self) -> None:
        """Cut the connection."""
        self._socket.transport.abort()

    async def wait_closed(self) -> None:
        """Return when the socket is closed. Clients have nothing to say; it is thrown away."""
        with contextlib.suppress(ConnectionClosed):
            async for _ in self._socket:
                pass


def _is_nonsense(first: bytes) -> bool:
    return not is_a_beginning(first)


def close_code(ending: Ending) -> CloseCode:
    """Return the code of a close frame that tells of this ending."""
    return CLOSE_CODES.get(ending, CloseCode.TRY_AGAIN_LATER)


def _for_actuations(service_object: str) -> str:
    """Return what a client would say to subscribe to them."""
    said = {"do": "subscribe", "id": ACTUATIONS, "serviceObject": service_object, "actions": True}
    return orjson.dumps(said).decode()


def _health(is_ready: bool) -> Response:
    return _response(200, b'{"ready":true}') if is_ready else _response(503, b'{"ready":false}')


def _refused(refusal: Refusal) -> Response:
    response = _response(refusal.status, refusal.body())
    for name, value in refusal.headers().items():
        response.headers[name] = value
    return response


def _response(status: int, body: bytes) -> Response:
    headers = Headers(
        {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
    )
    return Response(status, HTTPStatus(status).phrase, headers, body)
