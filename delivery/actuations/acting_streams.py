"""Composite streams that ask for actions when they emit: each output asks once.

Such a stream has a feed, as a durable subscription has: a cursor into the topic of what is
emitted, which moves when the actuations are stored. What comes twice, after a crash or because
it was computed again, asks under the same id, and that is made once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import orjson
from cachetools import LRUCache

from delivery.actuations.condition_checker import ConditionChecker
from delivery.actuations.together import Ask
from delivery.admission.spending import Spending
from delivery.evaluating.budget import Budget, TooManyReferences, TooMuch
from delivery.evaluating.evaluator import Evaluator
from delivery.evaluating.templates import filled_json, has_reference
from delivery.feeds.deliveries import Delivery
from delivery.feeds.feed import Feed
from delivery.repeating import patiently
from sandbox import argument_names
from servioticy.domain.actuations import MAX_PARAMETERS
from servioticy.domain.documents.actions import AskedAction, actions_of
from servioticy.domain.documents.errors import BadDocument
from servioticy.domain.model import ServiceObjectKey, StreamRef
from servioticy.ports.actuations import ActuationRequest, Actuations
from servioticy.ports.service_objects import ServiceObjects, VersionKey

ROOM = 16 * 1024 * 1024
"""About how many bytes of memory the remembered actions of versions of streams may take."""

EMPTY = 500
MAX_OF_OUTPUT = 4 * MAX_PARAMETERS
"""Characters that the parameters of all actuations may have that one output asks for."""

T = TypeVar("T")

log = logging.getLogger("servioticy.delivery")


class ActingStreams:
    """The receiver of the feeds of such streams."""

    def __init__(
        self,
        actuations: Actuations,
        documents: ServiceObjects,
        conditions: ConditionChecker,
        spending: Spending,
        evaluator: Evaluator,
        ask: Ask,
        ask_sandbox: Ask,
        clock: Callable[[], float],
    ) -> None:
        """`spending` knows whose conditions rest, `ask` runs what waits for the store,
        `ask_sandbox` what waits for the sandbox.
        """
        self.asked = 0
        """Actuations that outputs have asked for."""
        self.faults = 0
        """Conditions of which nothing could be told but that their code is to blame."""
        self._actuations = actuations
        self._documents = documents
        self._conditions = conditions
        self._spending = spending
        self._evaluator = evaluator
        self._ask = ask
        self._ask_sandbox = ask_sandbox
        self._clock = clock
        self._known: LRUCache[tuple[StreamRef, int], Understood] = LRUCache(ROOM, _size)

    async def receive(self, feed: Feed) -> None:
        """Ask for what each output asks for, in order, until cancelled."""
        while True:
            delivery = await feed.take_patiently()
            try:
                await self._act(feed.tenant, delivery)
            except Exception:  # a bug of ours: what follows is not to wait for it
                log.exception("output_not_acted_on", extra={"stream": str(delivery.stream)})
            feed.done(delivery)

    async def _act(self, tenant: int, delivery: Delivery) -> None:
        left = MAX_OF_OUTPUT
        for number, action in enumerate(await self._actions(tenant, delivery)):
            # Who has no processor time left learns of what may have been to be done.
            refusal = self._spending.refusal(tenant) if action.condition else None
            if refusal is not None or await self._holds(tenant, action, delivery):
                request = await self._request(tenant, number, action, delivery, refusal, left)
                left -= len(request.parameters)
                key = ServiceObjectKey(tenant, action.service_object)
                store = partial(self._actuations.ask, key, request, int(self._clock() * 1000))
                if await patiently(partial(self._ask, tenant, store), "actions"):
                    self.asked += 1
                else:
                    self._note("action_unknown", action, delivery)

    async def _actions(self, tenant: int, delivery: Delivery) -> Sequence[AskedAction]:
        """Return what the version that made the output asks for."""
        key = delivery.stream, delivery.version
        found = self._known.get(key)
        if found is None:
            version = VersionKey(tenant, delivery.stream.service_object, delivery.version)
            read = partial(self._documents.document, version)
            document = await patiently(partial(self._ask, tenant, read), "actions")
            understand = partial(_understood, document, delivery.stream)
            apart = partial(self._evaluator.apart, tenant, understand)
            found = self._known[key] = await patiently(apart, "actions")
            if found.fault is not None:
                facts = {"stream": str(delivery.stream), "reason": found.fault[:500]}
                log.error("actions_not_understood", extra=facts)
        return found.actions

    async def _request(
        self,
        tenant: int,
        number: int,
        action: AskedAction,
        delivery: Delivery,
        refusal: str | None,
        left: int,
    ) -> ActuationRequest:
        """Return the actuation that an output asks for, under an id that follows from both.

        So many characters its parameters may have, of what all of the output's may have.
        """
        facts = (*delivery.stream, delivery.update.timestamp, number, action.action)
        name = orjson.dumps([*facts, action.service_object])
        id_ = blake2b(name, digest_size=16).hexdigest()
        if refusal is not None:
            return ActuationRequest(id_, action.action, "", refusal)
        fill = partial(_parameters, action.parameters, delivery.update.document, left)
        do = self._evaluator.apart if has_reference(action.parameters) else self._evaluator.aside
        text, refusal = await patiently(partial(do, tenant, fill), "actions")
        return ActuationRequest(id_, action.action, text, refusal)

    async def _holds(self, tenant: int, action: AskedAction, delivery: Delivery) -> bool:
        if action.condition is None:
            return True
        look = partial(
            self._conditions.look,
            tenant,
            delivery.stream,
            delivery.version,
            action.condition,
            delivery.update,
        )
        verdict = await patiently(partial(self._ask_sandbox, tenant, look), "actions")
        if verdict.is_fault:
            self.faults += 1
            self._note("condition_failed", action, delivery, verdict=str(verdict))
        return verdict.holds

    @staticmethod
    def _note(event: str, action: AskedAction, delivery: Delivery, **more: str) -> None:
        facts = {"stream": str(delivery.stream), "timestamp": delivery.update.timestamp}
        log.warning(event, extra=facts | {"action": action.action} | more)


class Understood(NamedTuple):
    """What a version of a stream asks for."""

    actions: Sequence[AskedAction]
    size: int
    """About how many bytes they take, code and parameters included."""
    fault: str | None = None
    """Why it is not known what it asks for, where that is so."""


def _understood(document: bytes | None, stream: StreamRef) -> Understood:
    """Return what a version of a stream asks for; nothing where that is not to be read."""
    content: Mapping[str, Any] = {} if document is None else orjson.loads(document)
    if stream.stream not in content.get("streams", {}):
        return Understood((), EMPTY)
    try:
        actions = actions_of(dict(content), stream, argument_names)
    except BadDocument as error:
        return Understood((), EMPTY, error.reason)
    each = (10_000 + 5 * len(orjson.dumps(action.parameters)) for action in actions)
    return Understood(actions, EMPTY + sum(each))


def _size(understood: Understood) -> int:
    return understood.size


def _parameters(parameters: Any, document: bytes, left: int) -> tuple[str, str | None]:
    """Return the parameters filled from an output, and why that cannot be."""
    most = min(MAX_PARAMETERS, left)
    too_long = f"more than {MAX_PARAMETERS} bytes of parameters"
    if left < MAX_PARAMETERS:
        too_long = f"more than {MAX_OF_OUTPUT} bytes of parameters of one output"
    try:
        # It may hold half a surrogate pair, with which nothing can be made of it.
        update = orjson.loads(document) if has_reference(parameters) else None
        found = filled_json(parameters, update, Budget(most))
        text = found if isinstance(found, str) else orjson.dumps(found).decode()
        if len(text.encode()) > most:
            return "", too_long
    except TooManyReferences as error:
        return "", str(error)
    except TooMuch:
        return "", too_long
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, UnicodeEncodeError) as error:
        return "", str(error)
    return text, None
