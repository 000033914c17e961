"""One WebSocket, many subscriptions: what a client says, and the frames that it gets.

A client says `{"do": "subscribe", "id": .., ..}`, `unsubscribe`, `acknowledge` or `report`. The
id is its own; every frame says which subscription it is about.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from delivery.admission.owner_semaphore import SemaphoreFull
from delivery.admission.refusals import NO_ANSWER, Refusal, Refused
from delivery.admission.requests import Admission, Identity, WatchRequest
from delivery.admission.sources import SourceAdmission
from delivery.endings import Ending
from delivery.feeds.deliveries import FeedEnded
from delivery.feeds.event_ids import EventId
from delivery.feeds.feed import Feed
from delivery.feeds.feeds import MOST_STREAMS, Feeds
from delivery.feeds.following import Following, TooMany
from delivery.feeds.lent import lend
from delivery.feeds.pulls import Pull, Pulls
from delivery.hub import Hub
from delivery.transport import Disconnected
from delivery.transports import live_messages, pulling
from delivery.transports.devices import Device, Devices
from delivery.transports.live_messages import bad, event, text, told
from delivery.transports.live_outlet import LiveOutlet, Socket
from delivery.transports.readers import Reader
from servioticy.domain.model import StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.cursors import Source

MAX_SUBSCRIPTIONS = 1000
BURST_MESSAGES = 2000
MESSAGES_A_SECOND = 100
"""Whoever says more is listened to later."""
FULL = Refusal(429, "Too many Service Objects and groups are watched as a whole")
TOO_MANY = Refusal(400, f"At most {MOST_STREAMS} streams are watched so: subscribe durably")

log = logging.getLogger("servioticy.delivery")


class LiveSession:
    """What one client has subscribed to over its socket."""

    def __init__(
        self,
        hub: Hub,
        feeds: Feeds,
        pulls: Pulls,
        devices: Devices,
        who: Identity,
        socket: Socket,
    ) -> None:
        self.tenant = who.tenant
        self._hub, self._feeds, self._pulls = hub, feeds, pulls
        self._who = who
        self._outlet = LiveOutlet(who.tenant, socket, hub.backlog)
        self._devices = devices
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._own: dict[str, Device] = {}
        """Of the subscriptions those to actuations, by id."""
        self._allowance = float(BURST_MESSAGES)
        self._heard_at = asyncio.get_running_loop().time()

    async def hear(self, message: str) -> None:
        """Do what the client says, or answer why not."""
        await self._pace()
        id_: str | None = None
        try:
            said = live_messages.read(message)
            id_ = said["id"]
            await self._actions(said["do"])(id_, said)
        except Refused as error:
            await self._outlet.tell(id_, "refused", told(error.refusal))
        except Unavailable:
            await self._outlet.tell(id_, "refused", told(NO_ANSWER))

    async def end(self) -> None:
        """Forget all subscriptions: the socket is closed."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._outlet.close()

    # What it says

    def _actions(self, name: object) -> Callable[[str, dict[str, Any]], Awaitable[None]]:
        actions = {
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "acknowledge": self._acknowledge,
            "report": self._report,
        }
        if not isinstance(name, str) or name not in actions:
            raise bad(f"do has to be one of {', '.join(actions)}")
        return actions[name]

    async def _subscribe(self, id_: str, said: dict[str, Any]) -> None:
        if id_ in self._tasks:
            raise bad("This id is in use")
        if len(self._tasks) >= MAX_SUBSCRIPTIONS:
            most = f"A socket has at most {MAX_SUBSCRIPTIONS} subscriptions"
            raise Refused(Refusal(429, most))
        last = event(said, "last")
        if "subscription" in said:
            await self._durable(id_, text(said, "subscription"), last)
        elif said.get("actions") is True:
            await self._device(id_, text(said, "serviceObject"))
        elif "stream" in said:
            await self._stream(id_, said, last)
        else:
            await self._source(id_, said)

    async def _stream(self, id_: str, said: dict[str, Any], last: EventId | None) -> None:
        stream = StreamRef(text(said, "serviceObject"), text(said, "stream"))
        after = said.get("after")
        request = WatchRequest(stream, self._who.token, None if after is None else str(after))
        answer = await self._hub.reception.examine(request)
        if isinstance(answer, Refusal):
            raise Refused(answer)
        feed, begins = await lend(self._feeds, answer, last, self._hub.newest)
        give_back = partial(self._feeds.take_back, feed)
        self._start(id_, partial(self._watch, id_, feed, begins, answer), give_back)

    async def _source(self, id_: str, said: dict[str, Any]) -> None:
        group = text(said, "group") if "group" in said else None
        source = Source(text(said, "serviceObject"), None, group)
        if "last" in said or "after" in said:
            raise bad("Of many streams only a subscription of the callback pull can go on")
        answer = await self._hub.reception.examine_source(source, self._who.token)
        if isinstance(answer, Refusal):
            raise Refused(answer)
        places, following = self._hub.reception.sources, self._following(answer)
        try:
            places.acquire(self.tenant)
        except SemaphoreFull:
            raise Refused(FULL) from None
        try:
            await following.lend()
        except BaseException as error:
            places.release(self.tenant)
            if isinstance(error, TooMany):
                raise Refused(TOO_MANY) from None
            raise

        def give_back() -> None:
            places.release(self.tenant)
            following.stop()

        self._start(id_, partial(self._watch_source, id_, following), give_back)

    def _following(self, admission: SourceAdmission) -> Following:
        return Following(self._hub.reception.stays, self._feeds, admission)

    async def _durable(self, id_: str, name: str, last: EventId | None) -> None:
        pull = await pulling.find(self._pulls, self._feeds, name, self._who)
        pulling.check_rest(pull)
        if last is not None:
            pulling.acknowledge(pull, last)
        self._start(id_, partial(self._pull, id_, pull, last))

    async def _device(self, id_: str, name: str) -> None:
        key = await self._hub.reception.examine_device(self._who.token, name)
        if isinstance(key, Refusal):
            raise Refused(key)
        device = self._own[id_] = Device(id_, key)
        self._start(id_, partial(self._actuate, device), lambda: self._own.pop(id_))

    async def _report(self, id_: str, said: dict[str, Any]) -> None:
        device, actuation = self._own.get(id_), text(said, "actuation")
        if device is None:
            raise Refused(Refusal(404, "There is no subscription to actions of this id"))
        await device.report(self._devices, self._who.token, actuation, text(said, "status"))
        await self._outlet.tell(id_, "reported", {"actuation": actuation})

    def _start(
        self,
        id_: str,
        work: Callable[[], Awaitable[None]],
        after: Callable[[], object] | None = None,
    ) -> None:
        def forget(_task: asyncio.Task[None]) -> None:
            del self._tasks[id_]
            if after is not None:
                after()

        task = self._tasks[id_] = asyncio.create_task(self._run(id_, work))
        # Not in the task: one that is cancelled at once never begins.
        task.add_done_callback(forget)

    async def _unsubscribe(self, id_: str, _said: dict[str, Any]) -> None:
        task = self._tasks.get(id_)
        if task is None:
            raise Refused(Refusal(404, "There is no subscription of this id"))
        task.cancel()
        await asyncio.wait([task])
        await self._outlet.tell(id_, "unsubscribed", {})

    async def _acknowledge(self, id_: str, said: dict[str, Any]) -> None:
        last = event(said, "event")
        if last is None:
            raise bad("event is missing")
        pull = await pulling.find(self._pulls, self._feeds, text(said, "subscription"), self._who)
        pulling.acknowledge(pull, last)
        await pulling.settled(pull)
        await self._outlet.tell(id_, "acknowledged", {"event": str(last)})

    # What it gets

    async def _run(self, id_: str, work: Callable[[], Awaitable[None]]) -> None:
        """Send until the subscription ends, and say why."""
        reason: Ending | None = None
        try:
            await work()
        except FeedEnded as ended:
            reason = ended.ending
        except Disconnected:
            pass
        except Exception:
            log.exception("subscription_failed")
            reason = Ending.FAILED
        if reason is not None:
            with contextlib.suppress(Disconnected):
                await self._outlet.tell(id_, "ended", {"reason": reason.value})

    async def _watch(
        self, id_: str, feed: Feed, begins: EventId | None, admission: Admission
    ) -> None:
        reader = Reader()
        stay = self._hub.reception.stays.begin(admission, reader.end)
        try:
            await self._outlet.tell_begun(id_, begins)
            await self._outlet.send_all(id_, feed, feed.take, feed.done)
        except asyncio.CancelledError:
            raise FeedEnded(reader.why()) from None
        finally:
            self._hub.reception.stays.leave(stay)

    async def _watch_source(self, id_: str, following: Following) -> None:
        reader, feed = Reader(), following.feed
        following.start(reader.end)
        try:
            await self._outlet.tell_begun(id_, None)
            await self._outlet.send_all(id_, feed, feed.take, feed.done)
        except asyncio.CancelledError:
            raise FeedEnded(reader.why()) from None

    async def _pull(self, id_: str, pull: Pull, begins: EventId | None) -> None:
        reader = Reader()
        pull.attach(reader.end)
        try:
            await self._outlet.tell_begun(id_, begins)
            await self._outlet.send_all(id_, pull.feed, pull.take, lambda _delivery: None)
        except asyncio.CancelledError:
            raise FeedEnded(reader.why()) from None
        finally:
            pull.detach(reader.end)

    async def _actuate(self, device: Device) -> None:
        await self._outlet.tell(device.id, "subscribed", {})
        await device.run(self._devices.queues, self._outlet.send)

    async def _pace(self) -> None:
        now = asyncio.get_running_loop().time()
        self._allowance += (now - self._heard_at) * MESSAGES_A_SECOND
        self._allowance = min(self._allowance, BURST_MESSAGES) - 1
        self._heard_at = now
        if self._allowance < 0:
            await asyncio.sleep(-self._allowance / MESSAGES_A_SECOND)
