"""The edge of one process: whose turn it is, how long anything may take, how much is held."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Hashable, Iterator
from email.utils import formatdate
from functools import partial
from typing import Any

from api.edge.calls import Answer, Application, NotStoredYet, Request, Sent
from api.edge.client import Client
from api.edge.deadlines import Deadlines
from api.edge.pools import Budget, Busy, Job, Pool
from api.edge.threads import Lane, Threads
from api.edge.turning_away import TurningAway
from api.edge.waiter import Waiter
from api.http.metrics import HttpMetrics
from api.http.refusals import refusal, status_line
from ingest.progress import Awaited, Progress
from servioticy.domain.console import is_below
from servioticy.domain.known_tokens import KnownTokens, share_of, stranger
from servioticy.domain.quotas import Exceeded
from servioticy.domain.tokens import read_token
from servioticy.doors.porch import Porch
from servioticy.http_heads import Head
from servioticy.metrics import Registry
from servioticy.settings import Settings, changed

log = logging.getLogger("api")

SHARE_OF_BYTES = 0.25
"""What one caller may hold of the bytes."""
READ_BYTES = 262_144
"""Most read from a connection at once."""
HALF_BODY_SECONDS = 5.0
"""So long a body may take, or an answer wait for its reader, where nobody needs the room."""

LONG_THREADS = 4
"""For searches, aggregates and exports: they compute, and each that does slows updates down."""
LARGE_THREADS = 4
"""For changes with large bodies, one of a tenant at a time: several that are read at once have the
loop wait for each of them whenever it goes on, and their code is looked at one by one anyway."""

CLOSING_SECONDS = 2.0
SWEEP_SECONDS = 0.25
MOST_CHARGED_SECONDS = 0.2
"""For one request of a stranger: the porch rests a second then, which others who come wait for."""
PAUSE_SECONDS = 0.1
"""Who asks for too much waits so long for the answer: one connection cannot ask for ever more."""


class Edge:
    """What the connections of a process share. Everything here happens in the event loop."""

    def __init__(
        self,
        application: Application,
        progress: Progress,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        registry: Registry | None = None,
    ) -> None:
        self.metrics = HttpMetrics(registry or Registry())
        self._application = application
        self._loop = loop
        self._waiter = Waiter(progress, settings.requests.read_wait_seconds, loop)
        self._queue_seconds = settings.api.queue_seconds
        self._turning_away = TurningAway(application.quotas, settings.api.queue_of_one)
        self._most_connections = settings.api.connections
        self._threads: list[Threads] = []
        of_claims = changed(settings, api_queue=settings.api.claim_queue)
        one_each = changed(settings, api_share=1 / LARGE_THREADS)
        self._pools = {
            "updates": self._lane("updates", settings.api.update_threads, settings),
            "batches": self._pool("batches", settings.api.batch_threads, settings),
            "reads": self._pool("reads", settings.api.read_threads, settings),
            "long": self._pool("long", LONG_THREADS, settings),
            "changes": self._pool("changes", settings.api.change_threads, settings),
            "large": self._pool("large", LARGE_THREADS, one_each),
            "claims": self._pool("claims", settings.api.claim_threads, of_claims),
        }
        self._date = (0, "")
        self._tokens = KnownTokens(loop.time)
        self._waiting_reads = Budget(settings.api.waiting_reads, settings.api.waiting_reads_of_one)
        self._connections: set[Client] = set()
        self.largest_body = settings.requests.max_body_bytes
        self.buffer = memoryview(bytearray(READ_BYTES))
        """Where each connection's bytes are read to, and taken out at once."""
        self.budget = Budget(
            settings.api.held_bytes, int(settings.api.held_bytes * SHARE_OF_BYTES)
        )
        self.idle = self._deadlines(settings.api.idle_seconds)
        self.bodies = self._deadlines(settings.api.body_seconds)
        self.sending = self._deadlines(settings.api.send_seconds)
        self.closing = self._deadlines(CLOSING_SECONDS)
        self.paging = self._deadlines(math.inf)
        """A page of an answer is awaited: in its turn, which comes."""
        self.porch = Porch(loop, time.thread_time)
        self.stopping = False
        loop.call_later(SWEEP_SECONDS, self._sweep)

    def _deadlines(self, seconds: float) -> Deadlines[Client]:
        return Deadlines(seconds, self._loop.time)

    def _pool(self, name: str, count: int, settings: Settings) -> Pool:
        return self._started([Threads(name, count, self._loop)], count, settings)

    def _lane(self, name: str, count: int, settings: Settings) -> Pool:
        """Return a pool whose jobs are done together where that is possible."""
        together = self._application.together
        if together is None:
            return self._pool(name, count, settings)
        others = Threads(name, count, self._loop)
        lane = Lane(f"{name}-lane", self._loop, together, others.start)
        return self._started([lane, others], count, settings)

    def _started(self, threads: list[Threads], count: int, settings: Settings) -> Pool:
        """Return a pool of so many at work, which the first of the threads get to do."""
        own = settings.api
        pool = Pool(threads[0].start, count, own.share, own.queue, own.queue_of_one)
        pool.longest_of = self._turning_away.longest_of
        for each in threads:
            each.finished = pool.finished
            each.is_awaited = pool.is_awaited
        self._threads += threads
        return pool

    def collect(self) -> None:
        """Take note of what the threads have done since."""
        for each in self._threads:
            each.collect()

    # Connections -------------------------------------------------------------------

    def connected(self, client: Client) -> None:
        """Let it in; where there are too many, whoever keeps us waiting longest makes room."""
        if len(self._connections) >= self._most_connections and not self.make_room():
            client.abort()
            return
        self._connections.add(client)
        self.idle.begin(client)

    def make_room(self) -> bool:
        """Close whoever keeps us waiting longest; False: nobody does."""
        found = self._keeps_waiting()
        if found is None:
            return False
        self.disconnected(found)
        found.abort()
        return True

    def _keeps_waiting(self) -> Client | None:
        """Half a body is less worth than a device that has nothing to say just now."""
        return (
            self.closing.oldest()
            or self.bodies.oldest(HALF_BODY_SECONDS)
            or self.sending.oldest(HALF_BODY_SECONDS)
            or self.idle.oldest()
            or self.bodies.oldest()
            or self.sending.oldest()
            or self.paging.oldest()
        )

    def disconnected(self, client: Client) -> None:
        """It is gone."""
        self._connections.discard(client)
        self.leave(client)

    def leave(self, client: Client) -> None:
        """It is in none of the states that have a deadline."""
        for each in (self.idle, self.bodies, self.sending, self.closing, self.paging):
            each.end(client)

    async def stop(self, seconds: float) -> None:
        """Let what is under way be answered, but no longer than that, and close all."""
        self.stopping = True
        until = self._loop.time() + seconds
        while self._loop.time() < until and any(c.is_under_way() for c in self._connections):
            self.collect()
            await asyncio.sleep(0.02)
        for each in list(self._connections):
            each.abort()
        for threads in self._threads:
            threads.stop()
        self._waiter.stop()

    def _sweep(self) -> None:
        self._loop.call_later(SWEEP_SECONDS, self._sweep)
        self.collect()
        for client in (*self.idle.late(), *self.closing.late()):
            client.abort()
        for client in self.bodies.late():
            client.body_is_late()
        for client in self.sending.late():
            client.sending_is_late()
        before = self._loop.time() - self._queue_seconds
        for pool in self._pools.values():
            for job in pool.expired(before):
                job.done(Busy(503))

    # Requests ----------------------------------------------------------------------

    def who(self, head: Head, remote: str) -> Hashable:
        """Return whose share a request takes, before it is known whose it is."""
        if head.path == "/private/health":
            return ("health", remote)
        return self.share(_token(head), remote)

    def share(self, token: str, remote: str) -> Hashable:
        """Return whose share a request with this token takes."""
        return self._tokens.share(token, remote)

    def stranger(self, remote: str) -> Hashable:
        """Return whose share takes what comes from there and is no whole head yet."""
        return stranger(remote)

    def is_known(self, who: Hashable) -> bool:
        """Tell whether it is the share of a tenant, by a token that was good."""
        return isinstance(who, tuple) and who[0] in ("tenant", "unconfirmed")

    def submit(self, client: Client, request: Request) -> None:
        """Have it worked on in its turn. Raises Busy.

        An update, or a read, of who has used up a quota of them is refused here, without a thread.
        """
        wanted = request.kind
        self._turning_away.check(client.who, wanted, request.head.path)
        try:
            self._submit(client, request, None)
        except Busy as busy:
            raise self._turning_away.told(client.who, busy) from None

    def wait(self, client: Client, request: Request, not_yet: NotStoredYet) -> None:
        """Have it worked on again, once what it waits for is stored. Raises Busy."""
        who = client.who if not_yet.caller is None else share_of(not_yet.caller)
        self._waiting_reads.take(who, 1)
        client.who = who
        left = set(not_yet.awaited)
        merged: dict[str, str] = {}

        def stored(awaited: Awaited, headers: dict[str, str]) -> None:
            if awaited not in left:
                return  # answered twice, every later answer would be another request's
            left.remove(awaited)
            merged.update(headers)
            if left:
                return
            self._waiting_reads.give(who, 1)
            if not client.gone:
                self._submit(client, request, merged)

        for each in not_yet.awaited:
            self._waiter.wait(each, partial(stored, each))

    def make_page(self, client: Client, pages: Iterator[bytes], pool: str) -> None:
        """Have the next page of an answer made.

        It waits for its turn as long as it takes: the status is sent, and a broken answer is
        all that could be said. Where connections run out the longest waiting one goes.
        """

        def made(result: Any) -> None:
            self.paging.end(client)
            client.page_made(result)

        self.paging.begin(client)
        work = partial(next, pages, None)
        job = Job(client.who, work, made, client.is_there, math.inf, begun=True)
        self._pools[pool].submit(job)
        self._loop.call_soon(self.collect)

    def _submit(self, client: Client, request: Request, waited: dict[str, str] | None) -> None:
        is_strangers, taken = not self.is_known(client.who), 0.0

        def work() -> Any:
            nonlocal taken
            began = time.thread_time()
            try:
                return client.reply(request.head, self._application.call(request, waited))
            finally:
                taken = time.thread_time() - began

        def done(result: Any) -> None:
            self._note(request.head, result)
            if is_strangers and not _is_named(result):
                # It has taken that from the loop, too: one thread computes at a time.
                self.porch.charge(min(taken, MOST_CHARGED_SECONDS))
            client.answered(request, result)

        now, begun = self._loop.time(), waited is not None
        reply = partial(client.reply, request.head)
        job = Job(client.who, work, done, client.is_there, now, begun, request, reply)
        pool = self._pools[request.kind]
        pool.submit(job)
        client.begins()
        if pool.is_awaited():
            self._loop.call_soon(self.collect)

    def _note(self, head: Head, result: Any) -> None:
        """What the application has found out about the token."""
        found = result.answer if isinstance(result, Sent) else result
        if not isinstance(found, Answer | NotStoredYet):
            return
        if found.caller is not None:
            self._tokens.good(_token(head), found.caller)
        elif isinstance(found, Answer) and found.status.startswith("403"):
            self._tokens.refused(_token(head))

    def date(self) -> str:
        """Return the header Date, made once a second."""
        now = int(time.time())
        if self._date[0] != now:
            self._date = (now, formatdate(now, usegmt=True))
        return self._date[1]

    def refusal(self, status: int, message: str = "", exceeded: Exceeded | None = None) -> Answer:
        """Return the answer to a request that nobody works on."""
        headers, body = refusal(status, message, exceeded)
        return Answer(status_line(status), headers, body)


def _is_named(result: Any) -> bool:
    """Tell whether the application has found out whose request it was."""
    return isinstance(result, Answer | NotStoredYet | Sent) and result.caller is not None


def _token(head: Head) -> str:
    """Return what the request says who asks by: below the console a cookie."""
    if is_below(head.path):
        return head.headers.get("HTTP_COOKIE", "")
    return read_token(head.headers.get("HTTP_AUTHORIZATION", ""))
