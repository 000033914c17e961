"""Plain updates, taken many at once.

A PUT of an update asks Postgres one question and waits for the broker once, and so do twenty that
come together. What is odd about a request in any way, or would be refused, is left to the
application, which says so in its own words: nothing here answers anything but 202, and 429 to
whoever has used up a quota, which has to cost less than an update.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from api.edge.calls import Answer, Request
from api.http.answers import COMMON_HEADERS, JSON
from api.http.content_types import NOT_CLAIMED
from api.http.refusals import refusal, status_line
from api.http.warning_headers import warned
from api.services import Services
from servioticy.domain.access import Right, may
from servioticy.domain.documents import BadDocument, parse_update
from servioticy.domain.quotas import Exceeded
from servioticy.domain.records import UpdateRecord
from servioticy.domain.tokens import read_token
from servioticy.errors import ServioticyError
from servioticy.ports.addresses import Address, Lookup

log = logging.getLogger("api")

ROUTE = "/<service_object>/streams/<stream>"
PLAIN_TYPES = frozenset({"", JSON, f"{JSON};charset=UTF-8", f"{JSON}; charset=utf-8", NOT_CLAIMED})


class _Asked(NamedTuple):
    """A request that names what it should, and who asks."""

    number: int
    token: str
    service_object: str
    stream: str
    body: bytes


class _Accepted(NamedTuple):
    """An update that may come into the log."""

    number: int
    address: Address
    record: UpdateRecord
    document: bytes
    warnings: Mapping[str, str]


class UpdatesLane:
    """Answers what is plain among requests that came together."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def answers(self, requests: Sequence[Request]) -> list[Answer | None]:
        """Return an answer for each update that is in the log now, or that a quota keeps out.

        None: ask the application.
        """
        found: list[Answer | None] = [None] * len(requests)
        read = (_read(number, request) for number, request in enumerate(requests))
        asked = [each for each in read if each is not None]
        accepted: list[_Accepted] = []
        try:
            self._accept(asked, accepted, found)
            if accepted:
                records = [(each.address.partition, each.record) for each in accepted]
                self._services.ports.log.append_all(records)
        except ServioticyError:
            # Some of them may be there: sent again they overwrite themselves. The application
            # counts all of them.
            for each in accepted:
                self._services.accepting.give_back(each.address, len(each.document))
            return found
        for update in accepted:
            found[update.number] = _answer(update)
        return found

    def _accept(
        self, asked: Sequence[_Asked], accepted: list[_Accepted], found: list[Answer | None]
    ) -> None:
        """Add what may come into the log; those who have used up a quota get their answers."""
        if not asked:
            return
        lookups = [Lookup(each.token, each.service_object, each.stream) for each in asked]
        addresses = self._services.ports.addresses.addresses(lookups)
        self._services.quotas.learn({each.caller for each in addresses if each is not None})
        for each, address in zip(asked, addresses, strict=True):
            checked = None if address is None else self._checked(each, address)
            if isinstance(checked, Answer):
                found[each.number] = checked
            elif checked is not None:
                accepted.append(checked)

    def _checked(self, asked: _Asked, address: Address) -> _Accepted | Answer | None:
        services = self._services
        names = asked.service_object, asked.stream
        if address.stream is None or not address.scope.reaches(*names, Right.SEND):
            return None
        if not may(address.caller, Right.SEND, address.resource):
            return None
        exceeded = services.quotas.beyond(address.tenant)
        if exceeded is not None:
            return _refused(exceeded, address)
        known = services.definitions.known(asked.service_object, address.version)
        declared = known.streams.get(asked.stream) if known is not None else None
        if declared is None:
            return None
        try:
            update = parse_update(asked.body, declared)
        except BadDocument:
            return None
        if services.accepting.fault(update) is not None:
            return None
        document = update.document
        exceeded = services.accepting.count((address,), 1, len(document))
        if exceeded is not None:
            return _refused(exceeded, address)
        record = UpdateRecord(
            asked.service_object, asked.stream, update.timestamp, msgspec.Raw(document)
        )
        warnings = warned(services.accepting.hints.of(address.stream, update, declared))
        return _Accepted(asked.number, address, record, document, warnings)


def _read(number: int, request: Request) -> _Asked | None:
    """Return what a request asks for, if nothing about it is odd."""
    head, body = request.head, request.body
    names = head.path.split("/")
    if head.method != "PUT" or head.query or len(names) != 4 or names[2] != "streams":
        return None
    headers = head.headers
    if headers.get("HTTP_CONTENT_TYPE", "") not in PLAIN_TYPES or not head.path.isascii():
        return None
    if "HTTP_CONTENT_ENCODING" in headers or not body:
        return None
    token = read_token(headers.get("HTTP_AUTHORIZATION", ""))
    return _Asked(number, token, names[1], names[3], body) if token else None


def _refused(exceeded: Exceeded, address: Address) -> Answer:
    headers, body = refusal(429, exceeded=exceeded)
    return Answer(status_line(429), headers, body, None, address.caller, ROUTE)


def _answer(accepted: _Accepted) -> Answer:
    size = str(len(accepted.document))
    headers = [("Content-Type", JSON), ("Content-Length", size)]
    headers += [*accepted.warnings.items(), *COMMON_HEADERS.items()]
    return Answer("202 ACCEPTED", headers, accepted.document, None, accepted.address.caller, ROUTE)
