"""What clients may ask of a durable subscription, and what they get."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import orjson

from delivery.admission.refusals import NO_ANSWER, NOT_FOR_THIS, Refusal, Refused
from delivery.admission.requests import Identity
from delivery.endings import Ending
from delivery.feeds.deliveries import FeedEnded
from delivery.feeds.event_ids import EventId, event_id, read_event_id
from delivery.feeds.feed import Feed
from delivery.feeds.feeds import Feeds
from delivery.feeds.pulls import OtherLog, Pull, Pulls, UnknownEvent
from delivery.transports.event_stream import described
from delivery.transports.readers import Reader
from delivery.turns import Turns
from servioticy.numbers import whole

LONGEST_WAIT = 60
MOST_UPDATES = 1000
MOST_BYTES = 1024 * 1024
USUAL_WAIT, USUAL_LIMIT = 30, 100
COLLECTED_A_TURN = 32
STORE_SECONDS = 10.0
"""Within these an acknowledgement has to be stored."""

NOT_FOUND = Refusal(404, "The Subscription was not found, or its updates are not fetched.")
NOT_HERE = Refusal(503, "Another process delivers to subscriptions; try again", 1)
UNKNOWN = Refusal(400, "This is not the id of an event that the subscription has come to")


OF_ANOTHER_LOG = Refusal(
    400,
    "This event is of before the platform was restored from a back-up: fetch updates without it; "
    "what the subscription still has to get comes, and some of it again",
)


class Wanted(NamedTuple):
    """What a request for updates asks for."""

    wait: int
    """Seconds to wait for the first."""
    limit: int
    cursor: EventId | None
    """The event up to which the client has everything."""


def read_wanted(query: dict[str, list[str]]) -> Wanted:
    """Read the parameters of a request for updates. Raises Refused."""
    text = query.get("cursor", [""])[-1]
    return Wanted(
        _number(query, "wait", USUAL_WAIT, 0, LONGEST_WAIT),
        _number(query, "limit", USUAL_LIMIT, 1, MOST_UPDATES),
        _event(text, "cursor") if text else None,
    )


def read_acknowledgement(body: bytes) -> EventId:
    """Read which event a client has got, with all before it. Raises Refused."""
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Refused(Refusal(400, "The body is not JSON")) from None
    id_ = said.get("id") if isinstance(said, dict) else None
    return _event(id_ if isinstance(id_, str) else "", "id")


async def find(pulls: Pulls, feeds: Feeds, id_: str, who: Identity) -> Pull:
    """Return the subscription where it is the caller's. Raises Refused."""
    await _here(feeds, id_)
    pull = await pulls.find(id_, who.tenant, feeds)
    if pull is None:
        raise Refused(NOT_FOUND if feeds.claim.has(id_) else NOT_HERE)
    if not who.may_pull(pull.feed.subscription.source):
        raise Refused(NOT_FOR_THIS)
    return pull


async def find_feed(feeds: Feeds, id_: str, who: Identity) -> Feed:
    """Return the feed of a subscription of any callback, where it is the caller's."""
    await _here(feeds, id_)
    if id_ not in feeds.feeds:
        await feeds.looked()
    feed = feeds.feeds.get(id_)
    if feed is None or feed.tenant != who.tenant:
        raise Refused(NOT_FOUND if feeds.claim.has(id_) else NOT_HERE)
    if not who.may_pull(feed.subscription.source):
        raise Refused(NOT_FOR_THIS)
    return feed


async def _here(feeds: Feeds, id_: str) -> None:
    """Raises Refused at once where it is known that another process has it."""
    if id_ not in feeds.feeds and not feeds.claim.has(id_):
        if not feeds.claim.fence:  # nobody has looked yet
            await feeds.looked()
        if feeds.claim.holder(id_) is not None:
            raise Refused(NOT_HERE)


def check_rest(pull: Pull) -> None:
    """Raises Refused while the tenant's quota of deliveries is used up."""
    refusal = pull.feed.refusal()
    if refusal is not None:
        raise Refused(refusal)


def acknowledge(pull: Pull, last: EventId) -> None:
    """Move the cursor of a subscription. Raises Refused."""
    try:
        pull.acknowledge(last)
    except OtherLog:
        raise Refused(OF_ANOTHER_LOG) from None
    except UnknownEvent:
        raise Refused(UNKNOWN) from None


def go_on(pull: Pull, last: EventId) -> bool:
    """Move the cursor of a subscription to where its client stands. Raises Refused.

    False where nobody can say any more where that is, as the platform was restored meanwhile:
    then it goes on from where the subscription stands, and some of it comes again.
    """
    try:
        pull.acknowledge(last)
    except OtherLog:
        return False
    except UnknownEvent:
        raise Refused(UNKNOWN) from None
    return True


async def settled(pull: Pull) -> None:
    """Return when what was acknowledged is stored. Raises Refused."""
    try:
        async with asyncio.timeout(STORE_SECONDS):
            await pull.feed.settled()
    except TimeoutError:
        raise Refused(NO_ANSWER) from None


async def collect(pull: Pull, wanted: Wanted, reader: Reader, turns: Turns) -> bytes:
    """Return the next updates as soon as there are any. Raises Refused."""
    found: list[bytes] = []
    cursor, size = wanted.cursor, 0
    try:
        async with asyncio.timeout(wanted.wait or None):
            while (
                len(found) < wanted.limit
                and size < MOST_BYTES
                and (pull.feed.waiting or (wanted.wait and not found))
            ):
                delivery = await pull.take()
                if len(found) % COLLECTED_A_TURN == 0:
                    await turns.take(pull.feed.tenant)
                cursor = event_id(delivery, pull.feed.log)
                found.append(described(delivery, cursor))
                size += len(found[-1])
    except TimeoutError:
        pass
    except FeedEnded:
        if not found:
            check_rest(pull)
    except asyncio.CancelledError:
        raise Refused(why_ended(reader.why())) from None
    place = b"null" if cursor is None else b'"%s"' % str(cursor).encode()
    return b'{"updates":[%s],"cursor":%s}' % (b",".join(found), place)


def position(feeds: Feeds, feed: Feed) -> bytes:
    """Return how far a subscription has been acknowledged, and what lies before it."""
    stored = feed.place.stored()
    history = [
        {"serviceObject": stream.service_object, "stream": stream.stream, "after": after}
        for stream, after in stored.history.items()
    ]
    return orjson.dumps(
        {
            "id": feed.subscription.id,
            "live": feed.is_live,
            "lag": feed.place.lag(feeds.fanout.cursor.next_offsets()),
            "offsets": stored.offsets,
            "history": history,
        },
        option=orjson.OPT_NON_STR_KEYS,
    )


def why_ended(ending: Ending) -> Refusal:
    """Return what a request is told that was interrupted."""
    if ending is Ending.STOPPING:
        return Refusal(503, ending.value, 1)
    return Refusal(403 if ending is Ending.REVOKED else 409, ending.value)


def _number(query: dict[str, list[str]], name: str, usual: int, least: int, most: int) -> int:
    number = whole(query.get(name, [str(usual)])[-1], least, most)
    if number is None:
        raise Refused(Refusal(400, f"{name} has to be a whole number from {least} to {most}"))
    return number


def _event(text: str, name: str) -> EventId:
    last = read_event_id(text)
    if last is None:
        raise Refused(Refusal(400, f"{name} has to be the id of an event that came from here"))
    return last
