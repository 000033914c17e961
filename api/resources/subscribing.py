"""Making a subscription, whatever it is about: what is stored of it, and where it begins."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from flask import Response, request

from api.documents.callback_addresses import address_warnings
from api.http import authentication
from api.http.answers import answer
from api.http.bodies import json_object
from api.services import Services
from servioticy.domain.documents.callbacks import (
    DURABLE,
    FORMATS,
    check_subscription,
    expires_at,
    history_after,
    offsets_from,
)
from servioticy.domain.documents.codes import NO_CHOICE, TOO_MUCH
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.model import StreamRef
from servioticy.domain.quotas import DELIVERIES
from servioticy.domain.tokens import digest
from servioticy.domain.webhook_secrets import exchanged, new_secret
from servioticy.ports.cursors import Source, StoredCursor, write_cursor
from servioticy.refusals import Refused, within

MOST_HISTORIES = 1_000
"""Streams whose history a subscription may begin with."""
KINDS_OF_MANY = tuple(sorted(DURABLE))


class Room(NamedTuple):
    """How many subscriptions a tenant may have there, and what it is told if it has them."""

    most: int
    full: str


class Subscribing:
    """Makes subscriptions for the present request."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stored = services.ports.statements("subscriptions")
        self._sources = services.ports.sources

    def make(
        self, source: Source, stream_id: int | None, partition: int | None, room: Room
    ) -> Response:
        """Store what the request wants, and answer.

        `partition` is the only one in which something comes; None: it may be any.
        """
        caller, wanted = authentication.authenticated(), json_object()
        callback = check_subscription(wanted)
        if source.stream is None and callback not in DURABLE:
            reason = f"The callback has to be one of {', '.join(KINDS_OF_MANY)} here"
            raise WHOLE.at("callback").bad(reason, NO_CHOICE)
        within(self._services.quotas.metered(caller.caller, DELIVERIES))
        destination = _destination(wanted, callback, caller.token)
        id_, now = uuid.uuid4().hex, self._services.now()
        document = _document(id_, now, source, callback, destination, wanted)
        told: dict[str, Any] = {"id": id_, "createdAt": now}
        cursor = None
        if callback == "http":
            secret = wanted.get("secret") or new_secret()
            told["secret"] = secret  # now, and never again
            document["format"] = wanted.get("format", FORMATS[0])
            document["secrets"] = exchanged([], secret, now)
            told |= address_warnings(destination, self._services.settings)
        if callback in DURABLE:
            cursor = write_cursor(self._beginning(source, partition, wanted))
        values = {
            "id": id_,
            "tenant": caller.caller,
            "stream": stream_id,
            "service_object": None if stream_id is not None else source.service_object,
            "group": source.group,
            "document": orjson.dumps(document).decode(),
            "callback": callback,
            "destination": destination,
            "now": now,
            "most": room.most,
            "cursor": cursor,
            "expires_at": expires_at(document),
        }
        with self._services.quotas.adding(caller.caller, subscriptions=1) as exceeded:
            within(exceeded)
            is_full, is_new = self._stored.rows("subscribe", **values)[0]
        if not is_new:
            raise Refused(room.full if is_full else "Duplicated pubsub subscription")
        place = f"{self._services.base}{quote(request.path.rstrip('/'))}/{id_}"
        return answer(told, 201, {"Location": place})

    def _beginning(
        self, source: Source, partition: int | None, wanted: dict[str, Any]
    ) -> StoredCursor:
        """Return where it begins: with the history, somewhere in the topic, or now."""
        newest = None
        if source.stream is None:
            # First: what is made while we look comes with its history.
            newest = self._sources.newest_stream()
        after, offsets = history_after(wanted), offsets_from(wanted)
        if after is not None:
            history = dict.fromkeys(self._streams(source), after)
            return StoredCursor(history=history, newest=newest)
        if offsets is not None:
            self._check_offsets(offsets)
        log = self._services.ports.log
        partitions = range(log.partitions()) if partition is None else (partition,)
        since = {each: log.end_offset(each) for each in partitions if each not in (offsets or {})}
        return StoredCursor(offsets or {}, since=since, newest=newest)

    def _streams(self, source: Source) -> list[StreamRef]:
        """Return the streams of which it gets the history. Raises BadDocument."""
        if source.stream is not None:
            return [StreamRef(source.service_object, source.stream)]
        caller = authentication.authenticated().caller
        streams = self._sources.about(caller, source, MOST_HISTORIES + 1).streams
        if len(streams) > MOST_HISTORIES:
            reason = f"The history of at most {MOST_HISTORIES} streams can come first"
            raise WHOLE.at("from").bad(reason, TOO_MUCH)
        return list(streams)

    def _check_offsets(self, offsets: Mapping[int, int]) -> None:
        """Raises BadDocument where the topic does not have these; raises Unavailable."""
        ends = self._services.ports.emitted_ends()
        for partition, offset in offsets.items():
            if not 0 <= offset <= ends.get(partition, -1):
                place = WHOLE.at("from", "offsets", str(partition))
                raise place.bad("There is no such place in what was emitted", NO_CHOICE)


def _document(
    id_: str, now: int, source: Source, callback: str, destination: str, wanted: dict[str, Any]
) -> dict[str, Any]:
    named = {"stream": source.stream, "group": source.group}
    return {
        "id": id_,
        "createdAt": now,
        "updatedAt": now,
        "callback": callback,
        "source": source.service_object,
        "destination": destination,
        **{name: value for name, value in named.items() if value is not None},
        "customFields": wanted.get("customFields", {}),
        "delay": wanted.get("delay", 0),
        "expire": wanted.get("expire", 0),
    }


def _destination(wanted: dict[str, Any], callback: str, token: str) -> str:
    """Return where to deliver. Without one, pubsub delivers under the caller's token.

    The token itself is stored nowhere; its SHA-256 stands for it.
    """
    destination: str | None = wanted.get("destination")
    if destination is None:
        destination = token if callback == "pubsub" else ""
    if destination == token:
        return digest(token).hex()
    return destination
