"""What one client publishes, worked on in its order: updates to the API, requests to the bridge.

Updates that wait go together as one batch. What cannot be taken at the moment is tried again
while its client is connected, and is only then acknowledged; without a wish for that (quality
of service 0) it is tried once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import quote, unquote

import msgspec
import orjson

from broker.client import Client, Publication
from broker.errors import BadTopic
from broker.places import Places
from broker.published import MAX_BATCH_BYTES, Batch, Published, Update, named
from broker.rest_requests import JSON, TEXT, Request
from broker.retries import WITH_BATCH, WITH_ONE, Patience, Retries
from broker.topics import Levels, read_topic, stream_of
from delivery.admission.refusals import Refusal, Refused
from delivery.admission.requests import Identity
from delivery.rest_api import RETRY_STATUSES, ApiResponse, Asks
from servioticy.domain.message_topics import ACTUATIONS, CLAIMS, FROM, TO
from servioticy.domain.model import StreamRef

MAX_BATCH = 500
MAX_WAITING = 1_000
MAX_WAITING_BYTES = 1024 * 1024
ACCEPTED = ApiResponse(202)
NOBODY = Refusal(404, "Nobody takes messages of this topic")
LINES = "application/x-ndjson"

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
        api: Asks,
        reply: Reply,
        identify: Identify,
        claim: Claim | None = None,
        places: Places | None = None,
    ) -> None:
        """Without `claim`, nobody claims by such messages; `places` are those at the API."""
        self._places = places or Places()
        self._client = client
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
        while not self._waiting.empty() and len(found) < MAX_BATCH and size < MAX_BATCH_BYTES:
            following = self._waiting.get_nowait()
            if following is None:
                return found, True
            found.append(following)
            size += len(following.payload)
        return found, False

    async def _work(self, messages: Sequence[Published]) -> None:
        batch = Batch()
        for each in messages:
            update = self._in_batch(each)
            if update is None or not batch.takes(update, of_one_stream=self._is_for_one):
                await self._send(batch)
                batch = Batch()
            if update is None:
                self._answer(each, await self._one(each))
            else:
                batch.add(update)
        await self._send(batch)
        self._note(-sum(len(each.payload) for each in messages))

    @property
    def _is_for_one(self) -> bool:
        """Whether the client's token is for one Service Object: it sends to a stream at a time."""
        return self._client.known.scope.service_object is not None

    def _in_batch(self, message: Published) -> Update | None:
        """Return an update that can go with others."""
        try:
            stream = stream_of(read_topic(message.topic))
            # It stands on a line of its own among others, as it is.
            msgspec.json.decode(message.payload, type=msgspec.Raw)
        except (BadTopic, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if stream is None or self._client.identity is None or b"\n" in message.payload:
            return None
        is_named = not self._is_for_one
        line = named(stream, message.payload) if is_named else message.payload
        return Update(stream, message, line)

    async def _send(self, batch: Batch) -> None:
        """Send updates as a batch, and tell what became of each."""
        if len(batch.updates) < 2:
            await self._one_by_one(batch)
            return
        token, first = self._client.known.token, batch.updates[0].stream
        path = f"{_path(first)}/updates" if self._is_for_one else "/updates"
        answer = await self._ask(
            "POST", path, token, batch.body(), LINES, batch.is_promise, WITH_BATCH
        )
        if answer.status == 207:
            refused = {each["index"]: each for each in orjson.loads(answer.body)["items"]}
        elif answer.status == 202:
            refused = {}
        elif answer.status in RETRY_STATUSES and not batch.is_promise:
            for each in batch.updates:
                self._answer(each.message, answer)
            return
        else:
            await self._one_by_one(batch)
            return
        for place, each in enumerate(batch.updates):
            told = refused.get(place)
            found = ACCEPTED if told is None else ApiResponse(told["status"], orjson.dumps(told))
            self._answer(each.message, found)

    async def _one_by_one(self, batch: Batch) -> None:
        """Ask for each alone: what the API refuses of one is no fault of the others.

        Where it takes nothing at the moment, and the client is gone, the rest has to come again.
        """
        given_up: ApiResponse | None = None
        for stream, message, _ in batch.updates:
            answer = given_up or await self._update(stream, message.payload, message.is_promise)
            self._answer(message, answer)
            if answer.status in RETRY_STATUSES and not self._client.is_open:
                given_up = answer

    async def _one(self, message: Published) -> ApiResponse:
        try:
            levels = read_topic(message.topic)
            stream = stream_of(levels)
            if stream is not None:
                return await self._update(stream, message.payload, message.is_promise)
            if len(levels) == 2 and levels[1] == FROM:
                return await self._request(levels, message)
            if len(levels) == 3 and levels[1] == ACTUATIONS:
                return await self._report(levels, message)
            if levels == (CLAIMS,) and self._claim is not None:
                await self._claim(self._client, message.payload)
                return ACCEPTED
        except BadTopic as error:
            return _answer(Refusal(400, str(error)))
        except Refused as error:
            return _answer(error.refusal)
        return _answer(NOBODY)

    async def _update(self, stream: StreamRef, payload: bytes, promise: bool) -> ApiResponse:
        token = self._client.known.token
        return await self._ask("PUT", _path(stream), token, payload, JSON, promise)

    async def _report(self, levels: Levels, message: Published) -> ApiResponse:
        """Tell what a device says of an actuation. Raises Refused."""
        path = "/" + "/".join(quote(unquote(each), safe="") for each in levels)
        token, promise = self._client.known.token, message.is_promise
        return await self._ask("PUT", path, token, message.payload, TEXT, promise)

    async def _request(self, levels: Levels, message: Published) -> ApiResponse:
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
        retries = Retries(self._client, is_promise=promise, patience=WITH_ONE)
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
        patience: Patience = WITH_ONE,
        gone: asyncio.Event | None = None,
    ) -> ApiResponse:
        """`gone`: with whom the question is over, as nobody is there for the answer."""
        retries = Retries(self._client, is_promise=promise, patience=patience)
        while True:
            async with self._places.of(self._client.tenant, gone) as has_place:
                if not has_place:
                    return ApiResponse(0)
                answer = await self._api.ask(method, path, token, body, kind)
            if not await retries.again(answer.status, answer.retry_seconds):
                return answer

    def _answer(self, message: Published, answer: ApiResponse) -> None:
        self.refused += not 200 <= answer.status < 300
        message.answered(answer)


def _answer(refusal: Refusal) -> ApiResponse:
    return ApiResponse(refusal.status, refusal.body())


def _path(stream: StreamRef) -> str:
    return f"/{quote(stream.service_object, safe='')}/streams/{quote(stream.stream, safe='')}"
