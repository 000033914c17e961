"""What one client publishes, worked on in its order: updates into the log, the rest to the API.

Updates that wait go together. What cannot be taken at the moment is tried again
while its client is connected, and is only then acknowledged; without a wish for that (quality
of service 0) it is tried once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import quote, unquote

from broker.client import NOT_LOGGED_IN, Client, Publication
from broker.errors import BadTopic
from broker.lane import Takes
from broker.outcomes import ACCEPTED, Outcome, of_refusal, of_response
from broker.places import Places
from broker.published import Published
from broker.rest_requests import TEXT, Request
from broker.retries import Retries
from broker.topics import Levels, read_topic, stream_of
from delivery.admission.refusals import Refusal, Refused
from delivery.admission.requests import Identity
from delivery.rest_api import ApiResponse, Asks
from ingest.updates import Offered, Sent
from servioticy.domain.message_topics import ACTUATIONS, CLAIMS, FROM, TO
from servioticy.domain.traces import MAKING

MAX_TOGETHER, MAX_TOGETHER_BYTES = 500, 256 * 1024
"""Messages, and bytes of them, that are worked on at once, and one."""
MAX_WAITING = 1_000
MAX_WAITING_BYTES = 1024 * 1024
NOBODY = Refusal(404, "Nobody takes messages of this topic")

log = logging.getLogger("servioticy.delivery")

Identify = Callable[[Client, str], Awaitable[Identity]]
Claim = Callable[[Client, bytes], Awaitable[None]]
Reply = Callable[[Publication], object]
"""Publishes the answer to a request."""


class Intake:
    """Takes what one client publishes."""

    def __init__(
        self,
        client: Client,
        lane: Takes,
        api: Asks,
        reply: Reply,
        identify: Identify,
        claim: Claim | None = None,
        places: Places | None = None,
    ) -> None:
        """Without `claim`, nobody claims by such messages; `places` are those at the API."""
        self._places = places or Places()
        self._client = client
        self._lane = lane
        self._api = api
        self._reply = reply
        self._identify = identify
        self._claim = claim
        self._waiting: asyncio.Queue[Published | None] = asyncio.Queue()
        self._working: asyncio.Task[None] | None = None
        self._has_room = asyncio.Event()
        self._has_room.set()
        self.refused = 0

    async def put(self, published: Published) -> None:
        """Add a message; waits while too much waits already."""
        await self.room()
        self.add(published)

    async def room(self) -> None:
        """Return when less waits than may."""
        await self._has_room.wait()

    def add(self, published: Published) -> None:
        """Add a message, whatever waits: for those who know a bound of their own."""
        self._waiting.put_nowait(published)
        self._note(len(published.payload))

    def start(self) -> None:
        """Work on what comes."""
        self._working = asyncio.create_task(self._run())

    async def finish(self) -> None:
        """Work on what waits still, and return; nothing more may come."""
        if self._working is not None:
            self._waiting.put_nowait(None)
            await self._working
            self._working = None

    async def _run(self) -> None:
        try:
            while (first := await self._waiting.get()) is not None:
                messages, is_end = self._together(first)
                await self._work(messages)
                if is_end:
                    return
        except Exception:
            log.exception("intake_failed")
            self._has_room.set()
            self._client.close("a message could not be taken; send it again")

    def _note(self, size: int) -> None:
        self._client.waiting_bytes += size
        is_full = (
            self._client.waiting_bytes > MAX_WAITING_BYTES or self._waiting.qsize() >= MAX_WAITING
        )
        (self._has_room.clear if is_full else self._has_room.set)()
        self._client.note()

    def _together(self, first: Published) -> tuple[list[Published], bool]:
        """Return the messages that wait, as many as are worked on at once; whether it ends."""
        found, size = [first], len(first.payload)
        while (
            not self._waiting.empty() and len(found) < MAX_TOGETHER and size < MAX_TOGETHER_BYTES
        ):
            following = self._waiting.get_nowait()
            if following is None:
                return found, True
            found.append(following)
            size += len(following.payload)
        return found, False

    async def _work(self, messages: Sequence[Published]) -> None:
        updates: list[tuple[Published, Offered]] = []
        for each in messages:
            update = self._update(each)
            if update is not None:
                updates.append((each, update))
                continue
            await self._updates(updates)
            updates = []
            self._answer(each, await self._one(each))
        await self._updates(updates)
        self._note(-sum(len(each.payload) for each in messages))

    def _update(self, message: Published) -> Offered | None:
        """Return the update that a message of a client is of whom we know who it is."""
        try:
            stream = stream_of(read_topic(message.topic))
        except BadTopic:
            return None
        if stream is None or self._client.identity is None:
            return None
        return Offered(stream, message.payload, MAKING.of(None))

    async def _updates(self, updates: Sequence[tuple[Published, Offered]]) -> None:
        """Have updates taken, and tell in their order what became of each."""
        is_promise = any(message.is_promise for message, _ in updates)
        retries = Retries(self._client, is_promise=is_promise)
        outcomes = [ACCEPTED] * len(updates)
        left = list(range(len(updates)))
        while left:
            sent = Sent(self._client.known.token, [updates[place][1] for place in left])
            found = await self._lane.take(self._client.tenant, sent)
            again = []
            for place, outcome in zip(left, found, strict=True):
                outcomes[place] = outcome
                if outcome.is_for_now or outcome.status >= 500:
                    again.append(place)
            # What is about the moment is waited for; what else fails is tried along with it.
            wait = min((outcomes[each] for each in again), key=_is_ours, default=ACCEPTED)
            left = again if await retries.again(wait.status, wait.retry_seconds) else []
        for (message, _), outcome in zip(updates, outcomes, strict=True):
            self._answer(message, outcome)

    async def _one(self, message: Published) -> Outcome:
        try:
            levels = read_topic(message.topic)
            if stream_of(levels) is not None:
                return of_refusal(NOT_LOGGED_IN)
            if len(levels) == 2 and levels[1] == FROM:
                return await self._request(levels, message)
            if len(levels) == 3 and levels[1] == ACTUATIONS:
                return await self._report(levels, message)
            if levels == (CLAIMS,) and self._claim is not None:
                await self._claim(self._client, message.payload)
                return ACCEPTED
        except BadTopic as error:
            return Outcome(400, str(error))
        except Refused as error:
            return of_refusal(error.refusal)
        return of_refusal(NOBODY)

    async def _report(self, levels: Levels, message: Published) -> Outcome:
        """Tell what a device says of an actuation. Raises Refused."""
        path = "/" + "/".join(quote(unquote(each), safe="") for each in levels)
        token, promise = self._client.known.token, message.is_promise
        return of_response(await self._ask("PUT", path, token, message.payload, TEXT, promise))

    async def _request(self, levels: Levels, message: Published) -> Outcome:
        """Make the request that a message holds, and publish the answer. Raises Refused."""
        identity = await self._identified(levels[0], message.is_promise)
        request = Request.read(message.payload)
        answer = await self._ask(
            request.method,
            request.path,
            request.token,
            request.body,
            request.content_type,
            message.is_promise and request.method in ("PUT", "GET", "DELETE"),
            gone=self._client.ended,
        )
        topic = (levels[0], TO)
        reply = Publication(
            identity.tenant, topic, request.reply(answer), None, only_for=identity.token
        )
        if answer.status:
            self._reply(reply)
        return ACCEPTED

    async def _identified(self, token: str, promise: bool) -> Identity:
        """Return who has the token that stands in a topic. Raises Refused."""
        retries = Retries(self._client, is_promise=promise)
        while True:
            try:
                return await self._identify(self._client, token)
            except Refused as error:
                if not await retries.again(error.refusal.status):
                    raise

    async def _ask(
        self,
        method: str,
        path: str,
        token: str,
        body: bytes,
        kind: str,
        promise: bool,
        gone: asyncio.Event | None = None,
    ) -> ApiResponse:
        """`gone`: with whom the question is over, as nobody is there for the answer."""
        retries = Retries(self._client, is_promise=promise)
        while True:
            async with self._places.of(self._client.tenant, gone) as has_place:
                if not has_place:
                    return ApiResponse(0)
                answer = await self._api.ask(method, path, token, body, kind)
            if not await retries.again(answer.status, answer.retry_seconds):
                return answer

    def _answer(self, message: Published, outcome: Outcome) -> None:
        self.refused += not outcome.is_taken
        message.answered(outcome)


def _is_ours(outcome: Outcome) -> bool:
    return not outcome.is_for_now
