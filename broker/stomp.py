"""A conversation in STOMP: 1.0, 1.1 or 1.2, as the client asks for it."""

from __future__ import annotations

import asyncio
from functools import partial

from broker.broker import Broker
from broker.client import Client
from broker.errors import BadTopic, Malformed
from broker.intake import Intake
from broker.outcomes import Outcome
from broker.published import Published
from broker.stomp_frames import Frame, read_frame, topic_of, write_frame
from broker.stomp_outlet import StompOutlet
from broker.strangers import Strangeness
from broker.topics import ALL, ONE
from broker.wire import Wire
from delivery.admission.refusals import Refused
from servioticy.numbers import whole

HELLO_SECONDS = 10.0
FRAME_SECONDS = 30.0
MAX_STRANGE_BYTES = 65_536
HEARTBEAT_MS = 10_000
VERSIONS = ("1.2", "1.1", "1.0")
ACKS = {"auto": 0, "client": 1, "client-individual": 1}


class StompConversation:
    """One client that speaks STOMP."""

    def __init__(self, broker: Broker, wire: Wire, max_frame: int) -> None:
        self._broker = broker
        self._wire = wire
        self._max_frame = max_frame
        self._outlet = StompOutlet(wire)
        self._client = Client(self._outlet, broker.hub.backlog)
        publish = broker.exchange.publish
        self._intake = Intake(
            self._client,
            broker.lane,
            broker.api,
            publish,
            broker.identify,
            broker.claim,
            broker.places,
        )
        self._silence: float | None = None
        self._beating: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Talk until either side ends it."""
        self._broker.join(self._client, self._wire)
        strangeness = Strangeness(self._client, self._wire)
        self._intake.start()
        try:
            await self._welcome()
            while self._client.is_open:
                await self._next()
        except Malformed as error:
            self._client.close(str(error))
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass
        finally:
            if self._beating is not None:
                self._beating.cancel()
            strangeness.stop()
            self._client.end()
            self._outlet.gone()
            await self._intake.finish()
            await self._wire.last_turn()
            self._broker.leave(self._client)

    async def _frame(self, seconds: float | None) -> Frame | None:
        async with asyncio.timeout(seconds):
            await self._wire.begin_frame()
            await self._wire.peek()
        most = self._max_frame if self._client.identity else MAX_STRANGE_BYTES
        async with asyncio.timeout(FRAME_SECONDS):
            return await read_frame(self._wire, most)

    async def _welcome(self) -> None:
        hello = await self._frame(HELLO_SECONDS)
        while hello is None:
            hello = await self._frame(HELLO_SECONDS)
        if hello.command not in ("CONNECT", "STOMP"):
            raise Malformed("the first frame is CONNECT")
        asked = hello.headers.get("accept-version", "1.0").split(",")
        version = next((each for each in VERSIONS if each in asked), None)
        if version is None:
            raise Malformed(f"the versions of STOMP are {', '.join(VERSIONS)}")
        if not self._broker.hub.reception.is_open:
            raise Malformed("delivery has only just started; try again")
        user, password = hello.headers.get("login", ""), hello.headers.get("passcode", "")
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                await self._broker.log_in(self._client, user, password)
        except Refused as error:
            raise Malformed(error.refusal.message) from None
        except TimeoutError:
            raise Malformed("the store does not answer; try again") from None
        answer = {"version": version, "server": "servIoTicy"}
        answer["heart-beat"] = self._heartbeat(hello.headers.get("heart-beat", "0,0"))
        self._wire.write(write_frame("CONNECTED", answer))

    def _heartbeat(self, wish: str) -> str:
        """Agree on how often either side shows that it lives; return our side of it."""
        can, wants = (whole(each) or 0 for each in f"{wish},0".split(",", 2)[:2])
        if can:
            self._silence = max(can, HEARTBEAT_MS) / 1000 * 2.5
        if wants:
            seconds = min(max(wants, HEARTBEAT_MS), 600_000) / 1000
            self._beating = asyncio.create_task(self._beat(seconds))
        return f"{HEARTBEAT_MS},{HEARTBEAT_MS}"

    async def _beat(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            self._wire.write(b"\n")

    async def _next(self) -> None:
        frame = await self._frame(self._silence)
        if frame is None:
            return
        receipt = frame.headers.get("receipt")
        try:
            await self._obey(frame, receipt)
        except BadTopic as error:
            self._fail(str(error), receipt)
        except Refused as error:
            self._fail(error.refusal.message, receipt)
        else:
            if receipt is not None and frame.command != "SEND":
                self._receipt(receipt)

    async def _obey(self, frame: Frame, receipt: str | None) -> None:
        if frame.command == "SEND":
            await self._send(frame, receipt)
        elif frame.command == "SUBSCRIBE":
            await self._subscribe(frame)
        elif frame.command == "UNSUBSCRIBE":
            self._broker.unsubscribe(self._client, _name(frame))
            self._outlet.forget(_name(frame))
        elif frame.command in ("ACK", "NACK"):
            # Who does not want a message has seen it all the same.
            id_ = frame.headers.get("id") or frame.needed("message-id")
            self._outlet.acknowledged(id_)
            self._client.note()
        elif frame.command == "DISCONNECT":
            await self._intake.finish()
            self._client.end()
        else:
            raise Malformed(f"there is no {frame.command:.20} here; transactions are not offered")

    async def _send(self, frame: Frame, receipt: str | None) -> None:
        topic = topic_of(frame.needed("destination"))
        answered = partial(self._answered, topic, receipt)
        await self._intake.put(Published(topic, frame.body, receipt is not None, answered))

    def _answered(self, topic: str, receipt: str | None, answer: Outcome) -> None:
        if answer.is_taken:
            if receipt is not None:
                self._receipt(receipt)
            return
        self._broker.tell(self._client, topic, answer)
        if receipt is not None:
            self._fail(answer.message, receipt)

    async def _subscribe(self, frame: Frame) -> None:
        name, destination = _name(frame), frame.needed("destination")
        ack = frame.headers.get("ack", "auto")
        if ack not in ACKS:
            raise Malformed(f"ack is one of {', '.join(ACKS)}")
        topic = topic_of(destination)
        # First, as what waits for it comes at once.
        if not {ONE, ALL} & set(topic.split("/")):
            self._outlet.destinations[name] = destination
        if ack == "client":
            self._outlet.cumulative.add(name)
        try:
            found = await self._broker.subscribe(self._client, name, topic, ACKS[ack])
        finally:
            if name not in self._client.subscriptions:
                self._outlet.forget(name)
        await self._broker.begin(found, with_last=True)

    def _receipt(self, receipt: str) -> None:
        self._wire.write(write_frame("RECEIPT", {"receipt-id": receipt}))

    def _fail(self, why: str, receipt: str | None) -> None:
        if self._client.is_open:
            self._client.end()
            self._outlet.fail(why, receipt)


def _name(frame: Frame) -> str:
    """Return what the client calls the subscription; in STOMP 1.0 it may be its destination."""
    return frame.headers.get("id") or frame.needed("destination")
