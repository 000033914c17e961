"""Actuations in memory, by the rules of the domain: the twin of those in Postgres."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from delivery.actuations.ways import Taken
from delivery.rest_api import ApiResponse
from servioticy.domain.actuations import WAITING, State, before, before_others, said, seen
from servioticy.domain.model import ServiceObjectKey
from servioticy.errors import Unavailable
from servioticy.ports.actuations import Actuation, ActuationRequest, CalledBack, News


@dataclass
class Kept:
    key: ServiceObjectKey
    actuation: Actuation
    number: int
    state: State = State.QUEUED
    times: dict[str, int] = field(default_factory=dict)


def _actuation(request: ActuationRequest, now_ms: int) -> Actuation:
    return Actuation(request.id, request.parameters, b"{}", now_ms, now_ms + 1_000_000)


class MemoryActuations:
    """What was submitted, in order. While it `is_away`, every call raises Unavailable."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}
        self.is_away = False

    def submit(self, key: ServiceObjectKey, id_: str, now_ms: int, timeout_ms: int) -> None:
        actuation = Actuation(id_, "", b'{"name":"blink"}', now_ms, now_ms + timeout_ms)
        self.kept[id_] = Kept(key, actuation, len(self.kept), times={"queued": now_ms})

    def report(self, id_: str, status: str, now_ms: int, *, by_device: bool = True) -> None:
        """Keep what is said, as the REST API does."""
        state = said(status)
        self._move([id_], state, now_ms, before(state) if by_device else before_others(state))

    def state(self, id_: str, now_ms: int) -> State:
        kept = self.kept[id_]
        return seen(kept.state, kept.actuation.expires_ms, now_ms)

    def news(self, since: str | None, asked: Iterable[ServiceObjectKey]) -> News:
        self._check()
        new = {
            each.key
            for each in self.kept.values()
            if since is not None and each.number >= int(since) and each.state is State.QUEUED
        }
        waiting = {each.key for each in self.kept.values() if each.state in WAITING}
        return News(str(len(self.kept)), sorted(new | (waiting & set(asked))))

    def waiting(
        self, tenant: int, service_objects: Sequence[str], most: int, now_ms: int
    ) -> Mapping[str, Sequence[Actuation]]:
        self._check()
        found: dict[str, list[Actuation]] = {}
        for each in sorted(self.kept.values(), key=lambda each: each.number):
            is_asked = each.key.tenant == tenant and each.key.id in service_objects
            if is_asked and self.state(each.actuation.id, now_ms) in WAITING:
                found.setdefault(each.key.id, []).append(each.actuation)
        return {id_: each[:most] for id_, each in found.items()}

    def waiting_for(self, tenant: int, now_ms: int) -> list[ServiceObjectKey]:
        self._check()
        waiting = [
            each for each in self.kept.values() if self.state(each.actuation.id, now_ms) in WAITING
        ]
        return sorted({each.key for each in waiting if each.key.tenant == tenant})

    def calling(self, now_ms: int) -> list[ServiceObjectKey]:
        self._check()
        return sorted({each.key for each in self.kept.values() if each.state in WAITING})

    def callback(self, key: ServiceObjectKey) -> CalledBack | None:
        self._check()
        return CalledBack({"destination": "http://example.org/"}, ())

    def failed(self, key: ServiceObjectKey, id_: str, reason: str, now_ms: int) -> None:
        self._check()
        self.report(id_, f"failed: {reason}", now_ms)

    def ask(self, key: ServiceObjectKey, request: ActuationRequest, now_ms: int) -> bool:
        self._check()
        self.kept.setdefault(request.id, Kept(key, _actuation(request, now_ms), len(self.kept)))
        return True

    def moved(self, tenant: int, ids: Sequence[str], state: State, now_ms: int) -> None:
        self._check()
        own = [each for each in ids if self.kept[each].key.tenant == tenant]
        self._move(own, state, now_ms, before(state))

    def _move(self, ids: Sequence[str], state: State, now_ms: int, states: Sequence[str]) -> None:
        for each in ids:
            kept = self.kept[each]
            if kept.state.value in states and kept.actuation.expires_ms > now_ms:
                kept.state = state
                kept.times[state.value] = now_ms

    def _check(self) -> None:
        if self.is_away:
            raise Unavailable("the store is away")


class ReportingApi:
    """The API as devices use it that report over their sockets."""

    def __init__(self, store: MemoryActuations) -> None:
        self._store = store

    async def ask(
        self, method: str, path: str, token: str, body: bytes, content_type: str
    ) -> ApiResponse:
        id_ = unquote(path.split("/")[3])
        if id_ not in self._store.kept:
            return ApiResponse(404, b'{"message":"unknown"}')
        is_device = token.startswith("device-")
        now = int(time.time() * 1000)
        self._store.report(id_, body.decode(), now, by_device=is_device)
        return ApiResponse(201)


class Unsubscribed:
    """The topic of a device to which nobody subscribes."""

    def __init__(self, key: ServiceObjectKey) -> None:
        self.key = key

    def is_there(self) -> bool:
        return False

    def has_room(self) -> bool:
        return True

    def give(self, actuation: Actuation, taken: Taken) -> None:
        raise AssertionError(actuation)
