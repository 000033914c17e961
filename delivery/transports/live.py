"""One WebSocket, many subscriptions: what a client says, and the frames that it gets.

A client says `{"do": "subscribe", "id": .., ..}`, `unsubscribe`, `acknowledge` or `report`. The
id is its own; every frame says which subscription it is about.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from delivery.admission.owner_semaphore import Place, SemaphoreFull
from delivery.admission.refusals import NO_ANSWER, Refusal, Refused
from delivery.admission.requests import Identity, WatchRequest
from delivery.admission.sources import SourceAdmission
from delivery.endings import Ending
from delivery.feeds.event_ids import EventId
from delivery.feeds.feeds import MOST_STREAMS, Feeds
from delivery.feeds.following import Following, TooMany
from delivery.feeds.lent import lend
from delivery.feeds.pulls import Pulls
from delivery.hub import Hub
from delivery.transport import Disconnected
from delivery.transports import live_messages, pulling
from delivery.transports.devices import Device, Devices
from delivery.transports.live_messages import bad, event, text, told
from delivery.transports.live_outlet import LiveOutlet, Socket
from delivery.transports.live_sender import LiveSender
from delivery.transports.live_subscription import LiveSubscription
from servioticy.domain.model import StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.cursors import Source

MAX_SUBSCRIPTIONS = 1000
FORGOTTEN_A_TURN = 32
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
        self._sender = LiveSender(self._outlet, hub.turns, self._forget)
        self._subscriptions: dict[str, LiveSubscription] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Of the subscriptions to actuations, by id."""
        self._own: dict[str, Device] = {}
        """Of the subscriptions those to actuations, by id."""
        self._allowance = float(BURST_MESSAGES)
        self._heard_at = asyncio.get_running_loop().time()

    async def hear(self, message: str) -> None:
        """Do what the client says, or answer why not."""
        await self._pace()
        await self._hub.turns.take(self.tenant)
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
        """Forget all subscriptions: the socket is closed.

        A few at a time, as there may be a thousand, of a thousand sockets that close at once.
        """
        await self._sender.stop()
        tasks = list(self._tasks.values())
        for number, task in enumerate(tasks):
            task.cancel()
            if number % FORGOTTEN_A_TURN == 0:
                await self._hub.turns.take(self.tenant)
        for number, each in enumerate(list(self._subscriptions.values())):
            self._forget(each)
            if number % FORGOTTEN_A_TURN == 0:
                await self._hub.turns.take(self.tenant)
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
        if id_ in self._tasks or id_ in self._subscriptions:
            raise bad("This id is in use")
        if len(self._tasks) + len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            most = f"A socket has at most {MAX_SUBSCRIPTIONS} subscriptions"
            raise Refused(Refusal(429, most))
        last, place = event(said, "last"), self._hub.reception.subscription(self.tenant)
        try:
            if "subscription" in said:
                await self._durable(id_, text(said, "subscription"), last, place)
            elif said.get("actions") is True:
                await self._device(id_, text(said, "serviceObject"), place)
            elif "stream" in said:
                await self._stream(id_, said, last, place)
            else:
                await self._source(id_, said, place)
        except BaseException:
            place.release()
            raise

    async def _stream(
        self, id_: str, said: dict[str, Any], last: EventId | None, place: Place
    ) -> None:
        stream = StreamRef(text(said, "serviceObject"), text(said, "stream"))
        after = said.get("after")
        request = WatchRequest(stream, self._who.token, None if after is None else str(after))
        answer = await self._hub.reception.examine(request)
        if isinstance(answer, Refusal):
            raise Refused(answer)
        feed, begins = await lend(self._feeds, answer, last, self._hub.newest)
        subscription = LiveSubscription(id_, feed, feed, feed.done)
        stays = self._hub.reception.stays
        stay = stays.begin(answer, subscription.end)

        def give_back() -> None:
            place.release()
            stays.leave(stay)
            self._feeds.take_back(feed)

        self._keep(subscription, give_back)
        await self._begin(subscription, begins)

    async def _source(self, id_: str, said: dict[str, Any], place: Place) -> None:
        group = text(said, "group") if "group" in said else None
        source = Source(text(said, "serviceObject"), None, group)
        if "last" in said or "after" in said:
            raise bad("Of many streams only a subscription of the callback pull can go on")
        answer = await self._hub.reception.examine_source(source, self._who.token)
        if isinstance(answer, Refusal):
            raise Refused(answer)
        following = self._following(answer)
        try:
            whole = self._hub.reception.sources.place(self.tenant)
        except SemaphoreFull:
            raise Refused(FULL) from None
        try:
            await following.lend()
        except BaseException as error:
            whole.release()
            if isinstance(error, TooMany):
                raise Refused(TOO_MANY) from None
            raise
        subscription = LiveSubscription(id_, following.feed, following.feed, following.feed.done)

        def give_back() -> None:
            place.release()
            whole.release()
            following.stop()

        following.start(subscription.end)
        self._keep(subscription, give_back)
        await self._begin(subscription, None)

    def _following(self, admission: SourceAdmission) -> Following:
        return Following(self._hub.reception.stays, self._feeds, admission)

    async def _durable(self, id_: str, name: str, last: EventId | None, place: Place) -> None:
        pull = await pulling.find(self._pulls, self._feeds, name, self._who)
        pulling.check_rest(pull)
        if last is not None and not pulling.go_on(pull, last):
            last = None
        subscription = LiveSubscription(id_, pull.feed, pull, _keep)

        def give_back() -> None:
            place.release()
            pull.detach(subscription.end)

        pull.attach(subscription.end)
        self._keep(subscription, give_back)
        await self._begin(subscription, last)

    def _keep(self, subscription: LiveSubscription, give_back: Callable[[], object]) -> None:
        """Remember it until it is over."""
        self._subscriptions[subscription.id] = subscription
        subscription.give_back = give_back

    async def _begin(self, subscription: LiveSubscription, begins: EventId | None) -> None:
        """Say that it has begun, and send what it has from now on. Raises Disconnected."""
        await self._outlet.tell_begun(subscription.id, begins)
        subscription.feed.unsent_bytes = self._outlet.something_waits
        subscription.begin(self._sender.ready)

    def _forget(self, subscription: LiveSubscription) -> None:
        """Note that it is over."""
        if self._subscriptions.get(subscription.id) is subscription:
            del self._subscriptions[subscription.id]
        subscription.over()

    async def _device(self, id_: str, name: str, place: Place) -> None:
        key = await self._hub.reception.examine_device(self._who.token, name)
        if isinstance(key, Refusal):
            raise Refused(key)
        device = self._own[id_] = Device(id_, key)

        def forget(_task: asyncio.Task[None]) -> None:
            del self._tasks[id_], self._own[id_]
            place.release()

        task = self._tasks[id_] = asyncio.create_task(self._actuate(device))
        # Not in the task: one that is cancelled at once never begins.
        task.add_done_callback(forget)

    async def _report(self, id_: str, said: dict[str, Any]) -> None:
        device, actuation = self._own.get(id_), text(said, "actuation")
        if device is None:
            raise Refused(Refusal(404, "There is no subscription to actions of this id"))
        await device.report(self._devices, self._who.token, actuation, text(said, "status"))
        await self._outlet.tell(id_, "reported", {"actuation": actuation})

    async def _unsubscribe(self, id_: str, _said: dict[str, Any]) -> None:
        task, subscription = self._tasks.get(id_), self._subscriptions.get(id_)
        if subscription is not None:
            self._forget(subscription)
        elif task is not None:
            task.cancel()
            await asyncio.wait([task])
        else:
            raise Refused(Refusal(404, "There is no subscription of this id"))
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

    async def _actuate(self, device: Device) -> None:
        """Send a device its actuations until the subscription ends."""
        try:
            await self._outlet.tell(device.id, "subscribed", {})
            await device.run(self._devices.queues, self._outlet.send)
        except Disconnected:
            pass
        except Exception:
            log.exception("subscription_failed")
            with contextlib.suppress(Disconnected):
                await self._outlet.tell(device.id, "ended", {"reason": Ending.FAILED.value})

    async def _pace(self) -> None:
        now = asyncio.get_running_loop().time()
        self._allowance += (now - self._heard_at) * MESSAGES_A_SECOND
        self._allowance = min(self._allowance, BURST_MESSAGES) - 1
        self._heard_at = now
        if self._allowance < 0:
            await asyncio.sleep(-self._allowance / MESSAGES_A_SECOND)


def _keep(_delivery: object) -> None:
    """Wait for its acknowledgement: that it was sent is none."""
